"""`count(*)`, `min` and `max` of every table and column: what the log answers is what a scan gives."""

from typing import Any

import pytest

import lakevilla as lv
from tests.conformance.engines.both import Outcome, Twins, compared
from tests.conformance.engines.pruning.pruned import CONDITIONS, LAYOUTS, fill
from tests.conformance.engines.tables import TABLES

SPARKED = {"people": ("id", "day", "d", "ok", "tiny", "name", "at"), "empty": ("id",)}
"""Columns that Spark is asked for too: each that is scanned takes a job."""


@pytest.mark.parametrize("twins", ["delta", pytest.param("iceberg", marks=pytest.mark.long)], indirect=True)
def test_answers_are_those_of_a_scan_for_columns_of_every_type(twins: Twins) -> None:
    for table, rows in TABLES.items():
        for column in rows.schema.names:
            asked = f"SELECT count(*), min({column}), max({column}) FROM {table}"
            scanned = f"SELECT count(*), min({column}), max({column}) FROM (SELECT * FROM {table})"
            answer = Outcome.of(twins.local, asked)
            assert compared(asked, answer, Outcome.of(twins.local, scanned)) is None, asked
            if column in SPARKED.get(table, ()):
                assert compared(asked, answer, Outcome.of(twins.spark, asked)) is None, asked


def test_spark_runs_no_job_for_what_the_log_answers(twins: Twins, quick: Any) -> None:
    context = quick.sparkContext
    context.setJobGroup("summaries", "what the log answers")
    try:
        frame = twins.spark.sql("SELECT count(*), min(id) AS first, max(day) FROM people WHERE id < 1000000")
        rows = frame.collect()
        assert rows == twins.local.sql("SELECT count(*), min(id), max(day) FROM people").collect()
        assert frame.columns == ["count(1)", "first", "max(day)"]
        assert list(context.statusTracker().getJobIdsForGroup("summaries")) == []
        twins.spark.sql("SELECT max(name) FROM people").collect()
        assert list(context.statusTracker().getJobIdsForGroup("summaries")) != []
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)


@pytest.mark.sampled(11)
@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_counts_under_every_condition_are_those_of_a_scan(layout: str, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("counted")
    fill(folder, layout)
    lake = lv.Lake(folder, engine="local")
    wanted = ["count(*), min(l), max(day), min(d)"]
    if " by " in layout:
        column = layout.rpartition(" ")[2]
        wanted.append(f"count(*), min({column}), max({column})")
    for condition in CONDITIONS:
        for columns in wanted:
            asked = f"SELECT {columns} FROM t WHERE {condition}"
            scanned = f"SELECT {columns} FROM (SELECT * FROM t) AS t WHERE {condition}"
            assert compared(asked, Outcome.of(lake, asked), Outcome.of(lake, scanned)) is None, asked
