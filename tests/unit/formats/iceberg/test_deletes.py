"""Which delete files apply to a data file, and which of its rows they delete."""

import io
import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from lakevilla.errors import Corrupt
from lakevilla.files.column_mapping import FIELD_ID
from lakevilla.formats.iceberg.definition.layout import Layout
from lakevilla.formats.iceberg.deletes.contents import Kept
from lakevilla.formats.iceberg.deletes.scope import DeleteIndex
from lakevilla.formats.iceberg.manifests.entries import DATA, EQUALITY_DELETES, POSITION_DELETES, Entry, Mask
from lakevilla.model import Deletes
from lakevilla.store.metered import Meter
from lakevilla.store.open import open_store
from lakevilla.store.port import Store
from tests.unit.files.raw_bitmaps import encode, framed

UNPARTITIONED, BY_P, BY_DAY, ONLY_VOID = range(4)
PATH, POS = 2147483546, 2147483545


def column(number: int, name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"id": number, "name": name, "required": False, "type": kind, **more}


COLUMNS = [
    column(1, "a", "long"),
    column(2, "p", "string"),
    column(3, "f", "double"),
    column(4, "s", {"type": "struct", "fields": [column(5, "m", "string"), column(6, "n", "int")]}),
    column(8, "added", "string", **{"initial-default": "x"}),
    column(9, "u", "uuid"),
]
OLD_COLUMNS = [column(1, "once_a", "int"), column(7, "gone", "string")]


def field(source: int, name: str, transform: str) -> dict[str, Any]:
    return {"source-id": source, "field-id": 1000, "name": name, "transform": transform}


RAW = {
    "format-version": 3,
    "location": "memory://t",
    "current-schema-id": 1,
    "schemas": [
        {"type": "struct", "schema-id": 1, "fields": COLUMNS},
        {"type": "struct", "schema-id": 0, "fields": OLD_COLUMNS},
    ],
    "partition-specs": [
        {"spec-id": UNPARTITIONED, "fields": []},
        {"spec-id": BY_P, "fields": [field(2, "p", "identity")]},
        {"spec-id": BY_DAY, "fields": [field(2, "p_cut", "truncate[1]")]},
        {"spec-id": ONLY_VOID, "fields": [field(2, "p_void", "void")]},
    ],
    "default-spec-id": 0,
}


def entry(content: int, path: str, sequence: int, spec_id: int = UNPARTITIONED, **more: Any) -> Entry:
    values = {"partition": (), "format": "parquet", "rows": 1, "size": 0, "file": {}, **more}
    return Entry(content=content, path=path, spec_id=spec_id, sequence=sequence, file_sequence=sequence,
                 snapshot_id=1, **values)  # fmt: skip


class Table:
    """Files in memory. Recorded paths are `s3://b/t/<key>`."""

    def __init__(self) -> None:
        self.meter = Meter()
        self.store = open_store("memory://", meter=self.meter)
        self.deletes: list[Entry] = []
        self.kept = Kept()

    def locate(self, path: str) -> tuple[Store, str]:
        return self.store, path.removeprefix("s3://b/t/")

    def data(self, key: str, sequence: int, rows: pa.Table | None = None, **more: Any) -> Entry:
        size = 0 if rows is None else self._put(key, rows, more.get("format", "parquet"))
        return entry(DATA, f"s3://b/t/{key}", sequence, size=size, **more)

    def positions(
        self, key: str, sequence: int, named: list[tuple[str | None, int | None]], **more: Any
    ) -> Entry:
        paths, rows = [path for path, _ in named], [row for _, row in named]
        schema = pa.schema([numbered("file_path", pa.string(), PATH), numbered("pos", pa.int64(), POS)])
        table = pa.table([pa.array(paths, pa.string()), pa.array(rows, pa.int64())], schema=schema)
        size = self._put(key, table, more.get("format", "parquet"))
        return self._deletes(entry(POSITION_DELETES, f"s3://b/t/{key}", sequence, size=size, **more))

    def equalities(self, key: str, sequence: int, rows: pa.Table, ids: list[int], **more: Any) -> Entry:
        size = self._put(key, rows, "parquet")
        file = {"equality_ids": ids}
        found = entry(EQUALITY_DELETES, f"s3://b/t/{key}", sequence, size=size, file=file, **more)
        return self._deletes(found)

    def vector(self, key: str, sequence: int, path: str, positions: set[int], **more: Any) -> Entry:
        data = framed(encode(positions))
        self.store.put(key, b"PFA1" + data)
        file = {"referenced_data_file": path, "content_offset": 4, "content_size_in_bytes": len(data)}
        values = {"rows": len(positions), "format": "puffin", "file": file, **more}
        return self._deletes(entry(POSITION_DELETES, f"s3://b/t/{key}", sequence, **values))

    def of(self, data: Entry, deletes: list[Entry] | None = None) -> Deletes | None:
        """The deletes of a published file."""
        index = self.index(deletes)
        return index.of(data, [Mask(mask.path, mask) for mask in index.masks(data)])

    def deleted(self, data: Entry) -> list[int] | None:
        found = self.of(data)
        return None if found is None else found.rows().to_pylist()

    def index(self, deletes: list[Entry] | None = None) -> DeleteIndex:
        return DeleteIndex(
            self.deletes if deletes is None else deletes, self.locate, Layout.of(RAW), self.kept
        )

    def _deletes(self, found: Entry) -> Entry:
        self.deletes.append(found)
        return found

    def _put(self, key: str, rows: pa.Table, format: str) -> int:
        sink = io.BytesIO()
        if format == "orc":
            orc.write_table(rows.cast(pa.schema([with_attribute(given) for given in rows.schema])), sink)
        else:
            pq.write_table(rows, sink, row_group_size=2)
        self.store.put(key, sink.getvalue())
        return len(sink.getvalue())


