"""From an expression of Spark SQL to a predicate that can be asked of files.

The predicate is weaker than the expression or equal to it: every row for which the expression is true
satisfies the predicate. For NOT the same is needed of "is false", and for deletes of whole files of "is
not true"; so each kind of expression says when it may be true, when false, and when null. What we do
not read may be anything.
"""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp

from lakevilla.predicates import (
    ANYTHING,
    NOTHING,
    Column,
    Compare,
    IsNotNull,
    IsNull,
    Operator,
    Predicate,
    conjunction,
    disjunction,
)
from lakevilla.sql.expressions.literals import EXACT_DOUBLE, Constant, constant, in_column


@dataclass(frozen=True, slots=True)
class Found:
    """A column that an expression names: its path of logical names, and its type."""

    path: Column
    type: pa.DataType


Resolve = Callable[[exp.Expr], Found | None]


def predicate_of(expression: exp.Expr | None, resolve: Resolve) -> Predicate:
    """What every row satisfies for which the expression is true. None filters nothing."""
    return ANYTHING if expression is None else _true(expression, resolve)


def predicate_unless(expression: exp.Expr, resolve: Resolve) -> Predicate:
    """What every row satisfies for which the expression is false or null."""
    return disjunction([_false(expression, resolve), _null(expression, resolve)])


def columns_in(schema: pa.Schema, qualifiers: Collection[str] = ()) -> Resolve:
    """Finds the columns of one table, bare or behind one of these names of it, ignoring case."""
    names = {name.lower() for name in qualifiers}

    def resolve(expression: exp.Expr) -> Found | None:
        parts = _parts(expression)
        if parts is None:
            return None
        if len(parts) > 1 and parts[0].lower() in names:
            return find_column(schema, parts[1:])
        return find_column(schema, parts)

    return resolve


def find_column(schema: pa.Schema, parts: list[str]) -> Found | None:
    """Follow the names through the schema and its structs; None if they lead nowhere, or to two."""
    path: list[str] = []
    fields = list(schema)
    for position, part in enumerate(parts):
        matching = [field for field in fields if field.name.lower() == part.lower()]
        if len(matching) != 1:
            return None
        path.append(matching[0].name)
        data_type = matching[0].type
        if position == len(parts) - 1:
            return Found(tuple(path), data_type)
        if not pa.types.is_struct(data_type):
            return None
        fields = list(data_type)
    return None


def _parts(expression: exp.Expr) -> list[str] | None:
    if isinstance(expression, exp.Column) and not isinstance(expression.this, exp.Star):
        return [part.name for part in expression.parts]
    if isinstance(expression, exp.Dot) and isinstance(expression.expression, exp.Identifier):
        before = _parts(expression.this)
        return None if before is None else [*before, expression.expression.name]
    return None


def _true(expression: exp.Expr, resolve: Resolve) -> Predicate:
    match expression:
        case exp.Paren():
            return _true(expression.this, resolve)
        case exp.Not():
            return _false(expression.this, resolve)
        case exp.And():
            return conjunction([_true(expression.left, resolve), _true(expression.right, resolve)])
        case exp.Or():
            return disjunction([_true(expression.left, resolve), _true(expression.right, resolve)])
        case exp.Boolean():
            return ANYTHING if expression.this else NOTHING
        case exp.Null():
            return NOTHING
        case exp.Is():
            return _is(expression, resolve)
        case exp.In():
            return _in(expression, resolve)
        case exp.Between():
            low = exp.GTE(this=expression.this, expression=expression.args["low"])
            high = exp.LTE(this=expression.this, expression=expression.args["high"])
            return conjunction([_true(low, resolve), _true(high, resolve)])
        case exp.Like() if not expression.args.get("escape"):
            return _like(expression, resolve)
        case exp.Column() | exp.Dot():
            return _flag(expression, True, resolve)
    comparison = _comparison(expression, resolve)
    return ANYTHING if comparison is None else comparison.true()


