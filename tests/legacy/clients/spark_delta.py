"""Spark + Delta as a client of a lake's tables, and rows to compare. For tests."""

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import lakevilla as lv
from tests.legacy.test_delta_clients import sorted_rows

Rows = list[dict[str, Any]]


class Spark:
    """Spark + Delta at one lake's tables."""

    def __init__(self, session: SparkSession, root: str) -> None:
        self.session = session
        self.root = root

    def path(self, table: str) -> str:
        return f"{self.root}/{table}"

    def rows(self, table: str, version: int | None = None) -> Rows:
        reader = self.session.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return sorted_rows(reader.load(self.path(table)).toArrow())

    def sql(self, text: str, *tables: str) -> DataFrame:
        """A statement in which each `{}` stands for a table."""
        return self.session.sql(text.format(*(f"delta.`{self.path(table)}`" for table in tables)))

    def append(self, table: str, rows: pa.Table) -> None:
        data = self.session.createDataFrame(rows)
        data.coalesce(1).write.format("delta").mode("append").save(self.path(table))

    def checkpoint(self, table: str) -> None:
        self._log().forTable(self.session._jsparkSession, self.path(table)).checkpoint()

    def forget(self) -> None:
        """Drop what the JVM knows of tables, as a new one would."""
        self._log().clearCache()

    def _log(self) -> Any:
        jvm: Any = self.session._jvm
        return jvm.org.apache.spark.sql.delta.DeltaLog


def ours(lake: lv.Lake, table: str, version: int | None = None) -> Rows:
    return sorted_rows(lake.read(table, version=version).toArrow())


def simple(*numbers: int, v: str = "new", p: str | None = "a b") -> pa.Table:
    count = len(numbers)
    return pa.table(
        {"id": pa.array(numbers, pa.int64()), "v": [v] * count, "p": pa.array([p] * count, pa.string())}
    )
