"""Expressions: operators, literals, casts, calls, subqueries, lambdas.

One object translates the expressions of one SELECT, in its scope. Dispatch goes by sqlglot's classes; a
class without a rule is refused.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from lakevilla.engines.local.translation.functions import datetime_functions, nested, numbers, strings  # noqa: F401 - numbers registers its rules
from lakevilla.engines.local.translation.functions.aggregates import Tail
from lakevilla.engines.local.translation.functions.calls import (
    called,
    filtered,
    function_call,
    ignoring_nulls,
    transform,
    windowed,
)
from lakevilla.engines.local.translation.functions.scalars import call
from lakevilla.engines.local.translation.nodes import parts_read
from lakevilla.engines.local.translation.operators import (
    arithmetic,
    bitwise,
    comparison,
    integral_division,
    negative,
)
from lakevilla.engines.local.translation.queries.scope import Scope, follow
from lakevilla.engines.local.translation.queries.subqueries import existence, membership, scalar
from lakevilla.engines.local.translation.types.casts import cast, try_cast
from lakevilla.engines.local.translation.types.coercion import common_type
from lakevilla.engines.local.translation.types.literals import literal, number
from lakevilla.engines.local.translation.types.typed import Typed, mismatch, only, refuse
from lakevilla.engines.port import ADJACENT_LITERALS
from lakevilla.errors import InvalidInput, LakeVillaError, Unsupported
from lakevilla.sql.dialect import spark_text
from lakevilla.sql.script.places import mark
from lakevilla.sql.types import arrow_type

if TYPE_CHECKING:
    from lakevilla.engines.local.translation.queries.queries import Queries

_ARITHMETIC = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
_COMPARED = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}
_BITWISE = {exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^"}


@dataclass
class Expressions:
    """Translates expressions within a scope. `windows` are the named windows of the SELECT, `keys` what
    the keys of its GROUP BY become, by their text."""

    queries: "Queries"
    scope: Scope
    windows: Mapping[str, exp.Window] = field(default_factory=dict)
    keys: dict[str, Typed] = field(default_factory=dict)

    def __call__(self, node: exp.Expr) -> Typed:
        """The translation of one expression."""
        try:
            value = self._translate(node)
        except LakeVillaError as error:
            mark(error, node)
            raise
        return self.keys.get(value.sql, value)

    def _translate(self, node: exp.Expr) -> Typed:
        kind = type(node)
        if kind not in _RULES and kind not in _ARITHMETIC and kind not in _COMPARED and kind not in _BITWISE:
            refuse(f"the expression {spark_text(node)[:80]}")
        only(node, *parts_read(kind))
        if kind in _ARITHMETIC:
            return self._arithmetic(node, _ARITHMETIC[kind])
        if kind in _COMPARED:
            return comparison(_COMPARED[kind], self(node.this), self(node.expression))
        if kind in _BITWISE:
            return bitwise(_BITWISE[kind], self(node.this), self(node.expression))
        return _RULES[kind](self, node)

    def condition(self, node: exp.Expr) -> Typed:
        """An expression that must be true or false."""
        value = self(node)
        if not pa.types.is_boolean(value.type) and not pa.types.is_null(value.type):
            error = InvalidInput(f"a condition must be boolean: {spark_text(node)[:80]}")
            mark(error, node)
            raise error
        return value

    def known_condition(self, node: exp.Expr) -> Typed:
        """A condition where Spark wants more than NULL."""
        value = self.condition(node)
        if pa.types.is_null(value.type):
            raise InvalidInput("a condition must be boolean, not NULL alone")
        return value

    def inner(self, variables: Mapping[str, Typed]) -> "Expressions":
        """For the body of a lambda: its variables come first."""
        scope = replace(self.scope, variables={**self.scope.variables, **variables})
        return Expressions(self.queries, scope, self.windows, self.keys)

    def _arithmetic(self, node: exp.Expr, operator: str) -> Typed:
        left, right = node.this, node.expression
        if isinstance(right, exp.Interval) and operator in "+-":
            return _interval(self(left), operator, right)
        if isinstance(left, exp.Interval) and operator == "+":
            return _interval(self(right), "+", left)
        one, other = self(left), self(right)
        if pa.types.is_integer(one.type) and pa.types.is_date(other.type) and operator == "+":
            return datetime_functions.date_add(other, one)
        if pa.types.is_date(one.type) and pa.types.is_integer(other.type) and operator in "+-":
            return (
                datetime_functions.date_add(one, other)
                if operator == "+"
                else datetime_functions.date_sub(one, other)
            )
        if pa.types.is_temporal(one.type) and pa.types.is_temporal(other.type):
            refuse(f"{operator} between dates and timestamps, whose result is an interval")
        return arithmetic(operator, one, other)


def _interval(value: Typed, sign: str, interval: exp.Interval) -> Typed:
    unit = interval.args.get("unit")
    if not isinstance(unit, exp.Var) or not isinstance(interval.this, exp.Literal):
        refuse(f"the interval {spark_text(interval)}")
    return datetime_functions.shifted(
        value, sign, datetime_functions.interval_count(interval.this.name), unit.name
    )


def _column(expressions: Expressions, node: exp.Column) -> Typed:
    if isinstance(node.this, exp.Star):
        raise InvalidInput("* stands for columns only in a SELECT list and in count(*)")
    return expressions.scope.resolve([part.name for part in node.parts])


def _identifier(expressions: Expressions, node: exp.Identifier) -> Typed:
    return expressions.scope.resolve([node.name])


def _dot(expressions: Expressions, node: exp.Dot) -> Typed:
    if not isinstance(node.expression, exp.Identifier):
        refuse(f"the expression {spark_text(node)[:80]}")
    return follow(expressions(node.this), [node.expression.name])


def _negative(expressions: Expressions, node: exp.Neg) -> Typed:
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        return number(f"-{node.this.name}")
    return negative(expressions(node.this))


def _cast(expressions: Expressions, node: exp.Cast) -> Typed:
    if node.args.get("format"):
        refuse("CAST with a format")
    return cast(expressions(node.this), arrow_type(node.to))


def _try_cast(expressions: Expressions, node: exp.TryCast) -> Typed:
    return try_cast(expressions(node.this), arrow_type(node.to))


def _not(expressions: Expressions, node: exp.Not) -> Typed:
    value = expressions.condition(node.this)
    return Typed(f"(NOT {value.sql})", pa.bool_(), aggregate=value.aggregate)


def _logic(operator: str) -> Callable[[Expressions, exp.Binary], Typed]:
    def rule(expressions: Expressions, node: exp.Binary) -> Typed:
        one, other = expressions.condition(node.left), expressions.condition(node.right)
        return Typed(
            f"({one.sql} {operator} {other.sql})", pa.bool_(), aggregate=one.aggregate or other.aggregate
        )

    return rule


def _is(expressions: Expressions, node: exp.Is) -> Typed:
    if isinstance(node.expression, exp.Null):
        value, wanted = expressions(node.this), "NULL"
    elif isinstance(node.expression, exp.Boolean):
        value, wanted = expressions.condition(node.this), str(node.expression.this).upper()
    else:
        refuse(f"the expression {spark_text(node)[:80]}")
    return Typed(f"({value.sql} IS {wanted})", pa.bool_(), aggregate=value.aggregate)


def _between(expressions: Expressions, node: exp.Between) -> Typed:
    if node.args.get("symmetric"):
        refuse("BETWEEN SYMMETRIC")
    value = expressions(node.this)
    low = comparison(">=", value, expressions(node.args["low"]))
    high = comparison("<=", value, expressions(node.args["high"]))
    return Typed(f"({low.sql} AND {high.sql})", pa.bool_(), aggregate=low.aggregate or high.aggregate)


def _case(expressions: Expressions, node: exp.Case) -> Typed:
    base = None if node.this is None else expressions(node.this)
    conditions, values = [], []
    for branch in node.args["ifs"]:
        if base is None:
            conditions.append(expressions.known_condition(branch.this))
        else:
            conditions.append(comparison("=", base, expressions(branch.this)))
        values.append(expressions(branch.args["true"]))
    default = node.args.get("default")
    values.append(Typed("NULL", pa.null(), None) if default is None else expressions(default))
    to = common_type(value.type for value in values)
    branches = " ".join(
        f"WHEN {condition.sql} THEN {cast(value, to).sql}"
        for condition, value in zip(conditions, values, strict=False)
    )
    inside = any(part.aggregate for part in (*conditions, *values))
    return Typed(f"CASE {branches} ELSE {cast(values[-1], to).sql} END", to, aggregate=inside)


def _like(operator: str) -> Callable[[Expressions, exp.Expr], Typed]:
    def rule(expressions: Expressions, node: exp.Expr) -> Typed:
        if isinstance(node.expression, exp.Any | exp.All):
            refuse(f"{operator} ANY and {operator} ALL")
        value, pattern = expressions(node.this), expressions(node.expression)
        return replace(strings.like(value, pattern, None, operator), aggregate=value.aggregate)

    return rule


def _escaped(expressions: Expressions, node: exp.Escape) -> Typed:
    inner, sign = node.this, expressions(node.expression)
    operator = "LIKE" if isinstance(inner, exp.Like) else "ILIKE"
    if not isinstance(inner, exp.Like | exp.ILike) or isinstance(inner.expression, exp.Any | exp.All):
        refuse(f"the expression {spark_text(node)[:80]}")
    value, pattern = expressions(inner.this), expressions(inner.expression)
    return replace(strings.like(value, pattern, sign, operator), aggregate=value.aggregate)


def _rlike(expressions: Expressions, node: exp.RegexpLike) -> Typed:
    return call("rlike", [expressions(node.this), expressions(node.expression)])


def _trim(expressions: Expressions, node: exp.Trim) -> Typed:
    characters = node.args.get("expression")
    side = str(node.args.get("position") or "BOTH").upper()
    value = expressions(node.this)
    trimmed = strings.trim(value, None if characters is None else expressions(characters), side)
    return replace(trimmed, aggregate=value.aggregate)


def _extract(expressions: Expressions, node: exp.Extract) -> Typed:
    return call(datetime_functions.extracted(node.name), [expressions(node.expression)])


def _bracket(expressions: Expressions, node: exp.Bracket) -> Typed:
    if len(node.expressions) != 1 or node.args.get("offset"):
        refuse(f"the expression {spark_text(node)[:80]}")
    value, index = expressions(node.this), expressions(node.expressions[0])
    if pa.types.is_struct(value.type) and isinstance(index.constant, str):
        return follow(value, [index.constant])
    return nested.element(value, index)


def _moment(expressions: Expressions, node: exp.Expr) -> Typed:
    now_ms = expressions.queries.now_ms
    if isinstance(node, exp.CurrentDate):
        return datetime_functions.today(now_ms)
    return datetime_functions.instant(now_ms, zoned=not isinstance(node, exp.Localtimestamp))


def _pipes(expressions: Expressions, node: exp.Expr) -> Typed:
    values = [expressions(node.this), expressions(node.expression)]
    return replace(strings.concat(*values), aggregate=any(value.aggregate for value in values))


def _bitwise_not(expressions: Expressions, node: exp.BitwiseNot) -> Typed:
    value = expressions(node.this)
    if not pa.types.is_integer(value.type):
        mismatch("~", value)
    return Typed(f"(~ {value.sql})", value.type, aggregate=value.aggregate)


def _adjacent(expressions: Expressions, node: exp.Expr) -> Typed:  # noqa: ARG001
    raise Unsupported(
        "the local engine does not support two string literals side by side, which are one string in Spark "
        "SQL ('it''s' is its): write \\' for a quote inside a string, or concat() to join two",
        rule=ADJACENT_LITERALS,
    )


def _if(expressions: Expressions, node: exp.If) -> Typed:
    parts = [expressions(part) for part in (node.this, node.args["true"], node.args.get("false")) if part]
    return call("if", parts)


def _substring(expressions: Expressions, node: exp.Substring) -> Typed:
    parts = [node.this, node.args.get("start"), node.args.get("length")]
    return call("substring", [expressions(part) for part in parts if part is not None])


def _position(expressions: Expressions, node: exp.StrPosition) -> Typed:
    return call("position", [expressions(node.args["substr"]), expressions(node.this)])


def _transform(expressions: Expressions, node: exp.Transform) -> Typed:
    return transform(expressions, node.this, node.expression)


def _count(expressions: Expressions, node: exp.Count) -> Typed:
    """Trees that were built, not parsed, have sqlglot's own node for it."""
    return called(expressions, "count", [node.this], Tail())


