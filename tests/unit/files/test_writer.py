"""Writing data files: what is stored, under which keys, and what is told of it."""

import io
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakevilla.errors import InvalidInput
from lakevilla.files import writer
from lakevilla.files.column_mapping import FIELD_ID, PHYSICAL_NAME
from lakevilla.model import ColumnStatistics, WrittenFile
from tests.unit.files.shelf import Shelf, write


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def test_no_rows_make_no_file(shelf: Shelf) -> None:
    assert write(shelf, pa.table({"a": pa.array([], pa.int64())})) == ()
    assert shelf.objects == {}


def test_one_table_becomes_one_file_with_exact_bounds(shelf: Shelf) -> None:
    rows = pa.table(
        {
            "id": [3, 1, None],
            "name": ["b", "a", None],
            "price": pa.array([Decimal("1.50"), Decimal("-2.25"), None], pa.decimal128(9, 2)),
            "day": [date(2026, 1, 2), None, date(2025, 1, 1)],
            "at": pa.array(
                [datetime(2026, 1, 2, 3, 4, 5, 678901, UTC), None, None], pa.timestamp("us", "UTC")
            ),
            "raw": [b"x", b"y", None],
        }
    )
    (file,) = write(shelf, rows)
    assert file == WrittenFile(
        "part-0.parquet",
        len(shelf.objects["part-0.parquet"]),
        3,
        {},
        {
            ("id",): ColumnStatistics(1, 3, 1),
            ("name",): ColumnStatistics("a", "b", 1),
            ("price",): ColumnStatistics(Decimal("-2.25"), Decimal("1.50"), 1),
            ("day",): ColumnStatistics(date(2025, 1, 1), date(2026, 1, 2), 1),
            ("at",): ColumnStatistics(
                datetime(2026, 1, 2, 3, 4, 5, 678901, UTC), datetime(2026, 1, 2, 3, 4, 5, 678901, UTC), 2
            ),
            ("raw",): ColumnStatistics(None, None, 1),
        },
        17,
    )
    assert shelf.table(file.key).equals(rows)


def test_timestamps_are_stored_as_microseconds_never_int96(shelf: Shelf) -> None:
    schema = pa.schema([("z", pa.timestamp("us", "UTC")), ("n", pa.timestamp("us"))])
    moment = datetime(2026, 1, 1)
    rows = pa.table(
        {"z": pa.array([moment], pa.timestamp("ns", "UTC")), "n": pa.array([moment], pa.timestamp("s"))}
    )
    (file,) = write(shelf, rows, schema=schema)
    stored = pq.ParquetFile(io.BytesIO(shelf.objects[file.key])).schema
    assert [stored.column(i).physical_type for i in range(2)] == ["INT64", "INT64"]
    assert shelf.table(file.key).schema.equals(schema)


def test_a_nan_takes_the_bounds_away_but_not_the_null_count(shelf: Shelf) -> None:
    nan = float("nan")
    struct = pa.array([{"x": 1.0}, {"x": nan}, None])
    (file,) = write(shelf, pa.table({"a": [1.0, nan, None], "b": [1.0, 2.0, None], "s": struct}))
    assert file.statistics == {
        ("a",): ColumnStatistics(None, None, 1),
        ("b",): ColumnStatistics(1.0, 2.0, 1),
        ("s", "x"): ColumnStatistics(None, None, 1),
    }
    # Parquet's own bounds leave NaN out, and Spark, for which it is the largest number, would trust them.
    group = pq.ParquetFile(io.BytesIO(shelf.objects[file.key])).metadata.row_group(0)
    assert [group.column(number).is_stats_set for number in range(3)] == [False, True, False]


