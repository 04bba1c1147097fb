"""Files that Spark's own reader misreads, among files that it reads correctly: correct rows of all."""

import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StructType, UUIDType

import lakevilla as lv
from lakevilla.engines.port import Source
from lakevilla.engines.spark.names import Names
from lakevilla.engines.spark.scan.file_urls import Access
from lakevilla.engines.spark.scan.relation import Reader
from lakevilla.environment import SystemEnvironment
from lakevilla.errors import Unsupported
from lakevilla.files.column_mapping import BY_ID, DEFAULT, FIELD_ID, NAMES, encode_default
from lakevilla.model import DataFile, Deletes
from lakevilla.predicates import Predicate
from lakevilla.store.open import open_store
from tests.support.iceberg_files import FilesCatalog


def column(
    name: str, data_type: pa.DataType, number: int, names: Any = None, default: Any = None
) -> pa.Field:
    metadata = {FIELD_ID: str(number).encode()}
    if names is not None:
        metadata[NAMES] = json.dumps(names).encode()
    if default is not None:
        metadata[DEFAULT] = encode_default(pa.scalar(default, data_type))
    return pa.field(name, data_type, metadata=metadata)


class Folder:
    """A table as an engine sees it: files in a folder."""

    def __init__(self, place: Path, *columns: pa.Field) -> None:
        self.store = open_store(str(place), {"fsync": "false"})
        self.schema = pa.schema(columns, metadata={BY_ID: b""})
        self.files: list[DataFile] = []

    def put(self, rows: pa.Table, format: str = "parquet", deleted: tuple[int, ...] = ()) -> None:
        key, sink = f"f{len(self.files)}", io.BytesIO()
        if format == "orc":
            orc.write_table(rows, sink)
        else:
            pq.write_table(rows, sink)
        self.store.put(key, sink.getvalue())
        deletes = Deletes(key, None, lambda: pa.array(deleted, pa.int64())) if deleted else None
        size = len(sink.getvalue())
        self.files.append(DataFile(key, key, size, rows.num_rows, {}, deletes, format=format))

    @property
    def source(self) -> Source:
        def files(predicate: Predicate) -> list[DataFile]:
            return self.files

        return Source(
            "t", self.schema, (), files, lambda file: (self.store, file.key),
            formats=lambda: frozenset(file.format for file in self.files),
        )  # fmt: skip


def with_ids(**columns: tuple[int, list[Any]]) -> pa.Table:
    fields = [
        pa.field(name, pa.int64(), metadata={FIELD_ID: str(number), "iceberg.id": str(number)})
        for name, (number, _) in columns.items()
    ]
    return pa.table([values for _, values in columns.values()], schema=pa.schema(fields))


@pytest.fixture
def mixed(tmp_path: Path) -> Folder:
    """Parquet with ids, Parquet without and ORC; of each, a row is deleted."""
    folder = Folder(
        tmp_path, column("a", pa.int64(), 1, ["old", "a"]), column("b", pa.int64(), 2, ["b"], default=7)
    )
    folder.put(with_ids(a=(1, [10, 11, 12]), b=(2, [1, None, 2])), deleted=(0,))
    folder.put(pa.table({"old": [20, 21, 22]}), deleted=(1,))
    folder.put(with_ids(renamed=(1, [30, 31, 32]), b=(2, [3, 4, 5])), "orc", deleted=(2,))
    folder.put(with_ids(a=(1, [40])))
    return folder


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def test_files_of_all_kinds_are_read_as_one_table(quick: Any, mixed: Folder) -> None:
    table = Reader(quick, Access(), SystemEnvironment()).table(mixed.source)
    assert rows(table) == [(11, None), (12, 2), (20, 7), (22, 7), (30, 3), (31, 4), (40, 7)]
    assert rows(table.where("b = 7 AND a > 20")) == [(22, 7), (40, 7)]
    assert rows(table.selectExpr("count(*)", "sum(a)")) == [(7, 166)]


def test_rows_for_a_change_name_their_file_and_their_place_in_it(quick: Any, mixed: Folder) -> None:
    frame = Reader(quick, Access(), SystemEnvironment()).files(mixed.source, mixed.files, Names())
    assert rows(frame.select(Names().file, Names().row, "a")) == [
        (0, 1, 11), (0, 2, 12), (1, 0, 20), (1, 2, 22), (2, 0, 30), (2, 1, 31), (3, 0, 40)
    ]  # fmt: skip


