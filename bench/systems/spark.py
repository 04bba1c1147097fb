"""The systems that are measured on Spark: LakeVilla, Spark + Delta and Spark + Iceberg, in one JVM that
serves them all.

Each has a session of its own, so that no system's extensions touch another, and all are equally warm. Every
table has a plain name in every system, so each runs the same text. A system is used as its own
documentation says, with two partitions for what is shuffled (also Delta's own snapshots).
"""

import itertools
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

import lakevilla as lv
from bench.spark import sessions
from bench.stores.places import DIRECTORY, Place
from bench.systems.local import OURS

Rows = list[tuple[Any, ...]]
MakeRows = Callable[[SparkSession], DataFrame]
"""Rows in somebody's session: a DataFrame is written by the session that it belongs to."""

_NUMBERS = itertools.count()


class SparkSystem(Protocol):
    """Tables of one system at one place."""

    name: str

    def create(self, table: str, rows: MakeRows) -> None:
        """Make a table of these rows."""
        ...

    def append(self, table: str, rows: MakeRows) -> None: ...

    def query(self, text: str) -> Rows:
        """The rows of a SELECT, which sees the newest version."""
        ...

    def change(self, text: str) -> None:
        """Run a statement that changes rows, to its end."""
        ...


class LakeVillaSpark:
    """LakeVilla on the plain session. As its peers, it does not wait until a disk holds what it wrote."""

    name = OURS.name

    def __init__(self, session: SparkSession, place: Place, format: str = "delta") -> None:
        self._session = session
        options = {**place.storage_options, "fsync": "false"}
        self._lake = lv.Lake(
            place.url(f"lakevilla-spark-{format}"),
            spark=session,
            storage_options=options,
            features=lv.R,
            default_format=format,
        )

    def create(self, table: str, rows: MakeRows) -> None:
        self._lake.create(table, rows(self._session))

    def append(self, table: str, rows: MakeRows) -> None:
        self._lake.append(table, rows(self._session))

    def query(self, text: str) -> Rows:
        return [tuple(row) for row in self._lake.sql(text).collect()]

    def change(self, text: str) -> None:
        self._lake.sql(text)


class _Catalogued:
    """A system that is a catalog of a session, with a namespace of its own for each place."""

    def __init__(self, name: str, session: SparkSession, format: str) -> None:
        self.name = name
        self._session = session
        self._format = format

    def create(self, table: str, rows: MakeRows) -> None:
        rows(self._session).writeTo(table).using(self._format).create()

    def append(self, table: str, rows: MakeRows) -> None:
        rows(self._session).writeTo(table).append()

    def query(self, text: str) -> Rows:
        return [tuple(row) for row in self._session.sql(text).collect()]

    def change(self, text: str) -> None:
        # Spark runs a change when it is asked for, not when rows of its result are.
        self._session.sql(text)


class SparkPlace:
    """All systems on Spark at one place, and plain Spark to compare with."""

    def __init__(self, spark: SparkSession, place: Place) -> None:
        self._root = place.root.replace("s3://", "s3a://")
        self._settings = sessions.s3a(place.storage_options) if place.name != DIRECTORY else {}
        self.plain = spark.newSession()
        for name, value in self._settings.items():
            self.plain.conf.set(name, value)
        self._database = f"bench_{next(_NUMBERS)}"
        self.ours = LakeVillaSpark(spark, place)
        self.delta = self._spark_delta(spark)
        self.iceberg = self._spark_iceberg(spark)
        self.ours_iceberg = LakeVillaSpark(spark, place, "iceberg")

    @property
    def systems(self) -> Mapping[str, SparkSystem]:
        return {system.name: system for system in (self.ours, self.delta, self.iceberg)}

    @property
    def iceberg_systems(self) -> Mapping[str, SparkSystem]:
        """Those on Iceberg tables."""
        return {system.name: system for system in (self.ours_iceberg, self.iceberg)}

    def write_parquet(self, table: str, rows: MakeRows) -> None:
        """Spark's own Parquet writer."""
        rows(self.plain).write.mode("append").parquet(f"{self._root}/parquet/{table}")

    def discard(self, rows: MakeRows) -> None:
        """Make the rows and write them nowhere."""
        rows(self.plain).write.format("noop").mode("overwrite").save()

    def close(self) -> None:
        """The catalog of a JVM outlives its sessions."""
        self._delta_session.sql(f"DROP DATABASE {self._database} CASCADE")

    def _spark_delta(self, spark: SparkSession) -> SparkSystem:
        self._delta_session = session = sessions.with_delta(spark, self._settings)
        session.sql(f"CREATE DATABASE {self._database} LOCATION '{self._root}/delta'")
        session.sql(f"USE {self._database}")
        return _Catalogued("spark-delta", session, "delta")

    def _spark_iceberg(self, spark: SparkSession) -> SparkSystem:
        session = sessions.with_iceberg(spark, f"{self._root}/iceberg", self._settings)
        session.sql("CREATE NAMESPACE iceberg.bench")
        session.sql("USE iceberg.bench")
        return _Catalogued("spark-iceberg", session, "iceberg")


class Sparks:
    """Spark for the length of a run: started when a case first asks for it, one JVM for all places.

    A session that runs already is used, and left running. Use it in a `with` block.
    """

    def __init__(self) -> None:
        self._started: SparkSession | None = None
        self._places: dict[str, SparkPlace] = {}

    def __enter__(self) -> "Sparks":
        return self

    def __exit__(self, *_: object) -> None:
        for place in self._places.values():
            place.close()
        if self._started:
            self._started.stop()

    def session(self) -> SparkSession:
        running = SparkSession.getActiveSession()
        if running is None:
            running = self._started = sessions.start()
        return running

    def at(self, place: Place) -> SparkPlace:
        if place.name not in self._places:
            self._places[place.name] = SparkPlace(self.session(), place)
        return self._places[place.name]
