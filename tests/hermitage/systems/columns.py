"""The systems of the table, by name, and where each gets its tables."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import lakevilla as lv
from tests.hermitage.player import PATIENCE_SECONDS, Place
from tests.hermitage.scripts.notation import Layout
from tests.hermitage.systems.ours import WAYS, MemoryLakes, OurPlace, Way, fill, ways_shown
from tests.hermitage.systems.peers import DeltalakePlace, SparkDeltaPlace


@dataclass(frozen=True)
class System:
    """A system under test, and how long a step may take on it before others go on. On a slow one a step
    takes a good part of a second."""

    name: str
    place: Callable[[], Place]
    patience_seconds: float = PATIENCE_SECONDS
    slow: bool = False


# Transactions of Spark + Delta do not wait for others, and a step that is overtaken would not be in the order
# asked for.
_UNTIL_DONE = 120.0
# With R a step may wait for others; one that is only slow is overtaken, which is an order like any other.
ON_SPARK_SECONDS = 3.0


@contextmanager
def quick_systems(layout: Layout) -> Iterator[list[System]]:
    """What needs no Spark: deltalake, and LakeVilla on the local engine."""
    lakes = MemoryLakes(layout)
    with tempfile.TemporaryDirectory() as top:
        yield [
            System("deltalake", lambda: DeltalakePlace(_new(top), layout)),
            *(System(f"LakeVilla {name}", partial(lakes.place, WAYS[name])) for name in ways_shown(layout)),
        ]


@contextmanager
def spark_systems(spark: Any, spark_delta: Any, layout: Layout) -> Iterator[list[System]]:
    """Spark + Delta, and LakeVilla on Spark, in two sessions of one Spark."""
    with tempfile.TemporaryDirectory() as top:
        yield [
            System(
                "Spark + Delta",
                lambda: SparkDeltaPlace(spark_delta, _new(top), layout),
                _UNTIL_DONE,
                slow=True,
            ),
            *(
                System(
                    f"LakeVilla {name} on Spark",
                    partial(_spark_lake, spark, top, layout, WAYS[name]),
                    ON_SPARK_SECONDS,
                    slow=True,
                )
                for name in ways_shown(layout)
            ),
        ]


def spark_lake(spark: Any, folder: Path, layout: Layout, way: Way) -> OurPlace:
    """A lake in an empty folder whose clients all use this session."""
    fill(lv.Lake(folder, engine="local"), layout)
    return OurPlace(lambda: lv.Lake(folder, spark=spark), layout, way)


def _spark_lake(spark: Any, top: str, layout: Layout, way: Way) -> OurPlace:
    return spark_lake(spark, _new(top), layout, way)


def _new(top: str) -> Path:
    return Path(tempfile.mkdtemp(dir=top))
