"""Literals, with the types that Spark gives them: 1 is an int, 1.0 a decimal(2,1), 1e0 a double."""

from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from lakevilla.engines.local.translation.types.typed import Typed, cast_sql, text
from lakevilla.errors import InvalidInput


def literal(node: exp.Expr) -> Typed:
    """The translation of a literal."""
    match node:
        case exp.Null():
            return Typed("NULL", pa.null(), None)
        case exp.Boolean():
            return Typed("TRUE" if node.this else "FALSE", pa.bool_(), bool(node.this))
        case exp.HexString():
            digits = node.name if len(node.name) % 2 == 0 else f"0{node.name}"
            return Typed(f"unhex('{digits}')", pa.binary(), bytes.fromhex(digits))
        case exp.Literal() if not node.is_string:
            return number(node.name)
    return Typed(text(node.name), pa.string(), node.name)


def number(written: str) -> Typed:
    """A number as it was written, sign included."""
    if "e" in written.lower():
        return Typed(f"CAST('{float(written)!r}' AS DOUBLE)", pa.float64(), float(written))
    if written.lstrip("-").isdecimal():
        return _integer(int(written))
    return _decimal(Decimal(written))


def _integer(value: int) -> Typed:
    if -(2**31) <= value < 2**31:
        return Typed(cast_sql(str(value), pa.int32()) if value < 0 else str(value), pa.int32(), value)
    if -(2**63) <= value < 2**63:
        return Typed(cast_sql(f"'{value}'", pa.int64()), pa.int64(), value)
    return _decimal(Decimal(value))


def _decimal(value: Decimal) -> Typed:
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    precision = max(len(digits), scale)
    if precision > 38:
        raise InvalidInput(f"the number {value} has more than 38 digits")
    to = pa.decimal128(precision, scale)
    return Typed(cast_sql(f"'{value:f}'", to), to, value)
