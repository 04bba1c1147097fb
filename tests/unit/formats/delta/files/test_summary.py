"""What statistics of many files say exactly, and what they do not."""

import datetime
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakevilla.formats.delta.snapshot import DeltaSnapshot
from lakevilla.predicates import ANYTHING, NOTHING, Compare
from tests.unit.formats.delta.files.test_pruning import TYPES, snapshot_of, statistics
from tests.unit.formats.delta.raw_log import (
    add,
    memory,
    metadata,
    remove,
    table,
    write_checkpoint,
    write_entry,
)

EXACT = ("long", "byte", "date", "decimal(10,2)")


def ranges(snapshot: DeltaSnapshot, column: str = "c") -> tuple[int, Any, Any] | None:
    found = snapshot.summary(ANYTHING, NOTHING, [column])
    return None if found is None else (found.rows, *(value.as_py() for value in found.ranges[column]))


def file(
    name: str, rows: int, low: Any = None, high: Any = None, nulls: int = 0, **more: Any
) -> dict[str, Any]:
    stats = {"numRecords": rows, "nullCount": {"c": nulls}}
    bounds = {} if low is None else {"minValues": {"c": low}, "maxValues": {"c": high}}
    vector = more.pop("deletionVector", None)
    own = {} if vector is None else {"deletionVector": vector}
    return add(name, stats=json.dumps({**stats, **bounds, **more}), **own)


@given(st.data(), st.sampled_from(sorted(TYPES)), st.booleans())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_ranges_are_those_of_the_rows_or_unknown(data: st.DataObject, kind: str, checkpoint: bool) -> None:
    values, low, high = TYPES[kind]
    files = data.draw(st.lists(st.lists(values | st.none(), min_size=1, max_size=4), min_size=1, max_size=5))
    entries = [add(str(i), stats=statistics(rows, low, high, "c")) for i, rows in enumerate(files)]
    snapshot = snapshot_of(kind, entries, checkpoint)
    rows = [value for file in files for value in file]
    counted = snapshot.summary(ANYTHING, NOTHING, [])
    assert counted is not None
    assert (counted.rows, counted.files) == (len(rows), frozenset(map(str, range(len(files)))))
    known = [value for value in rows if value is not None]
    expected = (len(rows), min(known, default=None), max(known, default=None)) if kind in EXACT else None
    assert ranges(snapshot) == expected or (not known and expected is None)


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (file("b", 2, 7, 9), (5, 1, 9)),
        (file("b", 2, nulls=2), (5, 1, 4)),
        (file("b", 0), (3, 1, 4)),
        # Neither all null, nor known.
        (file("b", 2, nulls=1), None),
        (file("b", 2), None),
        (file("b", 2, 7, 9, tightBounds=False), None),
        (file("b", 2, 7, 9, tightBounds=True), (5, 1, 9)),
        (file("b", 2, "x", 9), None),
        (add("b"), None),
        (add("b", stats="{}"), None),
        (add("b", stats="not json"), None),
    ],
)
def test_one_file_that_is_not_known_exactly_is_enough(
    second: dict[str, Any], expected: tuple[int, Any, Any] | None, checkpoint: bool
) -> None:
    assert ranges(snapshot_of("long", [file("a", 3, 1, 4), second], checkpoint)) == expected


def vector(deleted: int) -> dict[str, Any]:
    return {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": deleted}


def test_deleted_rows_are_not_counted_and_leave_ranges_unknown() -> None:
    entries = [file("a", 3, 1, 4), file("b", 5, 7, 9, deletionVector=vector(2))]
    snapshot = snapshot_of("long", entries, checkpoint=False)
    found = snapshot.summary(ANYTHING, NOTHING, [])
    assert found is not None
    assert found.rows == 6
    assert found.files == {one.identity for one in snapshot.files()}
    assert ranges(snapshot) is None


def test_more_deleted_rows_than_rows_are_a_contradiction() -> None:
    snapshot = snapshot_of("long", [file("b", 5, 7, 9, deletionVector=vector(6))], checkpoint=False)
    assert snapshot.summary(ANYTHING, NOTHING, []) is None


@pytest.mark.parametrize("checkpoint", [False, True])
def test_values_of_partition_columns_are_exact(checkpoint: bool) -> None:
    days = {"a": "2020-01-05", "b": "2020-01-02", "none": "", "gone": "1999-01-01"}
    entries = [
        file(name, 3, partitionValues={"c": day}, deletionVector=vector(3) if name == "gone" else None)
        for name, day in days.items()
    ]
    for entry, day in zip(entries, days.values(), strict=True):
        entry["add"]["partitionValues"] = {"c": day}
    if checkpoint:
        # The checkpoints of these tests hold no vectors.
        entries = entries[:3]
    snapshot = snapshot_of("date", entries, checkpoint, partition_by=("c",))
    assert ranges(snapshot) == (9, datetime.date(2020, 1, 2), datetime.date(2020, 1, 5))


@pytest.mark.parametrize(
    ("kind", "value"), [("string", "x" * 40), ("decimal(38,10)", "12345678901234567890.5")]
)
def test_partition_columns_have_exact_values_of_more_types(kind: str, value: str) -> None:
    entries = [add("a", stats='{"numRecords": 1}', partitionValues={"c": value})]
    found = ranges(snapshot_of(kind, entries, checkpoint=False, partition_by=("c",)))
    expected = value if kind == "string" else Decimal(value)
    assert found == (1, expected, expected)


@pytest.mark.parametrize("kind", ["double", "timestamp"])
def test_partition_columns_whose_order_is_another_one_are_scanned(kind: str) -> None:
    text = "1.5" if kind == "double" else "2020-01-01 00:00:00"
    entries = [add("a", stats='{"numRecords": 1}', partitionValues={"c": text})]
    assert ranges(snapshot_of(kind, entries, checkpoint=False, partition_by=("c",))) is None


BELOW, FROM = Compare(("c",), "<", 5), Compare(("c",), ">=", 5)


@pytest.mark.parametrize("checkpoint", [False, True])
def test_condition_is_decided_where_no_file_has_rows_of_both_kinds(checkpoint: bool) -> None:
    apart = snapshot_of("long", [file("a", 3, 1, 4), file("b", 2, 5, 9)], checkpoint)
    found = apart.summary(BELOW, FROM, ["c"])
    assert found is not None
    assert (found.rows, found.files) == (3, {"a"})
    assert found.ranges["c"] == (pa.scalar(1), pa.scalar(4))
    mixed = snapshot_of("long", [file("a", 3, 1, 5)], checkpoint)
    assert mixed.summary(BELOW, FROM, []) is None


def test_entries_after_the_checkpoint_count_and_removed_files_do_not() -> None:
    store = memory()
    definition = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, metadata(("c", "long"))]
    first = [file("a", 3, 1, 4), file("b", 2, 50, 90)]
    write_entry(store, 0, *definition, *first)

    write_checkpoint(store, 0, *definition, *first)
    write_entry(store, 1, remove("b"), file("c", 1, -7, -7))
    snapshot = table(store).latest()
    assert snapshot is not None
    assert ranges(snapshot) == (4, -7, 4)
    found = snapshot.summary(ANYTHING, NOTHING, [])
    assert found is not None
    assert found.files == {"a", "c"}
