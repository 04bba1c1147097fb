"""The systems that `bench.rows` measures, each with a table `t` of the same rows to be changed.

What a system calls merge on read is on where the name says so: deletion vectors of Delta, position deletes of
Iceberg's format 2.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import deltalake
import pyarrow as pa
from pyspark.sql import SparkSession

import lakevilla as lv
from bench.data.changed_rows import SCAN, Answer, first_rows
from bench.spark import sessions

VECTORS, COPY_ON_WRITE = OURS = "lakevilla-vectors", "lakevilla-rewriting"
_ADD = "quantity + 1"
_ON = "t.id = s.id"
_PART_ROWS = 1_000_000


class ChangedTable(Protocol):
    """One table of one system."""

    name: str

    def fill(self, rows: int) -> None:
        """Make the table."""
        ...

    def update(self, where: str) -> None:
        """Add one to the quantity of some rows."""
        ...

    def merge(self, source: pa.Table) -> None:
        """Set quantities by key, and insert rows of new keys."""
        ...

    def scan(self) -> Answer:
        """The answer of `SCAN`."""
        ...


def _parts(rows: int) -> pa.Table:
    """The first rows; made in parts, because the parts of making them are larger."""
    starts = range(0, rows, _PART_ROWS)
    return pa.concat_tables([first_rows(start, min(rows, start + _PART_ROWS)) for start in starts])


class OursLocal:
    """LakeVilla's local engine, which does not wait until a disk holds what it wrote, as its peers."""

    def __init__(self, folder: Path, vectors: bool) -> None:
        self.name = VECTORS if vectors else COPY_ON_WRITE
        options = {"fsync": "false"}
        root = str(folder / self.name)
        self._lake = lv.Lake(
            root, engine="local", features=lv.R, storage_options=options, merge_on_read=vectors
        )

    def fill(self, rows: int) -> None:
        self._lake.create("t", _parts(rows))

    def update(self, where: str) -> None:
        self._lake.sql(f"UPDATE t SET quantity = {_ADD} WHERE {where}")

    def merge(self, source: pa.Table) -> None:
        self._lake.merge("t", source, ["id"], {"quantity": "source.quantity"}, "insert")

    def scan(self) -> Answer:
        return _answer(self._lake.sql(SCAN).toArrow())


class Deltalake:
    """deltalake, which rewrites files."""

    name = "deltalake"

    def __init__(self, folder: Path) -> None:
        self._url = str(folder / self.name)

    def fill(self, rows: int) -> None:
        deltalake.write_deltalake(self._url, _parts(rows))
        self._table = deltalake.DeltaTable(self._url)

    def update(self, where: str) -> None:
        self._table.update(predicate=where, updates={"quantity": f"CAST({_ADD} AS INT)"})

    def merge(self, source: pa.Table) -> None:
        merging = self._table.merge(source, _ON, source_alias="s", target_alias="t")
        changing = merging.when_matched_update({"quantity": "s.quantity"}).when_not_matched_insert_all()
        changing.execute()

    def scan(self) -> Answer:
        found = deltalake.QueryBuilder().register("t", self._table).execute(SCAN)
        return _answer(pa.table(found.read_all()))


def _answer(table: pa.Table) -> Answer:
    (row,) = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return tuple(int(value) for value in row)


class _OnSpark:
    """Texts of SQL in a session. The source of a MERGE is a view of it."""

    def __init__(self, name: str, session: SparkSession) -> None:
        self.name = name
        self._session = session

    def _run(self, text: str) -> Any:
        return self._session.sql(text)

    def update(self, where: str) -> None:
        self._run(f"UPDATE t SET quantity = {_ADD} WHERE {where}")

    def merge(self, source: pa.Table) -> None:
        self._session.createDataFrame(source).createOrReplaceTempView("source_rows")
        self._run(
            f"MERGE INTO t USING source_rows AS s ON {_ON} "
            "WHEN MATCHED THEN UPDATE SET quantity = s.quantity WHEN NOT MATCHED THEN INSERT *"
        )

    def scan(self) -> Answer:
        (row,) = self._run(SCAN).collect()
        return tuple(int(value) for value in row)

    def _rows(self, rows: int) -> Any:
        return self._session.range(0, rows, 1, 2).selectExpr(
            "id",
            "CAST(pmod(id * 31, 97) + 1 AS INT) AS quantity",
            "pmod(id * 104729, 9999991) AS price",
            "elt(CAST(id % 6 + 1 AS INT), 'amber', 'basalt', 'cedar', 'dune', 'ember', 'fjord') AS city",
        )


class OursSpark(_OnSpark):
    """LakeVilla on the plain session."""

    def __init__(self, session: SparkSession, folder: Path, vectors: bool) -> None:
        super().__init__(VECTORS if vectors else COPY_ON_WRITE, session)
        options = {"fsync": "false"}
        root = str(folder / f"spark-{self.name}")
        self._lake = lv.Lake(
            root, spark=session, features=lv.R, storage_options=options, merge_on_read=vectors
        )

    def fill(self, rows: int) -> None:
        self._lake.create("t", self._rows(rows))

    def _run(self, text: str) -> Any:
        return self._lake.sql(text)


class SparkPeer(_OnSpark):
    """Spark + Delta or Spark + Iceberg with these table properties, in a namespace of its own."""

    def __init__(self, name: str, session: SparkSession, format: str, properties: dict[str, str]) -> None:
        super().__init__(name, session)
        self._format = format
        self._properties = properties

    def fill(self, rows: int) -> None:
        making = self._rows(rows).writeTo("t").using(self._format)
        for name, value in self._properties.items():
            making = making.tableProperty(name, value)
        making.create()


def local_systems(folder: Path) -> Sequence[ChangedTable]:
    """Those in this process."""
    return [OursLocal(folder, vectors=True), OursLocal(folder, vectors=False), Deltalake(folder)]


def spark_systems(spark: SparkSession, folder: Path) -> Sequence[ChangedTable]:
    """Those on Spark, in one JVM."""
    delta = sessions.with_delta(spark)
    delta.sql(f"CREATE DATABASE bench_rows LOCATION '{folder}/delta'")
    delta.sql("USE bench_rows")
    iceberg = sessions.with_iceberg(spark, f"{folder}/iceberg")
    iceberg.sql("CREATE NAMESPACE iceberg.bench_rows")
    iceberg.sql("USE iceberg.bench_rows")
    modes = {f"write.{change}.mode": "merge-on-read" for change in ("update", "delete", "merge")}
    return [
        OursSpark(spark, folder, vectors=True),
        OursSpark(spark, folder, vectors=False),
        SparkPeer("spark-delta-vectors", delta, "delta", {"delta.enableDeletionVectors": "true"}),
        SparkPeer("spark-iceberg-deletes", iceberg, "iceberg", {"format-version": "2", **modes}),
    ]


def drop_spark_tables(spark: SparkSession) -> None:
    """The catalog of a JVM outlives its sessions."""
    sessions.with_delta(spark).sql("DROP DATABASE IF EXISTS bench_rows CASCADE")
