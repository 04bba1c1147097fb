"""What a case is given, and how much of it is done."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from bench.measures.report import Result
from bench.measures.timing import Metrics, interleave
from bench.stores.places import Place
from bench.systems.spark import Sparks


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

    def of(self, rounds: int) -> "Scale":
        """The same in so many rounds."""
        return replace(
            self,
            repetitions=rounds,
            heavy_repetitions=rounds,
            spark_repetitions=rounds,
            spark_heavy_repetitions=rounds,
        )


FULL = Scale(
    repetitions=30,
    heavy_repetitions=7,
    small_rows=1000,
    bulk_rows=1_000_000,
    many_files=(100_000, 1_000_000),
    spark_warm_up=10,
    spark_repetitions=30,
    spark_heavy_repetitions=7,
    spark_bulk_rows=20_000_000,
    spark_files=1000,
    spark_scale_factor=1.0,
    spark_queries=(1, 3, 6),
)
QUICK = Scale(
    repetitions=3,
    heavy_repetitions=2,
    small_rows=1000,
    bulk_rows=20_000,
    many_files=(5_000,),
    spark_warm_up=0,
    spark_repetitions=1,
    spark_heavy_repetitions=1,
    spark_bulk_rows=20_000,
    spark_files=20,
    spark_scale_factor=0.01,
    spark_queries=(3,),
)


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
