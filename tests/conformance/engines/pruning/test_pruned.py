"""Files are pruned as the session reads the statement: under every setting, in every layout, on every type.

What a DELETE or an UPDATE on Spark would read, and remove unread, is asked of the engine without running it;
the SELECTs run on some layouts, and some changes do. The local engine runs them all. Spark Connect has its
own tests in `tests/spark/servers/test_connect.py`, where its server is.
"""

import os
from collections.abc import Callable
from datetime import UTC, date, datetime
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakevilla as lv
from tests.conformance.engines.choice import SEEDS
from tests.conformance.engines.pruning.pruned import CONDITIONS, LAYOUTS, SETTINGS, fill, settings
from tests.conformance.engines.pruning.pruning_checks import (
    SKIPPED_DAY,
    differing,
    true_rows,
    wrongly_changed,
    wrongly_pruned,
    wrongly_selected,
)

_ALL = SEEDS in os.environ
_SAMPLE = ("delta", "iceberg", "delta by s", "iceberg by at", "delta by f")


def _cases() -> list[tuple[str, str, int, int]]:
    """Settings and layout, and of the conditions every how many, from which on."""
    if _ALL:
        return [(setting, layout, 0, 1) for setting in SETTINGS for layout in LAYOUTS]
    queues = cycle(_SAMPLE)
    return [(setting, next(queues), number % 16, 16) for number, setting in enumerate(SETTINGS)]


@pytest.fixture(scope="module")
def lake_of(quick: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], lv.Lake]:
    def make(layout: str) -> lv.Lake:
        folder = tmp_path_factory.mktemp("pruned")
        fill(folder, layout)
        return lv.Lake(folder, spark=quick)

    return cache(make)


@pytest.mark.parametrize(("setting", "layout", "first", "step"), _cases())
def test_files_are_pruned_as_the_session_reads_the_condition(
    quick: Any, lake_of: Callable[[str], lv.Lake], setting: str, layout: str, first: int, step: int
) -> None:
    lake = lake_of(layout)
    with settings(quick, SETTINGS[setting]):
        true = true_rows(quick, lake, CONDITIONS[first::step])
        assert wrongly_pruned(lake, true) == []
        if layout in _SAMPLE:
            # To run takes five times as long as to ask which files would be read.
            assert wrongly_selected(lake, true) == []


@pytest.mark.parametrize(
    ("setting", "layout"),
    [(s, la) for s in SETTINGS for la in _SAMPLE] if _ALL else [("no ANSI in Tokyo", "iceberg")],
)
def test_statements_change_what_plain_spark_finds(
    quick: Any, lake_of: Callable[[str], lv.Lake], setting: str, layout: str
) -> None:
    lake = lake_of(layout)
    with settings(quick, SETTINGS[setting]):
        true = true_rows(quick, lake, CONDITIONS[:: 8 if _ALL else 40])
        assert wrongly_changed(lake, true) == []


@pytest.mark.parametrize(
    ("layout", "first", "step"),
    [(la, 0, 1) for la in LAYOUTS] if _ALL else [(la, 4 * n, 20) for n, la in enumerate(_SAMPLE)],
)
def test_local_engine_finds_the_same_rows_with_pruning_and_as_spark(
    quick: Any, lake_of: Callable[[str], lv.Lake], layout: str, first: int, step: int
) -> None:
    on_spark, conditions = lake_of(layout), CONDITIONS[first::step]
    local = lv.Lake(on_spark.url, engine="local")
    assert differing(local, conditions) == []
    assert wrongly_changed(local, true_rows(quick, on_spark, conditions)) == []


def test_plain_spark_loses_days_that_the_julian_calendar_skips(quick: Any, tmp_path: Path) -> None:
    """Why SELECTs with such a day are not compared: Spark loses it from a plain Parquet file, too."""
    day = date.fromisoformat(SKIPPED_DAY)
    pq.write_table(pa.table({"day": [day]}), tmp_path / "one.parquet")
    frame = quick.read.parquet(str(tmp_path))
    condition = f"day = DATE '{SKIPPED_DAY}'"
    with settings(quick, {"spark.sql.datetime.java8API.enabled": "false"}):
        assert frame.where(condition).count() == 0
    with settings(quick, {"spark.sql.datetime.java8API.enabled": "true"}):
        assert frame.where(condition).count() == 1


@pytest.mark.parametrize("made", ["delta", "iceberg"])
def test_changes_find_days_that_the_julian_calendar_skips(quick: Any, tmp_path: Path, made: str) -> None:
    lake = lv.Lake(tmp_path, spark=quick)
    schema = pa.schema([("id", pa.int32()), ("day", pa.date32()), ("at", pa.timestamp("us", "UTC"))])
    lake.create("t", schema, format=made)
    day = date.fromisoformat(SKIPPED_DAY)
    lake.append("t", [{"id": 1, "day": day, "at": datetime(1582, 10, 10, 1, tzinfo=UTC)}])
    once = "SELECT 1 AS id, DATE '1582-10-10' AS day, TIMESTAMP '1582-10-10 01:00:00+00:00' AS at"
    for on in ("t.day = s.day", "t.at = s.at"):
        then = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        assert lake.sql(f"MERGE INTO t USING ({once}) s ON {on} {then}") == lv.Counts(updated=1)
    assert lake.sql(f"UPDATE t SET id = 2 WHERE day = (SELECT day FROM ({once}))") == lv.Counts(updated=1)
    assert lake.sql("DELETE FROM t WHERE day = '1582-10-10' AND EXISTS (SELECT 1)") == lv.Counts(deleted=1)


def test_suite_has_its_combinations() -> None:
    assert len(SETTINGS) >= 10
    assert len(CONDITIONS) * len(SETTINGS) * len(LAYOUTS) > 20_000
