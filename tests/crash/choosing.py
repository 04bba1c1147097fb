"""Which deaths are tried. On Delta tables all; on others, where the same code asks for another format's
objects, one of each kind of request in two ways, unless all are wished for: `make crash`.
"""

import os
from collections.abc import Iterable

from sim.crash import Point
from sim.faults import WRITES
from sim.sites import site

ALL = os.environ.get("LAKEVILLA_CRASH") == "all"


def chosen(points: Iterable[Point], formats: str) -> list[Point]:
    """Of these points, those at which to die."""
    every = list(points)
    if ALL or formats == "delta":
        return every
    writes = [point for point in every if point.kind in WRITES and point.mode in ("applied", "late")]
    return list({(site(point.kind, point.key), point.mode): point for point in writes or every}.values())
