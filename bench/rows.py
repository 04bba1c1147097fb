"""`make bench-rows`: changes of few rows of a large table, and scans after them, compared in one run.

    update one row          found by its key
    update 1%, scattered    some rows in every part of the table
    merge 1%                by key; one row in eleven of the source is new
    scan                    every column, after all these changes

LakeVilla with deletion vectors and without (copy on write), compared in this process with deltalake, and on
Spark with Delta's deletion vectors and Iceberg's merge on read. What every table holds after each step is
known beforehand, and checked: a system that loses a row ends the run. Processor time is told too, because
that counts on a machine with other work.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.base import RESULTS, say
from bench.cases.spark import WrongAnswer
from bench.data.changed_rows import SCAN, Answer, Expected, merged, one_row, scattered
from bench.measures.processor import ProcessorTime
from bench.measures.report import Report, Result
from bench.measures.timing import Metrics, interleave, timed
from bench.stores.places import DIRECTORY
from bench.systems.changes import (
    COPY_ON_WRITE,
    OURS,
    VECTORS,
    ChangedTable,
    drop_spark_tables,
    local_systems,
    spark_systems,
)
from bench.systems.spark import Sparks

ROWS = 10_000_000
OWN = "lakevilla"
ONE, SCATTERED, MERGE, SCANS = "update one row", "update 1%, scattered", "merge 1%", "scan"
# The most that ours may take, as a part of what a peer takes, by peer and step.
LOCAL_TARGETS = {"deltalake": {ONE: 0.1, SCATTERED: 0.5, MERGE: 0.7, SCANS: 1.0}}
SPARK_TARGETS = {
    peer: {ONE: 0.8, SCATTERED: 0.8, MERGE: 0.8, SCANS: 1.0}
    for peer in ("spark-delta-vectors", "spark-iceberg-deletes")
}
_REWRITING = {"deltalake": 1.0}
"""The peers that rewrite files, and the most that our copy on write may take of their time in every step."""


def run(
    systems: Sequence[ChangedTable],
    rows: int,
    rounds: int,
    processor: ProcessorTime,
    targets: Mapping[str, Mapping[str, float]],
    where: str,
) -> Iterator[Result]:
    """All steps on the tables of these systems, each in so many rounds."""
    for system in systems:
        say(f"{where}: filling {system.name}")
        system.fill(rows)
    expected = Expected(rows)
    steps: dict[str, tuple[Callable[[ChangedTable, int], Any], Callable[[int], None]]] = {
        ONE: (lambda system, n: system.update(one_row(rows, n)), expected.update_one),
        SCATTERED: (lambda system, n: system.update(scattered(n)), expected.update_scattered),
        MERGE: (lambda system, n: system.merge(merged(rows, n)), expected.merge),
    }
    for step, (change, expect) in steps.items():
        for number in range(rounds):
            expect(number)
        yield from _compared(step, change, systems, rounds, processor, targets, where)
        for system in systems:
            _check(system, expected.answer)
    wanted = expected.answer

    def scan(system: ChangedTable, _: int) -> None:
        _check(system, wanted)

    yield from _compared(SCANS, scan, systems, rounds, processor, targets, where)


def _compared(
    step: str,
    work: Callable[[ChangedTable, int], Any],
    systems: Sequence[ChangedTable],
    rounds: int,
    processor: ProcessorTime,
    targets: Mapping[str, Mapping[str, float]],
    where: str,
) -> Iterator[Result]:
    counters = {"processor seconds": processor.seconds}

    def measured(system: ChangedTable) -> Callable[[], Metrics]:
        numbers = iter(range(rounds))
        return lambda: timed(partial(work, system, next(numbers)), counters)

    runs = {system.name: measured(system) for system in systems}
    found = interleave(runs, rounds, progress=lambda done: say(f"{where}: {step}, {done} of {rounds}"))
    peers = {name: targets[name][step] for name in runs if name in targets}
    for metric, values in found.items():
        others = {name: value for name, value in values.items() if name not in OURS}
        yield Result(f"{where}: {step}, vectors", DIRECTORY, metric, {OWN: values[VECTORS], **others}, peers)
        others = {name: value for name, value in others.items() if name in _REWRITING}
        targets_here = {name: _REWRITING[name] for name in others}
        own = {OWN: values[COPY_ON_WRITE], f"{OWN}-vectors": values[VECTORS]}
        yield Result(f"{where}: {step}, copy on write", DIRECTORY, metric, {**own, **others}, targets_here)


def _check(system: ChangedTable, wanted: Answer) -> None:
    found = system.scan()
    if found != wanted:
        raise WrongAnswer(f"{SCAN}: {system.name} gives {found}, and must give {wanted}")


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.rows", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=ROWS, help=f"size of the tables, {ROWS:,} if left out")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of every step (default: %(default)s)")
    parser.add_argument("--only", choices=("local", "spark"), help="this engine alone")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for text, JSON and plot")
    given = parser.parse_args(arguments)
    report = Report("rows", OWN)
    try:
        if given.only != "spark":
            with tempfile.TemporaryDirectory(prefix="lakevilla-rows-") as name:
                found = local_systems(Path(name))
                clock = ProcessorTime()
                report.results += run(found, given.rows, given.rounds, clock, LOCAL_TARGETS, "local")
        if given.only != "local":
            with tempfile.TemporaryDirectory(prefix="lakevilla-rows-") as name, Sparks() as sparks:
                session: Any = sparks.session()
                clock = ProcessorTime(int(session._jvm.java.lang.ProcessHandle.current().pid()))
                try:
                    found = spark_systems(session, Path(name))
                    report.results += run(found, given.rows, given.rounds, clock, SPARK_TARGETS, "spark")
                finally:
                    drop_spark_tables(session)
    finally:
        report.tell(given.out)


if __name__ == "__main__":
    main()
