"""Run seeds: `python -m sim.run --seeds 0:2000`, or replay one: `python -m sim.run --seed 17 --trace`.

Prints progress, every violation with the seed that shows it, and how many seeds ran in a second. The exit
code is 1 if anything was wrong. With `--plant` a known bug is planted first (see `planted`).
"""

import argparse
import gc
import logging
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from multiprocessing.sharedctypes import Synchronized

from lakevilla.engines.local.engine import LocalEngine
from sim.outside import play as outside
from sim.outside import steered
from sim.planted import batches as planted_batches
from sim.planted import cataloged as planted_cataloged
from sim.planted import commits as planted
from sim.planted import deletes as planted_deletes
from sim.planted import iceberg as planted_iceberg
from sim.planted import isolation as planted_isolation
from sim.planted import losses as planted_losses
from sim.planted import optimize as planted_optimize
from sim.planted import recovery as planted_recovery
from sim.planted import tables as planted_tables
from sim.planted import vectors as planted_vectors
from sim.planted import world as planted_world
from sim.suites import batches, isolation, losses, optimize, tables
from sim.suites.base import SUITES, Report, play
from sim.world.formats import FORMATS, Formats
from sim.world.lakes import EngineOf, first_image
from sim.world.row_engine import rows_engine

BUGS = {
    **planted.BUGS,
    **planted_recovery.BUGS,
    **planted_tables.BUGS,
    **planted_isolation.BUGS,
    **planted_iceberg.BUGS,
    **planted_cataloged.BUGS,
    **planted_losses.BUGS,
    **planted_world.BUGS,
    **planted_batches.BUGS,
    **planted_vectors.BUGS,
    **planted_optimize.BUGS,
    **planted_deletes.BUGS,
}
WORLDS: dict[str, tuple[Callable[[EngineOf, Formats], None], Callable[..., Report]]] = {
    "tables": (tables.images, tables.play),
    "isolation": (isolation.images, isolation.play),
    "optimize": (optimize.images, optimize.play),
    "losses": (losses.images, losses.play),
    "batches": (batches.images, batches.play),
    "world": (outside.images, outside.play),
    "restores": (outside.images, outside.play_with_restores),
    "steered": (outside.images, steered.play),
}
"""Suites that have a world of their own: what makes their stores, and what plays a seed."""

ENGINES: dict[str, EngineOf] = {"rows": rows_engine, "local": LocalEngine}
"""The row engine for speed, and the real one."""


def main() -> int:
    options = _parse()
    _settle_in()
    if options.seed is not None:
        report = _play(options.seed, _Choice.of(options))
        _print_report(report, options.trace)
        return 1 if report.violations else 0
    first, _, last = options.seeds.partition(":")
    seeds = range(int(first), int(last))
    failed, counts, faults, thin = 0, Counter[str](), Counter[str](), 0
    start = time.monotonic()
    for done, report in enumerate(_reports(seeds, options), 1):
        counts.update(report.outcomes)
        faults.update(report.faults)
        thin += report.faults.total() < 3 or report.transactions < 20
        if report.violations:
            failed += 1
            _print_report(report, False)
            chosen = f"--suite {options.suite} --engine {options.engine} --format {options.format}"
            print(f"  replay: python -m sim.run --seed {report.seed} {chosen} --trace")
        if done % 200 == 0 or done == len(seeds):
            rate = done / (time.monotonic() - start)
            print(f"{done} seeds, {failed} with violations, {rate:.1f} seeds/s", flush=True)
    print(f"transactions: {dict(sorted(counts.items()))}")
    print(f"faults: {dict(sorted(faults.items()))}")
    print(f"seeds with fewer than 3 faults or 20 transactions: {thin}")
    return 1 if failed else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m sim.run", description=__doc__)
    parser.add_argument("--seeds", default="0:200", help="first:last, the last not included")
    parser.add_argument("--seed", type=int, help="replay this one seed")
    parser.add_argument("--trace", action="store_true", help="print what happened, event by event")
    parser.add_argument("--engine", choices=sorted(ENGINES), default="rows")
    parser.add_argument("--format", choices=FORMATS, default="delta")
    parser.add_argument("--suite", choices=[*sorted(SUITES), *WORLDS], default="base")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--plant", choices=sorted(BUGS), help="plant this bug first")
    return parser.parse_args()


def _reports(seeds: Iterable[int], options: argparse.Namespace) -> Iterator[Report]:
    run = partial(_play_lightly, choice=_Choice.of(options))
    if options.processes == 1:
        _stay_on_one_core(os.getpid())
        yield from map(run, seeds)
        return
    context = multiprocessing.get_context("spawn")
    with context.Pool(options.processes, _begin_worker, [context.Value("i", 0)]) as pool:
        yield from pool.imap(run, seeds, chunksize=10)


def _settle_in() -> None:
    # Faults are the point here; what LakeVilla logs about them is not.
    logging.disable(logging.CRITICAL)
    # What a seed leaves behind is collected between seeds.
    gc.collect()
    gc.freeze()
    gc.disable()


def _begin_worker(count: "Synchronized[int]") -> None:
    _settle_in()
    with count.get_lock():
        number = count.value
        count.value += 1
    _stay_on_one_core(number)


def _stay_on_one_core(number: int) -> None:
    """Of a seed's threads one runs at a time, and to change cores costs more than to change threads."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[number % len(cores)]})


COLLECT_EVERY = 10
"""So many seeds leave some 50 MB of cyclic garbage behind."""


@dataclass(frozen=True)
class _Choice:
    """What is played."""

    suite: str
    engine: str
    format: str
    plant: str | None

    @staticmethod
    def of(options: argparse.Namespace) -> "_Choice":
        return _Choice(options.suite, options.engine, options.format, options.plant)


def _play(seed: int, choice: _Choice) -> Report:
    engine, formats = ENGINES[choice.engine], FORMATS[choice.format]
    # The lake is made before the bug is planted: the probe of a new lake would refuse some of them.
    images, world = WORLDS.get(choice.suite, (first_image, None))
    images(engine, formats)
    with BUGS[choice.plant]() if choice.plant else nullcontext():
        if world is not None:
            return world(seed, engine=engine, formats=formats)
        return play(seed, choice.suite, engine=engine, formats=formats)


def _play_lightly(seed: int, choice: _Choice) -> Report:
    """Without the trace, which is long and has to travel between processes; of a failure its digest stays."""
    report = _play(seed, choice)
    if seed % COLLECT_EVERY == 0:
        gc.collect()
    if report.violations:
        report.trace_hash  # noqa: B018 - computed here and kept
    report.trace = []
    return report


def _print_report(report: Report, trace: bool) -> None:
    if trace:
        for now, *event in report.trace:
            print(f"{now:10.3f}  " + "  ".join(str(part) for part in event if part != ""))
        for op in report.history.operations:
            print(
                f"{op.invoked:10.3f} - {op.completed:10.3f}  {op.client} {op.table} {op.action} {op.key} ",
                end="",
            )
            steps = [(step.action, step.key, step.value, step.undone_at) for step in op.steps] or op.value
            print(f"{steps} -> {op.outcome} {op.version or ''} {op.error}")
    print(f"seed {report.seed}: {len(report.violations)} violations, trace {report.trace_hash[:16]}")
    for violation in report.violations:
        print(f"  {violation}")


if __name__ == "__main__":
    sys.exit(main())
