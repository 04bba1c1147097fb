"""Data files older than the table, spelled otherwise, large, or with deleted rows give the right rows."""

import datetime
import io
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakevilla.environment import SystemEnvironment
from lakevilla.errors import Corrupt
from lakevilla.files import parquet, projection
from lakevilla.files.column_mapping import BY_ID, FIELD_ID, PHYSICAL_NAME
from lakevilla.files.reader import read_file, read_files
from lakevilla.model import DataFile, Deletes
from lakevilla.predicates import ANYTHING, Compare, Predicate
from lakevilla.store.metered import Meter
from lakevilla.store.open import open_store
from lakevilla.store.port import Store

UTC = datetime.UTC
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)
MS = datetime.timedelta(milliseconds=1)


def stored(store: Store, key: str, table: pa.Table, **options: Any) -> DataFile:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    store.put(key, sink.getvalue())
    return DataFile(key, key, len(sink.getvalue()), table.num_rows, {})


def read(
    table: pa.Table,
    schema: pa.Schema,
    partition: dict[str, Any] | None = None,
    deleted: list[int] | None = None,
    predicate: Predicate = ANYTHING,
    **options: Any,
) -> pa.Table:
    store = open_store("memory://")
    file = stored(store, "f", table, **options)
    deletes = None if deleted is None else Deletes("d", len(deleted), lambda: pa.array(deleted, pa.int64()))
    file = DataFile("f", "f", file.size, file.rows, partition or {}, deletes)
    return read_file(store, "f", file, schema, tuple(partition or ()), predicate)


def annotated(name: str, data_type: pa.DataType, physical: str, number: int) -> pa.Field:
    return pa.field(
        name, data_type, metadata={PHYSICAL_NAME: physical.encode(), FIELD_ID: str(number).encode()}
    )


@pytest.mark.parametrize(
    ("given", "wanted", "values"),
    [
        (pa.array([1, None], pa.int8()), pa.int64(), [1, None]),
        (pa.array([1.5], pa.float32()), pa.float64(), [1.5]),
        (pa.array([7], pa.int32()), pa.float64(), [7.0]),
        (pa.array([7], pa.int32()), pa.decimal128(12, 2), [Decimal("7.00")]),
        (pa.array([Decimal("1.5")], pa.decimal128(5, 1)), pa.decimal128(20, 3), [Decimal("1.500")]),
        (pa.array([datetime.date(2020, 1, 2)]), pa.timestamp("us"), [datetime.datetime(2020, 1, 2)]),
        (pa.array([b"ab"]), pa.string(), ["ab"]),
        (pa.array(["ab"], pa.large_string()), pa.string(), ["ab"]),
        (pa.array(["ab", "ab"]).dictionary_encode(), pa.string(), ["ab", "ab"]),
        (pa.array([5], pa.timestamp("ms", "Europe/Berlin")), pa.timestamp("us", "UTC"), [EPOCH + 5 * MS]),
        (pa.array([5_000_001], pa.timestamp("ns", "UTC")), pa.timestamp("us", "UTC"), [EPOCH + 5 * MS]),
        (pa.array([1]), pa.null(), [None]),
    ],
)  # fmt: skip
def test_value_of_another_spelling_or_narrower_type_is_converted(
    given: pa.Array, wanted: pa.DataType, values: list[Any]
) -> None:
    rows = read(pa.table({"c": given}), pa.schema([pa.field("c", wanted)]))
    assert rows.schema.field("c").type == wanted
    assert rows.column("c").to_pylist() == values


def test_int96_far_from_now_keeps_its_microseconds() -> None:
    moments = [
        datetime.datetime(1, 1, 2, 3, 4, 5, 678901),
        datetime.datetime(9999, 12, 31, 23, 59, 59, 999999),
    ]
    table = pa.table({"c": pa.array(moments, pa.timestamp("us"))})
    schema = pa.schema([pa.field("c", pa.timestamp("us", "UTC"))])
    rows = read(table, schema, use_deprecated_int96_timestamps=True)
    assert rows.column("c").to_pylist() == [moment.replace(tzinfo=UTC) for moment in moments]


def test_missing_and_surplus_columns_at_any_depth() -> None:
    table = pa.table({"s": [{"a": 1, "old": 2}, None], "l": [[{"a": 1}], []], "gone": [1, 2]})
    inner = pa.struct([pa.field("new", pa.string()), pa.field("a", pa.int64())])
    schema = pa.schema(
        [
            pa.field("added", pa.date32()),
            pa.field("l", pa.list_(pa.field("element", inner))),
            pa.field("s", inner),
            pa.field("m", pa.map_(pa.string(), pa.int32())),
        ]
    )
    rows = read(table, schema)
    assert rows.schema == schema
    assert rows.to_pylist() == [
        {"added": None, "l": [{"new": None, "a": 1}], "s": {"new": None, "a": 1}, "m": None},
        {"added": None, "l": [], "s": None, "m": None},
    ]
    only_new = pa.schema([pa.field("s", pa.struct([pa.field("new", pa.int8())]))])
    assert read(table, only_new).to_pylist() == [{"s": {"new": None}}, {"s": None}]


