"""Calls by Spark's names: scalar functions, aggregates with FILTER and OVER, and a few odd ones."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from lakevilla.engines.local.translation.functions import datetime_functions, nested
from lakevilla.engines.local.translation.functions.aggregates import (
    Tail,
    aggregate,
    is_aggregate,
    is_window_only,
    needs_order,
)
from lakevilla.engines.local.translation.functions.scalars import call, is_scalar
from lakevilla.engines.local.translation.functions.windows import definition, over
from lakevilla.engines.local.translation.types.typed import (
    Typed,
    is_list,
    list_of,
    mismatch,
    only,
    refuse,
)
from lakevilla.errors import InvalidInput
from lakevilla.sql.dialect import spark_text
from lakevilla.sql.words.function_names import is_function
from lakevilla.sql.words.suggestions import unknown_function

if TYPE_CHECKING:
    from lakevilla.engines.local.translation.expressions import Expressions


def function_call(expressions: "Expressions", node: exp.Anonymous) -> Typed:
    return called(expressions, str(node.this).lower(), node.expressions, Tail())


def called(expressions: "Expressions", name: str, arguments: list[exp.Expr], tail: Tail) -> Typed:
    """A call by Spark's name of the function."""
    if is_window_only(name) and not tail.over:
        raise InvalidInput(f"{name}() needs an OVER clause")
    if is_aggregate(name):
        return _aggregate(expressions, name, arguments, tail)
    if tail != Tail():
        refuse(f"the function {name}() with FILTER or OVER")
    if name in _SPECIAL:
        return _SPECIAL[name](expressions, arguments)
    if not is_scalar(name):
        if not is_function(name):
            raise unknown_function(name)
        refuse(f"the function {name}()")
    return call(name, [expressions(argument) for argument in arguments])


def _aggregate(expressions: "Expressions", name: str, arguments: list[exp.Expr], tail: Tail) -> Typed:
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        arguments, tail = arguments[0].expressions, replace(tail, distinct=True)
    if name == "count" and not arguments:
        raise InvalidInput("count() needs an argument; count(*) counts rows")
    if name == "count" and len(arguments) == 1 and isinstance(arguments[0], exp.Star):
        only(arguments[0])
        if tail.distinct:
            refuse("count(DISTINCT *)")
        arguments = []
    return aggregate(name, [expressions(argument) for argument in arguments], tail)


def filtered(expressions: "Expressions", node: exp.Filter) -> Typed:
    return _with_tail(expressions, node, Tail())


def windowed(expressions: "Expressions", node: exp.Window) -> Typed:
    clause = over(expressions, node)
    if node.find(exp.Filter) is not None and isinstance(node.this, exp.Filter | exp.IgnoreNulls):
        raise InvalidInput("a window function cannot have a FILTER")
    call_node = node.this.this if isinstance(node.this, exp.IgnoreNulls | exp.RespectNulls) else node.this
    name = str(call_node.this).lower() if isinstance(call_node, exp.Anonymous) else ""
    window = definition(expressions, node)
    if needs_order(name) and window.args.get("order") is None:
        raise InvalidInput(f"{name}() needs a window with ORDER BY")
    if needs_order(name) and window.args.get("spec") is not None:
        raise InvalidInput(f"{name}() has a frame of its own: leave ROWS and RANGE out")
    return _with_tail(expressions, node.this, Tail(over=clause))


def ignoring_nulls(expressions: "Expressions", node: exp.IgnoreNulls) -> Typed:
    return _with_tail(expressions, node, Tail())


def _with_tail(expressions: "Expressions", node: exp.Expr, tail: Tail) -> Typed:
    """Take FILTER and IGNORE NULLS off a call and hand them to its rule."""
    match node:
        case exp.Filter():
            condition = expressions.condition(node.expression.this).sql
            return _with_tail(expressions, node.this, replace(tail, condition=condition))
        case exp.IgnoreNulls():
            return _with_tail(expressions, node.this, replace(tail, ignore_nulls=True))
        case exp.RespectNulls():
            return _with_tail(expressions, node.this, tail)
        case exp.Anonymous():
            return called(expressions, str(node.this).lower(), node.expressions, tail)
    return refuse(f"the expression {spark_text(node)[:80]}")


