"""Rows drawn as Spark draws them."""

import math
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any
from unicodedata import east_asian_width

import pyarrow as pa


def drawn(schema: pa.Schema, rows: Sequence[Sequence[Any]], truncate: bool | int, top: int | None) -> str:
    """The table as text. `top` is how many rows are shown of more."""
    width = 20 if truncate is True else int(truncate)
    cells = [list(schema.names)] + [
        [text_of(value, field.type) for value, field in zip(row, schema, strict=True)] for row in rows
    ]
    cells = [[_cut(cell.replace("\n", "\\n"), width) for cell in row] for row in cells]
    columns = range(len(schema.names))
    widths = [max(3, *(_width(row[i]) for row in cells)) for i in columns]
    line = "+" + "+".join("-" * one for one in widths) + "+"
    drawn_rows = ["|" + "|".join(_pad(row[i], widths[i], width > 0) for i in columns) + "|" for row in cells]
    parts = [line, drawn_rows[0], line, *drawn_rows[1:], line]
    if top is not None:
        parts.append(f"only showing top {top} row{'' if top == 1 else 's'}")
    return "\n".join(parts) + "\n"


def text_of(value: Any, data_type: pa.DataType) -> str:
    """A value as Spark writes it in a table."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return double_text(value)
    if isinstance(value, bytes):
        return "[" + " ".join(f"{byte:02X}" for byte in value) + "]"
    if isinstance(value, datetime):
        plain = value.replace(tzinfo=None).isoformat(" ")
        return plain.rstrip("0").rstrip(".") if "." in plain else plain
    if isinstance(value, date):
        return value.isoformat()
    if pa.types.is_struct(data_type):
        return "{" + ", ".join(text_of(v, f.type) for v, f in zip(value, data_type, strict=True)) + "}"
    if pa.types.is_map(data_type):
        pairs = (
            f"{text_of(k, data_type.key_type)} -> {text_of(v, data_type.item_type)}" for k, v in value.items()
        )
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(text_of(item, data_type.value_type) for item in value) + "]"
    return f"{value:f}" if pa.types.is_decimal(data_type) else str(value)


def double_text(value: float) -> str:
    """A double as Java writes it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return _plain_digits(value)
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    digits = mantissa.replace(".", "")
    power = int(exponent or 0) + len(mantissa.partition(".")[0]) - 1
    leading = len(digits) - len(digits.lstrip("0"))
    digits, power = digits.lstrip("0"), power - leading
    digits = digits.rstrip("0") or "0"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"


def _plain_digits(value: float) -> str:
    written = repr(value)
    return f"{value:.20f}".rstrip("0") if "e" in written else written


def _cut(cell: str, width: int) -> str:
    if width <= 0 or len(cell) <= width:
        return cell
    return cell[:width] if width < 4 else cell[: width - 3] + "..."


def _width(text: str) -> int:
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def _pad(cell: str, width: int, right: bool) -> str:
    blanks = " " * (width - _width(cell))
    return blanks + cell if right else cell + blanks
