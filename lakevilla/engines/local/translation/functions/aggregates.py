"""Aggregate and window functions: the allow-list, with Spark's result types.

A rule gives the call and whatever stands around it. FILTER and OVER belong right behind the call, inside
the casts around it, so a rule puts them there itself through `Tail`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from lakevilla.engines.local.translation.functions.scalars import as_double
from lakevilla.engines.local.translation.operators import divided
from lakevilla.engines.local.translation.types.casts import cast
from lakevilla.engines.local.translation.types.typed import (
    Typed,
    cast_sql,
    is_numeric,
    list_of,
    mismatch,
    refuse,
)
from lakevilla.errors import InvalidInput
from lakevilla.sql.types import type_name


@dataclass(frozen=True, slots=True)
class Tail:
    """What follows an aggregate call: its FILTER, its OVER; and the marks inside its parentheses."""

    distinct: bool = False
    condition: str | None = None
    over: str = ""
    ignore_nulls: bool = False

    def call(self, name: str, arguments: str, also: str | None = None) -> str:
        """The call; `also` is one more condition that rows must meet."""
        conditions = " AND ".join(part for part in (also, self.condition) if part)
        filtered = f" FILTER (WHERE {conditions})" if conditions else ""
        distinct = "DISTINCT " if self.distinct else ""
        return f"{name}({distinct}{arguments}){filtered}{self.over}"


Rule = Callable[[list[Typed], Tail], Typed]
_RULES: dict[str, tuple[Rule, int, int]] = {}
_WINDOW_ONLY: set[str] = set()
_SKIPPING = {"first", "first_value", "any_value", "last", "last_value", "nth_value", "lead", "lag"}
"""The functions that may skip NULLs."""


def is_aggregate(name: str) -> bool:
    return name in _RULES


def is_window_only(name: str) -> bool:
    return name in _WINDOW_ONLY


def needs_order(name: str) -> bool:
    """Whether the function means nothing in a window without an order; it then has a frame of its own."""
    return name in _WINDOW_ONLY and name != "nth_value"


def aggregate(name: str, arguments: list[Typed], tail: Tail) -> Typed:
    """The translation of an aggregate or window call."""
    rule, least, most = _RULES[name]
    if not least <= len(arguments) <= most:
        raise InvalidInput(f"{name} does not take {len(arguments)} arguments")
    if any(argument.aggregate for argument in arguments) and not tail.over:
        raise InvalidInput(f"{name}: an aggregate cannot be inside another one")
    if tail.ignore_nulls and name not in _SKIPPING:
        raise InvalidInput(f"{name} does not support IGNORE NULLS")
    if tail.over and tail.distinct:
        raise InvalidInput(f"{name}: a window function cannot be DISTINCT")
    result = rule(arguments, tail)
    inside = not tail.over or any(argument.aggregate for argument in arguments)
    return Typed(result.sql, result.type, aggregate=inside)


def _rule(*names: str, arity: tuple[int, int], window_only: bool = False) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        for name in names:
            _RULES[name] = (rule, *arity)
            if window_only:
                _WINDOW_ONLY.add(name)
        return rule

    return register


@_rule("count", arity=(0, 64))
def _count(arguments: list[Typed], tail: Tail) -> Typed:
    """Rows of which no argument is NULL; `count(*)` comes without arguments."""
    if not arguments:
        return Typed(tail.call("count", "*"), pa.int64())
    if len(arguments) == 1:
        return Typed(tail.call("count", arguments[0].sql), pa.int64())
    known = " AND ".join(f"{argument.sql} IS NOT NULL" for argument in arguments)
    row = f"row({', '.join(argument.sql for argument in arguments)})"
    return Typed(tail.call("count", row, known), pa.int64())


@_rule("count_if", arity=(1, 1))
def _count_if(arguments: list[Typed], tail: Tail) -> Typed:
    if tail.distinct:
        refuse("count_if(DISTINCT ...)")
    return Typed(tail.call("count", "*", f"{_flag(arguments[0], 'count_if')}"), pa.int64())


@_rule("sum", arity=(1, 1))
def _sum(arguments: list[Typed], tail: Tail) -> Typed:
    value = _number(arguments[0], "sum")
    if pa.types.is_integer(value.type):
        return Typed(f"CAST({tail.call('sum', value.sql)} AS BIGINT)", pa.int64())
    if pa.types.is_decimal(value.type):
        to = pa.decimal128(min(38, value.type.precision + 10), value.type.scale)
        return Typed(cast_sql(tail.call("sum", value.sql), to), to)
    return Typed(tail.call("sum", cast(value, pa.float64()).sql), pa.float64())


@_rule("avg", "mean", arity=(1, 1))
def _avg(arguments: list[Typed], tail: Tail) -> Typed:
    value = _number(arguments[0], "avg")
    count = tail.call("count", value.sql)
    if pa.types.is_decimal(value.type):
        total = _sum([value], tail)
        precision, scale = min(38, value.type.precision + 4), min(38, value.type.scale + 4)
        if value.type.precision + 4 > 38 or value.type.precision + 10 > 38:
            refuse(f"avg of {type_name(value.type)}")
        return Typed(
            divided(total, count, 4, pa.decimal128(precision, scale)), pa.decimal128(precision, scale)
        )
    # Spark adds doubles, also for integers.
    return Typed(f"({tail.call('sum', cast(value, pa.float64()).sql)} / {count})", pa.float64())


def _extreme(name: str) -> None:
    @_rule(name, arity=(1, 1))
    def extreme(arguments: list[Typed], tail: Tail) -> Typed:
        if pa.types.is_nested(arguments[0].type):
            refuse(f"{name} of {type_name(arguments[0].type)}")
        return Typed(tail.call(name, arguments[0].sql), arguments[0].type)


_extreme("min")
_extreme("max")


def _statistic(duckdb: str, *names: str) -> None:
    @_rule(*names, arity=(1, 1))
    def statistic(arguments: list[Typed], tail: Tail) -> Typed:
        return Typed(tail.call(duckdb, as_double(arguments[0], names[0])), pa.float64())


_statistic("stddev_samp", "stddev", "stddev_samp", "std")
_statistic("stddev_pop", "stddev_pop")
_statistic("var_samp", "variance", "var_samp")
_statistic("var_pop", "var_pop")


@_rule("percentile", arity=(2, 3))
def _percentile(arguments: list[Typed], tail: Tail) -> Typed:
    if len(arguments) > 2:
        refuse("percentile with a frequency")
    share = arguments[1].constant
    if isinstance(share, bool) or (not isinstance(share, int | float) and not hasattr(share, "as_tuple")):
        refuse("percentile whose share is not one literal number")
    if not 0 <= share <= 1:
        raise InvalidInput("percentile wants a share between 0 and 1")
    value = as_double(_number(arguments[0], "percentile"), "percentile")
    return Typed(tail.call("quantile_cont", f"{value}, {float(share)!r}"), pa.float64())


@_rule("median", arity=(1, 1))
def _median(arguments: list[Typed], tail: Tail) -> Typed:
    value = as_double(_number(arguments[0], "median"), "median")
    return Typed(tail.call("quantile_cont", f"{value}, 0.5"), pa.float64())


@_rule("collect_list", "array_agg", arity=(1, 1))
def _collect_list(arguments: list[Typed], tail: Tail) -> Typed:
    """Without NULLs; of no rows an empty array."""
    value, to = arguments[0], list_of(arguments[0].type)
    return Typed(
        cast_sql(f"coalesce({tail.call('list', value.sql, f'{value.sql} IS NOT NULL')}, [])", to), to
    )


@_rule("collect_set", arity=(1, 1))
def _collect_set(arguments: list[Typed], tail: Tail) -> Typed:
    return _collect_list(arguments, Tail(True, tail.condition, tail.over))


@_rule("bool_and", "every", arity=(1, 1))
def _bool_and(arguments: list[Typed], tail: Tail) -> Typed:
    return Typed(tail.call("bool_and", _flag(arguments[0], "bool_and")), pa.bool_())


@_rule("bool_or", "some", "any", arity=(1, 1))
def _bool_or(arguments: list[Typed], tail: Tail) -> Typed:
    return Typed(tail.call("bool_or", _flag(arguments[0], "bool_or")), pa.bool_())


def _end(name: str, *names: str) -> None:
    @_rule(*names, arity=(1, 2))
    def end(arguments: list[Typed], tail: Tail) -> Typed:
        """The first or last row's value; a second argument TRUE skips NULLs."""
        value = arguments[0]
        skip = tail.ignore_nulls or (len(arguments) == 2 and arguments[1].constant is True)
        if tail.over:
            mark = " IGNORE NULLS" if skip else ""
            return Typed(tail.call(f"{name}_value", f"{value.sql}{mark}"), value.type)
        return Typed(tail.call(name, value.sql, f"{value.sql} IS NOT NULL" if skip else None), value.type)


