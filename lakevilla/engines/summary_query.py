"""Queries that the log answers: `count(*)`, `min(column)` and `max(column)` of one table, without GROUP BY.

A query is recognised by its shape alone; whether statistics decide it exactly is for the table to say
(`Source.summary`). With a WHERE they do if each file holds nothing but rows for which it is true, or none:
so for conditions on partition columns, and for others where bounds are clear. Everything else is None here,
and is scanned. No I/O of its own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from lakevilla.engines.port import Source
from lakevilla.predicates import NOTHING, Predicate
from lakevilla.pruning import Summary
from lakevilla.sql.expressions.predicate_extraction import (
    Resolve,
    columns_in,
    predicate_of,
    predicate_unless,
)
from lakevilla.sql.tables import read_table

Known = Callable[[exp.Expr, Resolve], exp.Expr]
"""A condition, with what may mean something else to the engine replaced by an unknown."""

_SELECT_PARTS = {"expressions", "from_", "where"}
_TABLE_PARTS = {"this", "db", "catalog", "version", "alias"}


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One column of the result: the number of rows, or `min` or `max` of a column."""

    kind: str
    column: str = ""

    def of(self, summary: Summary) -> pa.Scalar:
        if self.kind == "count":
            return pa.scalar(summary.rows, pa.int64())
        minimum, maximum = summary.ranges[self.column]
        return minimum if self.kind == "min" else maximum


@dataclass(frozen=True, slots=True)
class SummaryQuery:
    """A query of this kind: `predicate` is what all rows satisfy that it counts, `unless` all others."""

    aggregates: tuple[Aggregate, ...]
    predicate: Predicate
    unless: Predicate

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose range is wanted."""
        return tuple(dict.fromkeys(aggregate.column for aggregate in self.aggregates if aggregate.column))


def summary_of(
    query: exp.Query, sources: Mapping[str, Source], known: Known = lambda condition, _: condition
) -> list[pa.Scalar] | None:
    """The only row of the query's result, if statistics say it exactly; then it is noted as read."""
    if len(sources) != 1:
        return None
    ((key, source),) = sources.items()
    found = None if source.rows is not None else recognise(query, key, source.schema, known)
    if found is None:
        return None
    summary = source.summary(found.predicate, found.unless, found.columns)
    return None if summary is None else [aggregate.of(summary) for aggregate in found.aggregates]


def recognise(
    query: exp.Query, key: str, schema: pa.Schema, known: Known = lambda condition, _: condition
) -> SummaryQuery | None:
    """The query of the table with this key, if it is of this kind."""
    if not isinstance(query, exp.Select) or _set_parts(query) - _SELECT_PARTS:
        return None
    from_, where = query.args.get("from_"), query.args.get("where")
    table = None if from_ is None else from_.this
    if not isinstance(table, exp.Table) or _set_parts(table) - _TABLE_PARTS or read_table(table).key != key:
        return None
    alias = table.args.get("alias")
    if alias is not None and _set_parts(alias) - {"this"}:
        return None
    resolve = columns_in(schema, [table.alias or table.name])
    aggregates = [_aggregate(item, resolve) for item in query.expressions]
    found = tuple(aggregate for aggregate in aggregates if aggregate is not None)
    if not found or len(found) < len(aggregates):
        return None
    condition = None if where is None else known(where.this, resolve)
    unless = NOTHING if condition is None else predicate_unless(condition, resolve)
    return SummaryQuery(found, predicate_of(condition, resolve), unless)


def _aggregate(item: exp.Expr, resolve: Resolve) -> Aggregate | None:
    node = item.this if isinstance(item, exp.Alias) else item
    if not isinstance(node, exp.Anonymous) or len(node.expressions) != 1:
        return None
    kind, (argument,) = str(node.this).lower(), node.expressions
    if kind == "count":
        return Aggregate(kind) if _counts_rows(argument) else None
    found = resolve(argument) if kind in ("min", "max") else None
    return None if found is None or len(found.path) > 1 else Aggregate(kind, found.path[0])


def _counts_rows(counted: exp.Expr) -> bool:
    """Of `*`, or of a number, which is never null."""
    if isinstance(counted, exp.Star):
        return not _set_parts(counted)
    return isinstance(counted, exp.Literal) and not counted.is_string


def _set_parts(node: exp.Expr) -> set[str]:
    return {name for name, value in node.args.items() if value}
