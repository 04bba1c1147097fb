"""SQL from end to end: text to committed tables, and read back."""

from decimal import Decimal

import pyarrow as pa
import pytest

import lakevilla as lv

pytestmark = pytest.mark.formats("delta", "iceberg")


@pytest.fixture
def lake() -> lv.Lake:
    lake = lv.Lake("memory://")
    lake.create("t", [{"id": i, "v": 0} for i in range(5)])
    lake.create("db.u", [{"id": i} for i in (1, 3)])
    return lake


def _rows(lake: lv.Lake, name: str = "t") -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in lake.read(name).collect())


@pytest.mark.parametrize(
    ("text", "counts", "values"),
    [
        (
            "UPDATE t AS x SET v = 1 WHERE EXISTS (SELECT 1 FROM db.u WHERE u.id = x.id)",
            (0, 2, 0),
            [0, 1, 0, 1, 0],
        ),
        ("UPDATE t x SET x.v = x.v + 1 WHERE x.id IN (SELECT id FROM db.u)", (0, 2, 0), [0, 1, 0, 1, 0]),
        ("UPDATE t SET v = (SELECT max(id) FROM t) WHERE t.id = 0", (0, 1, 0), [4, 0, 0, 0, 0]),
        ("UPDATE t SET v = CASE WHEN id > 2 THEN 9 ELSE v END", (0, 5, 0), [0, 0, 0, 9, 9]),
        ("DELETE FROM t AS y WHERE y.id >= 3", (0, 0, 2), [0, 0, 0]),
        ("TRUNCATE TABLE t", (0, 0, 5), []),
        ("INSERT INTO t VALUES (7, 8), (9, 10)", (2, 0, 0), [0, 0, 0, 0, 0, 8, 10]),
        ("INSERT INTO t (v, id) SELECT 5, id + 10 FROM db.u", (2, 0, 0), [0, 0, 0, 0, 0, 5, 5]),
        ("INSERT INTO t BY NAME SELECT 5 AS v, 50L AS id", (1, 0, 0), [0, 0, 0, 0, 0, 5]),
        ("INSERT OVERWRITE t SELECT id, 3 FROM db.u", (2, 0, 5), [3, 3]),
        ("INSERT INTO t REPLACE WHERE id = 1 SELECT 1, 99", (1, 0, 1), [0, 99, 0, 0, 0]),
    ],
)
def test_change_counts_its_rows_and_is_read_back(
    lake: lv.Lake, text: str, counts: tuple[int, int, int], values: list[int]
) -> None:
    assert lake.sql(text) == lv.Counts(*counts)
    assert [row[1] for row in _rows(lake)] == values


def test_merge_applies_the_first_clause_that_holds(lake: lv.Lake) -> None:
    lake.sql("UPDATE t SET v = 1 WHERE id = 3")
    lake.append("db.u", [{"id": 11}])
    counts = lake.sql(
        "MERGE INTO t AS a USING db.u AS b ON a.id = b.id "
        "WHEN MATCHED AND a.v > 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = b.id + 100 "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (b.id, 7) "
        "WHEN NOT MATCHED BY SOURCE AND a.id > 2 THEN UPDATE SET v = -1"
    )
    assert counts == lv.Counts(inserted=1, updated=2, deleted=1)
    assert _rows(lake) == [(0, 0), (1, 101), (2, 0), (4, -1), (11, 7)]


def test_merge_verb_takes_data_a_name_or_a_query(lake: lv.Lake) -> None:
    lake.rename("db.u", "a`b.c d")
    for source in ([{"id": 1}], "a`b.c d", "SELECT id FROM `a``b.c d`"):
        lake.merge("t", source, on="target.id = source.id", matched={"v": "target.v + 1"})
    assert _rows(lake) == [(0, 0), (1, 3), (2, 0), (3, 2), (4, 0)]


def test_merge_in_which_two_rows_match_one_is_refused(lake: lv.Lake) -> None:
    lake.append("db.u", [{"id": 1}])
    with pytest.raises(lv.InvalidInput):
        lake.merge("t", "db.u", on="target.id = source.id", matched={"v": 1})
    assert _rows(lake) == [(i, 0) for i in range(5)]


def test_parameters_are_values_never_text(lake: lv.Lake) -> None:
    lake.create("s", "name STRING, price DECIMAL(10, 2)")
    name = "x'); DROP TABLE t; --"
    lake.sql("INSERT INTO s VALUES (:name, :price)", name=name, price=Decimal("1.50"))
    assert lake.sql("SELECT price FROM s WHERE name = :name", name=name).collect() == [(Decimal("1.50"),)]
    assert "t" in lake.tables()


