"""Whether two engines gave the same answer: names, types, and rows, bit for bit."""

import math
from collections import Counter
from typing import Any

import pyarrow as pa


def difference(one: pa.Table, other: pa.Table, *, ordered: bool, digits: int | None = None) -> str | None:
    """What differs first, or None. Rows are compared as a multiset unless they are ordered.

    `digits` allows doubles to differ behind so many digits, for sums whose order nobody promises.
    """
    if not _same_names(one.schema.names, other.schema.names):
        return f"names: {one.schema.names} and {other.schema.names}"
    for name, left, right in zip(one.schema.names, one.schema.types, other.schema.types, strict=True):
        if plain(left) != plain(right):
            return f"type of {name}: {left} and {right}"
    left_rows, right_rows = rows(one, digits), rows(other, digits)
    if ordered:
        for number, (a, b) in enumerate(zip(left_rows, right_rows, strict=False)):
            if a != b:
                return f"row {number}: {a} and {b}"
    more, less = Counter(left_rows), Counter(right_rows)
    if more == less:
        return None
    return f"rows: {list((more - less).elements())[:5]} and {list((less - more).elements())[:5]}"


def _same_names(one: list[str], other: list[str]) -> bool:
    """Equal where the statement gives the name; Spark's own names of expressions have a test apart."""
    pairs = zip(one, other, strict=False)
    written = (a == b or not (a.isidentifier() and b.isidentifier()) for a, b in pairs)
    return len(one) == len(other) and all(written)


def plain(data_type: pa.DataType) -> pa.DataType:
    """The type without nullability, names of children of lists and maps, and widths of offsets."""
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return pa.list_(pa.field("element", plain(data_type.value_type)))
    if pa.types.is_map(data_type):
        return pa.map_(plain(data_type.key_type), pa.field("value", plain(data_type.item_type)))
    if pa.types.is_struct(data_type):
        return pa.struct([pa.field(field.name, plain(field.type)) for field in data_type])
    if pa.types.is_large_string(data_type):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(data_type) else data_type


def rows(table: pa.Table, digits: int | None = None) -> list[str]:
    """Each row as a text that tells 1 from 1.0, -0.0 from 0.0, and finds NaN equal to itself."""
    columns = [_texts(column, digits) for column in table.columns]
    return [", ".join(values) for values in zip(*columns, strict=True)]


def _texts(column: pa.ChunkedArray, digits: int | None) -> list[str]:
    data_type = column.type
    if pa.types.is_timestamp(data_type) or pa.types.is_date(data_type):
        # As numbers: Python's dates end with the year 9999.
        number = pa.int32() if pa.types.is_date(data_type) else pa.int64()
        return [str(value) for value in column.cast(number).to_pylist()]
    if pa.types.is_string(data_type):
        # Spark's strings need not be UTF-8.
        values = column.cast(pa.binary()).to_pylist()
        return [repr(value and value.decode(errors="backslashreplace")) for value in values]
    values = column.to_pylist()
    if pa.types.is_map(data_type):
        # A map has no order.
        values = [None if value is None else sorted(value, key=repr) for value in values]
    return [_text(value, digits) for value in values]


def _text(value: Any, digits: int | None) -> str:
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, float) and digits is not None:
        return f"{value:.{digits}g}"
    if isinstance(value, list):
        return f"[{', '.join(_text(item, digits) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_text(item, digits)}' for key, item in value.items())}}}"
    return repr(value)