@pytest.mark.parametrize("ids", [False, True])
def test_renamed_columns_are_found_by_physical_name_or_id(ids: bool) -> None:
    def field(name: str, data_type: pa.DataType, number: int) -> pa.Field:
        return pa.field(name, data_type, metadata={FIELD_ID: str(number).encode()})

    inner = pa.struct([field("col-3", pa.int32(), 3)])
    nested = pa.map_(pa.string(), pa.list_(inner))
    table = pa.table(
        [pa.array([1, 2], pa.int32()), pa.array([[("k", [{"col-3": 5}, None])], None], nested)],
        schema=pa.schema([field("col-1", pa.int32(), 1), field("col-2", nested, 2)]),
    )
    wanted = pa.struct([annotated("c", pa.int64(), "other" if ids else "col-3", 3 if ids else 99)])
    schema = pa.schema(
        [
            annotated(
                "b", pa.map_(pa.string(), pa.list_(pa.field("element", wanted))), "x" if ids else "col-2", 2
            ),
            annotated("col-2", pa.int64(), "x" if ids else "col-1", 1),
        ],
        metadata={BY_ID: b""} if ids else None,
    )
    assert read(table, schema).to_pylist() == [
        {"b": [("k", [{"c": 5}, None])], "col-2": 1},
        {"b": None, "col-2": 2},
    ]


def test_names_of_another_case_are_found_if_there_is_one() -> None:
    schema = pa.schema([pa.field("Id", pa.int64()), pa.field("X", pa.int64())])
    assert read(pa.table({"ID": [1], "x": [2], "X": [3]}), schema).to_pylist() == [{"Id": 1, "X": 3}]


def test_partition_value_of_the_log_counts_and_fills_every_row() -> None:
    schema = pa.schema([pa.field("p", pa.string()), pa.field("c", pa.int64()), pa.field("q", pa.date32())])
    rows = read(pa.table({"c": [1, 2], "p": ["file", "file"]}), schema, {"p": "log", "q": None})
    assert rows.to_pylist() == [{"p": "log", "c": 1, "q": None}, {"p": "log", "c": 2, "q": None}]


@pytest.mark.parametrize("names", [[], ["p"]])
def test_rows_are_counted_without_any_stored_column(names: list[str]) -> None:
    schema = pa.schema([pa.field(name, pa.string()) for name in names])
    rows = read(pa.table({"c": range(10)}), schema, {"p": "x"}, deleted=[0, 9], row_group_size=3)
    assert rows.num_rows == 8
    assert rows.schema.names == names


def test_row_groups_that_cannot_match_are_skipped_and_deletes_stay_in_place() -> None:
    table = pa.table({"c": range(100)})
    schema = pa.schema([pa.field("c", pa.int64())])
    predicate = Compare(("c",), ">=", 42)
    rows = read(table, schema, deleted=[0, 41, 43, 99], predicate=predicate, row_group_size=10)
    assert rows.column("c").to_pylist() == [40, 42, *range(44, 99)]


DISTINCT = pa.array([f"text {number}" for number in range(1000)])
FEW = pa.array([None if number % 7 == 3 else "ä" * (number % 3) for number in range(1000)])


@pytest.mark.parametrize("deleted", [None, [0, 1, 299, 300, 999]])
@pytest.mark.parametrize("by_id", [True, False])
def test_texts_of_few_values_are_the_same_read_as_dictionaries_and_not(
    deleted: list[int] | None, by_id: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "_DICTIONARY_ROWS", 1)
    number = {b"PARQUET:field_id": b"4"} if by_id else None
    columns = [FEW, FEW.cast(pa.binary()), DISTINCT, pa.array([{"s": text} for text in FEW.to_pylist()])]
    fields = [
        pa.field(name, column.type, metadata=number if name == "few" else None)
        for name, column in zip(("few", "bytes", "distinct", "inside"), columns, strict=True)
    ]
    wanted = pa.schema(fields)
    if by_id:
        wanted = pa.schema([pa.field("called", pa.string(), metadata={FIELD_ID: b"4"})], {BY_ID: b""})
    rows = read(pa.table(columns, pa.schema(fields)), wanted, deleted=deleted, row_group_size=300)
    left = [number for number in range(1000) if number not in (deleted or ())]
    assert rows.schema.types == wanted.types
    for found, column in zip(rows.columns, columns, strict=False):
        assert found.to_pylist() == column.take(pa.array(left)).to_pylist()


def test_only_texts_of_few_values_are_read_as_dictionaries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_DICTIONARY_ROWS", 1)
    store = open_store("memory://")
    nulls = pa.array([text if place % 50 == 0 else None for place, text in enumerate(DISTINCT.to_pylist())])
    table = pa.table({"few": FEW, "distinct": DISTINCT, "nulls": nulls, "c": range(1000)})
    file = stored(store, "f", table, row_group_size=300)
    opened = parquet.ParquetObject(store, "f", file.size)
    for names in (table.schema.names, ["few"], ["distinct", "c"]):
        types = opened.read(names, [0, 2], dictionaries=True).schema.types
        assert [pa.types.is_dictionary(kind) for kind in types] == [name == "few" for name in names]
    assert opened.read(["few"], [0]).schema.types == [pa.string()]


