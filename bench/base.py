"""`make bench-base`: the plain format's statements, LakeVilla beside deltalake, in one run.

    read, update, insert   one row of a table of 1,000, warm
    open                   a fresh process opens a table of very many files and reads one row
    append, scan           a million rows of ten columns in, and out as Arrow data

Requests are counted where a proxy stands before the store. Each case is a generator of results; to add one,
write it here or in a module of its own and name it in `CASES`.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench import stores
from bench.biglog import write_big_table
from bench.cold import run_cold
from bench.data import accounts, orders
from bench.report import Report, Result
from bench.stores import Place, running_places
from bench.systems import DURABLE, OURS, Client, Deltalake, DeltalakeAnew, System
from bench.timing import Metrics, interleave, timed

RESULTS = Path(__file__).parent / "results"

# Warm clients keep what they know of a table. A fresh process has nothing to keep.
WARM: tuple[System, ...] = (OURS, Deltalake())
COLD: tuple[System, ...] = (OURS, DeltalakeAnew())
ALL: tuple[System, ...] = (*WARM, DeltalakeAnew())


@dataclass(frozen=True)
class Scale:
    """How much is done."""

    repetitions: int
    heavy_repetitions: int
    small_rows: int
    bulk_rows: int
    many_files: tuple[int, ...]


FULL = Scale(30, 7, 1000, 1_000_000, (100_000, 1_000_000))
QUICK = Scale(3, 2, 1000, 20_000, (5_000,))


@dataclass(frozen=True)
class Run:
    """What a case is given."""

    place: Place
    scale: Scale
    say: Callable[[str], None]

    def compare(
        self,
        case: str,
        runs: Mapping[str, Callable[[], Metrics]],
        repetitions: int,
        targets: Mapping[str, float],
        warm_up: int = 0,
    ) -> Iterator[Result]:
        """Measure in turns; one result per metric."""

        def progress(done: int) -> None:
            self.say(f"{self.place.name}: {case}, round {done} of {repetitions}")

        for metric, values in interleave(runs, repetitions, warm_up, progress).items():
            yield Result(case, self.place.name, metric, values, targets.get(metric))


def read(run: Run) -> Iterator[Result]:
    """One row by its key."""
    yield from _one_row(run, "read", lambda client, key: client.read_row(key % run.scale.small_rows))


def update(run: Run) -> Iterator[Result]:
    """One row changed by its key."""

    def change(client: Client, key: int) -> None:
        client.update_row(key % run.scale.small_rows, f"changed {key}")

    yield from _one_row(run, "update", change)


def insert(run: Run) -> Iterator[Result]:
    """One row more."""
    yield from _one_row(run, "insert", lambda client, key: client.append(accounts(range(key, key + 1))))


def _one_row(run: Run, case: str, statement: Callable[[Client, int], object]) -> Iterator[Result]:
    rows = accounts(range(run.scale.small_rows))
    keys = iter(range(run.scale.small_rows, 10**9))
    counters = {"requests": run.place.proxy.total} if run.place.proxy else None

    def measured(client: Client) -> Callable[[], Metrics]:
        return lambda: timed(lambda: statement(client, next(keys)), counters)

    systems = (*ALL, DURABLE) if run.place.name == stores.DIRECTORY else ALL
    clients = {system.name: system.create(run.place, f"{case}_row", rows) for system in systems}
    runs = {name: measured(client) for name, client in clients.items()}
    yield from run.compare(f"{case} 1 row", runs, run.scale.repetitions, {"seconds": 0.5}, warm_up=2)


def open_many(run: Run) -> Iterator[Result]:
    """A cold client on a table of very many files."""
    for files in run.scale.many_files:
        run.say(f"{run.place.name}: writing a log of {files:,} files")
        table = write_big_table(run.place, f"files_{files}", files)
        runs = {system.name: partial(run_cold, system, run.place, table) for system in COLD}
        targets = {"seconds": 1.0, "megabytes": 1.0}
        yield from run.compare(f"open {files:,} files", runs, run.scale.heavy_repetitions, targets)


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
    yield from run.compare(case, runs, run.scale.heavy_repetitions, {"seconds": 1.0}, warm_up=1)


CASES: dict[str, Callable[[Run], Iterator[Result]]] = {
    "read": read,
    "update": update,
    "insert": insert,
    "open": open_many,
    "append": append,
    "scan": scan,
}

# A slow network tells of requests; moving bulk through it would only measure the proxy.
_ON_SLOW = ("read", "update", "insert")


def run_cases(
    report: Report, names: list[str], place_names: list[str], scale: Scale, say: Callable[[str], None]
) -> None:
    """Run these cases at these places, and add what they find to the report."""
    with running_places(place_names) as places:
        for place in places:
            for name in names:
                if place.name == stores.SLOW and name not in _ON_SLOW:
                    continue
                for result in CASES[name](Run(place, scale, say)):
                    report.results.append(result)


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.base", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a short form: few rounds, small tables")
    parser.add_argument("--only", help=f"cases, separated by commas: {', '.join(CASES)}")
    parser.add_argument("--places", help=f"places, separated by commas: {', '.join(stores.NAMES)}")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for text, JSON and plot")
    given = parser.parse_args(arguments)
    names = _choose(parser, given.only, list(CASES))
    places = _choose(
        parser, given.places, [stores.DIRECTORY] if given.quick else list(stores.NAMES), stores.NAMES
    )
    report = Report("base", OURS.name)
    try:
        run_cases(report, names, places, QUICK if given.quick else FULL, _say)
    finally:
        # A long run that breaks off, or is broken off, still tells what it has found.
        print(report.text())
        print("\n" + "\n".join(f"written: {path}" for path in report.write(given.out)))


def _choose(
    parser: argparse.ArgumentParser, given: str | None, usual: list[str], known: tuple[str, ...] = ()
) -> list[str]:
    chosen = given.split(",") if given else usual
    if unknown := set(chosen) - set(known or usual):
        parser.error(f"{', '.join(sorted(unknown))} is not among {', '.join(known or usual)}")
    return chosen


_START = time.monotonic()


def _say(text: str) -> None:
    """Progress, on one line that is written over where there is a terminal."""
    line = f"{time.monotonic() - _START:6.0f} s  {text}"
    end = "\x1b[K\r" if sys.stderr.isatty() else "\n"
    print(line, end=end, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
