"""An Iceberg table whose partition spec changed, with files that lack partition columns, as Hive does."""

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType

from tests.support.iceberg_files import FilesCatalog

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "day", StringType()),
    NestedField(3, "kind", StringType()),
)
ROWS = [
    (1, "mon", "a"),
    (2, "mon", None),
    (3, "tue", "b"),
    (4, "tue", "b"),
    (5, "wed", None),
    (6, "wed", "c"),
]


def make_evolved(place: Path) -> None:
    """The table with ROWS: two rows of a file by day, then files by day and kind.

    The column `day` is in no file, `kind` in the first and the last.
    """
    catalog = FilesCatalog()
    by_day = PartitionField(2, 1000, IdentityTransform(), "day")
    catalog.create(str(place), SCHEMA, PartitionSpec(by_day))
    table = catalog.load_table(str(place))
    _append(table, place, "first", Record("mon"), id=[1, 2], kind=["a", None])
    with catalog.load_table(str(place)).update_spec() as update:
        update.add_field("kind", IdentityTransform(), "kind")
    _append(catalog.load_table(str(place)), place, "second", Record("tue", "b"), id=[3, 4])
    _append(catalog.load_table(str(place)), place, "third", Record("wed", None), id=[5])
    _append(catalog.load_table(str(place)), place, "fourth", Record("wed", "c"), id=[6], kind=["c"])


def _append(table: Table, place: Path, name: str, partition: Record, **columns: list[Any]) -> None:
    numbers = {field.name: str(field.field_id) for field in SCHEMA.fields}
    fields = [
        pa.field(
            column,
            pa.int64() if column == "id" else pa.string(),
            metadata={"PARQUET:field_id": numbers[column]},
        )
        for column in columns
    ]
    sink = io.BytesIO()
    pq.write_table(pa.table(list(columns.values()), schema=pa.schema(fields)), sink)
    path = place / "data" / f"{name}.parquet"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(sink.getvalue())
    # Also of columns that the file does not hold: manifests may say so.
    held = {field.field_id: len(columns["id"]) for field in SCHEMA.fields}
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"file://{path}",
        file_format=FileFormat.PARQUET,
        partition=partition,
        record_count=len(columns["id"]),
        file_size_in_bytes=path.stat().st_size,
        column_sizes=dict(held),
        value_counts=dict(held),
        null_value_counts={},
        nan_value_counts={},
        lower_bounds={},
        upper_bounds={},
    )
    file.spec_id = table.spec().spec_id
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as snapshot:
        snapshot.append_data_file(file)
