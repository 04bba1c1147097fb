"""Columns of data files that lack ids, lack columns, or are ORC: names, defaults and partition values."""

import io
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from lakevilla.errors import Corrupt, Unsupported
from lakevilla.files.column_mapping import BY_ID, DEFAULT, FIELD_ID, NAMES, default_of, encode_default
from lakevilla.files.reader import read_file
from lakevilla.model import DataFile, Deletes
from lakevilla.predicates import ANYTHING, Compare, Predicate
from lakevilla.store.open import open_store


def column(
    name: str,
    data_type: pa.DataType,
    number: int,
    names: list[str] | None = None,
    default: pa.Scalar | None = None,
) -> pa.Field:
    metadata = {FIELD_ID: str(number).encode()}
    if names is not None:
        metadata[NAMES] = json.dumps(names).encode()
    if default is not None:
        metadata[DEFAULT] = encode_default(default)
    return pa.field(name, data_type, metadata=metadata)


def schema_of(*columns: pa.Field) -> pa.Schema:
    return pa.schema(columns, metadata={BY_ID: b""})


def read(
    table: pa.Table,
    schema: pa.Schema,
    format: str = "parquet",
    partition: dict[str, Any] | None = None,
    deleted: list[int] | None = None,
    predicate: Predicate = ANYTHING,
    partition_columns: tuple[str, ...] = (),
) -> list[dict[str, Any]]:
    store, sink = open_store("memory://"), io.BytesIO()
    if format == "orc":
        orc.write_table(_with_attributes(table), sink)
    else:
        pq.write_table(table, sink, row_group_size=2)
    store.put("f", sink.getvalue())
    deletes = None if deleted is None else Deletes("d", None, lambda: pa.array(deleted, pa.int64()))
    file = DataFile("f", "f", len(sink.getvalue()), None, partition or {}, deletes, format=format)
    rows: list[dict[str, Any]] = read_file(store, "f", file, schema, partition_columns, predicate).to_pylist()
    return rows


def _with_attributes(table: pa.Table) -> pa.Table:
    """The ids as Iceberg's writers put them into ORC."""

    def field(given: pa.Field) -> pa.Field:
        number = (given.metadata or {}).get(FIELD_ID)
        if pa.types.is_struct(given.type):
            given = given.with_type(pa.struct([field(child) for child in given.type]))
        return given.with_metadata(None if number is None else {"iceberg.id": number})

    return table.cast(pa.schema([field(given) for given in table.schema]))


both = pytest.mark.parametrize("format", ["parquet", "orc"])


@both
def test_file_without_ids_is_read_by_the_name_mapping_at_every_depth(format: str) -> None:
    stored = pa.table({"old": [1, 2], "s": [{"x": 5, "y": 6}, None], "unknown": [0, 0]})
    inner = pa.struct([column("renamed", pa.int64(), 4, ["z", "x"])])
    schema = schema_of(
        column("new", pa.int64(), 1, ["new", "old"]),
        column("t", inner, 2, ["s"]),
        column("unknown", pa.int64(), 3, []),
    )
    assert read(stored, schema, format) == [
        {"new": 1, "t": {"renamed": 5}, "unknown": None},
        {"new": 2, "t": None, "unknown": None},
    ]


@both
def test_ids_of_a_file_win_over_names(format: str) -> None:
    stored = pa.table([[1], [2]], schema=pa.schema([column("b", pa.int64(), 1), pa.field("a", pa.int64())]))
    schema = schema_of(column("a", pa.int64(), 1, ["a"]), column("b", pa.int64(), 2, ["b"]))
    assert read(stored, schema, format) == [{"a": 1, "b": None}]


def test_mapped_names_tell_cases_apart() -> None:
    schema = schema_of(column("a", pa.int64(), 1, ["a"]), column("A", pa.int64(), 2, ["A"]))
    assert read(pa.table({"A": [1]}), schema) == [{"a": None, "A": 1}]


@both
def test_file_without_ids_of_a_table_without_name_mapping_is_refused(format: str) -> None:
    with pytest.raises(Unsupported, match="no field ids"):
        read(pa.table({"a": [1]}), schema_of(column("a", pa.int64(), 1)), format)


def test_rows_of_a_file_without_ids_are_counted_without_any_column() -> None:
    assert len(read(pa.table({"a": [1, 2, 3]}), schema_of(), deleted=[1])) == 2


def test_row_groups_are_skipped_by_mapped_names() -> None:
    schema = schema_of(column("b", pa.int64(), 1, ["a"]))
    rows = read(pa.table({"a": range(10)}), schema, predicate=Compare(("b",), ">=", 7))
    assert [row["b"] for row in rows] == [6, 7, 8, 9]


@both
def test_missing_columns_read_as_their_defaults_at_every_depth(format: str) -> None:
    member = column("m", pa.string(), 4, default=pa.scalar("five"))
    whole = column("t", pa.struct([member]), 6)
    stored = pa.table(
        [[1, 2], [{"x": 1}, None]],
        schema=pa.schema(
            [
                column("a", pa.int64(), 1),
                column("s", pa.struct([column("x", pa.int64(), 3)]), 2),
            ]
        ),
    )
    schema = schema_of(
        column("a", pa.int64(), 1, default=pa.scalar(9)),
        column("s", pa.struct([column("x", pa.int64(), 3), member]), 2),
        column("d", pa.decimal128(5, 2), 5, default=pa.scalar(Decimal("1.00"), pa.decimal128(5, 2))),
        whole,
    )
    rows = read(stored, schema, format)
    assert [row["a"] for row in rows] == [1, 2]
    assert [row["s"] for row in rows] == [{"x": 1, "m": "five"}, None]
    assert [str(row["d"]) for row in rows] == ["1.00", "1.00"]
    assert [row["t"] for row in rows] == [None, None]


