"""Seeds for tables whose markers lie in the log: `python -m sim.suites.log_markers --seeds 0:200`, or one:
`--seed 17`.

Of Delta tables, or with `--format iceberg` of Iceberg tables that are kept by files.

Only clients with R write such tables. As in `suite` they crash, sleep and are cut off, some are resumed by
others; when they are done the faults end, several rivals fight for the same rows, none of them may give up,
and a client runs recover. The judges are those of other tables, after the rules of markers in the log.
"""

import argparse
import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from random import Random
from typing import cast

from lakevilla.model import Features
from sim.actors import one_table, recovery
from sim.actors.audit import RIVALS, _all_succeed
from sim.actors.journal import Journal, run_again, transact
from sim.actors.session import Session
from sim.checkers.history import History
from sim.checkers.tables.log_markers import (
    check_log_markers,
    hidden_commits,
    pending_markers,
    without_markers,
)
from sim.suites.base import Duty, Report, _start_client, weather
from sim.suites.verdict import judge
from sim.world.bucket import Bucket
from sim.world.client import World
from sim.world.faults import Calm
from sim.world.formats import DELTA, FORMATS, ICEBERG, PLAIN, Formats
from sim.world.lakes import LEASE_SECONDS, EngineOf, open_lake
from sim.world.row_engine import rows_engine
from sim.world.scheduler import Stuck

TRANSACTIONS = 4

MIXES = {
    table: (*[recovery.recovering(table)] * 3, recovery.resume_somebody, one_table.read_table)
    for table in recovery.CHANGES
}


@cache
def image_in_log(engine: EngineOf, formats: Formats = PLAIN) -> Bucket:
    """A lake whose tables have their markers in the log, with their first rows."""
    with World(0, Calm, formats=formats) as world:
        client = world.client("maker")

        def make() -> None:
            lake = open_lake(client, engine)
            for name, schema in one_table.SCHEMAS.items():
                lake.create(name, schema, **formats.making(name, {"lakevilla.markers": "log"}))
                if rows := one_table.FIRST_ROWS.get(name):
                    lake.append(name, rows)

        world.start(client, make)
        world.run()
        return world.bucket


def play(seed: int, *, engine: EngineOf = rows_engine, formats: Formats = PLAIN) -> Report:
    """Run one seed."""

    def start(world: World, history: History, random: Random) -> int:
        return _start_clients(world, history, random, engine)

    def audit(world: World, history: History) -> list[str]:
        _audit(world, history, engine)
        return []

    image = image_in_log(engine, formats)
    return weather(seed, (20, 40, 80), image, start, audit, judge_in_log, formats)


def judge_in_log(bucket: Bucket, history: History) -> list[str]:
    """The rules of markers in the log, and those of all tables for what they became."""
    violations = check_log_markers(bucket.writes, LEASE_SECONDS)
    plain = Bucket()
    plain.writes, numbers = without_markers(bucket.writes)
    told = [
        op if op.version is None else replace(op, version=numbers.of(op.table, op.version))
        for op in history.operations
    ]
    return violations + judge(plain, History(told))


def _start_clients(world: World, history: History, random: Random, engine: EngineOf) -> int:
    count = random.randint(4, 5)
    kinds = random.sample(sorted(MIXES), random.randint(1, 2))
    for number in range(count):
        mix = [actor for kind in kinds for actor in MIXES[kind]]
        duty = Duty(mix, TRANSACTIONS + random.randrange(3), (0.05, 0.5)[number % 2])
        _start_client(world, history, f"c{number}", duty, engine)
    return count


def _audit(world: World, history: History, engine: EngineOf) -> None:
    """Rivals for the same rows; one who frees a place above its own; a recovery, after which nothing is
    pending nor hidden from others; everything can be read."""

    def rival(session: Session) -> None:
        run_again(session, "registers", recovery.write_back(world.random))
        transact(session, "counts", recovery.insert_count(world.random))
        transact(session, "blind", recovery.append_rows(world.random))

    def overtaken(session: Session) -> None:
        append = recovery.append_item(world.random)

        def work(journal: Journal) -> None:
            append(journal)
            above = session.lake.transaction(Features.R)
            above.update("lists", set={"items": "items"})
            above.abort()

        transact(session, "lists", work)
        if hidden := [place for place in hidden_commits(world.bucket.writes) if place[0] == "lists"]:
            raise Stuck(f"below a version that was freed others do not see the commits {hidden}")

    def recoverer(session: Session) -> None:
        session.lake.recover()
        if pending := pending_markers(world.bucket.writes):
            raise Stuck(f"after the recovery there are pending markers: {pending}")
        if hidden := hidden_commits(world.bucket.writes):
            raise Stuck(f"after the recovery others do not see the commits {hidden}")
        for table in one_table.SCHEMAS:
            one_table.audit_table(session, table)

    _all_succeed(world, history, engine, {f"rival{number}": rival for number in range(RIVALS)})
    _all_succeed(world, history, engine, {"overtaken": overtaken})
    _all_succeed(world, history, engine, {"recoverer": recoverer})


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m sim.suites.log_markers", description=__doc__)
    parser.add_argument("--seeds", default="0:200", help="first:last, the last not included")
    parser.add_argument("--seed", type=int, help="replay this one seed")
    parser.add_argument("--format", choices=(DELTA, ICEBERG), default=DELTA)
    options = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    first, _, last = cast(str, options.seeds).partition(":")
    seeds = range(int(first), int(last)) if options.seed is None else [options.seed]
    failed = 0
    for seed in seeds:
        report = play(seed, formats=FORMATS[options.format])
        failed += bool(report.violations)
        for violation in report.violations:
            print(f"seed {seed}: {violation}")
    print(f"{len(seeds)} seeds, {failed} with violations")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
