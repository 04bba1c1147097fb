"""Files are pruned as the session reads the statement: under every setting, in every layout, on every type.

The oracle is plain Spark over the same rows, and with it the same statement without pruning. What a DELETE
or an UPDATE would read, and remove unread, is asked of the engine without running it; some statements run.
"""

import os
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import lakevilla as lv
from lakevilla.engines.spark.engine import SparkEngine
from lakevilla.predicates import ANYTHING
from lakevilla.sql.parsing import parse_expression
from tests.conformance.engines.choosing import SEEDS
from tests.conformance.engines.pruned import CONDITIONS, LAYOUTS, SETTINGS, fill, rows, settings

_ALL = SEEDS in os.environ
_SAMPLE = ("delta", "iceberg", "delta by s", "iceberg by at", "delta by f")


def _cases() -> list[tuple[str, str, int, int]]:
    """Settings and layout, and of the conditions every how many, from which on."""
    if _ALL:
        return [(setting, layout, 0, 1) for setting in SETTINGS for layout in LAYOUTS]
    turns = cycle(_SAMPLE)
    return [(setting, next(turns), number % 16, 16) for number, setting in enumerate(SETTINGS)]


@pytest.fixture(scope="module")
def lake_of(quick: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    def make(layout: str) -> lv.Lake:
        folder = tmp_path_factory.mktemp("pruned")
        fill(folder, layout)
        return lv.Lake(folder, spark=quick)

    return cache(make)


@pytest.mark.parametrize(("setting", "layout", "first", "step"), _cases())
def test_files_are_pruned_as_the_session_reads_the_condition(
    quick: Any, lake_of: Any, setting: str, layout: str, first: int, step: int
) -> None:
    lake, conditions = lake_of(layout), CONDITIONS[first::step]
    with settings(quick, SETTINGS[setting]):
        assert wrongly_pruned(lake, quick, conditions) == []


@pytest.mark.parametrize(
    ("setting", "layout"),
    [(s, la) for s in SETTINGS for la in _SAMPLE] if _ALL else [("no ANSI in Tokyo", "iceberg")],
)
def test_statements_change_what_plain_spark_finds(
    quick: Any, lake_of: Any, setting: str, layout: str
) -> None:
    lake = lake_of(layout)
    with settings(quick, SETTINGS[setting]):
        assert wrongly_changed(lake, quick, CONDITIONS[:: 8 if _ALL else 40]) == []


def true_rows(session: Any, lake: lv.Lake, conditions: list[str]) -> dict[str, set[int]]:
    """Plain Spark over the same rows: for each condition those for which it is true. Conditions that Spark
    refuses are left out."""
    # As the table gives them: in Delta an empty text that divides a table is NULL.
    every = lake.read("t")
    plain = session.createDataFrame(every.toArrow(), every.schema)
    found = {}
    for condition in conditions:
        try:
            found[condition] = {row.id for row in plain.where(condition).select("id").collect()}
        except (PySparkException, Py4JJavaError):
            continue
    return found


def wrongly_pruned(lake: lv.Lake, session: Any, conditions: list[str]) -> list[str]:
    """Conditions for which a file with a true row is not read, or one with another row is removed unread."""
    wrong = []
    with lake.transaction() as tx:
        workspace = tx._workspace
        pinned = workspace.pin_target("t")
        source, target = workspace.source(pinned, keeps_files=False), workspace.target(pinned)
        engine = workspace.engine
        assert isinstance(engine, SparkEngine)
        inside = {file.identity: _ids(source, file) for file in source.files(ANYTHING)}
        for condition, matching in true_rows(session, lake, conditions).items():
            with engine._statement({}, 0) as opened:
                change = engine._change(opened, target, source)
                whole, rest = change._candidates(parse_expression(condition))
            read = {number for file in [*whole, *rest] for number in inside[file.identity]}
            removed = {number for file in whole for number in inside[file.identity]}
            if not (matching <= read and removed <= matching):
                wrong.append(f"{condition}: reads {read}, removes {removed}, true are {matching}")
        tx.abort()
    return wrong


def wrongly_changed(lake: lv.Lake, session: Any, conditions: list[str]) -> list[str]:
    """Conditions under which a statement that runs finds other rows than plain Spark."""
    wrong, every = [], set(range(rows().num_rows))
    for condition, matching in true_rows(session, lake, conditions).items():
        found = {row.id for row in lake.sql(f"SELECT id FROM t WHERE {condition}").collect()}
        with lake.transaction() as tx:
            using = f"MERGE INTO t USING (SELECT 1 AS one) u ON {condition}"
            merged = tx.sql(f"{using} WHEN MATCHED THEN UPDATE SET id = id").updated
            counts = merged, tx.sql(f"UPDATE t SET id = id WHERE {condition}").updated
            deleted = tx.sql(f"DELETE FROM t WHERE {condition}").deleted
            left = {row.id for row in tx.read("t").collect()}
            tx.abort()
        if (found, {*counts, deleted}, left) != (matching, {len(matching)}, every - matching):
            wrong.append(f"{condition}: {found}, {counts}, {deleted}, {left}; true are {matching}")
    return wrong


def _ids(source: Any, file: Any) -> set[int]:
    store, key = source.open(file)
    path = Path(store.url.removeprefix("file://")) / key
    table: pa.Table = pq.read_table(path, columns=["id"], partitioning=None)
    return set(table.column("id").to_pylist())


def test_suite_has_its_combinations() -> None:
    assert len(SETTINGS) >= 10
    assert len(CONDITIONS) * len(SETTINGS) * len(LAYOUTS) > 20_000
