"""SHOW and DESCRIBE of tables: what they say, and that the statement they give makes the table anew."""

import pytest

import lakevilla as lv

pytestmark = pytest.mark.formats("delta", "iceberg")

CREATE = (
    "CREATE TABLE t (id BIGINT NOT NULL COMMENT 'it\\'s a key', `odd name` STRING, day DATE, "
    "nested STRUCT<a: INT, b: ARRAY<STRING>>) PARTITIONED BY (day) COMMENT 'all of them' "
    "TBLPROPERTIES ('owner' = 'me')"
)


@pytest.fixture
def lake() -> lv.Lake:
    lake = lv.Lake("memory://", engine="local")
    lake.sql(CREATE)
    lake.sql("INSERT INTO t VALUES (1, 'a', DATE'2026-01-31', NULL), (2, 'b', DATE'2026-02-01', NULL)")
    return lake


def test_created_statement_makes_the_same_table(lake: lv.Lake) -> None:
    (row,) = lake.sql("SHOW CREATE TABLE t").collect()
    lake.sql("DROP TABLE t")
    lake.sql(row[0])
    assert lake.sql("SHOW CREATE TABLE t").collect() == [row]
    assert "COMMENT 'it\\'s a key'" in row[0]
    assert "COMMENT 'all of them'" in row[0]
    assert "'owner' = 'me'" in row[0]
    assert "PARTITIONED BY (day)" in row[0]


def test_columns_and_properties_are_listed(lake: lv.Lake) -> None:
    assert [row[0] for row in lake.sql("SHOW COLUMNS IN t").collect()] == ["id", "odd name", "day", "nested"]
    assert ("owner", "me") in [tuple(row) for row in lake.sql("SHOW TBLPROPERTIES t").collect()]
    assert [tuple(row) for row in lake.sql("SHOW TBLPROPERTIES t ('owner')").collect()] == [("owner", "me")]
    with pytest.raises(lv.InvalidInput, match="did you mean 'owner'"):
        lake.sql("SHOW TBLPROPERTIES t ('ovner')")


def test_description_has_comments_and_facts(lake: lv.Lake, table_format: str) -> None:
    rows = [tuple(row) for row in lake.sql("DESCRIBE EXTENDED t").collect()]
    assert rows[0] == ("id", "bigint", "it's a key")
    facts = {row[0]: row[1] for row in rows}
    assert facts["Provider"] == table_format
    assert facts["Comment"] == "all of them"
    assert facts["Location"] == f"{lake.url}/t"
    (detail,) = lake.sql("DESC DETAIL t").collect()
    assert (detail.name, detail.numFiles, detail.numRows, detail.description) == ("t", 2, 2, "all of them")
    assert detail.partitionColumns == ["day"]


def test_transaction_describes_its_own_changes(lake: lv.Lake) -> None:
    with lake.transaction() as tx:
        tx.sql("DELETE FROM t WHERE id = 1")
        assert tx.sql("DESCRIBE DETAIL t").collect()[0].numRows == 1
        assert lake.sql("DESCRIBE DETAIL t").collect()[0].numRows == 2


def test_history_has_a_limit(lake: lv.Lake) -> None:
    assert lake.sql("SHOW HISTORY FOR t").count() == 2
    assert lake.sql("SHOW HISTORY FOR t LIMIT 1").count() == lake.sql("DESCRIBE HISTORY t").count() - 1


def test_table_may_have_the_name_of_a_style(lake: lv.Lake) -> None:
    lake.create("history", "id INT")
    lake.create("detail.table", "id INT")
    assert lake.sql("DESCRIBE history").count() == 1
    assert lake.sql("DESCRIBE detail.table").count() == 1
    assert lake.sql("DESCRIBE TABLE history").count() == 1


@pytest.mark.parametrize("text", ["SHOW", "SHOW TABELS", "SHOW COLUMNS t", "DESCRIBE", "SHOW CREATE t"])
def test_wrong_description_is_refused_at_its_place(lake: lv.Lake, text: str) -> None:
    with pytest.raises(lv.LakeVillaError) as error:
        lake.sql(text)
    assert error.value.position is not None
