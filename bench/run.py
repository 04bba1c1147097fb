"""What a case is given, and how much of it is done."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from bench.report import Result
from bench.spark_systems import Sparks
from bench.stores import Place
from bench.timing import Metrics, interleave


@dataclass(frozen=True)
class Scale:
    """How much is done. What begins with `spark` is for the cases on Spark."""

    repetitions: int
    heavy_repetitions: int
    small_rows: int
    bulk_rows: int
    many_files: tuple[int, ...]
    spark_warm_up: int
    spark_repetitions: int
    spark_heavy_repetitions: int
    spark_bulk_rows: int
    spark_files: int
    spark_scale_factor: float
    spark_queries: tuple[int, ...]


FULL = Scale(30, 7, 1000, 1_000_000, (100_000, 1_000_000), 10, 30, 7, 20_000_000, 1000, 1.0, (1, 3, 6))
QUICK = Scale(3, 2, 1000, 20_000, (5_000,), 0, 1, 1, 20_000, 20, 0.01, (3,))


@dataclass(frozen=True)
class Run:
    """What a case is given. `sparks` gives the systems on Spark at a place, and starts Spark if need be."""

    place: Place
    scale: Scale
    say: Callable[[str], None]
    sparks: Sparks

    def compare(
        self,
        case: str,
        runs: Mapping[str, Callable[[], Metrics]],
        repetitions: int,
        targets: Mapping[str, float] | float,
        warm_up: int = 0,
    ) -> Iterator[Result]:
        """Measure in turns; one result per metric. `targets` go by peer, one number is for every peer;
        they hold for every metric but counts of requests, of which nothing is promised."""
        by_peer = targets if isinstance(targets, Mapping) else dict.fromkeys(runs, targets)

        def progress(done: int) -> None:
            self.say(f"{self.place.name}: {case}, round {done} of {repetitions}")

        for metric, values in interleave(runs, repetitions, warm_up, progress).items():
            yield Result(case, self.place.name, metric, values, {} if metric == "requests" else by_peer)
