"""Spark + Iceberg as a client of a lake's tables, by a Hadoop catalog. For tests."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tests.legacy.test_delta_clients import sorted_rows

Rows = list[dict[str, Any]]
WAREHOUSE = "spark.sql.catalog.iceberg.warehouse"


class Spark:
    """Spark + Iceberg at the tables of one lake, which is a namespace of its warehouse."""

    def __init__(self, session: SparkSession, name: str) -> None:
        self.session = session
        self.name = name
        self.root = Path(str(session.conf.get(WAREHOUSE)), name)
        self.root.mkdir()

    def path(self, table: str) -> str:
        return str(self.root / table)

    def called(self, table: str) -> str:
        return f"iceberg.`{self.name}`.`{table}`"

    def rows(self, table: str) -> Rows:
        return sorted_rows(self.session.table(self.called(table)).toArrow())

    def rows_at(self, table: str, version: int) -> Rows:
        """The rows of a version, by the snapshot that its metadata file names."""
        place = f"{self.path(table)}/metadata/v{version}.metadata.json"
        return sorted_rows(self.session.read.format("iceberg").load(place).toArrow())

    def sql(self, text: str, *tables: str) -> DataFrame:
        """A statement in which each `{}` stands for a table."""
        return self.session.sql(text.format(*map(self.called, tables)))

    def call(self, procedure: str, table: str, arguments: str = "") -> None:
        """A procedure of the catalog on a table."""
        more = f", {arguments}" if arguments else ""
        self.session.sql(f"CALL iceberg.system.{procedure}(table => '{self.name}.{table}'{more})").collect()

    def append(self, table: str, rows: pa.Table) -> None:
        self.session.createDataFrame(rows).coalesce(1).writeTo(self.called(table)).append()
