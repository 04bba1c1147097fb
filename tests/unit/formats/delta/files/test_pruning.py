"""Files are skipped by partition values and statistics, and never one that holds a matching row."""

import datetime
import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakevilla.formats.delta.snapshot import DeltaSnapshot
from lakevilla.predicates import And, Compare, IsNotNull, IsNull, Or, Predicate
from tests.unit.formats.delta.raw_log import (
    PROTOCOL,
    add,
    memory,
    metadata,
    table,
    write_checkpoint,
    write_entry,
)

UTC = datetime.UTC
MOMENTS = st.datetimes(datetime.datetime(1950, 1, 1), datetime.datetime(2050, 1, 1))
# For each Delta type: values, and how writers spell a minimum and a maximum of them.
Spell = Callable[[Any], Any]


def cut_to_milliseconds(moment: datetime.datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def in_utc(moment: datetime.datetime) -> datetime.datetime:
    return moment.replace(tzinfo=UTC)


def number(value: float) -> float | str:
    return value if math.isfinite(value) else repr(value)


def cut_text(text: str) -> str:
    return text[:32]


def cut_text_up(text: str) -> str:
    return text if len(text) <= 32 else text[:32] + "\U0010ffff"


TYPES: dict[str, tuple[st.SearchStrategy[Any], Spell, Spell]] = {
    "long": (st.integers(-20, 20) | st.integers(-(2**63), 2**63 - 1), int, int),
    "byte": (st.integers(-5, 5), int, int),
    "double": (st.floats(allow_nan=True), number, number),
    "string": (st.text(max_size=3) | st.text("ab", min_size=30, max_size=36), cut_text, cut_text_up),
    "date": (st.dates(datetime.date(1900, 1, 1)), str, str),
    "timestamp": (MOMENTS.map(in_utc), cut_to_milliseconds, cut_to_milliseconds),
    "timestamp_ntz": (MOMENTS, cut_to_milliseconds, cut_to_milliseconds),
    "decimal(10,2)": (st.decimals(-100, 100, places=2), float, float),
    # As delta-rs spells them.
    "decimal(38,10)": (st.decimals(-(10**27), 10**27, places=10), float, float),
    "boolean": (st.booleans(), bool, bool),
}


def holds(value: Any, predicate: Predicate) -> bool:
    """Spark's meaning of a predicate on one value."""
    match predicate:
        case And(parts):
            return all(holds(value, part) for part in parts)
        case Or(parts):
            return any(holds(value, part) for part in parts)
        case IsNull(_):
            return value is None
        case IsNotNull(_):
            return value is not None
        case Compare(_, operator, wanted):
            if value is None:
                return False
            order = 0 if same(value, wanted) else 1 if above(value, wanted) else -1
            return {"=": order == 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[
                operator
            ]
    raise AssertionError(predicate)


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def same(a: Any, b: Any) -> bool:
    return (is_nan(a) and is_nan(b)) or a == b


def above(a: Any, b: Any) -> bool:
    if is_nan(a) or is_nan(b):
        return is_nan(a)
    return bool(a.encode() > b.encode()) if isinstance(a, str) else bool(a > b)


def statistics(values: list[Any], low: Spell, high: Spell, column: str) -> str:
    known = [value for value in values if value is not None and not is_nan(value)]
    body: dict[str, Any] = {"numRecords": len(values), "nullCount": {column: values.count(None)}}
    if known:
        order = str.encode if isinstance(known[0], str) else None
        body["minValues"] = {column: low(min(known, key=order))}
        body["maxValues"] = {column: high(max(known, key=order))}
    return json.dumps(body)


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, list[list[Any]], Predicate]:
    kind = draw(st.sampled_from(sorted(TYPES)))
    values = TYPES[kind][0]
    files = draw(st.lists(st.lists(values | st.none(), min_size=1, max_size=4), min_size=1, max_size=5))
    pool = [value for file in files for value in file if value is not None]
    literal = st.sampled_from(pool) | values if pool else values
    compare = st.builds(Compare, st.just(("c",)), st.sampled_from(["=", "<", "<=", ">", ">="]), literal)
    atom = compare | st.just(IsNull(("c",))) | st.just(IsNotNull(("c",)))
    parts = draw(st.lists(atom, min_size=1, max_size=3))
    predicate: Predicate = draw(st.sampled_from([parts[0], And(tuple(parts)), Or(tuple(parts))]))
    return kind, files, predicate


def snapshot_of(
    kind: str, entries: list[dict[str, Any]], checkpoint: bool, partition_by: tuple[str, ...] = ()
) -> DeltaSnapshot:
    store = memory()
    actions = (PROTOCOL, metadata(("c", kind), partition_by=partition_by), *entries)
    write_entry(store, 0, *actions)
    if checkpoint:
        write_checkpoint(store, 0, *actions)
    snapshot = table(store).latest()
    assert snapshot is not None
    return snapshot


@given(tables(), st.booleans())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_pruning_by_statistics_never_loses_a_row(
    drawn: tuple[str, list[list[Any]], Predicate], checkpoint: bool
) -> None:
    kind, files, predicate = drawn
    low, high = TYPES[kind][1], TYPES[kind][2]
    entries = [add(str(i), stats=statistics(values, low, high, "c")) for i, values in enumerate(files)]
    kept = {file.key for file in snapshot_of(kind, entries, checkpoint).files(predicate)}
    needed = {str(i) for i, values in enumerate(files) if any(holds(value, predicate) for value in values)}
    assert needed <= kept


def numbers(stats: Any, **more: Any) -> dict[str, Any]:
    return add("f", stats=stats if isinstance(stats, str) else json.dumps(stats), **more)


FIVE = Compare(("c",), "=", 5)


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize(
    ("stats", "predicate", "kept"),
    [
        ({"numRecords": 2, "minValues": {"c": 1}, "maxValues": {"c": 4}, "nullCount": {"c": 0}}, FIVE, False),
        ({"numRecords": 2, "minValues": {"c": 1}, "maxValues": {"c": 5}, "nullCount": {"c": 0}}, FIVE, True),
        ({"numRecords": 2, "minValues": {"c": 6}, "nullCount": {"c": 0}}, FIVE, False),
        ({"numRecords": 2, "nullCount": {"c": 2}}, FIVE, False),
        ({"numRecords": 2, "nullCount": {"c": 0}}, IsNull(("c",)), False),
        ({"numRecords": 2, "nullCount": {"c": 2}}, IsNotNull(("c",)), False),
        # With a deletion vector, a count of nulls between none and all says nothing.
        ({"numRecords": 2, "nullCount": {"c": 1}, "tightBounds": False}, IsNull(("c",)), True),
        ({"numRecords": 2, "nullCount": {"c": 0}, "tightBounds": False}, IsNull(("c",)), False),
        (
            {"numRecords": 2, "minValues": {"c": "x"}, "maxValues": {"c": 4}, "nullCount": {"c": 0}},
            FIVE,
            False,
        ),
        ({"numRecords": 2, "minValues": {"c": "x"}, "maxValues": {"c": {"d": 4}}}, FIVE, True),
        ({"minValues": {"c": 1.0}, "maxValues": {"c": 4.0}}, FIVE, False),
        ({}, FIVE, True),
        ("", FIVE, True),
        ("not json", FIVE, True),
        ('{"numRecords": 1,\n "minValues": {"c": 9}}', FIVE, False),
    ],
)
def test_statistics_of_any_quality_decide_only_what_they_prove(
    stats: Any, predicate: Predicate, kept: bool, checkpoint: bool
) -> None:
    found = snapshot_of("long", [numbers(stats)], checkpoint).files(predicate)
    assert bool(found) is kept


def test_file_without_statistics_is_kept_beside_one_that_is_skipped() -> None:
    far = {"numRecords": 1, "minValues": {"c": 9}, "maxValues": {"c": 9}, "nullCount": {"c": 0}}
    snapshot = snapshot_of("long", [add("plain"), add("far", stats=json.dumps(far))], checkpoint=False)
    assert [file.key for file in snapshot.files(FIVE)] == ["plain"]
    assert [file.rows for file in snapshot.files()] == [None, 1]


@pytest.mark.parametrize("checkpoint", [False, True])
def test_partition_values_prune_and_are_typed(checkpoint: bool) -> None:
    values = {"a": "2020-01-01", "b": "2020-01-02", "none": ""}
    entries = [add(name, partitionValues={"c": text}) for name, text in values.items()]
    snapshot = snapshot_of("date", entries, checkpoint, partition_by=("c",))
    later = Compare(("c",), ">", datetime.date(2020, 1, 1))
    assert [file.partition for file in snapshot.files(later)] == [{"c": datetime.date(2020, 1, 2)}]
    assert [file.key for file in snapshot.files(IsNull(("c",)))] == ["none"]


def test_nested_column_is_pruned_by_its_leaf() -> None:
    kind: Any = {
        "type": "struct",
        "fields": [{"name": "d", "type": "decimal(5,1)", "nullable": True, "metadata": {}}],
    }
    stats = {
        "numRecords": 1,
        "minValues": {"c": {"d": 1.5}},
        "maxValues": {"c": {"d": 2.5}},
        "nullCount": {"c": {"d": 0}},
    }
    snapshot = snapshot_of(kind, [numbers(stats)], checkpoint=False)
    assert not snapshot.files(Compare(("c", "d"), ">", Decimal("2.5")))
    assert snapshot.files(Compare(("c", "d"), "=", Decimal("2.5")))
    assert snapshot.files(IsNull(("c",)))
    assert snapshot.files(Compare(("nowhere",), "=", 1))


@pytest.mark.parametrize(
    "value", ["1234567890123456789012345678.0123456789", "-123.4500000001", "123456.7890123456"]
)
def test_a_decimal_that_its_writer_rounded_to_a_double_is_found(value: str) -> None:
    exact = Decimal(value)
    stats = statistics([exact], float, float, "c")
    snapshot = snapshot_of("decimal(38,10)", [add("f", stats=stats)], checkpoint=False)
    assert snapshot.files(Compare(("c",), "=", exact))
    assert not snapshot.files(Compare(("c",), ">", abs(exact) + 10**13))


def test_a_column_that_was_widened_gets_bounds_of_its_new_type() -> None:
    store = memory()
    stats = json.dumps({"numRecords": 1, "minValues": {"c": "2020-01-01"}, "maxValues": {"c": "2020-01-01"}})
    actions = (PROTOCOL, metadata(("c", "date")), add("f", stats=stats))
    write_entry(store, 0, *actions)
    write_checkpoint(store, 0, *actions)
    before = table(store).latest()
    assert before is not None
    assert not before.files(Compare(("c",), "<", datetime.date(2020, 1, 1)))
    write_entry(store, 1, metadata(("c", "timestamp_ntz")))
    after = table(store).latest(before)
    assert after is not None
    assert after.files(Compare(("c",), "<", datetime.datetime(2020, 1, 1, 12)))