def _false(expression: exp.Expr, resolve: Resolve) -> Predicate:
    match expression:
        case exp.Paren():
            return _false(expression.this, resolve)
        case exp.Not():
            return _true(expression.this, resolve)
        case exp.And():
            return disjunction([_false(expression.left, resolve), _false(expression.right, resolve)])
        case exp.Or():
            return conjunction([_false(expression.left, resolve), _false(expression.right, resolve)])
        case exp.Boolean():
            return NOTHING if expression.this else ANYTHING
        case exp.Null():
            return NOTHING
        case exp.Is() if isinstance(expression.expression, exp.Null):
            found = resolve(expression.this)
            return ANYTHING if found is None else IsNotNull(found.path)
        case exp.In():
            return _not_in(expression, resolve)
        case exp.Between():
            low = exp.GTE(this=expression.this, expression=expression.args["low"])
            high = exp.LTE(this=expression.this, expression=expression.args["high"])
            return disjunction([_false(low, resolve), _false(high, resolve)])
        case exp.Column() | exp.Dot():
            return _flag(expression, False, resolve)
    comparison = _comparison(expression, resolve)
    return ANYTHING if comparison is None else comparison.false()


def _null(expression: exp.Expr, resolve: Resolve) -> Predicate:
    match expression:
        case exp.Paren() | exp.Not():
            return _null(expression.this, resolve)
        case exp.And() | exp.Or():
            return disjunction([_null(expression.left, resolve), _null(expression.right, resolve)])
        case exp.Boolean():
            return NOTHING
        case exp.Is() if isinstance(expression.expression, exp.Null):
            return NOTHING if resolve(expression.this) is not None else ANYTHING
        case exp.In() if not expression.args.get("query"):
            items = [constant(item) for item in expression.expressions]
            known = all(item is not None and item.value is not None for item in items)
            found = resolve(expression.this)
            return IsNull(found.path) if known and found is not None else ANYTHING
        case exp.Between():
            bounds = [constant(expression.args["low"]), constant(expression.args["high"])]
            known = all(bound is not None and bound.value is not None for bound in bounds)
            found = resolve(expression.this)
            return IsNull(found.path) if known and found is not None else ANYTHING
        case exp.Column() | exp.Dot():
            found = resolve(expression)
            return ANYTHING if found is None else IsNull(found.path)
    comparison = _comparison(expression, resolve)
    return ANYTHING if comparison is None else comparison.null()


_SWAPPED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
    exp.NullSafeEQ: exp.NullSafeEQ,
    exp.NullSafeNEQ: exp.NullSafeNEQ,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}

_ORDERED: dict[type[exp.Expr], tuple[Operator, Operator]] = {
    exp.LT: ("<", ">="),
    exp.LTE: ("<=", ">"),
    exp.GT: (">", "<="),
    exp.GTE: (">=", "<"),
}


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A column compared with a constant."""

    kind: type[exp.Expr]
    column: Found
    value: Any

    def true(self) -> Predicate:
        path = self.column.path
        if self.kind is exp.NullSafeEQ:
            return IsNull(path) if self.value is None else self._equal()
        if self.kind is exp.NullSafeNEQ:
            return IsNotNull(path) if self.value is None else disjunction([self._different(), IsNull(path)])
        if self.value is None:
            return NOTHING
        if self.kind is exp.EQ:
            return self._equal()
        return self._different() if self.kind is exp.NEQ else self._ordered(_ORDERED[self.kind][0])

    def false(self) -> Predicate:
        path = self.column.path
        if self.kind is exp.NullSafeEQ:
            return IsNotNull(path) if self.value is None else disjunction([self._different(), IsNull(path)])
        if self.kind is exp.NullSafeNEQ:
            return IsNull(path) if self.value is None else self._equal()
        if self.value is None:
            return NOTHING
        if self.kind is exp.NEQ:
            return self._equal()
        return self._different() if self.kind is exp.EQ else self._ordered(_ORDERED[self.kind][1])

    def null(self) -> Predicate:
        if self.kind in (exp.NullSafeEQ, exp.NullSafeNEQ):
            return NOTHING
        return ANYTHING if self.value is None else IsNull(self.column.path)

    def _equal(self) -> Predicate:
        return self._ordered("=")

    def _different(self) -> Predicate:
        return disjunction([self._ordered("<"), self._ordered(">")])

    def _ordered(self, operator: Operator) -> Predicate:
        """The comparison in the column's type; where that is uncertain, only that it is not null."""
        path = self.column.path
        value = in_column(self.value, self.column.type)
        if value is None:
            return IsNotNull(path)
        if pa.types.is_integer(self.column.type) and isinstance(value, float | Decimal):
            return _between_integers(path, operator, value)
        return Compare(path, operator, value)