def test_dictionary_that_decodes_to_more_than_an_array_holds_is_decoded_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parquet, "_DICTIONARY_ROWS", 1)
    monkeypatch.setattr(projection, "_TEXT_BYTES", 100)
    rows = read(pa.table({"few": FEW}), pa.schema([pa.field("few", pa.string())]), deleted=[5])
    assert rows.column("few").to_pylist() == [
        text for place, text in enumerate(FEW.to_pylist()) if place != 5
    ]
    assert max(len(chunk) for chunk in rows.column("few").chunks) == 25


def test_row_group_with_nan_is_not_skipped() -> None:
    table = pa.table({"c": [1.0, 2.0, float("nan"), 3.0]})
    schema = pa.schema([pa.field("c", pa.float64())])
    rows = read(table, schema, predicate=Compare(("c",), ">", 5.0), row_group_size=2)
    assert len([value for value in rows.column("c").to_pylist() if value != value]) == 1


def test_deleted_row_behind_the_end_is_corrupt() -> None:
    with pytest.raises(Corrupt):
        read(pa.table({"c": [1]}), pa.schema([pa.field("c", pa.int64())]), deleted=[1])


def test_large_file_is_read_by_ranges_of_the_wanted_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "WHOLE_BYTES", 1000)
    monkeypatch.setattr(parquet, "FOOTER_BYTES", 65536)
    monkeypatch.setattr(parquet, "_GAP_BYTES", 100)
    meter = Meter()
    store = open_store("memory://", meter=meter)
    noise = np.random.default_rng(1).bytes(2_000_000)
    table = pa.table({"big": [noise[i : i + 200] for i in range(0, 2_000_000, 200)], "c": range(10_000)})
    file = stored(store, "f", table, row_group_size=1000, use_dictionary=False)
    schema = pa.schema([pa.field("c", pa.int64())])
    before = meter.snapshot()
    rows = read_file(store, "f", file, schema, (), Compare(("c",), "<", 2000))
    now = meter.snapshot()
    assert rows.column("c").to_pylist() == list(range(2000))
    assert now["bytes_in"] - before["bytes_in"] < file.size / 10
    assert now["get"] == before["get"]


@pytest.mark.parametrize("data", [None, b"", b"PAR1", b"PAR1" + b"\0" * 50 + b"PAR1"])
def test_missing_or_malformed_file_is_corrupt(data: bytes | None) -> None:
    store = open_store("memory://")
    if data is not None:
        store.put("f", data)
    with pytest.raises(Corrupt):
        read_file(store, "f", DataFile("f", "f", 9, None, {}), pa.schema([pa.field("c", pa.int64())]), ())


def test_type_that_cannot_be_converted_is_corrupt() -> None:
    with pytest.raises(Corrupt) as caught:
        read(pa.table({"c": ["x"]}), pa.schema([pa.field("c", pa.int64())]))
    assert caught.value.column == "c"
    with pytest.raises(Corrupt) as caught:
        read(pa.table({"c": [1]}), pa.schema([pa.field("c", pa.struct([pa.field("a", pa.int64())]))]))
    assert caught.value.column == "c"


def test_many_files_come_in_their_order() -> None:
    store, schema = open_store("memory://"), pa.schema([pa.field("c", pa.int64())])
    files = [stored(store, f"f{i}", pa.table({"c": [i]})) for i in range(50)]
    parts = read_files(SystemEnvironment(threads=4), lambda file: (store, file.key), files, schema, ())
    assert [part.column("c").to_pylist() for part in parts] == [[i] for i in range(50)]


@pytest.mark.parametrize(
    ("stored_type", "wanted"),
    [
        (pa.string(), pa.list_(pa.int32())),
        (pa.string(), pa.map_(pa.string(), pa.int32())),
        (pa.int32(), pa.struct([("a", pa.int32())])),
        (pa.list_(pa.int32()), pa.struct([("a", pa.int32())])),
        (pa.struct([("a", pa.int32())]), pa.list_(pa.int32())),
        (pa.list_(pa.int32()), pa.map_(pa.string(), pa.int32())),
        (pa.struct([("s", pa.string())]), pa.struct([("s", pa.list_(pa.int32()))])),
        (pa.struct([("a", pa.int32())]), pa.int32()),
    ],
    ids=str,
)
def test_column_of_another_shape_is_corrupt(stored_type: pa.DataType, wanted: pa.DataType) -> None:
    table = pa.table({"x": pa.nulls(2, stored_type)})
    with pytest.raises(Corrupt) as caught:
        read(table, pa.schema([("x", wanted)]))
    assert caught.value.column == "x"
