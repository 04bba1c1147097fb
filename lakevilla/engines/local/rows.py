"""New rows of a statement: assigned to a table's columns, checked, and written.

A statement's text is built around one SELECT whose columns are the table's, by our names; CHECK
constraints are asked of those columns in the same pass.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from lakevilla.engines.local.arrow import as_type
from lakevilla.engines.local.translation.expressions import Expressions
from lakevilla.engines.local.translation.queries.queries import Queries
from lakevilla.engines.local.translation.queries.scope import Output, Relation, Scope
from lakevilla.engines.local.translation.types.casts import assign
from lakevilla.engines.local.translation.types.typed import Typed
from lakevilla.engines.port import Target
from lakevilla.errors import InvalidInput
from lakevilla.sql.dialect import spark_text
from lakevilla.sql.words.suggestions import unknown_column


@dataclass(frozen=True)
class NewRows:
    """A query for new rows: the target's columns, then `extra` ones, then one flag per CHECK constraint."""

    sql: str
    outputs: list[Output]
    extra: tuple[str, ...]
    checks: tuple[str, ...]


def new_rows(
    queries: Queries,
    target: Target,
    values: Mapping[str, Typed],
    source_sql: str,
    extra: Mapping[str, str] | None = None,
) -> NewRows:
    """SELECT the values, by the target's column names, FROM `source_sql`; a missing column is NULL."""
    extra = extra or {}
    outputs = queries.outputs([(field.name, field.type) for field in target.schema])
    listed = []
    for output in outputs:
        value = values.get(output.name, Typed("NULL", pa.null(), None))
        listed.append(f"{assign(value, output.type, output.name).sql} AS {output.sql}")
    listed += [f"{sql} AS {name}" for name, sql in extra.items()]
    sql = f"SELECT {', '.join(listed)} FROM {source_sql}"
    if not target.checks:
        return NewRows(sql, outputs, tuple(extra), ())
    alias = queries.fresh("n")
    scope = Scope([Relation(alias, ((target.name,),), outputs)])
    # As Delta has it, a constraint that is NULL is violated.
    flags = [
        f"({Expressions(queries, scope).condition(check).sql}) IS TRUE AS k{i}"
        for i, check in enumerate(target.checks.values())
    ]
    sql = f"SELECT {alias}.*, {', '.join(flags)} FROM ({sql}) AS {alias}"
    return NewRows(sql, outputs, tuple(extra), tuple(target.checks))


def checked(
    piece: pa.Table | pa.RecordBatch, rows: NewRows, target: Target, fresh: pa.Array | None = None
) -> pa.Table:
    """The target's columns of a piece of the result; InvalidInput if a new row violates a constraint.

    `fresh` marks the rows that are new, where the piece also holds rows that stay.
    """
    first = len(rows.outputs) + len(rows.extra)
    for position, name in enumerate(rows.checks, first):
        kept = piece.column(position)
        if fresh is not None:
            kept = pc.or_(kept, pc.invert(fresh))
        if not pc.all(kept).as_py() and piece.num_rows:
            rule = spark_text(target.checks[name])
            raise InvalidInput(
                f"CHECK constraint {name!r} ({rule}) is violated by a row for table {target.name!r}",
                table=target.name,
                rule=name,
            )
    fields = [pa.field(output.name, output.type) for output in rows.outputs]
    columns = [as_type(piece.column(i), output.type) for i, output in enumerate(rows.outputs)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def column_of(schema: pa.Schema, name: str) -> str:
    """The column of this name, ignoring case; InvalidInput if there is none."""
    found = [field.name for field in schema if field.name.lower() == name.lower()]
    if len(found) != 1:
        raise unknown_column(name, schema.names)
    return str(found[0])


def qualifiers(name: str, also: Sequence[str] = ()) -> tuple[tuple[str, ...], ...]:
    """The names behind which a statement's target is found: `t` for db.t too."""
    return (tuple(name.split(".")), *((one,) for one in also))


def nothing_but(schema: pa.Schema, given: Mapping[str, exp.Expr]) -> dict[str, exp.Expr]:
    """Assignments by the table's spelling of its columns."""
    named = {column_of(schema, name): value for name, value in given.items()}
    if len(named) != len(given):
        raise InvalidInput("UPDATE sets a column twice")
    return named