_RULES: dict[type[exp.Expr], Callable[[Expressions, Any], Typed]] = {
    exp.Literal: lambda _, node: literal(node),
    exp.Boolean: lambda _, node: literal(node),
    exp.Null: lambda _, node: literal(node),
    exp.HexString: lambda _, node: literal(node),
    exp.RawString: lambda _, node: literal(node),
    exp.Paren: lambda expressions, node: expressions(node.this),
    exp.Column: _column,
    exp.Identifier: _identifier,
    exp.Dot: _dot,
    exp.Neg: _negative,
    exp.Cast: _cast,
    exp.TryCast: _try_cast,
    exp.Not: _not,
    exp.And: _logic("AND"),
    exp.Or: _logic("OR"),
    exp.Is: _is,
    exp.Between: _between,
    exp.In: membership,
    exp.Subquery: scalar,
    exp.Exists: existence,
    exp.Case: _case,
    exp.If: _if,
    exp.Like: _like("LIKE"),
    exp.ILike: _like("ILIKE"),
    exp.Escape: _escaped,
    exp.RegexpLike: _rlike,
    exp.Trim: _trim,
    exp.Substring: _substring,
    exp.StrPosition: _position,
    exp.Extract: _extract,
    exp.Bracket: _bracket,
    exp.CurrentTimestamp: _moment,
    exp.CurrentDate: _moment,
    exp.Localtimestamp: _moment,
    exp.DPipe: _pipes,
    exp.BitwiseNot: _bitwise_not,
    exp.IntDiv: lambda expressions, node: integral_division(
        expressions(node.this), expressions(node.expression)
    ),
    exp.Concat: _adjacent,
    exp.Anonymous: function_call,
    exp.Count: _count,
    exp.Filter: filtered,
    exp.Window: windowed,
    exp.IgnoreNulls: ignoring_nulls,
    exp.Transform: _transform,
}
