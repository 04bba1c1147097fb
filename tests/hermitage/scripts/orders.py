"""Which orders to play where not all can be: by a fixed seed, so that every run plays the same."""

import random
from collections.abc import Iterable
from itertools import islice

from tests.hermitage.player import play
from tests.hermitage.scripts.script import Script
from tests.hermitage.systems.fakes import Dirty
from tests.hermitage.verdict import find_serial_order

SEED = 1995  # the year of "A Critique of ANSI SQL Isolation Levels"


def all_orders(scripts: Iterable[Script]) -> list[tuple[Script, str]]:
    return [(script, order) for script in scripts for order in script.orders()]


def sampled_orders(scripts: Iterable[Script], count: int) -> list[tuple[Script, str]]:
    """This number of orders, shared out evenly: scripts that have few give all of them, the others
    Hermitage's own order and some by chance."""
    chance, sample = random.Random(SEED), list[tuple[Script, str]]()
    smallest_first = sorted(scripts, key=Script.count_orders)
    for place, script in enumerate(smallest_first):
        share = (count - len(sample)) // (len(smallest_first) - place)
        others = [order for order in script.orders() if order != script.order]
        orders = [script.order, *chance.sample(others, min(len(others), share - 1))]
        sample += [(script, order) for order in orders]
    return sample


def telling_orders(script: Script, count: int) -> list[str]:
    """Up to this number of orders in which a system without transactions shows the script's anomaly.

    Hermitage's own order may not be one: it was made for systems in which a write is seen only later.
    """
    others = [order for order in script.orders() if order != script.order]
    random.Random(SEED).shuffle(others)
    return list(islice((order for order in [script.order, *others] if _shows(script, order)), count))


def _shows(script: Script, order: str) -> bool:
    outcome = play(Dirty(), script, order)
    return find_serial_order(script, outcome) is None and script.seen(outcome)