def test_a_nan_after_row_groups_without_one_begins_a_file(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_GROUP_ROWS", 2)
    nan = float("nan")
    files = write(shelf, pa.table({"a": [1.0, 2.0, 3.0, nan, None, nan, 5.0, 6.0]}))
    assert [(file.rows, file.statistics[("a",)]) for file in files] == [
        (2, ColumnStatistics(1.0, 2.0, 0)),
        (6, ColumnStatistics(None, None, 1)),
    ]


def test_a_nan_in_an_earlier_row_group_is_not_forgotten(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_GROUP_ROWS", 2)
    (file,) = write(shelf, pa.table({"a": [float("nan"), 1.0, 2.0, 3.0]}))
    assert file.statistics[("a",)] == ColumnStatistics(None, None, 0)


def test_a_row_group_of_nulls_does_not_take_the_bounds_of_the_others(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_GROUP_ROWS", 2)
    (file,) = write(shelf, pa.table({"a": [None, None, 3, 1]}))
    assert file.statistics[("a",)] == ColumnStatistics(1, 3, 2)


def test_zero_bounds_cover_both_zeros(shelf: Shelf) -> None:
    (file,) = write(shelf, pa.table({"a": [0.0], "b": [-0.0]}))
    assert [repr(file.statistics[(name,)].minimum) for name in "ab"] == ["-0.0", "-0.0"]
    assert [repr(file.statistics[(name,)].maximum) for name in "ab"] == ["0.0", "0.0"]


def test_a_column_of_nulls_has_no_bounds(shelf: Shelf) -> None:
    (file,) = write(shelf, pa.table({"a": pa.array([None, None], pa.string())}))
    assert file.statistics == {("a",): ColumnStatistics(None, None, 2)}


def test_lists_and_maps_have_no_statistics_and_do_not_shift_those_behind_them(shelf: Shelf) -> None:
    rows = pa.table(
        {
            "l": pa.array([[1, 2]], pa.list_(pa.int64())),
            "m": pa.array([[("k", 5)]], pa.map_(pa.string(), pa.int64())),
            "s": pa.array([{"x": 7, "deep": {"y": "q"}}]),
            "z": [9],
        }
    )
    (file,) = write(shelf, rows)
    assert {path: (s.minimum, s.maximum) for path, s in file.statistics.items()} == {
        ("s", "x"): (7, 7),
        ("s", "deep", "y"): ("q", "q"),
        ("z",): (9, 9),
    }


def test_a_date_beyond_pythons_calendar_has_no_bounds(shelf: Shelf) -> None:
    rows = pa.table({"d": pa.array([10**8], pa.int32()).cast(pa.date32())})
    (file,) = write(shelf, rows)
    assert file.statistics == {("d",): ColumnStatistics(None, None, 0)}


def test_bounds_span_all_row_groups(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_GROUP_ROWS", 100)
    values = np.random.default_rng(1).permutation(1000)
    (file,) = write(shelf, pa.table({"a": values}))
    assert pq.read_metadata(io.BytesIO(shelf.objects[file.key])).num_row_groups == 10
    assert file.statistics == {("a",): ColumnStatistics(0, 999, 0)}
    assert shelf.table(file.key)["a"].to_pylist() == values.tolist()


def test_files_are_cut_at_the_wanted_size(shelf: Shelf) -> None:
    rows = pa.table({"a": np.random.default_rng(1).integers(0, 2**62, 100_000)})
    files = write(shelf, rows, file_bytes=100_000)
    assert all(file.size <= 110_000 for file in files)
    assert len(files) <= 10
    assert [v for f in files for v in shelf.table(f.key)["a"].to_pylist()] == rows["a"].to_pylist()


def test_files_are_cut_at_the_wanted_rows(shelf: Shelf) -> None:
    files = write(shelf, *(pa.table({"a": list(range(n, n + 7))}) for n in range(0, 70, 7)), file_rows=20)
    assert [file.rows for file in files] == [20, 20, 20, 10]
    assert [v for f in files for v in shelf.table(f.key)["a"].to_pylist()] == list(range(70))


def test_many_open_partitions_are_relieved_early(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_WAITING_BYTES", 1000)
    monkeypatch.setattr(writer, "_ENCODED_BYTES", 3000)
    batches = [pa.table({"p": np.arange(50) % 5, "a": np.arange(50) + n}) for n in range(0, 1000, 50)]
    files = write(shelf, *batches, by=("p",), file_bytes=2500)
    assert sum(file.rows for file in files) == 1000
    assert len(files) > 5
    assert sorted(v for f in files for v in shelf.table(f.key)["a"].to_pylist()) == list(range(1000))


def test_partitions_get_folders_and_typed_values_and_are_not_stored(shelf: Shelf) -> None:
    rows = pa.table({"p": ["a/b", None, "ü =", "a/b", ""], "n": [1, 1, 1, 2, 1], "v": [1, 2, 3, 4, 5]})
    files = write(shelf, rows, by=("p", "n"))
    assert {(f.partition["p"], f.partition["n"]): f.key.rpartition("/")[0] for f in files} == {
        ("a/b", 1): "p=a%2Fb/n=1",
        ("a/b", 2): "p=a%2Fb/n=2",
        (None, 1): "p=__HIVE_DEFAULT_PARTITION__/n=1",
        ("ü =", 1): "p=ü %3D/n=1",
        ("", 1): "p=__HIVE_DEFAULT_PARTITION__/n=1",
    }
    assert {tuple(shelf.table(f.key).column_names) for f in files} == {("v",)}


def test_a_partition_value_too_long_for_a_folder_is_left_out_of_the_key(shelf: Shelf) -> None:
    (file,) = write(shelf, pa.table({"p": ["x" * 300], "v": [1]}), by=("p",))
    assert file.key == "part-0.parquet"
    assert file.partition == {"p": "x" * 300}


def test_folders_too_long_for_a_key_are_left_out_of_it(shelf: Shelf) -> None:
    columns = {f"p{n}": ["ü" * 90] for n in range(5)}
    (file,) = write(shelf, pa.table({**columns, "v": [1]}), by=tuple(columns))
    assert file.key == "part-0.parquet"


def test_a_partition_value_beyond_pythons_calendar_is_counted(shelf: Shelf) -> None:
    days = pa.array([10**8], pa.int32()).cast(pa.date32())
    (file,) = write(shelf, pa.table({"p": days, "v": [1]}), by=("p",))
    assert file.partition == {"p": 10**8}
    assert "p=+275760-09-13/" in file.key


def test_rows_of_a_partition_keep_their_order_across_batches(shelf: Shelf) -> None:
    batches = [pa.table({"p": [1, 2, 1], "v": [n, n + 1, n + 2]}) for n in (0, 3, 6)]
    files = write(shelf, *batches, by=("p",))
    assert [shelf.table(f.key)["v"].to_pylist() for f in files] == [[0, 2, 3, 5, 6, 8], [1, 4, 7]]


def test_rows_of_a_large_partition_keep_their_order(shelf: Shelf) -> None:
    values = np.arange(10_000)
    files = write(shelf, pa.table({"p": values % 3, "v": values}), by=("p",))
    assert [shelf.table(f.key)["v"].to_pylist() for f in files] == [
        list(range(n, 10_000, 3)) for n in range(3)
    ]


def test_physical_names_and_ids_reach_the_file_at_every_level(shelf: Shelf) -> None:
    def named(name: str, data_type: pa.DataType, number: int, nullable: bool = True) -> pa.Field:
        return pa.field(name, data_type, nullable, {PHYSICAL_NAME: f"col-{number}", FIELD_ID: str(number)})

    inner = pa.struct([named("x", pa.int64(), 3), named("y", pa.string(), 4, nullable=False)])
    schema = pa.schema(
        [
            named("s", inner, 1),
            named("l", pa.list_(pa.field("element", inner)), 2),
            named("p", pa.string(), 9),
        ]
    )
    rows = pa.table({"s": [{"x": 1, "y": "a"}], "l": [[{"x": 2, "y": "b"}]], "p": ["v"]})
    (file,) = write(shelf, rows, schema=schema, by=("p",))
    assert file.key.startswith("col-9=v/")
    assert file.partition == {"p": "v"}
    assert file.statistics == {
        ("s", "x"): ColumnStatistics(1, 1, 0),
        ("s", "y"): ColumnStatistics("a", "a", 0),
    }
    assert shelf.table(file.key).to_pylist() == [
        {"col-1": {"col-3": 1, "col-4": "a"}, "col-2": [{"col-3": 2, "col-4": "b"}]}
    ]
    stored = shelf.table(file.key).schema
    assert stored.field("col-1").metadata[FIELD_ID] == b"1"
    assert stored.field("col-1").type.field("col-4").metadata[FIELD_ID] == b"4"


def test_ids_of_elements_keys_and_values_reach_the_file(shelf: Shelf) -> None:
    def numbered(name: str, data_type: pa.DataType, number: int) -> pa.Field:
        return pa.field(name, data_type, name != "key", {FIELD_ID: str(number)})

    maps = pa.map_(numbered("key", pa.string(), 3), numbered("value", pa.int64(), 4))
    schema = pa.schema([numbered("l", pa.list_(numbered("element", maps, 2)), 1)])
    (file,) = write(shelf, pa.table({"l": [[[("a", 1)]]]}, schema=schema), schema=schema)
    element = shelf.table(file.key).schema.field("l").type.value_field
    fields = [element, element.type.key_field, element.type.item_field]
    assert [field.metadata[FIELD_ID] for field in fields] == [b"2", b"3", b"4"]


@pytest.mark.parametrize(
    ("data_type", "value", "where"),
    [
        (pa.struct([pa.field("x", pa.int64(), False)]), {"x": None}, "c.x"),
        (pa.list_(pa.field("element", pa.int64(), False)), [1, None], "c.element"),
        (pa.map_(pa.string(), pa.field("value", pa.int64(), False)), [("k", None)], "c.value"),
        (
            pa.list_(pa.field("element", pa.struct([pa.field("x", pa.int64(), False)]))),
            [{"x": None}],
            "c.element.x",
        ),
    ],
)
def test_a_null_in_a_required_nested_field_is_refused(
    shelf: Shelf, data_type: pa.DataType, value: Any, where: str
) -> None:
    def loose(t: pa.DataType) -> pa.DataType:
        if pa.types.is_struct(t):
            return pa.struct([pa.field(f.name, loose(f.type)) for f in t])
        if pa.types.is_map(t):
            return pa.map_(t.key_type, t.item_type)
        return pa.list_(loose(t.value_type)) if pa.types.is_list(t) else t

    schema = pa.schema([pa.field("c", data_type)])
    with pytest.raises(InvalidInput) as caught:
        write(shelf, pa.table({"c": pa.array([value], loose(data_type))}), schema=schema)
    assert (caught.value.column, caught.value.rule) == (where, "NOT NULL")
    assert shelf.objects == {}
    (file,) = write(shelf, pa.table({"c": pa.array([None], loose(data_type))}), schema=schema)
    assert shelf.table(file.key)["c"].to_pylist() == [None]


def test_a_required_field_may_hide_a_null_below_a_null_struct(shelf: Shelf) -> None:
    inside = pa.array([1, None], pa.int64())
    hidden = pa.StructArray.from_arrays([inside], ["x"], mask=pa.array([False, True]))
    schema = pa.schema([pa.field("s", pa.struct([pa.field("x", pa.int64(), False)]))])
    (file,) = write(shelf, pa.table({"s": hidden}), schema=schema)
    assert shelf.table(file.key)["s"].to_pylist() == [{"x": 1}, None]


def test_a_null_in_a_required_column_is_refused(shelf: Shelf) -> None:
    schema = pa.schema([pa.field("a", pa.int64(), False)])
    with pytest.raises(InvalidInput) as caught:
        write(shelf, pa.table({"a": [1, None]}), schema=schema)
    assert (caught.value.column, caught.value.rule) == ("a", "NOT NULL")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (pa.array(["a"]), pa.int64()),
        (pa.array([1]), pa.string()),
        (pa.array([300]), pa.int8()),
        (pa.array([1.5]), pa.float32()),
        (pa.array([1], pa.timestamp("ns")), pa.timestamp("us")),
        (pa.array([1], pa.timestamp("us")), pa.timestamp("us", "UTC")),
        (pa.array([{"a": 1}]), pa.struct([("b", pa.int64())])),
    ],
)
def test_values_that_would_change_are_refused(shelf: Shelf, given: pa.Array, wanted: pa.DataType) -> None:
    with pytest.raises(InvalidInput) as caught:
        write(shelf, pa.table({"c": given}), schema=pa.schema([("c", wanted)]))
    assert caught.value.column == "c"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (pa.array(["a"], pa.large_string()), pa.string()),
        (pa.array(["a"]).dictionary_encode(), pa.string()),
        (pa.array([1], pa.int8()), pa.int64()),
        (pa.array([1.5], pa.float32()), pa.float64()),
        (pa.array([None]), pa.int64()),
        (pa.array([["a"]], pa.large_list(pa.large_string())), pa.list_(pa.string())),
        (pa.array([{"b": 1, "a": "x"}]), pa.struct([("a", pa.string()), ("b", pa.int64())])),
    ],
)
def test_other_spellings_of_the_same_value_are_accepted(
    shelf: Shelf, given: pa.Array, wanted: pa.DataType
) -> None:
    (file,) = write(shelf, pa.table({"c": given}), schema=pa.schema([("c", wanted)]))
    assert shelf.table(file.key)["c"].to_pylist() == given.to_pylist()


def test_missing_and_unknown_columns_are_refused(shelf: Shelf) -> None:
    with pytest.raises(InvalidInput) as caught:
        write(shelf, pa.table({"a": [1]}), schema=pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    assert caught.value.column == "b"
    with pytest.raises(InvalidInput) as caught:
        write(shelf, pa.table({"a": [1], "b": [1]}), schema=pa.schema([("a", pa.int64())]))
    assert caught.value.column == "b"


def test_columns_of_different_values_are_stored_without_a_dictionary(shelf: Shelf) -> None:
    rows = pa.table({"id": np.arange(50_000), "kind": np.arange(50_000) % 7})
    (file,) = write(shelf, rows)
    group = pq.read_metadata(io.BytesIO(shelf.objects[file.key])).row_group(0)
    assert [group.column(i).has_dictionary_page for i in range(2)] == [False, True]


@pytest.mark.parametrize("data_type", [pa.uuid(), pa.binary(16), pa.time64("us")], ids=str)
def test_many_values_of_types_that_only_iceberg_has_are_stored(shelf: Shelf, data_type: pa.DataType) -> None:
    numbers = range(9000) if data_type == pa.time64("us") else [n.to_bytes(16) for n in range(9000)]
    rows = pa.table({"c": pa.array(numbers, data_type)})
    (file,) = write(shelf, rows)
    assert shelf.table(file.key)["c"].cast(data_type).equals(rows["c"])
    assert file.statistics[("c",)].nulls == 0


def test_a_very_long_string_has_no_bounds(shelf: Shelf) -> None:
    (file,) = write(shelf, pa.table({"a": ["x" * 100_000]}))
    assert file.statistics[("a",)].nulls == 0
    assert file.statistics[("a",)].maximum in (None, "x" * 100_000)
