"""How systems are compared: in turns, many times, by medians, with an interval around each ratio.

A machine is not equally fast from one minute to the next. So all systems take turns within each round, the
order turns too, and the ratio of two medians comes with the interval in which it lies for 95% of the ways
to draw the same number of rounds again (a bootstrap over rounds, so what one round shares stays shared).
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Metrics = Mapping[str, float]

_DRAWS = 2000


@dataclass(frozen=True)
class Ratio:
    """One system's median over another's, and the interval that holds it in 95% of the draws."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Spread:
    """What is told of many values."""

    median: float
    lower: float
    upper: float
    mean: float
    count: int


def interleave(
    runs: Mapping[str, Callable[[], Metrics]],
    repetitions: int,
    warm_up: int = 0,
    progress: Callable[[int], None] | None = None,
) -> dict[str, dict[str, list[float]]]:
    """Run every system once per round; values by metric, then by system, in the order of the rounds."""
    for _ in range(warm_up):
        for run in runs.values():
            run()
    values: dict[str, dict[str, list[float]]] = {}
    names = list(runs)
    for done in range(repetitions):
        first = done % len(names)
        for name in names[first:] + names[:first]:
            for metric, value in runs[name]().items():
                values.setdefault(metric, {}).setdefault(name, []).append(value)
        if progress:
            progress(done + 1)
    return values


def timed(work: Callable[[], Any], counters: Mapping[str, Callable[[], float]] | None = None) -> Metrics:
    """The seconds that `work` takes, and how far each counter went meanwhile."""
    before = {name: read() for name, read in (counters or {}).items()}
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    return {"seconds": seconds, **{name: read() - before[name] for name, read in (counters or {}).items()}}


def spread(values: list[float]) -> Spread:
    lower, median, upper = np.percentile(values, [25, 50, 75])
    return Spread(float(median), float(lower), float(upper), float(np.mean(values)), len(values))


def ratio(ours: list[float], theirs: list[float]) -> Ratio:
    """The ratio of the medians of two systems that were measured in the same rounds."""
    pairs = np.array([ours, theirs])
    rounds = pairs.shape[1]
    drawn = np.random.default_rng(0).integers(0, rounds, (_DRAWS, rounds))
    medians = np.median(pairs[:, drawn], axis=2)
    low, high = np.percentile(_divide(medians[0], medians[1]), [2.5, 97.5])
    whole = np.median(pairs, axis=1)
    return Ratio(float(_divide(whole[0], whole[1])), float(low), float(high))


def _divide(ours: Any, theirs: Any) -> Any:
    # Memory may not grow at all; a ratio to nothing is told as infinite, not as an error.
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(np.divide(ours, theirs), nan=1.0, posinf=np.inf)