def test_null_in_the_file_is_not_replaced_by_the_default() -> None:
    stored = pa.table([pa.array([None], pa.int64())], schema=pa.schema([column("a", pa.int64(), 1)]))
    assert read(stored, schema_of(column("a", pa.int64(), 1, default=pa.scalar(9)))) == [{"a": None}]


@pytest.mark.parametrize(
    "value",
    [
        pa.scalar(5, pa.int32()),
        pa.scalar(None, pa.string()),
        pa.scalar({"a": 1, "b": None}, pa.struct([("a", pa.int64()), ("b", pa.string())])),
        pa.scalar([("k", [1])], pa.map_(pa.string(), pa.list_(pa.int8()))),
        pa.scalar(b"0123456789abcdef", pa.uuid()),
    ],
    ids=str,
)
def test_default_of_any_type_survives_its_encoding(value: pa.Scalar) -> None:
    field = pa.field("c", value.type, metadata={DEFAULT: encode_default(value)})
    assert default_of(field) == value


def test_default_that_is_not_readable_is_corrupt() -> None:
    with pytest.raises(Corrupt) as caught:
        default_of(pa.field("c", pa.int64(), metadata={DEFAULT: b"eA=="}))
    assert caught.value.column == "c"


@both
def test_partition_value_counts_where_the_file_lacks_the_column(format: str) -> None:
    stored = pa.table([[1, 2]], schema=pa.schema([column("a", pa.int64(), 1)]))
    schema = schema_of(
        column("a", pa.int64(), 1),
        column("p", pa.int64(), 2, default=pa.scalar(9)),
        column("q", pa.string(), 3, default=pa.scalar("x")),
    )
    rows = read(stored, schema, format, partition={"p": 7, "q": None, "a": 99})
    assert rows == [{"a": 1, "p": 7, "q": None}, {"a": 2, "p": 7, "q": None}]
    always = read(stored, schema, format, partition={"a": 99}, partition_columns=("a",))
    assert [row["a"] for row in always] == [99, 99]


def test_orc_rows_come_without_deleted_ones_and_with_wider_types() -> None:
    stored = pa.table(
        [pa.array(range(5), pa.int32()), pa.array(range(5), pa.timestamp("us"))],
        schema=pa.schema([column("a", pa.int32(), 1), column("t", pa.timestamp("us"), 2)]),
    )
    schema = schema_of(column("a", pa.int64(), 1), column("t", pa.timestamp("us"), 2))
    rows = read(stored, schema, "orc", deleted=[0, 3], predicate=Compare(("a",), "=", 99))
    assert [(row["a"], row["t"].microsecond) for row in rows] == [(1, 1), (2, 2), (4, 4)]


def test_orc_lists_and_maps_of_structs_are_found_by_ids() -> None:
    def nested(name: str, member: str, width: pa.DataType, key: bytes) -> pa.Field:
        one = pa.struct([pa.field(member, width, metadata={key: b"4"})])
        items = pa.field(
            "value", pa.list_(pa.field("element", one, metadata={key: b"3"})), metadata={key: b"5"}
        )
        keys = pa.field("key", pa.string(), nullable=False, metadata={key: b"2"})
        return pa.field(name, pa.map_(keys, items), metadata={key: b"1"})

    field = nested("old", "x", pa.int32(), b"iceberg.id")
    values = pa.array([[("k", [{"x": 1}, None])], None, []], field.type)
    store, sink = open_store("memory://"), io.BytesIO()
    orc.write_table(pa.table([values], schema=pa.schema([field])), sink)
    store.put("f", sink.getvalue())
    file = DataFile("f", "f", len(sink.getvalue()), 3, {}, format="orc")
    found = read_file(store, "f", file, schema_of(nested("new", "y", pa.int64(), FIELD_ID)), ())
    assert found.column("new").to_pylist() == [[("k", [{"y": 1}, None])], None, []]


def test_orc_with_a_time_that_arrow_cannot_hold_is_refused() -> None:
    far = pa.table(
        [pa.array([253402300799999999], pa.timestamp("us"))],
        schema=pa.schema([column("t", pa.timestamp("us"), 1)]),
    )
    with pytest.raises(Unsupported, match="time"):
        read(far, schema_of(column("t", pa.timestamp("us"), 1)), "orc")


@pytest.mark.parametrize(("format", "error"), [("orc", Corrupt), ("avro", Unsupported)])
def test_file_that_cannot_be_read_says_why(format: str, error: type[Exception]) -> None:
    store = open_store("memory://")
    store.put("f", b"what is this")
    with pytest.raises(error, match=f"(?i){format}"):
        read_file(
            store,
            "f",
            DataFile("f", "f", 9, None, {}, format=format),
            schema_of(column("a", pa.int64(), 1)),
            (),
        )
    with pytest.raises((Corrupt, Unsupported)):
        read_file(store, "gone", DataFile("gone", "f", 9, None, {}, format=format), schema_of(), ())


@pytest.mark.parametrize(
    ("rows", "deleted", "living"), [(5, None, 5), (5, 2, 3), (5, "unknown", None), (None, 2, None)]
)
def test_living_rows_are_known_where_rows_and_deletes_are(rows: Any, deleted: Any, living: Any) -> None:
    count = None if deleted == "unknown" else deleted
    deletes = None if deleted is None else Deletes("d", count, lambda: pa.array([], pa.int64()))
    assert DataFile("f", "f", 9, rows, {}, deletes).living_rows == living