def test_table_is_created_from_a_query_and_described(lake: lv.Lake) -> None:
    lake.sql(
        "CREATE TABLE c PARTITIONED BY (id) COMMENT 'sums' AS SELECT id, count(*) AS n FROM t GROUP BY id"
    )
    assert _rows(lake, "c") == [(i, 1) for i in range(5)]
    assert lake.sql("DESCRIBE c").collect() == [
        ("id", "bigint", True, None),
        ("n", "bigint", True, None),
    ]
    assert [row.tableName for row in lake.sql("SHOW TABLES LIKE 'c|t*'").collect()] == ["c", "t"]


@pytest.mark.formats("delta")
def test_table_that_names_no_format_has_the_one_of_the_lake() -> None:
    lake = lv.Lake("memory://", engine="local", default_format="iceberg")
    lake.create("made", "id BIGINT")
    lake.create("made_delta", "id BIGINT", format="delta")
    lake.sql("CREATE TABLE defined (id BIGINT)")
    lake.sql("CREATE TABLE defined_delta (id BIGINT) USING DELTA")
    lake.sql("CREATE TABLE copied AS SELECT * FROM made_delta")
    formats = {table.name: table.format for table in lake.export().tables}
    assert {name for name, kind in formats.items() if kind == "iceberg"} == {"made", "defined", "copied"}
    assert {name for name, kind in formats.items() if kind == "delta"} == {"made_delta", "defined_delta"}
    with pytest.raises(lv.Unsupported, match="'parquet'"):
        lv.Lake("memory://", engine="local", default_format="parquet")


def test_columns_are_added_renamed_and_dropped(lake: lv.Lake, table_format: str, begin: int) -> None:
    lake.sql("ALTER TABLE t ADD COLUMNS (note STRING COMMENT 'free', day DATE)")
    if table_format == "delta":
        with pytest.raises(lv.InvalidInput, match=r"delta\.columnMapping\.mode"):
            lake.sql("ALTER TABLE t RENAME COLUMN v TO amount")
        lake.sql("ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    lake.sql("ALTER TABLE t RENAME COLUMN v TO amount")
    lake.sql("ALTER TABLE t DROP COLUMN day")
    lake.sql("UPDATE t SET note = 'x', amount = 5 WHERE id = 2")
    lake.sql("INSERT INTO t VALUES (9, 1, 'y')")
    assert lake.read("t").columns == ["id", "amount", "note"]
    assert [r for r in _rows(lake) if r[0] in (2, 9)] == [(2, 5, "x"), (9, 1, "y")]
    assert lake.sql(f"SELECT v FROM t VERSION AS OF {begin} WHERE id = 2").collect() == [(0,)]


@pytest.mark.formats("delta")
def test_constraint_is_kept_by_every_verb(lake: lv.Lake) -> None:
    lake.sql("ALTER TABLE t ADD CONSTRAINT small CHECK (v < 10)")
    for change in (
        lambda: lake.sql("UPDATE t SET v = 10 WHERE id = 1"),
        lambda: lake.append("t", [{"id": 7, "v": 11}]),
        lambda: lake.sql("INSERT INTO t VALUES (7, 11)"),
        lambda: lake.merge("t", [{"id": 1}], on="target.id = source.id", matched={"v": 99}),
        lambda: lake.overwrite("t", [{"id": 7, "v": 11}]),
    ):
        with pytest.raises(lv.InvalidInput) as caught:
            change()
        assert caught.value.rule == "small"
    with pytest.raises(lv.InvalidInput, match="'t': 5 of its rows violate it"):
        lake.sql("ALTER TABLE t ADD CONSTRAINT positive CHECK (v > 0)")
    lake.append("t", [{"id": 8, "v": 5}])
    lake.sql("ALTER TABLE t DROP CONSTRAINT small")
    lake.append("t", [{"id": 9, "v": None}])
    with pytest.raises(lv.InvalidInput, match="'t': 1 of its rows violate it"):
        lake.sql("ALTER TABLE t ADD CONSTRAINT small CHECK (v < 10)")
    assert lake.append("t", [{"id": 7, "v": 11}]) == lv.Counts(inserted=1)


def test_not_null_is_kept_by_every_verb() -> None:
    lake = lv.Lake("memory://")
    lake.create("n", "id BIGINT NOT NULL, v INT")
    lake.append("n", [{"id": 1, "v": 1}])
    for change in (
        lambda: lake.append("n", [{"v": 1}]),
        lambda: lake.sql("INSERT INTO n (v) VALUES (1)"),
        lambda: lake.update("n", {"id": None}),
    ):
        with pytest.raises(lv.InvalidInput, match="id"):
            change()
    assert lake.read("n").count() == 1


@pytest.mark.formats("delta")
def test_append_only_table_refuses_changes_of_rows() -> None:
    lake = lv.Lake("memory://")
    lake.create("a", "id INT", properties={"delta.appendOnly": "true"})
    lake.append("a", [{"id": 1}])
    for change in (
        lambda: lake.delete("a"),
        lambda: lake.update("a", {"id": 2}),
        lambda: lake.overwrite("a", []),
    ):
        with pytest.raises(lv.InvalidInput, match="append-only"):
            change()
    assert _rows(lake, "a") == [(1,)]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("SELEC 1", lv.InvalidInput),
        ("SELECT * FROM", lv.InvalidInput),
        ("SELECT nope FROM t", lv.InvalidInput),
        ("SELECT * FROM nope", lv.InvalidInput),
        ("SELECT 1; SELECT 2", lv.InvalidInput),
        ("", lv.InvalidInput),
        ("UPDATE t SET nope = 1", lv.InvalidInput),
        ("INSERT INTO t VALUES (1)", lv.InvalidInput),
        ("INSERT INTO t VALUES ('x', 1)", lv.InvalidInput),
        ("SELECT * FROM t WHERE id = :missing", lv.InvalidInput),
        ("BEGIN", lv.InvalidInput),
        ("SELECT * FROM t VERSION AS OF 99", lv.InvalidInput),
        ("SELECT * FROM t TIMESTAMP AS OF '2020-01-01'", lv.InvalidInput),
        ("SELECT * FROM read_csv('/etc/passwd')", lv.Unsupported),
        ("COPY t TO 'x'", lv.Unsupported),
        ("CREATE TABLE x (id VARIANT)", lv.Unsupported),
        ("CREATE TABLE x (id INT) USING parquet", lv.Unsupported),
    ],
)
def test_wrong_statement_is_refused_and_changes_nothing(
    lake: lv.Lake, text: str, error: type[lv.LakeVillaError]
) -> None:
    with pytest.raises(error):
        lake.sql(text)
    assert len(lake.history("t")) == 1
    assert lake.tables() == ["db.u", "t"]