_end("first", "first", "first_value", "any_value")
_end("last", "last", "last_value")


@_rule("grouping", arity=(1, 1))
def _grouping(arguments: list[Typed], tail: Tail) -> Typed:
    if tail != Tail():
        raise InvalidInput("grouping() takes no DISTINCT, no FILTER and no OVER")
    return Typed(f"CAST(GROUPING({arguments[0].sql}) AS TINYINT)", pa.int8())


def _rank(name: str, to: pa.DataType) -> None:
    @_rule(name, arity=(0, 0), window_only=True)
    def rank(_: list[Typed], tail: Tail) -> Typed:
        return Typed(cast_sql(tail.call(name, ""), to), to)


_rank("row_number", pa.int32())
_rank("rank", pa.int32())
_rank("dense_rank", pa.int32())
_rank("percent_rank", pa.float64())
_rank("cume_dist", pa.float64())


@_rule("ntile", arity=(1, 1), window_only=True)
def _ntile(arguments: list[Typed], tail: Tail) -> Typed:
    if not isinstance(arguments[0].constant, int) or arguments[0].constant < 1:
        refuse("ntile of other than a positive literal")
    return Typed(f"CAST({tail.call('ntile', arguments[0].sql)} AS INTEGER)", pa.int32())


@_rule("nth_value", arity=(2, 2), window_only=True)
def _nth_value(arguments: list[Typed], tail: Tail) -> Typed:
    if not isinstance(arguments[1].constant, int) or arguments[1].constant < 1:
        refuse("nth_value of other than a positive literal")
    mark = " IGNORE NULLS" if tail.ignore_nulls else ""
    return Typed(tail.call("nth_value", f"{arguments[0].sql}, {arguments[1].sql}{mark}"), arguments[0].type)


def _neighbour(name: str) -> None:
    @_rule(name, arity=(1, 3), window_only=True)
    def neighbour(arguments: list[Typed], tail: Tail) -> Typed:
        value = arguments[0]
        distance = arguments[1].constant if len(arguments) > 1 else 1
        if not isinstance(distance, int) or distance < 0:
            refuse(f"{name} whose distance is not a literal")
        missing = cast(arguments[2], value.type).sql if len(arguments) > 2 else "NULL"
        mark = " IGNORE NULLS" if tail.ignore_nulls else ""
        return Typed(tail.call(name, f"{value.sql}, {distance}, {missing}{mark}"), value.type)


_neighbour("lead")
_neighbour("lag")


def _number(value: Typed, name: str) -> Typed:
    if pa.types.is_string(value.type):
        return cast(value, pa.float64())
    if not is_numeric(value.type):
        mismatch(name, value)
    return value


def _flag(value: Typed, name: str) -> str:
    if not pa.types.is_boolean(value.type):
        mismatch(name, value)
    return value.sql
