"""The few SQL expressions that the actors use, evaluated on rows that are dicts.

Contract: exact for what it knows (integers, texts, comparisons, AND, OR, NOT, + - *, concat, count, sum);
anything else is `Unsupported`, never guessed. NULLs do not occur in the actors' tables.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from lakevilla.errors import Unsupported

Row = Mapping[str, Any]
Value = Callable[[Row], Any]

_BINARY: dict[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.EQ: lambda a, b: a == b,
    exp.NEQ: lambda a, b: a != b,
    exp.LT: lambda a, b: a < b,
    exp.LTE: lambda a, b: a <= b,
    exp.GT: lambda a, b: a > b,
    exp.GTE: lambda a, b: a >= b,
    exp.And: lambda a, b: a and b,
    exp.Or: lambda a, b: a or b,
    exp.Add: lambda a, b: a + b,
    exp.Sub: lambda a, b: a - b,
    exp.Mul: lambda a, b: a * b,
}


def compile_row(tree: exp.Expr) -> Value:
    """A function from a row to the value of the expression."""
    match tree:
        case exp.Column():
            name = tree.name
            return lambda row: row[name]
        case exp.Literal():
            value = tree.name if tree.is_string else int(tree.name)
            return lambda _: value
        case exp.Boolean():
            truth = bool(tree.this)
            return lambda _: truth
        case exp.Paren() | exp.Alias():
            return compile_row(tree.this)
        case exp.Neg():
            inner = compile_row(tree.this)
            return lambda row: -inner(row)
        case exp.Not():
            inner = compile_row(tree.this)
            return lambda row: not inner(row)
        case exp.Anonymous() if _function(tree) == "concat":
            parts = [compile_row(part) for part in tree.expressions]
            return lambda row: "".join(str(part(row)) for part in parts)
        case exp.Binary() if type(tree) in _BINARY:
            operate = _BINARY[type(tree)]
            left, right = compile_row(tree.left), compile_row(tree.right)
            return lambda row: operate(left(row), right(row))
    raise Unsupported(f"the simulator's engine does not know {tree.sql('spark')}")


def project(items: Sequence[exp.Expr], rows: Sequence[Row], columns: Sequence[str]) -> list[list[Any]]:
    """The rows of a SELECT list, one of aggregates or one of expressions."""
    if any(isinstance(item, exp.Star) for item in items):
        return [[row[name] for name in columns] for row in rows]
    if any(_function(call) in _AGGREGATES for item in items for call in item.find_all(exp.Anonymous)):
        return [[_aggregate(item, rows) for item in items]]
    values = [compile_row(item) for item in items]
    return [[value(row) for value in values] for row in rows]


def _aggregate(item: exp.Expr, rows: Sequence[Row]) -> Any:
    inner = item.unalias()
    match inner:
        case exp.Anonymous() if _function(inner) == "count":
            return len(rows)
        case exp.Anonymous() if _function(inner) == "sum":
            value = compile_row(inner.expressions[0])
            return sum(value(row) for row in rows)
        case exp.Binary() if inner.__class__ in _BINARY:
            return _BINARY[inner.__class__](_aggregate(inner.left, rows), _aggregate(inner.right, rows))
        case exp.Literal():
            return compile_row(inner)({})
    raise Unsupported(f"the simulator's engine does not know {item.sql('spark')}")


_AGGREGATES = ("count", "sum")


def _function(call: exp.Anonymous) -> str:
    """Calls stay calls by name, as `lakevilla.sql.dialect` reads them."""
    return str(call.this).lower()
