"""Data that cannot be read, or that no table has a type for: refused in our words, by every statement."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import lakevilla as lv


@pytest.fixture
def lake() -> lv.Lake:
    lake = lv.Lake("memory://", engine="local")
    lake.create("t", "id BIGINT, s STRING")
    return lake


STATEMENTS: dict[str, Callable[[lv.Lake, object], object]] = {
    "create": lambda lake, data: lake.create("u", data),
    "append": lambda lake, data: lake.append("t", data),
    "overwrite": lambda lake, data: lake.overwrite("t", data, "id = 1"),
    "merge": lambda lake, data: lake.merge("t", data, ["id"], matched="delete"),
    "view": lambda lake, data: lake.sql("SELECT * FROM v", views={"v": data}),
}


def lost_file() -> pa.RecordBatchReader:
    schema = pa.schema([("id", pa.int64())])

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([pa.array([1])], schema=schema)
        raise FileNotFoundError("part 2 is missing")

    return pa.RecordBatchReader.from_batches(schema, batches())


UNREADABLE: dict[str, Callable[[], object]] = {
    "unknown column": lambda: pl.LazyFrame({"id": [1]}).select("nope"),
    "no files": lambda: pl.scan_parquet("/nowhere/*.parquet"),
    "lost file": lost_file,
    "surrogate": lambda: [{"\ud800": 1}],
}


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("data", UNREADABLE)
def test_data_that_cannot_be_read_is_invalid_input(lake: lv.Lake, statement: str, data: str) -> None:
    with pytest.raises(lv.InvalidInput):
        STATEMENTS[statement](lake, UNREADABLE[data]())
    assert lake.read("t").count() == 0


@pytest.mark.parametrize("statement", STATEMENTS)
def test_exception_of_the_users_own_iterator_comes_as_it_is(lake: lv.Lake, statement: str) -> None:
    def rows() -> Iterator[dict[str, Any]]:
        yield {"id": 1}
        raise KeyError("theirs")

    with pytest.raises(KeyError, match="theirs"):
        STATEMENTS[statement](lake, rows())
    assert lake.read("t").count() == 0


UNHELD = {
    "duration": pa.array([1], pa.duration("s")),
    "union": pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])]),
    "run ends": pa.RunEndEncodedArray.from_arrays([1], [1]),
    "list view": pa.array([[1]], pa.list_view(pa.int64())),
    "empty struct": pa.array([{}], pa.struct([])),
    "many digits": pa.array([Decimal(1)], pa.decimal256(50, 2)),
    "negative scale": pa.array([Decimal(100)], pa.decimal128(5, -2)),
    "inside": pa.array([{"m": [1]}], pa.struct([("m", pa.list_view(pa.int64()))])),
}


@pytest.mark.parametrize("statement", ["create", "merge", "view"])
@pytest.mark.parametrize("kind", UNHELD)
def test_type_that_neither_tables_nor_queries_have_is_refused(
    lake: lv.Lake, statement: str, kind: str
) -> None:
    with pytest.raises(lv.InvalidInput, match="'odd'") as error:
        STATEMENTS[statement](lake, pa.table({"id": [1], "odd": UNHELD[kind]}))
    assert error.value.column == "odd"


@pytest.mark.parametrize(
    ("given", "held"),
    [
        (pa.array([1.5, None], pa.float16()), pa.float32()),
        (pa.array([Decimal("1.50")], pa.decimal32(5, 2)), pa.decimal128(5, 2)),
        (pa.array([Decimal("1.50")], pa.decimal256(30, 2)), pa.decimal128(30, 2)),
    ],
)
def test_type_with_an_equal_in_spark_is_brought_to_it(lake: lv.Lake, given: pa.Array, held: Any) -> None:
    lake.create("u", pa.table({"x": given}))
    lake.append("u", pa.table({"x": given}))
    found = lake.read("u").toArrow().column("x")
    assert found.type == held
    assert found.to_pylist() == given.to_pylist() * 2
    seen = lake.sql("SELECT x FROM v", views={"v": pa.table({"x": given})}).toArrow().column("x")
    assert (seen.type, seen.to_pylist()) == (held, given.to_pylist())


def test_value_that_holds_itself_is_refused(lake: lv.Lake) -> None:
    """Arrow would end the process: it looks for the type of the value until the stack is exhausted."""
    endless: list[Any] = []
    endless += [endless, endless]
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    for value in (endless, {"a": endless}, deep):
        with pytest.raises(lv.InvalidInput, match="'id': a value has more than 100 levels"):
            lake.create("u", [{"id": value}])


def test_values_of_few_levels_are_data(lake: lv.Lake) -> None:
    rows = [{"id": 1, "x": {"a": [[{"b": [1, 2]}]]}}]
    lake.create("u", rows)
    assert lake.read("u").toArrow().to_pylist() == rows


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("inside", [False, True])
def test_text_that_is_not_utf8_is_refused(lake: lv.Lake, statement: str, inside: bool) -> None:
    offsets = pa.py_buffer((0).to_bytes(4, "little") + (1).to_bytes(4, "little"))
    text: Any = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xff")])
    column = pa.StructArray.from_arrays([text], ["m"]) if inside else text
    if inside and statement in ("append", "overwrite"):
        lake.sql("ALTER TABLE t ADD COLUMNS (odd STRUCT<m: STRING>)")
    name = "odd" if inside else "s"
    with pytest.raises(lv.InvalidInput, match=f"'{name}': .*UTF8") as error:
        STATEMENTS[statement](lake, pa.table({"id": [1], name: column}))
    assert error.value.column == name


def test_part_of_a_larger_array_is_data(lake: lv.Lake) -> None:
    table = pa.table({"id": list(range(9)), "s": [str(number) for number in range(9)]})
    lake.append("t", table.slice(3, 2))
    assert lake.read("t").toArrow().to_pylist() == [{"id": 3, "s": "3"}, {"id": 4, "s": "4"}]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("x", "'x' in row 2 cannot be stored as bigint"),
        (2**70, f"{2**70} in row 2 cannot be stored as bigint"),
        ("y" * 1000, "yyy... in row 2"),
    ],
)
def test_value_that_its_column_cannot_hold_is_shown(lake: lv.Lake, value: object, told: str) -> None:
    with pytest.raises(lv.InvalidInput, match="column 'id': ") as error:
        lake.append("t", [{"id": 1}, {"id": value}])
    assert told in str(error.value)
    assert error.value.column == "id"


def test_decimal_with_too_many_digits_is_shown() -> None:
    lake = lv.Lake("memory://", engine="local")
    lake.create("t", "amount DECIMAL(12, 2)")
    with pytest.raises(lv.InvalidInput, match=r"'123456789012.34'\) in row 1 .* decimal\(12,2\)"):
        lake.append("t", [{"amount": Decimal("123456789012.34")}])
