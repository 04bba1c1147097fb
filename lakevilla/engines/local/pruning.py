"""Which rows of a MERGE's target can matter: the condition itself, and the keys that the source holds."""

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from lakevilla.engines.local.translation.queries.scope import Relation, Scope
from lakevilla.predicates import NOTHING, Compare, Predicate, conjunction, disjunction
from lakevilla.sql.expressions.predicate_extraction import Found, find_column, predicate_of

_FEW_KEYS = 64


def merge_predicate(on: exp.Expr, scope: Scope, schema: pa.Schema, data: pa.Table) -> Predicate:
    """What a target row satisfies that matches a source row. `scope` holds the target, then the source."""
    target, source = scope.relations

    def resolve(node: exp.Expr) -> Found | None:
        return _found(node, scope, target, schema)

    parts = [predicate_of(on, resolve)]
    for conjunct in on.flatten() if isinstance(on, exp.And) else [on]:
        node = conjunct.unnest()
        if isinstance(node, exp.EQ):
            for one, other in ((node.this, node.expression), (node.expression, node.this)):
                column, key = resolve(one), _found(other, scope, source, data.schema)
                if column is not None and key is not None and len(key.path) == 1:
                    parts.append(_keys(column, data.column(data.schema.get_field_index(key.path[0]))))
    return conjunction(parts)


def _found(node: exp.Expr, scope: Scope, relation: Relation, schema: pa.Schema) -> Found | None:
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        return None
    located = scope.locate([part.name for part in node.parts])
    if located is None or located[0] is not relation:
        return None
    return find_column(schema, [located[1].name, *located[2]])


def _keys(column: Found, values: pa.ChunkedArray) -> Predicate:
    """The column is equal to one of the values; only for types in which equal means the same to all."""
    both_integers = pa.types.is_integer(column.type) and pa.types.is_integer(values.type)
    plain = pa.types.is_string(column.type) or pa.types.is_temporal(column.type)
    if not both_integers and not (plain and column.type == values.type):
        return conjunction([])
    distinct = values.drop_null().unique()
    if len(distinct) == 0:
        return NOTHING
    if len(distinct) <= _FEW_KEYS:
        return disjunction([Compare(column.path, "=", value) for value in distinct.to_pylist()])
    bounds = pc.min_max(distinct)
    return conjunction(
        [Compare(column.path, ">=", bounds["min"].as_py()), Compare(column.path, "<=", bounds["max"].as_py())]
    )
