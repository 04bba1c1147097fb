"""Play every order of every script with R on the local engine: `make hermitage-all`.

Both ways of running a transaction, and both layouts of the first rows. Prints progress, and every outcome
that is wrong with the order that shows it; the exit code is 1 if there was one.
"""

import argparse
import logging
import multiprocessing
import sys
import time
from collections import Counter
from functools import cache
from itertools import product

from tests.hermitage.judging import complaint
from tests.hermitage.notation import Layout
from tests.hermitage.orders import all_orders
from tests.hermitage.ours import WAYS, MemoryLakes
from tests.hermitage.outcome import End
from tests.hermitage.playing import play
from tests.hermitage.scripts import SCRIPTS

BY_NAME = {script.name: script for script in SCRIPTS}

Case = tuple[str, str, str, bool]
"""Script, order, way, and whether the first rows lie apart."""


def main() -> int:
    options = _parse()
    cases = _cases(options)
    wrong, ends, start = 0, Counter[End](), time.monotonic()
    with multiprocessing.get_context("spawn").Pool(options.processes, logging.disable) as pool:
        for done, (case, found, case_ends) in enumerate(pool.imap_unordered(judge, cases, chunksize=20), 1):
            ends.update(case_ends)
            if found:
                wrong += 1
                print(f"{' '.join(map(str, case))}\n{found}\n", flush=True)
            if done % 500 == 0 or done == len(cases):
                rate = done / (time.monotonic() - start)
                print(f"{done} of {len(cases)} orders, {wrong} wrong, {rate:.0f} orders/s", flush=True)
    print(", ".join(f"{ends[end]} {end.value}" for end in End))
    return 1 if wrong else 0


def judge(case: Case) -> tuple[Case, str, list[End]]:
    """Play one case: what is wrong, if anything, and how its transactions ended."""
    name, order, way, apart = case
    script = BY_NAME[name]
    outcome = play(_lakes(apart).place(WAYS[way]), script, order)
    found = complaint(script, outcome)
    told = f"{script.in_order(order)}\n{found}\n{outcome}" if found else ""
    return case, told, [ended.end for ended in outcome.transactions.values()]


@cache
def _lakes(apart: bool) -> MemoryLakes:
    """Made once in each process."""
    return MemoryLakes(Layout(apart=apart))


def _cases(options: argparse.Namespace) -> list[Case]:
    scripts = [BY_NAME[name] for name in options.scripts]
    pairs = product(options.ways, [True, False], all_orders(scripts))
    return [(script.name, order, way, apart) for way, apart, (script, order) in pairs]


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.hermitage.everything", description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--scripts", nargs="+", choices=BY_NAME, default=list(BY_NAME))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=[way for way in WAYS if way != "NONE"])
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