@pytest.mark.parametrize(
    "text", ["SELECT " + "(" * 900 + "1" + ")" * 900, "SELECT " + "+".join(["1"] * 3000)]
)
def test_statement_nested_too_deeply_is_refused(lake: lv.Lake, text: str) -> None:
    with pytest.raises(lv.InvalidInput, match="too deeply"):
        lake.sql(text)


def test_check_over_other_rows_is_refused(lake: lv.Lake) -> None:
    lake.sql("CREATE TABLE checked (a INT)")
    with pytest.raises(lv.InvalidInput, match="subquery"):
        lake.sql("ALTER TABLE checked ADD CONSTRAINT c CHECK (a IN (SELECT 1))")
    with pytest.raises(lv.InvalidInput, match="version must be a number"):
        lake.read("checked", version="0")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["t@v0", "t@20260101000000000"])
def test_version_behind_the_name_is_not_taken_for_an_alias(lake: lv.Lake, name: str) -> None:
    with pytest.raises(lv.InvalidInput):
        lake.sql(f"SELECT * FROM {name}")


@pytest.mark.parametrize("engine", ["duckdb", object()])
def test_engine_that_there_is_not_is_refused_with_those_that_there_are(engine: object) -> None:
    with pytest.raises(lv.InvalidInput, match="engine='local'"):
        lv.Lake("memory://", engine=engine)  # type: ignore[arg-type]


@pytest.mark.formats("delta")
@pytest.mark.parametrize("column", [".", ".a", ".a.b"])
def test_column_whose_name_begins_with_a_dot_is_found_by_its_bounds(column: str) -> None:
    """Arrow takes such a name for a path."""
    lake = lv.Lake("memory://")
    inside = pa.struct([(column, pa.int64())])
    lake.create("t", pa.schema([(column, pa.int64()), ("s", inside)]))
    for number in (1, 2):
        lake.append("t", pa.table({column: [number], "s": pa.array([{column: number}], inside)}))
    assert lake.sql(f"SELECT * FROM t WHERE `{column}` = 2").count() == 1
    assert lake.sql(f"UPDATE t SET `{column}` = 3 WHERE s.`{column}` = 1").updated == 1
    assert lake.sql(f"DELETE FROM t WHERE `{column}` = 3").deleted == 1


def test_subquery_in_the_condition_of_an_overwrite_is_refused() -> None:
    lake = lv.Lake("memory://", engine="local")
    lake.create("t", [{"id": 1}])
    with pytest.raises(lv.InvalidInput) as refused:
        lake.sql("INSERT INTO t REPLACE WHERE id IN (SELECT id FROM t) SELECT 2 AS id")
    assert "unknown table" not in str(refused.value)
    assert _rows(lake, "t") == [(1,)]
