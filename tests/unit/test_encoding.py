"""Values, predicates and read sets survive the way into a record and back."""

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakevilla.encoding import (
    decode_predicate,
    decode_reads,
    decode_value,
    encode_predicate,
    encode_reads,
    encode_value,
)
from lakevilla.errors import Corrupt
from lakevilla.model import ReadSet
from lakevilla.predicates import ANYTHING, And, Compare, IsNotNull, IsNull, Or

_ZONES = st.none() | st.integers(-1439, 1439).map(lambda m: timezone(timedelta(minutes=m)))
_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
PLAIN: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | _TEXT
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.dates()
    | st.datetimes(timezones=_ZONES).map(lambda moment: moment.replace(fold=0))
    | st.timedeltas()
    | st.times().map(lambda moment: moment.replace(fold=0))
    | st.uuids()
)
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(_TEXT, inner))
_COLUMNS = st.lists(_TEXT, min_size=1, max_size=3).map(tuple)
_COMPARED = PLAIN.filter(lambda value: value is not None)
PREDICATES = st.recursive(
    st.just(ANYTHING)
    | st.builds(Compare, _COLUMNS, st.sampled_from(["=", "<", "<=", ">", ">="]), _COMPARED)
    | st.builds(IsNull, _COLUMNS)
    | st.builds(IsNotNull, _COLUMNS),
    lambda inner: st.lists(inner, max_size=3).flatmap(
        lambda p: st.sampled_from([And(tuple(p)), Or(tuple(p))])
    ),
)


def _through_json(encoded: Any) -> Any:
    text = json.dumps(encoded, ensure_ascii=False, allow_nan=False)
    return json.loads(text.encode())


def _same(one: Any, other: Any) -> bool:
    """Equal, of equal types, also where NaN and zones are inside."""
    return repr(one) == repr(other)


@given(VALUES)
def test_value_comes_back_as_it_was(value: Any) -> None:
    assert _same(decode_value(_through_json(encode_value(value))), value)


@given(PREDICATES)
def test_predicate_comes_back_as_it_was(predicate: Any) -> None:
    assert _same(decode_predicate(_through_json(encode_predicate(predicate))), predicate)


@given(st.lists(PREDICATES, max_size=3), st.frozensets(_TEXT))
def test_read_set_comes_back_as_it_was(predicates: list[Any], files: frozenset[str]) -> None:
    reads = ReadSet(tuple(predicates), files)
    found = decode_reads(_through_json(encode_reads(reads)))
    assert _same(found.predicates, reads.predicates)
    assert found.files == reads.files


def test_values_encode_to_their_golden_form() -> None:
    values = [
        None, True, 7, 0.5, float("nan"), float("-inf"), "ö", b"\x00\xff", Decimal("-1.50"),
        date(2026, 1, 31),
        datetime(2026, 1, 31, 12, 0, tzinfo=UTC), timedelta(days=-1, seconds=2), (1, [2]),
        {"a": 1},
    ]  # fmt: skip
    assert encode_value(values) == [
        None, True, 7, 0.5, {"float": "nan"}, {"float": "-inf"}, "ö", {"bytes": "AP8="}, {"decimal": "-1.50"},
        {"date": "2026-01-31"}, {"datetime": "2026-01-31T12:00:00+00:00"},
        {"timedelta": [-1, 2, 0]}, [1, [2]], {"dict": [["a", 1]]},
    ]  # fmt: skip


def test_predicates_encode_to_their_golden_form() -> None:
    predicate = And((Compare(("a", "b"), ">=", 1), Or((IsNull(("c",)), IsNotNull(("d",)), ANYTHING))))
    assert encode_predicate(predicate) == [
        "and",
        [[">=", ["a", "b"], 1], ["or", [["is null", ["c"]], ["is not null", ["d"]], ["anything"]]]],
    ]


@pytest.mark.parametrize("value", [object(), {1, 2}, "\ud800", [object()]])
def test_value_that_is_not_plain_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        encode_value(value)


def test_comparison_with_a_value_that_cannot_be_kept_becomes_anything() -> None:
    assert encode_predicate(And((Compare(("a",), "=", object()),))) == ["and", [["anything"]]]


@pytest.mark.parametrize(
    "nonsense",
    [
        {}, {"decimal": "x"}, {"decimal": 1}, {"float": "1"}, {"bytes": "?"}, {"date": "2026-13-01"},
        {"date": 1},
        {"timedelta": [1]}, {"timedelta": 7}, {"dict": [[1]]}, {"dict": 7}, {"set": []},
        {"date": "x", "float": "x"},
        [{"date": None}],
    ],
)  # fmt: skip
def test_nonsense_is_no_value(nonsense: Any) -> None:
    with pytest.raises(Corrupt):
        decode_value(nonsense)


@pytest.mark.parametrize(
    "nonsense",
    [
        [], None, "anything", ["anything", 1], ["="], ["=", ["a"], None], ["=", [], 1], ["=", [1], 1],
        ["!=", ["a"], 1], ["is null", "a"], ["and", ["anything"]], ["or", [7]],
    ],
)  # fmt: skip
def test_nonsense_is_no_predicate(nonsense: Any) -> None:
    with pytest.raises(Corrupt):
        decode_predicate(nonsense)


@pytest.mark.parametrize(
    "nonsense", [{}, None, {"predicates": [], "files": [1]}, {"predicates": [1], "files": []}]
)
def test_nonsense_is_no_read_set(nonsense: Any) -> None:
    with pytest.raises(Corrupt):
        decode_reads(nonsense)