def _struct(expressions: "Expressions", arguments: list[exp.Expr]) -> Typed:
    names = []
    for position, argument in enumerate(arguments, 1):
        named = isinstance(argument, exp.Column | exp.Alias | exp.Dot)
        names.append(argument.output_name or argument.name if named else f"col{position}")
    values = [expressions(a.this if isinstance(a, exp.Alias) else a) for a in arguments]
    return nested.struct(names, values)


def _named_struct(expressions: "Expressions", arguments: list[exp.Expr]) -> Typed:
    values = [expressions(argument) for argument in arguments]
    names = [value.constant for value in values[::2]]
    if len(values) % 2 or not all(isinstance(name, str) for name in names):
        raise InvalidInput("named_struct takes names, as string literals, and values in turn")
    return nested.struct([str(name) for name in names], values[1::2])


def _unit_function(rule: Callable[[str, Typed, Typed], Typed], plain: str) -> "Special":
    """Functions whose first argument may be the bare name of a unit."""

    def special(expressions: "Expressions", arguments: list[exp.Expr]) -> Typed:
        if len(arguments) != 3:
            return call(plain, [expressions(argument) for argument in arguments])
        return rule(arguments[0].name, expressions(arguments[1]), expressions(arguments[2]))

    return special


def _date_part(expressions: "Expressions", arguments: list[exp.Expr]) -> Typed:
    if len(arguments) != 2 or not isinstance(arguments[0], exp.Literal):
        refuse("date_part whose field is not a literal")
    return call(datetime_functions.extracted(arguments[0].name), [expressions(arguments[1])])


def _now(expressions: "Expressions", arguments: list[exp.Expr]) -> Typed:
    if arguments:
        raise InvalidInput("now() and current_timestamp() take no arguments")
    return datetime_functions.instant(expressions.queries.now_ms)


def _today(expressions: "Expressions", arguments: list[exp.Expr]) -> Typed:
    if arguments:
        raise InvalidInput("current_date() takes no arguments")
    return datetime_functions.today(expressions.queries.now_ms)


def _lambda(expressions: "Expressions", array: Typed, node: exp.Expr) -> tuple[str, Typed]:
    """`x -> body` over the elements of an array."""
    if not isinstance(node, exp.Lambda) or len(node.expressions) != 1 or not is_list(array.type):
        refuse(f"the lambda {spark_text(node)[:80]}")
    name = expressions.queries.fresh("x")
    variable = Typed(name, array.type.value_type)
    body = expressions.inner({node.expressions[0].name.lower(): variable})(node.this)
    return f"lambda {name}: {body.sql}", body


def transform(expressions: "Expressions", array_node: exp.Expr, function: exp.Expr) -> Typed:
    array = expressions(array_node)
    sql, body = _lambda(expressions, array, function)
    return Typed(f"list_transform({array.sql}, {sql})", list_of(body.type), aggregate=array.aggregate)


def _filter_array(expressions: "Expressions", arguments: list[exp.Expr]) -> Typed:
    if len(arguments) != 2:
        raise InvalidInput("filter takes an array and a lambda")
    array = expressions(arguments[0])
    sql, body = _lambda(expressions, array, arguments[1])
    if not pa.types.is_boolean(body.type):
        mismatch("filter", body)
    return Typed(f"list_filter({array.sql}, {sql})", array.type, aggregate=array.aggregate)


Special = Callable[["Expressions", list[exp.Expr]], Typed]

_SPECIAL: dict[str, Special] = {
    "struct": _struct,
    "named_struct": _named_struct,
    "dateadd": _unit_function(datetime_functions.added, "date_add"),
    "timestampadd": _unit_function(datetime_functions.added, "date_add"),
    "datediff": _unit_function(datetime_functions.difference, "datediff"),
    "timestampdiff": _unit_function(datetime_functions.difference, "datediff"),
    "date_part": _date_part,
    "datepart": _date_part,
    "now": _now,
    "current_timestamp": _now,
    "current_date": _today,
    "curdate": _today,
    "filter": _filter_array,
}
