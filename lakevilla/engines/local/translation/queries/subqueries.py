"""IN, EXISTS, and queries in place of values."""

from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from lakevilla.engines.local.translation.types.casts import cast
from lakevilla.engines.local.translation.types.coercion import common_type
from lakevilla.engines.local.translation.types.typed import Typed, fails_unsupported, refuse
from lakevilla.errors import InvalidInput
from lakevilla.sql.dialect import spark_text

if TYPE_CHECKING:
    from lakevilla.engines.local.translation.expressions import Expressions


def membership(expressions: "Expressions", node: exp.In) -> Typed:
    """`value IN (...)`, of a list or a query."""
    if isinstance(node.this, exp.Tuple):
        refuse("IN of several columns at once")
    value, query = expressions(node.this), node.args.get("query")
    if query is not None:
        return _in_query(expressions, value, query)
    if node.args.get("unnest") or not node.expressions:
        refuse(f"the expression {spark_text(node)[:80]}")
    items = [expressions(item) for item in node.expressions]
    to = common_type([value.type, *(item.type for item in items)])
    listed = ", ".join(cast(item, to).sql for item in items)
    inside = value.aggregate or any(item.aggregate for item in items)
    return Typed(f"({cast(value, to).sql} IN ({listed}))", pa.bool_(), aggregate=inside)


def _in_query(expressions: "Expressions", value: Typed, node: exp.Expr) -> Typed:
    query = expressions.queries.translate(node, expressions.scope)
    if len(query.outputs) != 1:
        raise InvalidInput(f"IN needs a query of one column; found {len(query.outputs)}")
    output = query.outputs[0]
    to = common_type([value.type, output.type])
    item = cast(Typed(f"q.{output.sql}", output.type), to)
    found = f"({cast(value, to).sql} IN (SELECT {item.sql} FROM ({query.sql}) AS q))"
    if not _filters(node.parent):
        # Outside of a filter Spark returns FALSE where SQL returns NULL.
        unknown = fails_unsupported("IN of a query with NULLs outside of WHERE")
        found = f"CASE WHEN {found} IS NULL THEN {unknown} ELSE {found} END"
    return Typed(found, pa.bool_(), aggregate=value.aggregate)


def _filters(node: exp.Expr | None) -> bool:
    """Whether FALSE and NULL come to the same: it is a condition of a WHERE, or NOT one of several."""
    around = None if node is None else node.parent
    through: tuple[type[exp.Expr], ...] = (exp.And, exp.Or, exp.Paren)
    if isinstance(around, exp.Not):
        around, through = around.parent, (exp.And, exp.Paren)
    while isinstance(around, through):
        around = around.parent
    return around is None or isinstance(around, exp.Where)


def scalar(expressions: "Expressions", node: exp.Expr) -> Typed:
    """A query in place of a value."""
    query = expressions.queries.translate(node, expressions.scope)
    if len(query.outputs) != 1:
        raise InvalidInput(f"a scalar subquery must have one column; found {len(query.outputs)}")
    return Typed(f"({query.sql})", query.outputs[0].type)


def existence(expressions: "Expressions", node: exp.Exists) -> Typed:
    query = expressions.queries.translate(node.this, expressions.scope)
    return Typed(f"EXISTS ({query.sql})", pa.bool_())
