"""Parameters: `:name` in a text becomes a literal of the value's exact type, never a piece of text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from math import isfinite, isnan
from typing import Any
from uuid import UUID

import numpy as np
from sqlglot import exp
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from lakevilla.errors import InvalidInput
from lakevilla.sql.dialect import DIALECT
from lakevilla.sql.letters import refuse_surrogates

_MARK = "mark_"
"""The names of positional parameters begin so."""


def bind(tree: exp.Expr, parameters: Mapping[str, Any]) -> exp.Expr:
    """The tree with every `:name` replaced; a missing and an unused parameter are InvalidInput."""
    unused = set(parameters)
    for placeholder in list(tree.find_all(exp.Placeholder)):
        name = placeholder.name
        if name in ("", "?"):
            raise _at("?", "parameters need names: write :name, not ?")
        if name not in parameters:
            raise _at(f":{name}", f"missing value for parameter :{name}")
        unused.discard(name)
        _replace(placeholder, parameters[name])
    if unused:
        raise InvalidInput(f"unknown parameter :{', :'.join(sorted(unused))}: the statement does not use it")
    return tree


def _at(fragment: str, what: str) -> InvalidInput:
    """The error about a piece of the text."""
    error = InvalidInput(what)
    error.fragment = fragment
    return error


@dataclass(frozen=True)
class Marks:
    """A text in which every `?` has become a `:name`."""

    text: str
    names: tuple[str, ...]

    def named(self, parameters: Mapping[str, Any] | Sequence[Any]) -> Mapping[str, Any]:
        """The parameters by name; values of a sequence belong to the marks in order."""
        if isinstance(parameters, Mapping):
            if self.names:
                raise InvalidInput(f"the text has {len(self.names)} marks '?', whose values are a sequence")
            return parameters
        if isinstance(parameters, str | bytes) or not isinstance(parameters, Sequence):
            raise InvalidInput(f"parameters are a mapping or a sequence; found {parameters!r}")
        if len(self.names) != len(parameters):
            raise InvalidInput(
                f"the text has {len(self.names)} marks '?', and {len(parameters)} values are given"
            )
        return dict(zip(self.names, parameters, strict=True))


def marks(text: str) -> Marks:
    """A text that may have `?` for its parameters."""
    if "?" not in text:
        return Marks(text, ())
    try:
        places = [token.start for token in DIALECT.tokenize(text) if token.text == "?" and _is_mark(token)]
    except TokenError as error:
        raise InvalidInput(f"SQL syntax error: {error}; is a quote not closed?") from error
    for number, place in reversed(list(enumerate(places))):
        text = f"{text[:place]}:{_MARK}{number}{text[place + 1 :]}"
    return Marks(text, tuple(f"{_MARK}{number}" for number in range(len(places))))


def with_names(text: str, parameters: Mapping[str, Any] | Sequence[Any]) -> tuple[str, Mapping[str, Any]]:
    """A text with `:name` and its parameters, from one that may have `?` and a sequence of values."""
    marked = marks(text)
    return marked.text, marked.named(parameters)


def _is_mark(token: Token) -> bool:
    return token.token_type == TokenType.PLACEHOLDER


def plain(value: Any) -> Any:
    """The value as one of Python's own types: members of enumerations as their values, scalars of NumPy and
    pandas as what they are in Python, arrays as lists, UUIDs as text, and NaT and NA as None. Others stay as
    they are.

    Subclasses of text and numbers may show themselves otherwise than by what they are.
    """
    match value:
        case Enum():
            return plain(value.value)
        case np.generic():
            return _of_numpy(value)
        case np.ndarray():
            return plain(value.tolist())
        case bool() | None:
            return value
        case str():
            return str.__str__(value)
        case int():
            return int(value)
        case float():
            return float(value)
        case datetime() if type(value) is not datetime:
            # Of pandas: with nanoseconds, which Spark does not have, or not a moment at all.
            return None if value != value else _without_nanoseconds(value)
        case bytearray() | memoryview():
            return bytes(value)
        case UUID():
            # Spark has no type for them, and shows those of Iceberg as text.
            return str(value)
        case timedelta() if type(value) is not timedelta:
            return None if value != value else timedelta(value.days, value.seconds, value.microseconds)
        case list() | tuple() | set() | frozenset():
            return [plain(item) for item in value]
    return None if type(value).__name__ in ("NAType", "NaTType") else value


def _of_numpy(value: np.generic) -> Any:
    """What Python has no type for stays as it is."""
    if isinstance(value, np.timedelta64):
        return value
    if not isinstance(value, np.datetime64):
        item = value.item()
        return value if isinstance(item, np.generic) else plain(item)
    finer = np.datetime_data(value.dtype)[0] in ("ns", "ps", "fs", "as")
    moment = value.astype("datetime64[us]").item() if finer else value.item()
    return value if isinstance(moment, int) else moment


def _without_nanoseconds(value: Any) -> datetime:
    moment = datetime(value.year, value.month, value.day, value.hour, value.minute, value.second)
    return moment.replace(microsecond=value.microsecond, tzinfo=value.tzinfo, fold=value.fold)


def literal(value: Any) -> exp.Expr:
    """The value as an expression of Spark's type for it. A naive datetime is in UTC."""
    value = plain(value)
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case int():
            return _signed(value < 0, exp.Literal.number(abs(value)))
        case float():
            return _double(value)
        case str():
            return exp.Literal.string(refuse_surrogates(value, "a parameter"))
        case bytes():
            return exp.HexString(this=value.hex())
        case Decimal() if value.is_finite():
            return _decimal(value)
        case datetime():
            zoned = value if value.tzinfo else value.replace(tzinfo=UTC)
            # With its zone and its type: a session may have others.
            text = zoned.astimezone(UTC).isoformat(" ")
            return exp.cast(exp.Literal.string(text), exp.DType.TIMESTAMPLTZ)
        case date():
            return exp.cast(exp.Literal.string(value.isoformat()), exp.DType.DATE)
        case time() if value.tzinfo is None:
            # As text, which is compared with a time as one: not every engine writes times otherwise.
            return exp.Literal.string(value.isoformat())
        case timedelta():
            return _interval(value)
        case list() | tuple():
            return exp.Anonymous(this="array", expressions=[literal(item) for item in value])
    raise InvalidInput(f"unsupported type {type(value).__name__!r} of a parameter")


