"""The same on Spark: LakeVilla, Spark + Delta and Spark + Iceberg, in one JVM, in turns.

    spark-read, spark-update, spark-insert   one row of a table of 1,000, warm
    spark-append                             20,000,000 rows, also by Spark's own Parquet writer
    spark-scan                               every column of a table of 1,000 files
    spark-tpch                               queries 1, 3 and 6 of TPC-H at scale factor 1

Every case ends with the systems' answers compared: a system that is quick and wrong ends the run.
"""

import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.cases.run import Run
from bench.data import tpch
from bench.data.rows import accounts
from bench.measures.report import Result
from bench.measures.timing import Metrics, timed
from bench.stores.places import DIRECTORY
from bench.systems.spark import MakeRows, Rows, SparkSystem

ROWS_PER_FILE = 1000
# The peers' names stand here once more: what is promised is about these.
READ = {"spark-iceberg": 1.3, "spark-delta": 0.35}
UPDATE = {"spark-iceberg": 0.7, "spark-delta": 0.25}
INSERT = {"spark-iceberg": 0.8}
APPEND = {"spark-delta": 1.0}
SCAN = {"spark-delta": 1.0}
# Of a directory alone: in a bucket this writer renames, which there is a copy.
APPEND_TO_PARQUET = {"spark-parquet": 0.75}


class WrongAnswer(RuntimeError):
    """Systems do not agree."""


def read(run: Run) -> Iterator[Result]:
    """One row by its key."""
    yield from _one_row(run, "read", READ)


def update(run: Run) -> Iterator[Result]:
    """One row changed by its key."""
    yield from _one_row(run, "update", UPDATE)


def insert(run: Run) -> Iterator[Result]:
    """One row more."""
    yield from _one_row(run, "insert", INSERT)


def iceberg(run: Run) -> Iterator[Result]:
    """The same three on Iceberg tables."""
    for case, targets in (("read", READ), ("update", UPDATE), ("insert", INSERT)):
        yield from _one_row(run, case, targets, " of Iceberg")


def _statement(case: str, table: str, rows: int) -> Callable[[SparkSystem, int], None]:
    def read_one(system: SparkSystem, key: int) -> None:
        found = system.query(f"SELECT * FROM {table} WHERE id = {key % rows}")
        if len(found) != 1:
            raise WrongAnswer(f"{system.name} finds {len(found)} rows of one key")

    def change_one(system: SparkSystem, key: int) -> None:
        system.change(f"UPDATE {table} SET owner = 'changed {key}' WHERE id = {key % rows}")

    def insert_one(system: SparkSystem, key: int) -> None:
        system.change(f"INSERT INTO {table} VALUES ({key}, 'owner {key}', 'fjord', {key}.25)")

    return {"read": read_one, "update": change_one, "insert": insert_one}[case]


def _one_row(run: Run, case: str, targets: Mapping[str, float], what: str = "") -> Iterator[Result]:
    place, rows = run.sparks.at(run.place), run.scale.small_rows
    systems = place.iceberg_systems if what else place.systems
    table = f"{case}_row_of_iceberg" if what else f"{case}_row"
    for system in systems.values():
        system.create(table, lambda session: session.createDataFrame(accounts(range(rows))).coalesce(1))
    statement = _statement(case, table, rows)

    def statements(system: SparkSystem) -> Callable[[], None]:
        keys = itertools.count(rows)
        return lambda: statement(system, next(keys))

    work = {name: statements(system) for name, system in systems.items()}
    work["spark-job"] = lambda: _bare_job(place.plain)
    runs = {name: partial(timed, one) for name, one in work.items()}
    scale = run.scale
    yield from run.compare(
        f"spark: {case} 1 row{what}", runs, scale.spark_repetitions, targets, scale.spark_warm_up
    )
    agree(systems, f"SELECT * FROM {table} ORDER BY id")


def _bare_job(session: SparkSession) -> None:
    """The least that Spark can do: one task, one row back."""
    session.range(0, 1000, 1, 1).where("id = 17").collect()