def test_default_of_a_column_counts_where_spark_reads_alone(quick: Any, tmp_path: Path) -> None:
    folder = Folder(
        tmp_path,
        column("a", pa.int64(), 1),
        column("s", pa.string(), 2, default='it\'s \\ "this"'),
        column("d", pa.decimal128(9, 2), 3, default=Decimal("1.50")),
        column("t", pa.timestamp("us", "UTC"), 4, default=1_700_000_000_123_456),
        column("n", pa.float64(), 6, default=float("nan")),
    )
    folder.put(with_ids(a=(1, [1, 2])))
    table = Reader(quick, Access(), SystemEnvironment()).table(folder.source)
    found = table.where("""a = 2 AND s = 'it\\'s \\\\ "this"' AND n = double('NaN')""").toArrow()
    assert found["d"].to_pylist() == [Decimal("1.50")]
    assert found["t"].cast(pa.int64()).to_pylist() == [1_700_000_000_123_456]
    assert rows(table.where("s = 'other'")) == []


def test_binary_default_counts(quick: Any, tmp_path: Path) -> None:
    folder = Folder(tmp_path, column("a", pa.int64(), 1), column("x", pa.binary(), 5, default=b"\0'"))
    folder.put(with_ids(a=(1, [1])))
    assert rows(Reader(quick, Access(), SystemEnvironment()).table(folder.source)) == [(1, b"\0'")]


def test_default_inside_a_struct_counts(quick: Any, tmp_path: Path) -> None:
    member = column("m", pa.string(), 4, default="x")
    known = column("k", pa.int64(), 3)
    folder = Folder(tmp_path, column("s", pa.struct([known, member]), 2))
    for inner in ([known], [known, member]):
        kind = pa.struct(inner)
        values = pa.array([dict.fromkeys([field.name for field in inner]), None], kind)
        folder.put(pa.table([values], schema=pa.schema([column("s", kind, 2)])))
    table = Reader(quick, Access(), SystemEnvironment()).table(folder.source)
    found = table.toArrow().column("s").to_pylist()
    assert [each and each["m"] for each in found] in (["x", None, None, None], [None, None, "x", None])


def test_names_that_differ_in_case_alone_are_refused(quick: Any, tmp_path: Path) -> None:
    folder = Folder(tmp_path, column("a", pa.int64(), 1), column("A", pa.int64(), 2))
    with pytest.raises(Unsupported, match="case"):
        Reader(quick, Access(), SystemEnvironment()).table(folder.source)


def test_file_that_nobody_reads_is_refused_before_anything_runs(quick: Any, mixed: Folder) -> None:
    mixed.put(with_ids(a=(1, [50])), "avro")
    with pytest.raises(Unsupported, match="avro"):
        Reader(quick, Access(), SystemEnvironment()).files(mixed.source, mixed.files, Names())


def uuids(*values: UUID | None) -> pa.Array:
    stored = [None if value is None else value.bytes for value in values]
    return pa.ExtensionArray.from_storage(pa.uuid(), pa.array(stored, pa.binary(16)))


def test_uuids_are_read_as_text_and_statements_that_would_write_them_are_refused(
    quick: Any, tmp_path: Path
) -> None:
    one, other = UUID(int=1), UUID(int=2**127)
    nested = Schema(
        NestedField(1, "id", UUIDType()),
        NestedField(2, "s", StructType(NestedField(3, "u", UUIDType()), NestedField(4, "n", LongType()))),
    )
    FilesCatalog().create(str(tmp_path / "t"), nested)
    local = lv.Lake(tmp_path, engine="local")
    assert local.read("t").toArrow().num_rows == 0
    members = [uuids(other, None), pa.array([1, None])]
    structs = pa.StructArray.from_arrays(members, ["u", "n"], mask=pa.array([False, True]))
    local.append("t", pa.table({"id": uuids(one, other), "s": structs}))
    lake = lv.Lake(tmp_path, spark=quick)

    found = lake.sql(f"SELECT id, s.u AS u FROM t WHERE id = '{one}' OR s IS NULL ORDER BY id").collect()

    assert [tuple(row) for row in found] == [(str(one), str(other)), (str(other), None)]
    for statement in (f"INSERT INTO t VALUES ('{one}', NULL)", "UPDATE t SET s = NULL WHERE s IS NOT NULL"):
        with pytest.raises(lv.Unsupported, match="column 'id' has UUIDs"):
            lake.sql(statement)
    assert local.sql("SELECT count(*) AS n FROM t").collect()[0].n == 2