def numbered(name: str, data_type: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, data_type, metadata={FIELD_ID: str(number).encode()})


def with_attribute(given: pa.Field) -> pa.Field:
    return given.with_metadata({"iceberg.id": given.metadata[FIELD_ID]})


def rows(number: int, values: list[Any], data_type: pa.DataType | None = None) -> pa.Table:
    kind = data_type or pa.int64()
    return pa.table([pa.array(values, kind)], schema=pa.schema([numbered("c", kind, number)]))


@pytest.fixture
def table() -> Table:
    return Table()


@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_position_deletes_of_several_files_are_joined_and_sorted(table: Table, format: str) -> None:
    table.positions("d1", 2, [("s3://b/t/f", 5), ("s3://b/t/g", 1), ("s3://b/t/f", 2)], format=format)
    table.positions("d2", 3, [("s3://b/t/f", 2), ("s3://b/t/f", 0)], format=format)
    assert table.deleted(table.data("f", 1)) == [0, 2, 5]
    assert table.deleted(table.data("g", 1)) == [1]
    assert table.deleted(table.data("h", 1)) == []


def test_position_deletes_concern_files_that_are_not_younger(table: Table) -> None:
    table.positions("d", 2, [("s3://b/t/f", 0)])
    assert table.deleted(table.data("f", 1)) == [0]
    assert table.deleted(table.data("f", 2)) == [0]
    assert table.deleted(table.data("f", 3)) is None


def test_position_deletes_concern_their_partition_of_their_spec(table: Table) -> None:
    table.positions("d", 2, [("s3://b/t/f", 0)], spec_id=BY_P, partition=("x",))
    assert table.deleted(table.data("f", 1, spec_id=BY_P, partition=("x",))) == [0]
    assert table.deleted(table.data("f", 1, spec_id=BY_P, partition=("y",))) is None
    assert table.deleted(table.data("f", 1, spec_id=BY_DAY, partition=("x",))) is None


@pytest.mark.parametrize(("one", "other", "same"), [(math.nan, float("nan"), True), (0.0, -0.0, False)])
def test_partitions_of_floats_are_equal_as_iceberg_has_it(
    table: Table, one: float, other: float, same: bool
) -> None:
    table.positions("d", 2, [("s3://b/t/f", 0)], spec_id=BY_P, partition=(one,))
    assert (table.deleted(table.data("f", 1, spec_id=BY_P, partition=(other,))) == [0]) is same


@pytest.mark.parametrize("path", ["s3a://b/t/f", "hdfs://host:20/t/f", "/t/f", "file:/t/f"])
def test_paths_are_compared_without_scheme_and_authority(table: Table, path: str) -> None:
    bounds = {name: [{"key": PATH, "value": path.encode()}] for name in ("lower_bounds", "upper_bounds")}
    table.positions("d", 2, [(path, 3)], file=bounds)
    assert table.deleted(table.data("f", 1)) == [3]
    table.deletes[:] = []
    table.vector("v", 2, path, {4})
    assert table.deleted(table.data("f", 1)) == [4]


def test_position_deletes_for_one_named_file_concern_no_other(table: Table) -> None:
    table.positions("d", 2, [("s3://b/t/f", 0)], file={"referenced_data_file": "s3://b/t/f"})
    assert table.deleted(table.data("f", 1)) == [0]
    assert table.deleted(table.data("g", 1)) is None