def append(run: Run) -> Iterator[Result]:
    """Many rows in one statement."""
    place, count = run.sparks.at(run.place), run.scale.spark_bulk_rows
    for system in place.systems.values():
        system.create("append_bulk", partial(lines, count=10, partitions=1))
    rows = partial(lines, count=count)
    work: dict[str, Callable[[], None]] = {
        name: partial(system.append, "append_bulk", rows) for name, system in place.systems.items()
    }
    work["spark-parquet"] = partial(place.write_parquet, "append_bulk", rows)
    work["spark-noop"] = partial(place.discard, rows)
    targets = {**APPEND, **(APPEND_TO_PARQUET if run.place.name == DIRECTORY else {})}
    runs = {name: partial(timed, one) for name, one in work.items()}
    yield from _heavy(run, f"spark: append {count:,} rows", runs, targets)
    agree(place.systems, "SELECT count(*), sum(id), sum(quantity) FROM append_bulk")


def scan(run: Run) -> Iterator[Result]:
    """Every column of a table of many files."""
    place, files = run.sparks.at(run.place), run.scale.spark_files
    run.say(f"{run.place.name}: writing tables of {files:,} files")
    rows = partial(lines, count=files * ROWS_PER_FILE, partitions=files)
    for system in place.systems.values():
        system.create("many_files", rows)
    text = (
        "SELECT count(id), sum(customer), sum(quantity), sum(CAST(price AS DECIMAL(12, 2))), "
        "max(city), max(day) FROM many_files"
    )
    yield from _queries(run, f"scan {files:,} files", text, SCAN)


def tpch_queries(run: Run) -> Iterator[Result]:
    """Three queries of TPC-H."""
    factor = run.scale.spark_scale_factor
    place = run.sparks.at(run.place)
    with tempfile.TemporaryDirectory(prefix="lakevilla-tpch-") as folder:
        run.say(f"{run.place.name}: making and loading TPC-H at scale factor {factor:g}")
        for table, path in tpch.write_tables(Path(folder), factor).items():
            for system in place.systems.values():
                system.create(table, _parquet_rows(path))
    for number, text in tpch.query_texts(run.scale.spark_queries).items():
        yield from _queries(run, f"TPC-H Q{number}, scale factor {factor:g}", text, SCAN)


def _parquet_rows(path: Path) -> MakeRows:
    return lambda session: session.read.parquet(str(path))


def _queries(run: Run, case: str, text: str, targets: Mapping[str, float]) -> Iterator[Result]:
    place = run.sparks.at(run.place)
    agree(place.systems, text)
    runs = {name: partial(timed, partial(system.query, text)) for name, system in place.systems.items()}
    yield from _heavy(run, f"spark: {case}", runs, targets)


def _heavy(
    run: Run, case: str, runs: Mapping[str, Callable[[], Metrics]], targets: Mapping[str, float]
) -> Iterator[Result]:
    warm_up = min(run.scale.spark_warm_up, 1)
    yield from run.compare(case, runs, run.scale.spark_heavy_repetitions, targets, warm_up)


def agree(systems: Mapping[str, SparkSystem], text: str) -> Rows:
    """What every system answers; WrongAnswer if it is not the same, or nothing."""
    answers = {name: system.query(text) for name, system in systems.items()}
    first = next(iter(answers.values()))
    if not first or any(answer != first for answer in answers.values()):
        told = "; ".join(f"{name}: {str(answer)[:300]}" for name, answer in answers.items())
        raise WrongAnswer(f"{text}: {told}")
    return first


def lines(session: SparkSession, count: int, partitions: int | None = None) -> DataFrame:
    """Rows of six columns, cheap to make: a key, numbers, few distinct strings, dates."""
    return session.range(0, count, 1, partitions).selectExpr(
        "id",
        "pmod(id * 7919, 1000003) AS customer",
        "CAST(pmod(id * 31, 97) + 1 AS INT) AS quantity",
        "pmod(id * 104729, 9999991) / 100D AS price",
        "elt(CAST(id % 6 + 1 AS INT), 'amber', 'basalt', 'cedar', 'dune', 'ember', 'fjord') AS city",
        "date_add(DATE '2020-01-01', CAST(pmod(id * 13, 2003) AS INT)) AS day",
    )
