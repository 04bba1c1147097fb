"""Which deaths are tried, and after which of them other projects' readers look.

On Delta tables a client dies wherever its death leaves something else on the store. On others, where the
same code writes another format's objects, and where many requests are alike, a sample is enough: it dies
before and after one request of each kind that a scenario writes. `make soak SUITE=crash` tries every request
in every way.
"""

import os
from collections.abc import Collection, Iterable

from sim.suites.crash import Point
from sim.world.faults import WRITES
from sim.world.sites import site

ALL = os.environ.get("LAKEVILLA_CRASH") == "all"
OPENED, OPENED_OF_SAMPLE = 4, 2
"""After so many deaths of a scenario its tables are opened."""
SHARED = (" log entry", " metadata", " hint", " pointer")
"""What others change or look at meanwhile; all other objects of a table have names of their own."""
OWN = "put data"
"""What nobody finds who is not told of it: if it comes after its owner's death, never."""


def chosen(points: Iterable[Point], sample: bool) -> list[Point]:
    """Of these points, in their order, those at which to die."""
    every = list(points)
    if ALL:
        return every
    return (_one_of_each_kind(every) if sample else _one_of_each_effect(every)) or every


def _one_of_each_effect(every: list[Point]) -> list[Point]:
    """Deaths before every write, and after the last one; and deaths after which a write applies late, but for
    files that no other client looks for. What else there is leaves the same on the store: to die after a
    write, with or without its answer, or at a read, is to die before the next write."""
    writes = [point for point in every if point.kind in WRITES]
    last = writes[-1].number if writes else None

    def tells(point: Point) -> bool:
        own = site(point.kind, point.key) == OWN
        return point.mode == "before" or (point.mode == "late" and not own) or point.number == last

    return [point for point in writes if tells(point)]


def _one_of_each_kind(every: list[Point]) -> list[Point]:
    """For each kind of write, deaths before and after the last one of that kind. Of what is shared, deaths
    before and after the first one, so that of several tables some are published; and the last comes late.
    To die before a write is to die after the write before it: one of these is enough."""
    sites = {point.number: site(point.kind, point.key) for point in every if point.kind in WRITES}
    last = {name: number for number, name in sites.items()}
    shared = {name: number for number, name in reversed(sites.items()) if name.endswith(SHARED)}
    late = {last[name] for name in shared}
    tried = {"applied": {*(last | shared).values()}, "late": late, "before": set[int]()}
    previous = None
    for number in sites:
        if number in tried["applied"] - late and previous not in tried["applied"]:
            tried["before"].add(number)
        previous = number
    return [point for point in every if point.number in tried.get(point.mode, ())]


def opened(points: Collection[Point], sample: bool) -> set[Point]:
    """Of the deaths that are tried, those after which other readers look at what is left."""
    count = OPENED_OF_SAMPLE if sample else OPENED
    return set(points) if ALL else set(list(points)[:: max(1, len(points) // count)])
