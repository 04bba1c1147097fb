"""The plain format's statements in this process: LakeVilla's local engine, deltalake and PyIceberg.

    read, update, insert   one row of a table of 1,000, warm
    open                   a fresh process opens a table of very many files and reads one row
    append, scan           a million rows of ten columns in, and out as Arrow data
    iceberg                the first three on Iceberg tables, compared with PyIceberg

Requests are counted where a proxy stands before the store.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from bench.cases.run import Run
from bench.cold import run_cold
from bench.data.big_log import write_big_table
from bench.data.rows import accounts, orders
from bench.measures.report import Result
from bench.measures.timing import Metrics, timed
from bench.stores.places import DIRECTORY
from bench.systems.local import DELTALAKE, DELTALAKE_ANEW, DURABLE, OURS, OURS_ICEBERG, Client, System
from bench.systems.pyiceberg import PYICEBERG

# Warm clients keep what they know of a table. A fresh process has nothing to keep.
WARM: tuple[System, ...] = (OURS, DELTALAKE)
COLD: tuple[System, ...] = (OURS, DELTALAKE_ANEW)
ALL: tuple[System, ...] = (*WARM, DELTALAKE_ANEW)


Statement = Callable[[Client, int], object]


def read(run: Run) -> Iterator[Result]:
    """One row by its key."""
    yield from _one_row(run, "read", _delta_systems(run))


def update(run: Run) -> Iterator[Result]:
    """One row changed by its key."""
    yield from _one_row(run, "update", _delta_systems(run))


def insert(run: Run) -> Iterator[Result]:
    """One row more."""
    yield from _one_row(run, "insert", _delta_systems(run))


def iceberg(run: Run) -> Iterator[Result]:
    """The same three on Iceberg tables."""
    for case in ("read", "update", "insert"):
        yield from _one_row(run, case, (OURS_ICEBERG, PYICEBERG), " of Iceberg")


def _delta_systems(run: Run) -> tuple[System, ...]:
    return (*ALL, DURABLE) if run.place.name == DIRECTORY else ALL


def _statement(case: str, rows: int) -> Statement:
    match case:
        case "read":
            return lambda client, key: client.read_row(key % rows)
        case "update":
            return lambda client, key: client.update_row(key % rows, f"changed {key}")
    return lambda client, key: client.append(accounts(range(key, key + 1)))


def _one_row(run: Run, case: str, systems: tuple[System, ...], what: str = "") -> Iterator[Result]:
    rows = accounts(range(run.scale.small_rows))
    keys = iter(range(run.scale.small_rows, 10**9))
    counters = {"requests": run.place.proxy.total} if run.place.proxy else None
    statement = _statement(case, run.scale.small_rows)

    def measured(client: Client) -> Callable[[], Metrics]:
        return lambda: timed(lambda: statement(client, next(keys)), counters)

    clients = {system.name: system.create(run.place, f"{case}_row", rows) for system in systems}
    runs = {name: measured(client) for name, client in clients.items()}
    yield from run.compare(f"{case} 1 row{what}", runs, run.scale.repetitions, 0.5, warm_up=2)


def open_many(run: Run) -> Iterator[Result]:
    """A cold client on a table of very many files."""
    for files in run.scale.many_files:
        run.say(f"{run.place.name}: writing a log of {files:,} files")
        table = write_big_table(run.place, f"files_{files}", files)
        runs = {system.name: partial(run_cold, system, run.place, table) for system in COLD}
        yield from run.compare(f"open {files:,} files", runs, run.scale.heavy_repetitions, 1.0)


def append(run: Run) -> Iterator[Result]:
    """Many rows in one statement."""
    rows = orders(run.scale.bulk_rows)
    clients = {system.name: system.create(run.place, "append_bulk", rows.slice(0, 10)) for system in WARM}
    runs = {name: partial(timed, partial(client.append, rows)) for name, client in clients.items()}
    yield from _bulk(run, f"append {len(rows):,} rows", runs)


def scan(run: Run) -> Iterator[Result]:
    """A whole table into memory."""
    rows = orders(run.scale.bulk_rows)
    clients = {system.name: system.create(run.place, "scan_bulk", rows) for system in WARM}
    runs = {name: partial(timed, client.scan) for name, client in clients.items()}
    yield from _bulk(run, f"scan {len(rows):,} rows", runs)


def _bulk(run: Run, case: str, runs: Mapping[str, Callable[[], Metrics]]) -> Iterator[Result]:
    yield from run.compare(case, runs, run.scale.heavy_repetitions, 1.0, warm_up=1)
