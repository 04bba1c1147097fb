"""`lake.attach`: the tables of a lake as a catalog of a Spark session, for plain Spark SQL."""

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException, UnsupportedOperationException

import lakevilla as lv
from lakevilla.formats.delta.snapshot import DeltaSnapshot
from lakevilla.travel.attached import Attached


@pytest.fixture
def session(spark: Any) -> Any:
    """A session of its own: catalogs stay with theirs."""
    return spark.newSession()


@pytest.fixture
def lake(session: Any, tmp_path: Path) -> lv.Lake:
    lake = lv.Lake(tmp_path / "lake", engine="local")
    lake.create("orders", "id BIGINT, day DATE, place STRUCT<city: STRING, zip: INT>", partition_by=["day"])
    lake.sql(
        "INSERT INTO orders VALUES (1, DATE'2026-01-01', named_struct('city', 'Delft', 'zip', 1)), "
        "(2, DATE'2026-01-02', named_struct('city', 'Gent', 'zip', 2))"
    )
    lake.create("sales.items", "id BIGINT, `odd name` STRING", format="iceberg")
    lake.append("sales.items", [{"id": 2, "odd name": "x"}])
    lake.attach(session)
    return lake


def rows(session: Any, text: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in session.sql(text).collect()]


def test_tables_are_read_by_plain_sql(lake: lv.Lake, session: Any) -> None:
    assert rows(session, "SELECT id FROM lake.orders ORDER BY id") == [(1,), (2,)]
    joined = "SELECT `odd name`, place.city FROM lake.sales.items JOIN lake.orders USING (id)"
    assert rows(session, joined) == [("x", "Gent")]
    assert rows(session, "SELECT place.zip FROM lake.orders WHERE day = DATE'2026-01-02'") == [(2,)]
    assert rows(session, "SELECT count(*), max(id) FROM lake.ORDERS") == [(2, 2)]
    assert session.table("lake.orders").where("id > 1").count() == 1
    assert rows(session, "SHOW TABLES IN lake") == [("", "orders", False)]
    assert rows(session, "SHOW TABLES IN lake.sales") == [("sales", "items", False)]
    assert rows(session, "SELECT count(*) FROM lake.orders VERSION AS OF 0") == [(0,)]
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        session.sql("SELECT * FROM lake.nothing")
    with pytest.raises(IllegalArgumentException, match="version 99"):
        session.sql("SELECT * FROM lake.orders VERSION AS OF 99")
    assert lake.read("orders").count() == 2


def test_query_sees_the_newest_instant_and_a_frame_keeps_its_own(lake: lv.Lake, session: Any) -> None:
    frame = session.table("lake.orders")
    session.sql("CREATE TEMPORARY VIEW seen AS SELECT * FROM lake.orders")
    lake.sql("DELETE FROM orders WHERE id = 1")
    assert rows(session, "SELECT id FROM lake.orders") == [(2,)]
    assert rows(session, "SELECT id FROM seen") == [(2,)]
    assert frame.count() == 2
    session.catalog.dropTempView("seen")


def test_version_that_a_legacy_client_wrote_is_seen(lake: lv.Lake, session: Any) -> None:
    # A client without the global log stands for one that does not know LakeVilla.
    lv.Lake(lake.url, engine="local", features=lv.NONE).append("orders", [{"id": 3}])
    assert rows(session, "SELECT max(id) FROM lake.orders") == [(3,)]


