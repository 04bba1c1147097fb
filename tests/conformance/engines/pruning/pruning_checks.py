"""Whether an engine prunes files as a statement means it, asked of the tables of `pruned`.

There are two oracles: plain Spark over the same rows, and the same statement with pruning disabled.
Each check returns what is wrong, one line for each condition.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import lakevilla as lv
from lakevilla.engines.spark.engine import SparkEngine
from lakevilla.predicates import ANYTHING
from lakevilla.sql.parser import parse_expression
from tests.conformance.engines.pruning.pruned import rows

Matching = Mapping[str, set[int]]
"""By condition the ids of the rows for which it is true."""

SKIPPED_DAY = "1582-10-10"
"""A day that the Julian calendar skips. Spark's own Parquet reader loses it where a filter names it, which
`test_plain_spark_loses_days_that_the_julian_calendar_skips` proves; changes find it all the same."""

_ASKING = (
    "files.reader",
    "formats.iceberg.manifests.file_pruning",
    "formats.iceberg.manifests.manifest_pruning",
    "formats.delta.snapshot",
)


@contextmanager
def unpruned() -> Iterator[None]:
    """No file, no row group and no manifest is left out, whatever is asked of it."""

    def every(_predicate: Any, _bounds_of: Any, count: int) -> Any:
        return np.ones(count, dtype=np.bool_)

    patches = [patch(f"lakevilla.{module}.may_match", every) for module in _ASKING]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()


def true_rows(session: Any, lake: lv.Lake, conditions: list[str]) -> dict[str, set[int]]:
    """Plain Spark over the rows of the table, without files. Conditions that Spark refuses are left out."""
    # As the table gives them: in Delta an empty text that divides a table is NULL.
    every = lake.read("t")
    plain = session.createDataFrame(every.toArrow(), every.schema)
    known = [condition for condition in conditions if _is_valid(plain, condition)]
    found = _together(plain, known)
    if found is None:
        single = {condition: _together(plain, [condition]) for condition in known}
        return {condition: ids[condition] for condition, ids in single.items() if ids is not None}
    return found


def _together(plain: Any, conditions: list[str]) -> dict[str, set[int]] | None:
    """All conditions in one job; None if Spark fails at one of them."""
    frame = plain.selectExpr("id", *conditions)
    answers: list[list[Any]] = []
    if not _succeeds(lambda: answers.extend(map(list, frame.collect()))):
        return None
    return {
        condition: {row[0] for row in answers if row[number] is True}
        for number, condition in enumerate(conditions, 1)
    }


def _is_valid(plain: Any, condition: str) -> bool:
    return _succeeds(lambda: plain.selectExpr(condition).schema)


def _succeeds(work: Callable[[], object]) -> bool:
    try:
        work()
    except (PySparkException, Py4JJavaError):
        return False
    return True


def wrongly_pruned(lake: lv.Lake, true: Matching) -> list[str]:
    """Conditions for which a change on Spark does not read a file with a true row, or removes one with
    another row unread. The change itself does not run."""
    wrong = []
    with lake.transaction() as tx:
        workspace = tx._workspace
        pinned = workspace.pin_target("t")
        source, target = workspace.source(pinned, keeps_files=False), workspace.target(pinned)
        engine = workspace.engine
        assert isinstance(engine, SparkEngine)
        inside = {file.identity: _ids(source, file) for file in source.files(ANYTHING)}
        with engine._statement({}, 0) as opened:
            change = engine._change(opened, target, source)
            for condition, matching in true.items():
                whole, rest = change._candidates(parse_expression(condition))
                read = {number for file in [*whole, *rest] for number in inside[file.identity]}
                removed = {number for file in whole for number in inside[file.identity]}
                if not (matching <= read and removed <= matching):
                    wrong.append(f"{condition}: reads {read}, removes {removed}, true are {matching}")
        tx.abort()
    return wrong


def _ids(source: Any, file: Any) -> set[int]:
    store, key = source.open(file)
    path = Path(store.url.removeprefix("file://")) / key
    table: pa.Table = pq.read_table(path, columns=["id"], partitioning=None)
    return set(table.column("id").to_pylist())


def wrongly_selected(lake: lv.Lake, true: Matching) -> list[str]:
    """Conditions for which a SELECT finds other rows; the same without pruning says whose fault it is."""
    conditions = [condition for condition in true if SKIPPED_DAY not in condition]
    text = " UNION ALL ".join(
        f"SELECT {number} AS number, id FROM t WHERE {condition}"
        for number, condition in enumerate(conditions)
    )
    if not conditions:
        return []
    pruned = _by_number(lake.sql(text))
    if all(pruned.get(n, set()) == true[condition] for n, condition in enumerate(conditions)):
        return []
    with unpruned():
        everything = _by_number(lake.sql(text))
    return [
        f"{condition}: SELECT finds {pruned.get(number)}, unpruned {everything.get(number)}, "
        f"true are {true[condition]}"
        for number, condition in enumerate(conditions)
        if pruned.get(number, set()) != true[condition]
    ]


def _by_number(answer: Any) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for row in answer.collect():
        found.setdefault(row.number, set()).add(row.id)
    return found


def wrongly_changed(lake: lv.Lake, true: Matching) -> list[str]:
    """Conditions under which a statement that runs finds other rows. What the local engine refuses is left
    out."""
    wrong, every = [], set(rows().column("id").to_pylist())
    for condition, matching in true.items():
        try:
            found = _outcome(lake, condition)
        except lv.Unsupported:
            continue
        if SKIPPED_DAY in condition and lake.engine == "spark":
            # What a SELECT finds is Spark's own; what changes find is ours.
            found = (matching, *found[1:])
        if found != (matching, {len(matching)}, every - matching):
            wrong.append(f"{condition}: {found}; true are {matching}")
    return wrong


def _outcome(lake: lv.Lake, condition: str) -> tuple[set[int], set[int], set[int]]:
    """The rows that a SELECT finds, the counts that changes report, and the rows that a DELETE leaves."""
    found = {row.id for row in lake.sql(f"SELECT id FROM t WHERE {condition}").collect()}
    using = f"MERGE INTO t USING (SELECT 1 AS one) u ON {condition}"
    merged = _tried(lake, f"{using} WHEN MATCHED THEN UPDATE SET id = id")[0].updated
    updated = _tried(lake, f"UPDATE t SET id = id WHERE {condition}")[0].updated
    deleted, left = _tried(lake, f"DELETE FROM t WHERE {condition}")
    return found, {merged, updated, deleted.deleted}, left


def _tried(lake: lv.Lake, text: str) -> tuple[lv.Counts, set[int]]:
    """What a statement would do to the table as it is, and the rows that it would leave."""
    with lake.transaction() as tx:
        counts = tx.sql(text)
        left = {row.id for row in tx.read("t").collect()}
        tx.abort()
    return counts, left


def differing(lake: lv.Lake, conditions: list[str]) -> list[str]:
    """Conditions under which statements on the local engine find other rows with pruning than without it."""
    wrong = []
    for condition in conditions:
        outcomes: list[Any] = []
        for context in (nullcontext(), unpruned()):
            with context:
                try:
                    outcomes.append(_outcome(lake, condition))
                except lv.LakeVillaError as error:
                    outcomes.append(type(error))
        if outcomes[0] != outcomes[1]:
            wrong.append(f"{condition}: {outcomes[0]}, unpruned {outcomes[1]}")
    return wrong