def test_bounds_of_the_paths_narrow_position_deletes(table: Table) -> None:
    bounds = {
        "lower_bounds": [{"key": PATH, "value": b"s3://b/t/d"}],
        "upper_bounds": [{"key": PATH, "value": b"s3://b/t/g"}],
    }
    table.positions("d", 2, [("s3://b/t/f", 0)], file=bounds)
    assert table.deleted(table.data("f", 1)) == [0]
    assert table.deleted(table.data("h", 1)) is None
    assert table.deleted(table.data("c", 1)) is None


def test_position_deletes_that_name_no_file_or_row_delete_nothing(table: Table) -> None:
    table.positions("d", 2, [(None, 0), ("s3://b/t/f", None)])
    assert table.deleted(table.data("f", 1)) == []


def test_equality_deletes_concern_older_files_only(table: Table) -> None:
    table.equalities("d", 2, rows(1, [7]), [1])
    content = rows(1, [6, 7, 8, 7])
    assert table.deleted(table.data("f", 1, content)) == [1, 3]
    assert table.deleted(table.data("f", 2, content)) is None


@pytest.mark.parametrize("spec_id", [UNPARTITIONED, ONLY_VOID])
def test_equality_deletes_that_are_not_partitioned_concern_all_files(table: Table, spec_id: int) -> None:
    partition = () if spec_id == UNPARTITIONED else (None,)
    table.equalities("d", 2, rows(1, [7]), [1], spec_id=spec_id, partition=partition)
    assert table.deleted(table.data("f", 1, rows(1, [7]), spec_id=BY_P, partition=("x",))) == [0]


def test_equality_deletes_of_a_partition_concern_it_alone(table: Table) -> None:
    table.equalities("d", 2, rows(1, [7]), [1], spec_id=BY_P, partition=("x",))
    content = rows(1, [7])
    assert table.deleted(table.data("f", 1, content, spec_id=BY_P, partition=("x",))) == [0]
    assert table.deleted(table.data("f", 1, content, spec_id=BY_P, partition=("y",))) is None
    assert table.deleted(table.data("f", 1, content)) is None


@pytest.mark.parametrize(
    ("number", "kind", "given", "gone", "found"),
    [
        (1, pa.int64(), [None, 1, None], [None], [0, 2]),
        (1, pa.int64(), [None, 1], [2], []),
        (3, pa.float64(), [math.nan, 0.0, -0.0, 1.5, None], [math.nan, -0.0], [0, 2]),
        (2, pa.string(), ["", "x", None], ["", None], [0, 2]),
        (2, pa.string(), [], ["x"], []),
        (9, pa.binary(16), [b"a" * 16, None, b"b" * 16], [b"b" * 16, None], [1, 2]),
        (2, pa.string(), ["x"], [], []),
    ],
)
def test_equality_is_that_of_iceberg(
    table: Table, number: int, kind: pa.DataType, given: list[Any], gone: list[Any], found: list[int]
) -> None:
    table.equalities("d", 2, rows(number, gone, kind), [number])
    assert table.deleted(table.data("f", 1, rows(number, given, kind))) == found
    # The same together with another column, in which all rows are equal.
    table.deletes[:] = []
    table.equalities("e", 2, rows(number, gone, kind), [6, number])
    assert table.deleted(table.data("f", 1, rows(number, given, kind))) == found


def test_equality_deletes_by_several_sets_of_columns_are_joined(table: Table) -> None:
    pair = pa.schema([numbered("a", pa.int64(), 1), numbered("p", pa.string(), 2)])
    content = pa.table([[1, 1, 2, 3], ["x", "y", "x", None]], schema=pair)
    # The second file has a column that its ids do not name.
    table.equalities("d1", 2, pa.table([[1], ["y"]], schema=pair), [2, 1])
    table.equalities("d2", 3, pa.table([[2], ["not asked"]], schema=pair), [1])
    table.equalities("d3", 4, pa.table([[3], [None]], schema=pair), [1, 2])
    assert table.deleted(table.data("f", 1, content)) == [1, 2, 3]
    assert table.deleted(table.data("f", 2, content)) == [2, 3]


def test_equality_deletes_see_defaults_partition_values_and_wider_types(table: Table) -> None:
    table.equalities("d1", 2, rows(8, ["x"], pa.string()), [8])
    assert table.deleted(table.data("f", 1, rows(1, [1, 2]))) == [0, 1]
    table.deletes[:] = []
    table.equalities("d2", 2, rows(2, ["q"], pa.string()), [2])
    content = rows(1, [1, 2])
    assert table.deleted(table.data("f", 1, content, spec_id=BY_P, partition=("q",))) == [0, 1]
    assert table.deleted(table.data("g", 1, content, spec_id=BY_P, partition=("r",))) == []
    table.deletes[:] = []
    table.equalities("d3", 2, rows(1, [2], pa.int32()), [1])
    assert table.deleted(table.data("f", 1, content)) == [1]


