"""Data in: what is accepted, what types it gets, and how it is brought to a table's columns."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest

from lakevilla.engines.data import batches_of, is_data, schema_of
from lakevilla.errors import InvalidInput


def test_other_objects_are_not_data() -> None:
    for thing in (1, "text", None, [1], {"a": 1}):
        assert not is_data(thing)
    with pytest.raises(InvalidInput):
        schema_of("text")


@pytest.mark.parametrize(
    ("data_type", "values"),
    [
        (pa.int32(), pa.array([2**40])),
        (pa.int32(), pa.array([1.0])),
        (pa.int32(), pa.array(["1"])),
        (pa.string(), pa.array([1])),
        (pa.float32(), pa.array([1.5])),
        (pa.float64(), pa.array([2**53 + 1])),
        (pa.decimal128(5, 2), pa.array([Decimal("1.234")])),
        (pa.decimal128(3, 2), pa.array([Decimal("12.34")])),
        (pa.timestamp("us"), pa.array([datetime(2024, 1, 1, tzinfo=UTC)])),
        (pa.date32(), pa.array([datetime(2024, 1, 1)])),
        (pa.bool_(), pa.array([1])),
        (pa.struct([("a", pa.int32())]), pa.array([{"b": 1}])),
        (pa.binary(3), pa.array([b"abcd"])),
        (pa.binary(3), pa.array(["abc"])),
        (pa.uuid(), pa.array([b"abc"], pa.binary(3))),
        (pa.time64("us"), pa.array([1], pa.time64("ns"))),
    ],
)
def test_value_that_would_change_is_refused(data_type: pa.DataType, values: pa.Array) -> None:
    with pytest.raises(InvalidInput, match="c"):
        list(batches_of(pa.table({"c": values}), pa.schema([("c", data_type)])))


@pytest.mark.parametrize(
    ("data_type", "values"),
    [
        (pa.int8(), pa.array([1], pa.uint64())),
        (pa.float64(), pa.array([1.5], pa.float32())),
        (pa.float64(), pa.array([3])),
        (pa.decimal128(10, 2), pa.array([3])),
        (pa.string(), pa.array(["x"]).dictionary_encode()),
        (pa.string(), pa.array(["x"], pa.large_string())),
        (pa.timestamp("us", "UTC"), pa.array([datetime(2024, 1, 1)], pa.timestamp("ns"))),
        (pa.list_(pa.field("element", pa.int32())), pa.array([[1, None]])),
        (pa.int32(), pa.nulls(1)),
        (pa.binary(3), pa.array([b"abc"])),
        (pa.uuid(), pa.array([b"x" * 16], pa.binary(16))),
        (pa.time64("us"), pa.array([1], pa.time32("ms"))),
    ],
)
def test_value_that_stays_itself_is_cast(data_type: pa.DataType, values: pa.Array) -> None:
    (piece,) = batches_of(pa.table({"C": values}), pa.schema([("c", data_type)]))
    assert piece.schema.field("c").type == data_type


def test_columns_must_be_the_tables() -> None:
    wanted = pa.schema([("a", pa.int32())])
    with pytest.raises(InvalidInput) as caught:
        list(batches_of([{"a": 1, "b": 2}], wanted))
    assert caught.value.column == "b"
    with pytest.raises(InvalidInput, match="duplicate column"):
        list(batches_of(pa.table([[1], [2]], names=["a", "A"]), wanted))


def test_rows_take_the_tables_types() -> None:
    wanted = pa.schema([("d", pa.decimal128(10, 2)), ("f", pa.float32()), ("t", pa.timestamp("us", "UTC"))])
    (piece,) = batches_of([{"d": Decimal("1.5"), "f": 1, "t": datetime(2024, 1, 1)}, {}], wanted)
    assert piece.to_pylist()[0]["t"] == datetime(2024, 1, 1, tzinfo=UTC)
    assert piece.num_rows == 2
    with pytest.raises(InvalidInput, match="d"):
        list(batches_of([{"d": "x"}], wanted))


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        (pa.int64(), 1.5),
        (pa.int32(), Decimal("1.5")),
        (pa.date32(), datetime(2024, 1, 1, 12)),
        (pa.date32(), 1.5),
        (pa.timestamp("us", "UTC"), 5),
        (pa.list_(pa.field("element", pa.int64())), [1, 1.5]),
        (pa.map_(pa.string(), pa.int64()), {"a": 1.5}),
        (pa.struct([("x", pa.int64())]), {"x": 1.5}),
        (pa.struct([("x", pa.int64())]), {"x": 1, "y": 2}),
    ],
)
def test_value_of_a_row_that_would_be_cut_is_refused(data_type: pa.DataType, value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        list(batches_of([{"c": value}], pa.schema([("c", data_type)])))
    assert caught.value.column.split(".")[0] == "c"


def test_schema_of_data_has_types_of_spark() -> None:
    frame = pd.DataFrame({"a": [1], "t": [datetime(2024, 1, 1)], "s": ["x"]})
    assert schema_of(frame) == pa.schema(
        [("a", pa.int64()), ("t", pa.timestamp("us", "UTC")), ("s", pa.string())]
    )
    rows = [{"a": 1, "d": date(2024, 1, 1), "l": [1.5]}]
    assert [str(t) for t in schema_of(rows).types] == ["int64", "date32[day]", "list<element: double>"]
    unsigned = pa.table({"u": pa.array([1], pa.uint32()), "n": pa.array([None], pa.timestamp("ns"))})
    assert schema_of(unsigned).types == [pa.int64(), pa.timestamp("us")]
    with pytest.raises(InvalidInput, match="cannot infer the type"):
        schema_of([{"a": None}])
