"""Spark + Delta and LakeVilla write one table in a directory at once.

Every commit that was acknowledged is there, and concurrent readers see the table as it was at some version.
Each writes a partition of its own, for Spark gives up a change of what it read; versions they fight for.
"""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import lakevilla as lv
from tests.legacy.clients.spark_delta import Spark

SCHEMA = "id BIGINT, v BIGINT, writer INT"
SPARK_ROUNDS = 1
OUR_ROUNDS = 40
PAUSE_SECONDS = 0.1
LOOK_SECONDS = 0.4
# Of a table's state all that matters here: which ids have which value.
State = frozenset[tuple[int, int]]


@dataclass
class Known:
    """What one writer was told: the rows that it left, and our commits by version."""

    rows: dict[int, int] = field(default_factory=dict)
    commits: dict[int, str] = field(default_factory=dict)


@pytest.mark.long
def test_spark_and_lakevilla_race_on_a_directory_and_lose_nothing(
    spark_delta: SparkSession, tmp_path: Path
) -> None:
    # On a directory Delta's log store looks whether an entry is there, and then renames: over ours, if that
    # came between. It is one race in hundreds; twice in a row would be our fault.
    for attempt in range(2):
        root = tmp_path / f"lake-{attempt}"
        lake = lv.Lake(root, engine="local", storage_options={"fsync": "false"})
        lake.create("t", SCHEMA, partition_by=["writer"])
        known, seen = race(lake, Spark(spark_delta, str(root)))
        if not replaced_entries(root / "t" / "_delta_log", known):
            break
    states = states_by_version(lv.Lake(root, engine="local"))
    assert states[-1] == {item for writer in known for item in writer.rows.items()}
    assert any(writer.commits for writer in known), "our writers committed"
    for snapshots in seen:
        assert len(set(snapshots)) > 1, "the reader saw the table change"
        assert_prefixes(snapshots, states)


def race(lake: lv.Lake, delta: Spark) -> tuple[list[Known], list[list[State]]]:
    """Two of our writers and two readers run until Spark is through; what each knows."""
    done = threading.Event()
    ours, theirs, seen = [Known(), Known()], Known(), [[], []]
    by_spark = delta.session.read.format("delta")
    with ThreadPoolExecutor(5) as pool:
        running = [pool.submit(write_ours, lake, known, n + 1, done) for n, known in enumerate(ours)]
        running += [
            pool.submit(watch, lambda: state_of(lake.read("t").toArrow()), seen[0], done),
            pool.submit(watch, lambda: state_of(by_spark.load(delta.path("t")).toArrow()), seen[1], done),
        ]
        try:
            for number in range(SPARK_ROUNDS):
                for statement, change in steps("{}", 0, 2 * number):
                    delta.sql(statement, "t")
                    tell(theirs, change)
        finally:
            done.set()
        for one in running:
            one.result()
    return [*ours, theirs], seen


def write_ours(lake: lv.Lake, known: Known, writer: int, done: threading.Event) -> None:
    for number in range(OUR_ROUNDS):
        for statement, change in steps("t", writer, 1000 * writer + 2 * number):
            if done.wait(PAUSE_SECONDS):
                return
            receipt = lake.run(lambda tx, text=statement: tx.sql(text), retries=100)
            known.commits[receipt.versions["t"]] = receipt.id
            tell(known, change)


def steps(table: str, writer: int, number: int) -> Iterator[tuple[str, dict[int, int | None]]]:
    """Insert two rows, change one, delete the other; and what is then different."""
    other = number + 1
    yield f"INSERT INTO {table} VALUES ({number}, 0, {writer}), ({other}, 0, {writer})", {number: 0, other: 0}
    yield f"UPDATE {table} SET v = id + 1 WHERE writer = {writer} AND id = {number}", {number: number + 1}
    yield f"DELETE FROM {table} WHERE writer = {writer} AND id = {other}", {other: None}


def tell(known: Known, change: dict[int, int | None]) -> None:
    known.rows |= {key: value for key, value in change.items() if value is not None}
    for key in (key for key, value in change.items() if value is None):
        del known.rows[key]


def watch(read: Callable[[], State], snapshots: list[State], done: threading.Event) -> None:
    snapshots.append(read())
    while not done.wait(LOOK_SECONDS):
        snapshots.append(read())
    snapshots.append(read())


def state_of(table: Any) -> State:
    rows = [(row["id"], row["v"]) for row in table.to_pylist()]
    assert len(set(rows)) == len(rows), "no row is there twice"
    return frozenset(rows)


def states_by_version(lake: lv.Lake) -> list[State]:
    last = lake.history("t", 1)[0].version
    return [state_of(lake.read("t", version=version).toArrow()) for version in range(last + 1)]


def assert_prefixes(snapshots: list[State], states: list[State]) -> None:
    """Each snapshot is the table at some version, and later ones are not older."""
    version = 0
    for snapshot in snapshots:
        while version < len(states) and states[version] != snapshot:
            version += 1
        assert version < len(states), f"no version, or only an older one, looked like {sorted(snapshot)}"


def replaced_entries(log: Path, known: list[Known]) -> list[int]:
    """Versions that we were told are ours, and whose entry is not ours any more."""
    return [
        version
        for writer in known
        for version, txn in writer.commits.items()
        if f'"txn":{json.dumps(txn)}' not in (log / f"{version:020}.json").read_text()
    ]
