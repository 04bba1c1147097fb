"""Which rows of a MERGE's target can matter: those with the keys that the source holds."""

from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import StringType
from sqlglot import exp

from lakevilla.engines.port import MergeClauses
from lakevilla.engines.spark import types
from lakevilla.engines.spark.types import quoted
from lakevilla.predicates import NOTHING, Compare, Predicate, conjunction, disjunction
from lakevilla.sql.expressions.predicate_extraction import Found, find_column

_FEW = 64


class Sides:
    """Distinguishes columns of the target and of the source; a bare name must be in only one of them."""

    def __init__(self, clauses: MergeClauses, target: pa.Schema, source: Any) -> None:
        self._on = clauses.on
        self._aliases = clauses.target_alias.lower(), clauses.source_alias.lower()
        self._schemas = target, types.arrow_schema(source)
        self._source = source

    def keys(self, data: Any) -> Predicate:
        """What a target row satisfies whose keys are equal to those of a source row. Asks Spark for them."""
        parts: list[Predicate] = []
        for conjunct in self._on.flatten() if isinstance(self._on, exp.And) else [self._on]:
            node = conjunct.unnest()
            if isinstance(node, exp.EQ):
                for one, other in ((node.this, node.expression), (node.expression, node.this)):
                    column, key = self.target(one), self.source(other)
                    if column is not None and key is not None and self._alike(column, key):
                        parts.append(_keys(column, data, key.path[0]))
        return conjunction(parts)

    def target(self, node: exp.Expr) -> Found | None:
        return self._found(node, 0)

    def source(self, node: exp.Expr) -> Found | None:
        return self._found(node, 1)

    def _found(self, node: exp.Expr, side: int) -> Found | None:
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            return None
        parts = [part.name for part in node.parts]
        if len(parts) > 1 and parts[0].lower() == self._aliases[side]:
            return find_column(self._schemas[side], parts[1:])
        if len(parts) > 1 or find_column(self._schemas[1 - side], parts) is not None:
            return None
        return find_column(self._schemas[side], parts)

    def _alike(self, column: Found, key: Found) -> bool:
        """Only types in which equal means the same to all, and texts without a collation."""
        if len(key.path) != 1:
            return False
        if pa.types.is_integer(column.type) and pa.types.is_integer(key.type):
            return True
        if pa.types.is_string(column.type):
            return bool(self._source[key.path[0]].dataType == StringType())
        return bool(pa.types.is_temporal(column.type) and column.type == key.type)


def _keys(column: Found, data: Any, name: str) -> Predicate:
    """The column is equal to one of the source's values."""
    key = data.select(F.col(quoted(name)).alias("key")).where("key IS NOT NULL")
    few = _values(key.distinct().limit(_FEW + 1))
    if not few:
        return NOTHING
    if len(few) <= _FEW:
        return disjunction([Compare(column.path, "=", value) for value in few])
    low, high = (
        _values(key.agg(F.min("key").alias("key"))),
        _values(key.agg(F.max("key").alias("key"))),
    )
    return conjunction([Compare(column.path, ">=", low[0]), Compare(column.path, "<=", high[0])])


def _values(frame: Any) -> list[Any]:
    """The values of a column as Arrow gives them: instants with a zone, whatever the session's."""
    values: list[Any] = frame.toArrow().column(0).to_pylist()
    return values
