"""Play every order of every script on the local engine: `make hermitage-all`.

With R both layouts of the first rows in one table, with R and CT the layout over two tables (`across`), with
I all of them, serializable and snapshot; each by hand and by `lake.run`. With `--queueing` transactions with
R take a place in the queue of writers at once. Prints progress, and every outcome that is wrong with the
order that shows it; the exit code is 1 if there was one.
"""

import argparse
import logging
import multiprocessing
import sys
import time
from collections import Counter
from functools import partial

from tests.hermitage.cases import BY_NAME, LAYOUTS, SEVERAL_TABLES, Case, judge
from tests.hermitage.outcome import End
from tests.hermitage.scripts.anomalies import ACROSS_TABLES, SCRIPTS
from tests.hermitage.scripts.orders import all_orders
from tests.hermitage.systems.ours import WAYS, WITH_I


def main() -> int:
    options = _parse()
    cases = [case for layout in options.layouts for case in _cases(layout, options)]
    wrong, ends, start = 0, Counter[End](), time.monotonic()
    with multiprocessing.get_context("spawn").Pool(options.processes, logging.disable) as pool:
        played = pool.imap_unordered(partial(judge, queued=options.queueing), cases, chunksize=20)
        for done, (case, found, case_ends) in enumerate(played, 1):
            ends.update(case_ends)
            if found:
                wrong += 1
                print(f"{' '.join(case)}\n{found}\n", flush=True)
            if done % 500 == 0 or done == len(cases):
                rate = done / (time.monotonic() - start)
                print(f"{done} of {len(cases)} orders, {wrong} wrong, {rate:.0f} orders/s", flush=True)
    print("; ".join(f"{ends[end]} {end.value}" for end in End))
    return 1 if wrong else 0


def _cases(layout: str, options: argparse.Namespace) -> list[Case]:
    known = ACROSS_TABLES if layout in SEVERAL_TABLES else SCRIPTS
    orders = all_orders(script for script in known if script.name in options.scripts)
    less = ["R,CT", "R,CT, lake.run"] if layout in SEVERAL_TABLES else ["R", "R, lake.run"]
    ways = options.ways or [*less, *(way for way in WITH_I if "verbs" not in way)]
    return [(script.name, order, way, layout) for way in ways for script, order in orders]


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.hermitage.everything", description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--scripts", nargs="+", choices=BY_NAME, default=list(BY_NAME))
    parser.add_argument("--ways", nargs="+", choices=WAYS, help="left out: those that fit the layout")
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=list(LAYOUTS))
    parser.add_argument("--queueing", action="store_true", help="take places in the queue of writers at once")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
