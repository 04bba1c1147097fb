"""Values, predicates and read sets as JSON, for the records that clients leave for each other.

What JSON can say stands for itself: null, true, numbers, text, lists. Everything else is an object with one
member, whose name says what it is: `{"decimal": "1.50"}`. Encoding refuses what it does not know (TypeError);
decoding takes nothing on trust, and nonsense is Corrupt.

A predicate may always be weakened (see `predicates`), so a value inside one that cannot be encoded makes that
comparison `ANYTHING`.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any, get_args
from uuid import UUID

from lakevilla.errors import Corrupt
from lakevilla.model import ReadSet
from lakevilla.predicates import (
    ANYTHING,
    And,
    Anything,
    Compare,
    IsNotNull,
    IsNull,
    Operator,
    Or,
    Predicate,
)

_OPERATORS: tuple[str, ...] = get_args(Operator)


def encode_value(value: Any) -> Any:
    """A plain Python value as JSON; a tuple becomes a list. TypeError for what is not plain."""
    match value:
        case None | bool():
            return value
        case int():
            return int(value)
        case float():
            return float(value) if isfinite(value) else {"float": repr(float(value))}
        case str():
            return _text(value)
        case bytes():
            return {"bytes": b64encode(value).decode()}
        case Decimal():
            return {"decimal": str(value)}
        case datetime():
            return {"datetime": value.isoformat()}
        case date():
            return {"date": value.isoformat()}
        case time():
            return {"time": value.isoformat()}
        case UUID():
            return {"uuid": str(value)}
        case timedelta():
            return {"timedelta": [value.days, value.seconds, value.microseconds]}
        case list() | tuple():
            return [encode_value(item) for item in value]
        case dict():
            return {"dict": [[encode_value(key), encode_value(item)] for key, item in value.items()]}
    raise TypeError(f"a {type(value).__name__} cannot be kept in a record")


def decode_value(encoded: Any) -> Any:
    """The value of such JSON."""
    match encoded:
        case None | bool() | int() | float() | str():
            return encoded
        case list():
            return [decode_value(item) for item in encoded]
        case dict() if len(encoded) == 1:
            kind, body = next(iter(encoded.items()))
            if kind in _DECODERS:
                return _decoded(kind, body)
    raise Corrupt(f"{encoded!r} is not a value of a record")


def encode_predicate(predicate: Predicate) -> Any:
    """A predicate as a JSON list, its kind first."""
    match predicate:
        case Anything():
            return ["anything"]
        case Compare(column, operator, value):
            try:
                return [operator, list(column), encode_value(value)]
            except TypeError:
                return encode_predicate(ANYTHING)
        case IsNull(column):
            return ["is null", list(column)]
        case IsNotNull(column):
            return ["is not null", list(column)]
        case And(parts):
            return ["and", [encode_predicate(part) for part in parts]]
        case Or(parts):
            return ["or", [encode_predicate(part) for part in parts]]


def decode_predicate(encoded: Any) -> Predicate:
    """The predicate of such a list."""
    match encoded:
        case ["anything"]:
            return ANYTHING
        case [str(operator), list(column), value] if operator in _OPERATORS:
            operand = decode_value(value)
            if operand is not None:
                return Compare(_column(column), operator, operand)  # type: ignore[arg-type] # one of them
        case ["is null", list(column)]:
            return IsNull(_column(column))
        case ["is not null", list(column)]:
            return IsNotNull(_column(column))
        case ["and", list(parts)]:
            return And(tuple(decode_predicate(part) for part in parts))
        case ["or", list(parts)]:
            return Or(tuple(decode_predicate(part) for part in parts))
    raise Corrupt(f"{encoded!r} is not a predicate of a record")


def encode_reads(reads: ReadSet) -> dict[str, Any]:
    """A read set as a JSON object."""
    return {
        "predicates": [encode_predicate(predicate) for predicate in reads.predicates],
        "files": sorted(reads.files),
    }


def decode_reads(encoded: Any) -> ReadSet:
    """The read set of such an object."""
    match encoded:
        case {"predicates": list(predicates), "files": list(files)} if all(isinstance(f, str) for f in files):
            return ReadSet(tuple(decode_predicate(p) for p in predicates), frozenset(files))
    raise Corrupt(f"{encoded!r} is not a read set of a record")


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise TypeError("text that UTF-8 cannot say cannot be kept in a record") from error
    return str(value)


def _column(names: list[Any]) -> tuple[str, ...]:
    if not names or not all(isinstance(name, str) for name in names):
        raise Corrupt(f"{names!r} is not a column of a record")
    return tuple(names)


def _decoded(kind: str, body: Any) -> Any:
    try:
        return _DECODERS[kind](body)
    except (TypeError, ValueError, InvalidOperation, OverflowError) as error:
        raise Corrupt(f"{body!r} is not a {kind} of a record: {error}") from error


def _infinite(body: Any) -> float:
    if body not in ("nan", "inf", "-inf"):
        raise ValueError("expected nan, inf or -inf")
    return float(body)


def _dictionary(body: Any) -> Mapping[Any, Any]:
    return {decode_value(key): decode_value(item) for key, item in body}


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "float": _infinite,
    "bytes": lambda body: b64decode(body, validate=True),
    "decimal": lambda body: Decimal(_said(body)),
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "uuid": lambda body: UUID(_said(body)),
    "timedelta": lambda body: _duration(*body),
    "dict": _dictionary,
}


def _said(body: Any) -> str:
    if not isinstance(body, str):
        raise TypeError("expected text")
    return body


def _duration(days: int, seconds: int, microseconds: int) -> timedelta:
    return timedelta(days=days, seconds=seconds, microseconds=microseconds)
