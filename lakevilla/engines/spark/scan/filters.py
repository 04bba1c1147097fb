"""Filters that Spark hands to the file index, as predicates that can be asked of files.

`SnapshotIndex.java` writes them down: columns by the names in data files, literals as Spark keeps them
inside (days, microseconds). What is not known here may be anything, so a predicate is never stronger than
its filter.
"""

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from lakevilla.files.column_mapping import physical_name
from lakevilla.predicates import (
    ANYTHING,
    Column,
    Compare,
    IsNotNull,
    IsNull,
    Operator,
    Predicate,
    conjunction,
    disjunction,
)

_FEW = 64
_OPERATORS: dict[str, Operator] = {"=": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_EPOCH = datetime(1970, 1, 1)

_VALUES: dict[str, Callable[[str], Any]] = {
    "byte": int,
    "short": int,
    "integer": int,
    "long": int,
    # The shortest text of a float, read as a double, is another number.
    "float": lambda text: float(np.float32(text)),
    "double": float,
    "boolean": lambda text: text == "true",
    "string": str,
    "date": lambda text: date(1970, 1, 1) + timedelta(days=int(text)),
    "timestamp": lambda text: (_EPOCH + timedelta(microseconds=int(text))).replace(tzinfo=UTC),
    "timestamp_ntz": lambda text: _EPOCH + timedelta(microseconds=int(text)),
}


def predicate_of(filters: str, schema: pa.Schema) -> Predicate:
    """All filters together, over the table's columns."""
    return conjunction([_predicate(one, schema) for one in json.loads(filters)])


def _predicate(node: Any, schema: pa.Schema) -> Predicate:
    if node is None:
        return ANYTHING
    kind, left, right = node["is"], node["left"], node["right"]
    if kind in ("and", "or"):
        parts = [_predicate(left, schema), _predicate(right, schema)]
        return conjunction(parts) if kind == "and" else disjunction(parts)
    column = None if left is None else _column(left, schema)
    if column is None:
        return ANYTHING
    if kind == "null":
        return IsNull(column)
    if kind == "not null":
        return IsNotNull(column)
    if kind in ("in", "not in"):
        values = [None] if right is None else [_value(*item) for item in right]
        return _one_of(column, values) if kind == "in" else _none_of(column, values)
    value = None if right is None else _value(*right)
    if value is None:
        return ANYTHING
    if kind == "prefix":
        return Compare(column, ">=", value) if value else IsNotNull(column)
    return _different(column, value) if kind == "<>" else Compare(column, _OPERATORS[kind], value)


def _different(column: Column, value: Any) -> Predicate:
    return disjunction([Compare(column, "<", value), Compare(column, ">", value)])


def _none_of(column: Column, values: list[Any]) -> Predicate:
    if len(values) > _FEW or any(value is None for value in values):
        return ANYTHING
    return conjunction([_different(column, value) for value in values])


def _one_of(column: Column, values: list[Any]) -> Predicate:
    if any(value is None or value != value for value in values):
        return ANYTHING
    if len(values) <= _FEW:
        return disjunction([Compare(column, "=", value) for value in values])
    return conjunction([Compare(column, ">=", min(values)), Compare(column, "<=", max(values))])


def _column(names: list[str], schema: pa.Schema) -> Column | None:
    """The logical path of a column that is named as in data files."""
    path: list[str] = []
    fields = list(schema)
    for name in names:
        field = next((field for field in fields if physical_name(field) == name), None)
        if field is None:
            return None
        path.append(field.name)
        fields = list(field.type) if pa.types.is_struct(field.type) else []
    return tuple(path)


def _value(kind: str, text: str) -> Any:
    if kind.startswith("decimal"):
        return Decimal(text)
    try:
        return _VALUES[kind](text) if kind in _VALUES else None
    except OverflowError:
        # A day that Python's calendar does not reach.
        return None
