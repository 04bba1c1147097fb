"""What PARTITIONED BY takes: columns, and transforms of them as Spark spells them."""

from sqlglot import exp

from lakevilla.errors import InvalidInput, Unsupported
from lakevilla.model import PartitionField
from lakevilla.predicates import Column
from lakevilla.sql.dialect import spark_text

_PERIODS = {
    **dict.fromkeys(("year", "years"), "year"),
    **dict.fromkeys(("month", "months"), "month"),
    **dict.fromkeys(("day", "days", "date"), "day"),
    **dict.fromkeys(("hour", "hours", "date_hour"), "hour"),
}
_SUFFIXES = {"bucket": "bucket", "truncate": "trunc"}


def partition_field(tree: exp.Expr) -> PartitionField:
    """The field of a column, `days(c)` and the like, `bucket(n, c)` or `truncate(n, c)`; the two arguments
    come in either order. Fields get the names that Spark gives them."""
    if isinstance(tree, exp.Anonymous):
        return _of_call(tree)
    column = _column(tree)
    return PartitionField(".".join(column), column)


def _of_call(call: exp.Anonymous) -> PartitionField:
    name, arguments = call.name.lower(), call.expressions
    if name in _SUFFIXES:
        return _with_width(name, arguments, call)
    if len(arguments) != 1 or (name not in _PERIODS and name != "identity"):
        raise _unknown(call)
    column = _column(arguments[0])
    if name == "identity":
        return PartitionField(".".join(column), column)
    return PartitionField(f"{'.'.join(column)}_{_PERIODS[name]}", column, _PERIODS[name])


def _with_width(name: str, arguments: list[exp.Expr], call: exp.Expr) -> PartitionField:
    widths = [a.name for a in arguments if a.is_int and a.name.isdecimal() and int(a.name)]
    columns = [a for a in arguments if not isinstance(a, exp.Literal)]
    if len(arguments) != 2 or len(widths) != 1 or len(columns) != 1:
        raise InvalidInput(f"{name} takes a number above 0 and a column, found {spark_text(call)}")
    column = _column(columns[0])
    return PartitionField(f"{'.'.join(column)}_{_SUFFIXES[name]}", column, f"{name}[{int(widths[0])}]")


def _column(tree: exp.Expr) -> Column:
    """The path of names that a column is spelled as."""
    match tree:
        case exp.Identifier():
            return (tree.name,)
        case exp.Column() if not isinstance(tree.this, exp.Star):
            return tuple(part.name for part in tree.parts)
        case exp.Dot():
            return (*_column(tree.this), *_column(tree.expression))
    raise _unknown(tree)


def _unknown(tree: exp.Expr) -> Unsupported:
    return Unsupported(
        "PARTITIONED BY takes columns, years, months, days or hours of a column, bucket(n, column) and "
        f"truncate(n, column), found {spark_text(tree)}"
    )