def test_tables_of_a_query_are_read_at_one_instant(
    lake: lv.Lake, session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit on both tables comes between the moments at which Spark asks for them."""
    both = "SELECT (SELECT max(id) FROM lake.orders), (SELECT max(id) FROM lake.sales.items)"
    read = Attached.read

    def late(self: Attached, name: str, *given: Any) -> Any:
        if name == "sales.items":
            monkeypatch.setattr(Attached, "read", read)
            with lake.transaction() as tx:
                tx.append("orders", [{"id": 9}])
                tx.append("sales.items", [{"id": 9}])
        return read(self, name, *given)

    monkeypatch.setattr(Attached, "read", late)
    assert rows(session, both) == [(2, 2)]
    assert rows(session, both) == [(9, 9)]


def test_filters_choose_files_and_columns(
    lake: lv.Lake, session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3, 7):
        lake.append("orders", [{"id": number}])
    chosen: list[int] = []
    files = DeltaSnapshot.files

    def counting(self: Any, predicate: Any) -> Any:
        found = files(self, predicate)
        chosen.append(len(found))
        return found

    monkeypatch.setattr(DeltaSnapshot, "files", counting)
    frame = session.sql("SELECT id FROM lake.orders WHERE id = 5")
    assert [tuple(row) for row in frame.collect()] == [(5,)]
    assert chosen[-1] == 1
    plan = frame._jdf.queryExecution().toString()
    assert re.search(r"Scan LakeVilla lake\.orders.*ReadSchema: struct<id:bigint>", plan)


def test_instant_is_pinned_and_replaced(lake: lv.Lake, session: Any) -> None:
    lake.tag("before")
    lake.sql("DELETE FROM orders")
    lake.attach(session, "then", at="before")
    changes = "SELECT count(t.id), count(n.id) FROM then.orders t LEFT JOIN lake.orders n ON t.id = n.id"
    assert rows(session, changes) == [(2, 0)]
    with pytest.raises(IllegalArgumentException, match="opened at entry"):
        session.sql("SELECT * FROM then.orders VERSION AS OF 0")
    lake.attach(session, "then", at=lake.at(tag="before"))
    assert rows(session, "SHOW TABLES IN then") == [("", "orders", False)]
    lake.attach(session, "then")
    assert rows(session, changes) == [(0, 0)]


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO lake.orders SELECT * FROM lake.orders",
        "DELETE FROM lake.orders",
        "UPDATE lake.orders SET id = 1",
        "DROP TABLE lake.orders",
        "ALTER TABLE lake.orders ADD COLUMN more INT",
        "ALTER TABLE lake.orders RENAME TO lake.others",
        "CREATE TABLE lake.made (id INT)",
        "CREATE TABLE lake.made AS SELECT 1 AS id",
        "TRUNCATE TABLE lake.orders",
    ],
)
def test_change_through_the_catalog_is_refused(lake: lv.Lake, session: Any, text: str) -> None:
    with pytest.raises((AnalysisException, UnsupportedOperationException)):
        session.sql(text)
    assert (lake.tables(), lake.read("orders").count()) == (["orders", "sales.items"], 2)


def test_name_of_another_catalog_or_schema_is_refused(lake: lv.Lake, session: Any) -> None:
    session.conf.set("spark.sql.catalog.taken", "org.example.Catalog")
    for name in ("taken", "spark_catalog", "a b", "", 5, "default", "Default", "session"):
        with pytest.raises(lv.InvalidInput):
            lake.attach(session, name)  # type: ignore[arg-type] # a number is not a name
        assert session.conf.get(f"spark.sql.catalog.{name}", None) in (None, "org.example.Catalog")


def test_namespaces_are_listed_and_used(lake: lv.Lake, session: Any) -> None:
    lake.create("Sales.eu.gains", "id BIGINT")
    lake.create("stock.goods", "id BIGINT")
    assert rows(session, "SHOW NAMESPACES IN lake") == [("Sales",), ("stock",)]
    assert rows(session, "SHOW NAMESPACES IN lake.sales") == [("Sales.eu",)]
    assert rows(session, "SHOW NAMESPACES IN lake.stock") == []
    assert session.catalog.databaseExists("lake.stock")
    assert not session.catalog.databaseExists("lake.nothing")
    session.sql("USE lake.stock")
    assert rows(session, "SELECT count(*) FROM goods") == [(0,)]
    assert rows(session, "SELECT count(*) FROM lake.sales.eu.gains") == [(0,)]
    for text in ("USE lake.nothing", "SHOW NAMESPACES IN lake.nothing"):
        with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
            session.sql(text).collect()
    session.sql("USE spark_catalog.default")
    for text in ("CREATE NAMESPACE lake.made", "DROP NAMESPACE lake.stock"):
        with pytest.raises((AnalysisException, UnsupportedOperationException), match="for reading"):
            session.sql(text)


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_comments_and_properties_are_shown(lake: lv.Lake, session: Any, format: str) -> None:
    lake.sql(
        f"CREATE TABLE told (id BIGINT COMMENT 'of the shop', `a b` STRING COMMENT 'it\\'s', plain INT) "
        f"USING {format} COMMENT 'what was told' TBLPROPERTIES ('owner.team' = 'x')"
    )
    lake.append("told", [{"id": 1, "a b": "y", "plain": 2}])
    columns = [("id", "bigint", "of the shop"), ("a b", "string", "it's"), ("plain", "int", None)]
    assert rows(session, "DESCRIBE lake.told") == columns
    assert rows(session, "SELECT plain, `a b` FROM lake.told WHERE id = 1") == [(2, "y")]
    extended = {row[0]: row[1] for row in rows(session, "DESCRIBE EXTENDED lake.told")}
    assert (extended["Comment"], extended["Provider"]) == ("what was told", format)
    assert rows(session, "SHOW TBLPROPERTIES lake.told ('owner.team')") == [("owner.team", "x")]


def test_lake_of_its_own_session_reads_what_is_attached(lake: lv.Lake, session: Any) -> None:
    other = lv.Lake(lake.url, spark=session)
    other.append("orders", session.table("lake.orders").selectExpr("id + 10 AS id"))
    assert rows(session, "SELECT max(id) FROM lake.orders") == [(12,)]
    other.attach(name="mine")
    assert rows(session, "SELECT count(*) FROM mine.orders") == [(4,)]


def test_cached_frame_answers_for_its_own_version_alone(lake: lv.Lake, session: Any, tmp_path: Path) -> None:
    """Spark's cache knows tables by their names."""
    frame = session.table("lake.orders").cache()
    assert frame.count() == 2
    assert "InMemoryTableScan" in session.table("lake.orders")._jdf.queryExecution().toString()
    frame.createOrReplaceTempView("kept")
    lake.append("orders", [{"id": 3}])
    assert (frame.count(), rows(session, "SELECT count(*) FROM lake.orders")) == (2, [(3,)])
    assert rows(session, "SELECT count(*) FROM kept") == [(3,)]
    lake.attach(session, at=lake.at(seq=0))
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        session.sql("SELECT * FROM lake.orders")
    other = lv.Lake(tmp_path / "other", engine="local")
    other.create("orders", "id BIGINT")
    other.attach(session)
    assert rows(session, "SELECT count(*) FROM lake.orders") == [(0,)]
    frame.unpersist()


def test_cached_table_is_read_anew_after_a_commit_and_after_refresh(lake: lv.Lake, session: Any) -> None:
    count = "SELECT count(*) FROM lake.orders"
    session.sql("CACHE TABLE lake.orders")
    assert rows(session, count) == [(2,)]
    lake.append("orders", [{"id": 3}])
    assert rows(session, count) == [(3,)]
    session.sql("REFRESH TABLE lake.orders")
    assert rows(session, count) == [(3,)]
    session.sql("UNCACHE TABLE lake.orders")
    assert rows(session, count) == [(3,)]