def test_equality_deletes_by_a_member_of_a_struct_and_by_a_dropped_column(table: Table) -> None:
    member = pa.struct([numbered("m", pa.string(), 5), numbered("n", pa.int32(), 6)])
    content = pa.table(
        [pa.array([{"m": "x", "n": 1}, {"m": None, "n": 2}, None], member), ["k", "l", "k"]],
        schema=pa.schema([numbered("s", member, 4), numbered("gone", pa.string(), 7)]),
    )
    only = pa.struct([numbered("n", pa.int32(), 6)])
    gone = pa.table([pa.array([{"n": 1}], only)], schema=pa.schema([numbered("s", only, 4)]))
    table.equalities("d1", 2, gone, [6])
    assert table.deleted(table.data("f", 1, content)) == [0]
    table.equalities("d2", 2, rows(7, ["l"], pa.string()), [7])
    assert table.deleted(table.data("f", 1, content)) == [0, 1]


@pytest.mark.parametrize("ids", [[], [99]])
def test_equality_deletes_by_no_known_column_are_corrupt(table: Table, ids: list[int]) -> None:
    table.equalities("d", 2, rows(1, [7]), ids)
    with pytest.raises(Corrupt):
        table.deleted(table.data("f", 1, rows(1, [7])))


def test_deletion_vector_replaces_position_deletes_and_is_counted(table: Table) -> None:
    table.positions("d", 2, [("s3://b/t/f", 0)])
    table.vector("v", 3, "s3://b/t/f", {1, 70000, 5 << 32})
    data = table.data("f", 1, rows(1, [7]))
    found = table.of(data)
    assert found is not None
    assert found.count == 3
    assert found.rows().to_pylist() == [1, 70000, 5 << 32]
    other = table.of(table.data("g", 1))
    assert other is not None
    assert (other.count, other.rows().to_pylist()) == (None, [])
    table.equalities("e", 4, rows(1, [7]), [1])
    both = table.of(data)
    assert both is not None
    assert both.count is None
    assert both.rows().to_pylist() == [0, 1, 70000, 5 << 32]


def test_older_deletion_vector_does_not_apply(table: Table) -> None:
    table.vector("v", 3, "s3://b/t/f", {1})
    assert table.deleted(table.data("f", 4)) is None


@pytest.mark.parametrize(
    "spoil",
    [
        lambda table: table.store.delete("v"),
        lambda table: table.store.put("v", b"PFA1" + b"\0" * 200),
        lambda table: table.vector("w", 3, "s3://b/t/f", {2}),
        lambda table: table.deletes.append(entry(POSITION_DELETES, "s3://b/t/x", 3, format="puffin")),
        lambda table: table.deletes[0].file.pop("content_offset"),
        lambda table: table.vector("w", 3, "s3://b/t/g", {2}, rows=2),
    ],
)
def test_deletion_vector_that_does_not_add_up_is_corrupt(
    table: Table, spoil: Callable[[Table], None]
) -> None:
    table.vector("v", 3, "s3://b/t/f", {1})
    spoil(table)
    with pytest.raises(Corrupt):
        assert table.deleted(table.data("f", 1)) == [1]
        table.deleted(table.data("g", 1))


def test_identity_tells_sets_of_delete_files_apart(table: Table) -> None:
    table.positions("d1", 2, [("s3://b/t/f", 0)])
    table.positions("d2", 3, [("s3://b/t/f", 1)])

    def identity(sequence: int, deletes: list[Entry]) -> str:
        found = table.of(table.data("f", sequence), deletes)
        assert found is not None
        return found.identity

    both = identity(1, table.deletes)
    assert both == identity(2, table.deletes) == identity(1, table.deletes[::-1])
    assert both != identity(3, table.deletes)
    vectors = [
        entry(POSITION_DELETES, "s3://b/t/v", 4, format="puffin",
              file={"referenced_data_file": "s3://b/t/f", "content_offset": offset})
        for offset in (4, 90)
    ]  # fmt: skip
    assert identity(1, vectors[:1]) != identity(1, vectors[1:])


def test_delete_file_that_concerns_many_files_is_read_once_for_all_versions(table: Table) -> None:
    table.positions("d", 2, [(f"s3://b/t/f{number}", number) for number in range(5)])
    before = table.meter.snapshot().get("get", 0)
    found = [table.of(table.data(f"f{number}", 1)) for number in range(5)]
    assert [each and each.rows().to_pylist() for each in found] == [[number] for number in range(5)]
    assert table.meter.snapshot()["get"] == before + 1