def _replace(placeholder: exp.Placeholder, value: Any) -> None:
    parent, value = placeholder.parent, plain(value)
    if isinstance(parent, exp.In) and placeholder.arg_key == "field":
        # IN :ids, without brackets.
        if not isinstance(value, list):
            raise InvalidInput(f"IN :{placeholder.name} needs a list of values; found {value!r}")
        parent.set("field", None)
        _fill(parent, [], value)
    elif isinstance(value, list) and isinstance(parent, exp.In) and placeholder.arg_key == "expressions":
        _fill(parent, [item for item in parent.expressions if item is not placeholder], value)
    else:
        placeholder.replace(literal(value))


def _fill(parent: exp.In, items: list[exp.Expr], values: list[Any]) -> None:
    items += [literal(item) for item in values]
    if items:
        parent.set("expressions", items)
    else:
        parent.replace(exp.Boolean(this=False))


def _interval(value: timedelta) -> exp.Expr:
    """Whole days are days, so that a date plus these is a date."""
    count, unit = value // timedelta(microseconds=1), "MICROSECOND"
    if value == timedelta(days=value.days):
        count, unit = value.days, "DAY"
    return exp.Interval(this=exp.Literal.string(str(count)), unit=exp.var(unit))


def _signed(negative: bool, number: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Neg(this=number)) if negative else number


def _double(value: float) -> exp.Expr:
    if not isfinite(value):
        text = "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return exp.cast(exp.Literal.string(text), exp.DType.DOUBLE)
    # An exponent makes it a double in Spark; without one it would be a decimal.
    text = repr(abs(value))
    number = exp.Literal.number(text if "e" in text else f"{text}e0")
    return _signed(repr(value).startswith("-"), number)


def _decimal(value: Decimal) -> exp.Expr:
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    precision = max(len(digits) + max(0, int(exponent)), scale, 1)
    if precision > 38:
        raise InvalidInput(f"{value} has more than 38 digits")
    data_type = exp.DataType.build(f"decimal({precision},{scale})")
    return exp.cast(exp.Literal.string(f"{value:f}"), data_type)
