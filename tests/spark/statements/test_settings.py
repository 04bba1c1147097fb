"""Statements mean what the session's settings say: files are chosen as Spark itself would choose rows."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakevilla as lv
from tests.conformance.engines.pruning.pruned import settings

ZONE = "spark.sql.session.timeZone"
MOMENT = datetime(2024, 1, 1, 2, tzinfo=UTC)
ZONES = ["America/New_York", "Asia/Tokyo", "UTC"]

Filled = Callable[[], lv.Lake]


@pytest.fixture
def filled(quick: Any, tmp_path: Path) -> Filled:
    """A lake with a table of one file for each hour around a midnight."""

    def fill() -> lv.Lake:
        lake = lv.Lake(tmp_path, spark=quick)
        lake.create("t", "id INT, ts TIMESTAMP, wall TIMESTAMP_NTZ, day DATE")
        for hour in range(-12, 13, 4):
            at = MOMENT + timedelta(hours=hour)
            columns = {
                "id": pa.array([hour], pa.int32()),
                "ts": pa.array([at], pa.timestamp("us", "UTC")),
                "wall": pa.array([at.replace(tzinfo=None)], pa.timestamp("us")),
                "day": pa.array([at.date()], pa.date32()),
            }
            lake.append("t", pa.table(columns))
        return lake

    return fill


CONDITIONS = [
    "ts >= '2024-01-01 00:00:00'",
    "ts < TIMESTAMP '2024-01-01 00:00:00'",
    "ts < DATE '2024-01-01'",
    "ts BETWEEN '2023-12-31 20:00:00' AND '2024-01-01 03:00:00'",
    "ts IN ('2023-12-31 21:00:00', '2024-01-01 11:00:00')",
    "NOT (ts < CAST('2024-01-01' AS TIMESTAMP))",
    "ts = CAST('2024-01-01 02:00:00+00:00' AS TIMESTAMP)",
    "wall >= TIMESTAMP_LTZ '2024-01-01 00:00:00'",
    "wall < '2024-01-01 00:00:00+05:00'",
    "day < TIMESTAMP '2024-01-01 00:00:00'",
    "day = '2024-01-01'",
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("zone", ZONES)
def test_delete_in_a_zone_deletes_what_select_finds(quick: Any, filled: Filled, zone: str) -> None:
    lake = filled()
    with settings(quick, {ZONE: zone}):
        rows = quick.createDataFrame(lake.read("t").toArrow(), lake.read("t").schema)
        every = {row.id for row in rows.collect()}
        for condition in CONDITIONS:
            found = {row.id for row in rows.where(condition).collect()}
            selected = lake.sql(f"SELECT id FROM t WHERE {condition}").collect()
            assert {row.id for row in selected} == found, condition
            with lake.transaction() as tx:
                assert tx.sql(f"DELETE FROM t WHERE {condition}").deleted == len(found), condition
                assert {row.id for row in tx.read("t").collect()} == every - found, condition
                tx.abort()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("zone", ZONES[:2])
def test_update_and_merge_in_a_zone_find_the_same_rows(quick: Any, filled: Filled, zone: str) -> None:
    lake = filled()
    condition = "ts >= '2024-01-01 00:00:00'"
    with settings(quick, {ZONE: zone}):
        found = lake.sql(f"SELECT id FROM t WHERE {condition}").count()
        assert lake.sql(f"UPDATE t SET day = NULL WHERE {condition}").updated == found
        merge = f"MERGE INTO t USING (SELECT 1 AS one) s ON t.{condition} WHEN MATCHED THEN DELETE"
        assert lake.sql(merge).deleted == found
        assert lake.sql("SELECT * FROM t WHERE day IS NULL").count() == 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("zone", ZONES[:2])
@pytest.mark.parametrize("kind", ["TIMESTAMP_LTZ", "TIMESTAMP_NTZ"])
def test_moment_given_as_a_parameter_is_the_same_in_every_zone(
    quick: Any, filled: Filled, zone: str, kind: str
) -> None:
    lake = filled()
    with settings(quick, {ZONE: zone, "spark.sql.timestampType": kind}):
        lake.sql("UPDATE t SET ts = :at WHERE id = 0", at=datetime(2030, 6, 1, 12, tzinfo=UTC))
        lake.sql("INSERT INTO t (id, ts) VALUES (100, :at)", at=datetime(2030, 6, 1, 12))
        assert lake.sql("DELETE FROM t WHERE ts = :at", at=datetime(2030, 6, 1, 12, tzinfo=UTC)).deleted == 2


def test_condition_in_a_zone_conflicts_with_an_append_that_it_matches(quick: Any, filled: Filled) -> None:
    lake = filled()
    row = pa.table(
        {
            "id": pa.array([50], pa.int32()),
            "ts": pa.array([datetime(2023, 12, 31, 20, tzinfo=UTC)], pa.timestamp("us", "UTC")),
        }
    )
    with (
        settings(quick, {ZONE: "Asia/Tokyo"}),
        pytest.raises(lv.Conflict),
        lake.transaction(lv.NONE) as tx,
    ):
        tx.sql("UPDATE t SET day = NULL WHERE ts >= '2024-01-01 00:00:00'")
        lake.append("t", row)


def test_backslash_in_a_parameter_is_stored_as_it_is_with_escaped_literals(
    quick: Any, tmp_path: Path
) -> None:
    lake = lv.Lake(tmp_path, spark=quick)
    lake.create("t", "id INT, v STRING")
    text = "a\\b'c\n\"d\\\\"
    with settings(quick, {"spark.sql.parser.escapedStringLiterals": "true"}):
        lake.sql("INSERT INTO t VALUES (1, :v)", v=text)
        lake.sql("INSERT INTO t VALUES (2, 'plain'), (3, 'a\\\\b')")
        found = {row.id: row.v for row in lake.read("t").collect()}
        assert found == {1: text, 2: "plain", 3: "a\\b"}
        assert lake.sql("DELETE FROM t WHERE v = :v", v=text).deleted == 1


def test_number_compared_as_float_without_ansi_deletes_what_select_finds(quick: Any, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, spark=quick)
    lake.create("t", "f FLOAT")
    for value in (16777216.0, 1.0, 16777220.0):
        lake.append("t", pa.table({"f": pa.array([value], pa.float32())}))
    with settings(quick, {"spark.sql.ansi.enabled": "false"}):
        assert lake.sql("SELECT * FROM t WHERE f = 16777217").count() == 1
        assert lake.sql("DELETE FROM t WHERE f = 16777217").deleted == 1


def test_text_that_is_no_number_without_ansi_deletes_nothing(quick: Any, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, spark=quick)
    lake.create("t", [{"i": 1}])
    lake.create("n", "i INT")
    lake.append("n", [{"i": 1}])
    with settings(quick, {"spark.sql.ansi.enabled": "false"}):
        assert lake.sql("DELETE FROM n WHERE NOT (i = '3000000000')").deleted == 0
        assert lake.sql("DELETE FROM t WHERE i <> 'text'").deleted == 0


def test_nested_value_that_does_not_fit_is_refused_without_ansi(quick: Any, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, spark=quick)
    lake.create("t", "a ARRAY<INT>, s STRUCT<x: TINYINT>")
    with settings(quick, {"spark.sql.ansi.enabled": "false"}):
        with pytest.raises((lv.InvalidInput, lv.Unsupported)):
            lake.sql("INSERT INTO t VALUES (array(3000000000L), NULL)")
        with pytest.raises((lv.InvalidInput, lv.Unsupported)):
            lake.sql("INSERT INTO t VALUES (NULL, named_struct('x', 300))")
        lake.sql("INSERT INTO t VALUES (array(1S), NULL)")
    assert lake.read("t").count() == 1


@pytest.fixture(scope="module")
def floats(quick: Any, tmp_path_factory: pytest.TempPathFactory) -> lv.Lake:
    """Two floats, each in a file of its own. The tests roll their changes back."""
    lake = lv.Lake(tmp_path_factory.mktemp("floats"), spark=quick)
    lake.create("t", "f FLOAT")
    for value in (0.1, 0.7):
        lake.append("t", pa.table({"f": pa.array([value], pa.float32())}))
    return lake


@pytest.mark.parametrize(
    "condition",
    [
        "f = CAST(0.1 AS FLOAT)",
        "f <=> CAST('0.1' AS FLOAT)",
        "f IN (CAST(0.1 AS FLOAT), CAST(9 AS FLOAT))",
        "f <= CAST(0.1 AS FLOAT)",
        "f BETWEEN CAST(0.1 AS FLOAT) AND CAST(0.1 AS FLOAT)",
        "f >= CAST(0.7 AS FLOAT)",
        "NOT (f > CAST(0.1 AS FLOAT))",
    ],
)
def test_filter_of_floats_finds_the_float_itself(quick: Any, floats: lv.Lake, condition: str) -> None:
    rows = quick.createDataFrame(floats.read("t").toArrow())
    assert rows.where(condition).count() == 1
    assert floats.sql(f"SELECT * FROM t WHERE {condition}").count() == 1
    for change in ("UPDATE t SET f = f", "DELETE FROM t"):
        with floats.transaction() as tx:
            receipt = tx.sql(f"{change} WHERE {condition}")
            assert receipt.updated + receipt.deleted == 1
            tx.abort()
