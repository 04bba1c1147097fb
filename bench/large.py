"""`make bench-large`: one large table on Spark, in a driver of 2 GB: time and memory of each statement.

    append          all rows in one statement, made by Spark
    update, one range   1% of the rows, which lie together
    update, scattered   1% of the rows, some in every file: all of the table is written anew
    scan            every column

What the table holds is known beforehand, and checked: the run ends with an error if a row is lost.
"""

import argparse
import itertools
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import lakevilla as lv
from bench.base import RESULTS, say
from bench.cases.spark import WrongAnswer, lines
from bench.measures.memory import ChildrenMemory, PeakMemory
from bench.measures.report import Report, Result
from bench.measures.timing import timed
from bench.stores.places import DIRECTORY
from bench.systems.local import OURS
from bench.systems.spark import Sparks

ROWS = 100_000_000
_SCAN = "SELECT count(*), sum(id), sum(quantity), sum(customer), sum(price), max(city), max(day) FROM large"


class Watched:
    """Runs statements, and notes the seconds of each and the most memory that processes held meanwhile."""

    def __init__(self, session: SparkSession, report: Report) -> None:
        handle: Any = session._jvm
        self._jvm = int(handle.java.lang.ProcessHandle.current().pid())
        self._report = report

    def run(self, case: str, statement: Callable[[], Any]) -> Any:
        """What the statement gives."""
        say(case)
        driver, python = PeakMemory(self._jvm), PeakMemory()
        answers: list[Any] = []
        with ChildrenMemory(self._jvm) as workers:
            seconds = timed(lambda: answers.append(statement()))
        held = {
            "driver JVM": [driver.peak_mb()],
            "Python": [python.peak_mb()],
            "Python workers": [workers.peak_mb],
        }
        self._report.results.append(Result(case, DIRECTORY, "seconds", {OURS.name: [seconds["seconds"]]}))
        self._report.results.append(Result(case, DIRECTORY, "megabytes", held))
        return answers[0]


def run(rows: int, folder: str, sparks: Sparks, report: Report) -> None:
    """Every statement once, on a table of so many rows in this folder."""
    session, part = sparks.session(), rows // 100
    watched = Watched(session, report)
    lake = lv.Lake(folder, spark=session, features=lv.R, storage_options={"fsync": "false"})
    lake.create("large", lines(session, 0))

    _expect(
        "inserted", watched.run(f"append {rows:,}", lambda: lake.append("large", lines(session, rows))), rows
    )
    near = f"id >= {rows // 2} AND id < {rows // 2 + part}"
    for case, where in (("one range", near), ("scattered", "id % 100 = 7")):
        text = f"UPDATE large SET quantity = quantity + 1 WHERE {where}"
        _expect("updated", watched.run(f"update {part:,}, {case}", partial(lake.sql, text)), part)
    (found,) = watched.run(f"scan {rows:,}", lambda: lake.sql(_SCAN).collect())
    wanted = (rows, rows * (rows - 1) // 2, quantities(rows) + 2 * part)
    if tuple(found)[:3] != wanted:
        raise WrongAnswer(f"count and sums are {tuple(found)[:3]}, and must be {wanted}")


def quantities(rows: int) -> int:
    """The sum of the column `quantity` of so many `lines`."""
    cycle = [key * 31 % 97 + 1 for key in range(97)]
    return rows // 97 * sum(cycle) + sum(itertools.islice(cycle, rows % 97))


def _expect(kind: str, counts: lv.Counts, rows: int) -> None:
    if getattr(counts, kind) != rows:
        raise WrongAnswer(f"{kind} are {getattr(counts, kind):,} rows, and must be {rows:,}")


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.large",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", type=int, default=ROWS, help=f"size of the table, {ROWS:,} if left out")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for text, JSON and plot")
    given = parser.parse_args(arguments)
    report = Report("large", OURS.name)
    with tempfile.TemporaryDirectory(prefix="lakevilla-large-") as folder, Sparks() as sparks:
        try:
            run(given.rows, folder, sparks, report)
        finally:
            report.tell(given.out)


if __name__ == "__main__":
    main()
