"""Parameters: `:name` in a text becomes a literal of the value's exact type, never a piece of text."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isfinite, isnan
from typing import Any

from sqlglot import exp

from lakevilla.errors import InvalidInput


def bind(tree: exp.Expr, parameters: Mapping[str, Any]) -> exp.Expr:
    """The tree with every `:name` replaced; a missing and an unused parameter are InvalidInput."""
    unused = set(parameters)
    for placeholder in list(tree.find_all(exp.Placeholder)):
        name = placeholder.name
        if not name:
            raise InvalidInput("parameters have names: write :name, not ?")
        if name not in parameters:
            raise InvalidInput(f"no value is given for parameter :{name}")
        unused.discard(name)
        _replace(placeholder, parameters[name])
    if unused:
        raise InvalidInput(f"the text has no parameter :{', :'.join(sorted(unused))}")
    return tree


def literal(value: Any) -> exp.Expr:
    """The value as an expression of Spark's type for it. A naive datetime is in UTC."""
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
            return exp.Literal.string(value)
        case bytes():
            return exp.HexString(this=value.hex())
        case Decimal() if value.is_finite():
            return _decimal(value)
        case datetime():
            zoned = value if value.tzinfo else value.replace(tzinfo=UTC)
            text = zoned.astimezone(UTC).replace(tzinfo=None).isoformat(" ")
            return exp.cast(exp.Literal.string(text), exp.DType.TIMESTAMPTZ)
        case date():
            return exp.cast(exp.Literal.string(value.isoformat()), exp.DType.DATE)
        case list() | tuple():
            return exp.Anonymous(this="array", expressions=[literal(item) for item in value])
    raise InvalidInput(f"a parameter cannot be a {type(value).__name__}")


def _replace(placeholder: exp.Placeholder, value: Any) -> None:
    parent = placeholder.parent
    if (
        isinstance(value, list | tuple)
        and isinstance(parent, exp.In)
        and placeholder.arg_key == "expressions"
    ):
        items = [item for item in parent.expressions if item is not placeholder]
        items += [literal(item) for item in value]
        if items:
            parent.set("expressions", items)
        else:
            parent.replace(exp.Boolean(this=False))
    else:
        placeholder.replace(literal(value))


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