def _between_integers(path: Column, operator: Operator, value: float | Decimal) -> Predicate:
    """An integer against a number that may lie between two integers."""
    if value == int(value):
        return Compare(path, operator, int(value))
    if operator == "=":
        return NOTHING
    return (
        Compare(path, "<=", math.floor(value)) if "<" in operator else Compare(path, ">=", math.ceil(value))
    )


def _comparison(expression: exp.Expr, resolve: Resolve) -> _Comparison | None:
    kind = type(expression)
    if kind not in _SWAPPED:
        return None
    column, value = resolve(expression.this), constant(expression.expression)
    if column is None or value is None:
        kind = _SWAPPED[kind]
        column, value = resolve(expression.expression), constant(expression.this)
    return None if column is None or value is None else _Comparison(kind, column, value.value)


def _flag(expression: exp.Expr, wanted: bool, resolve: Resolve) -> Predicate:
    found = resolve(expression)
    if found is None or not pa.types.is_boolean(found.type):
        return ANYTHING
    return Compare(found.path, "=", wanted)


def _is(expression: exp.Is, resolve: Resolve) -> Predicate:
    if isinstance(expression.expression, exp.Boolean):
        wanted = bool(expression.expression.this)
        return _true(expression.this, resolve) if wanted else _false(expression.this, resolve)
    found = resolve(expression.this)
    if found is None or not isinstance(expression.expression, exp.Null):
        return ANYTHING
    return IsNull(found.path)


def _items(expression: exp.In, resolve: Resolve) -> tuple[Found, list[Constant]] | None:
    """The column and the constants of an IN whose items the column's type decides alone."""
    found = resolve(expression.this)
    items = [constant(item) for item in expression.expressions]
    if found is None or expression.args.get("query") or not items:
        return None
    known = [item for item in items if item is not None]
    return (found, known) if len(known) == len(items) else None


def _in(expression: exp.In, resolve: Resolve) -> Predicate:
    items = _items(expression, resolve)
    if items is None:
        found = resolve(expression.this)
        return ANYTHING if found is None else IsNotNull(found.path)
    # The column and all items are brought to one type first. With a double among them that type is double,
    # in which a large integer is equal to its neighbours too.
    values = [item.value for item in items[1]]
    if any(isinstance(value, float) for value in values) and any(
        isinstance(value, int) and abs(value) >= EXACT_DOUBLE for value in values
    ):
        return IsNotNull(items[0].path)
    return disjunction([_Comparison(exp.EQ, items[0], item.value).true() for item in items[1]])


def _not_in(expression: exp.In, resolve: Resolve) -> Predicate:
    items = _items(expression, resolve)
    if items is None:
        return ANYTHING
    return conjunction([_Comparison(exp.EQ, items[0], item.value).false() for item in items[1]])


def _like(expression: exp.Like, resolve: Resolve) -> Predicate:
    found, pattern = resolve(expression.this), constant(expression.expression)
    if found is None or pattern is None or not isinstance(pattern.value, str):
        return ANYTHING
    if not pa.types.is_string(found.type):
        return IsNotNull(found.path)
    prefix, rest = _prefix(pattern.value)
    if not rest:
        return Compare(found.path, "=", prefix)
    if not prefix:
        return IsNotNull(found.path)
    above = _after(prefix)
    upper: list[Predicate] = [Compare(found.path, "<", above)] if above else []
    return conjunction([Compare(found.path, ">=", prefix), *upper])


def _prefix(pattern: str) -> tuple[str, str]:
    """The text before the first wildcard, and the rest. A backslash escapes the next character."""
    text, position = "", 0
    while position < len(pattern):
        character = pattern[position]
        if character in "%_":
            break
        if character == "\\":
            position += 1
            if position == len(pattern):
                break
            character = pattern[position]
        text += character
        position += 1
    return text, pattern[position:]


def _after(prefix: str) -> str | None:
    """The least text above every text with this prefix, in the order of code points."""
    for end in range(len(prefix), 0, -1):
        code = ord(prefix[end - 1]) + 1
        if code == 0xD800:
            code = 0xE000
        if code <= 0x10FFFF:
            return prefix[: end - 1] + chr(code)
    return None
