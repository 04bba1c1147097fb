"""The allow-list of scalar functions: Spark's name, how many arguments, and the rule.

A rule takes translated arguments and gives the translation of the call. Each is here because its result
was compared with Spark's definition, nulls, bounds and result type included; a function that is not listed
is refused by name.
"""

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from lakevilla.engines.local.translation.types.casts import cast
from lakevilla.engines.local.translation.types.typed import Typed, is_numeric, is_text, mismatch, refuse
from lakevilla.errors import InvalidInput
from lakevilla.sql.types import type_name

Rule = Callable[..., Typed]

_RULES: dict[str, tuple[Rule, int, int]] = {}


def function(*names: str, arity: tuple[int, int]) -> Callable[[Rule], Rule]:
    """Put a rule on the list under these names; at most -1 arguments means any number."""

    def register(rule: Rule) -> Rule:
        for name in names:
            _RULES[name] = (rule, *arity)
        return rule

    return register


def is_scalar(name: str) -> bool:
    return name in _RULES


def call(name: str, arguments: list[Typed]) -> Typed:
    """The translation of `name(arguments)`."""
    rule, least, most = _RULES[name]
    if 0 <= most < len(arguments):
        refuse(f"{name} with {len(arguments)} arguments")
    if len(arguments) < least:
        wanted = str(least) if least == most else f"{least} to {most}" if most >= 0 else f"at least {least}"
        raise InvalidInput(f"{name} takes {wanted} arguments, not {len(arguments)}")
    result = rule(*arguments)
    return replace(result, aggregate=any(argument.aggregate for argument in arguments))


def as_text(value: Typed, name: str) -> str:
    """An argument that must be a string; Spark casts nothing else to one implicitly here."""
    if pa.types.is_null(value.type):
        return "CAST(NULL AS VARCHAR)"
    if not is_text(value.type):
        refuse(f"{name} of {type_name(value.type)}; write a CAST to string, or")
    return value.sql


def as_integer(value: Typed, name: str) -> str:
    """An argument that must be an int, or a narrower one."""
    if is_numeric(value.type) and not pa.types.is_integer(value.type):
        refuse(f"{name} with {type_name(value.type)} in place of an int")
    if not (is_numeric(value.type) or is_text(value.type) or pa.types.is_null(value.type)):
        mismatch(name, value)
    return cast(value, pa.int32()).sql


def as_double(value: Typed, name: str) -> str:
    if pa.types.is_boolean(value.type) or pa.types.is_temporal(value.type) or pa.types.is_nested(value.type):
        mismatch(name, value)
    return cast(value, pa.float64()).sql


def constant_text(value: Typed, name: str, what: str) -> str:
    """An argument that we must know while translating."""
    if not value.is_constant or not isinstance(value.constant, str):
        refuse(f"{name} whose {what} is not a literal")
    return str(value.constant)


def integer(sql: str) -> Typed:
    """DuckDB counts in BIGINT what Spark counts in INT."""
    return Typed(f"CAST({sql} AS INTEGER)", pa.int32())


def string(sql: str) -> Typed:
    return Typed(sql, pa.string())


def double(sql: str) -> Typed:
    return Typed(sql, pa.float64())


def boolean(sql: str) -> Typed:
    return Typed(sql, pa.bool_())
