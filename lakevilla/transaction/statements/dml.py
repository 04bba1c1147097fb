"""Statements that change rows: append, insert, overwrite, update, delete, merge.

Each runs its data work on the engine now, against pinned tables, and returns the change that the commit will
publish. Nothing is visible before that.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from lakevilla.engines.port import Rewritten, Source, Target
from lakevilla.errors import InvalidInput
from lakevilla.formats.row_masks import Masked
from lakevilla.model import Change, Counts
from lakevilla.predicates import ANYTHING
from lakevilla.sql import statements as sql
from lakevilla.sql.dialect import spark_text
from lakevilla.sql.statements import TableName
from lakevilla.sql.tables import tables_of
from lakevilla.tables.pinned import Pinned
from lakevilla.transaction.statements.effect import Effect, TableChange
from lakevilla.transaction.targets import changing
from lakevilla.transaction.workspace import Workspace


def append(workspace: Workspace, name: str, data: object, widens: bool = False) -> Effect:
    """Rows given as data. Reads nothing, so it conflicts only with a change of the schema, unless it widens
    the table: then columns that only the data has are added to the table by the same commit."""
    if widens:
        pinned = workspace.pin_target(name)
        wider, definition = _widened(workspace, pinned, data)
        done = workspace.engine.append(workspace.target(wider), data)
        return _with(definition, _effect(workspace, pinned, "WRITE", {"mode": "Append"}, done))
    pinned = workspace.pin_target(name, blind=True)
    pinned, written = _append(workspace, pinned, lambda target: workspace.engine.append(target, data))
    return _effect(workspace, pinned, "WRITE", {"mode": "Append"}, written)


def insert(workspace: Workspace, statement: sql.Insert) -> Effect:
    """INSERT INTO, INSERT OVERWRITE and INSERT ... REPLACE WHERE, from a query."""
    pinned = workspace.pin_target(statement.table, blind=is_blind(statement))
    engine, now_ms = workspace.engine, workspace.now_ms
    sources = workspace.sources(statement.tables)
    if statement.overwrite or statement.where is not None:
        rows = engine.query(_named(statement, pinned.snapshot.schema.names), sources, now_ms)
        return _overwrite(workspace, pinned, rows, statement.where)

    def write(target: Target) -> Rewritten:
        if statement.by_name:
            return engine.append(target, engine.query(statement.query, sources, now_ms))
        columns = statement.columns or tuple(target.schema.names)
        return engine.insert(target, statement.query, columns, sources, now_ms)

    pinned, written = _append(workspace, pinned, write)
    return _effect(workspace, pinned, "WRITE", {"mode": "Append"}, written)


def overwrite(
    workspace: Workspace, name: str, data: object, where: exp.Expr | None, widens: bool = False
) -> Effect:
    """Replace the rows for which `where` is true, or all rows. It may widen the table as `append` does."""
    pinned, definition = workspace.pin_target(name), None
    wider = pinned
    if widens:
        wider, definition = _widened(workspace, pinned, data)
    return _with(definition, _overwrite(workspace, pinned, data, where, wider))


def _widened(workspace: Workspace, pinned: Pinned, data: object) -> tuple[Pinned, Change | None]:
    """The table with the columns that only the data has, and the change that adds them."""
    pinned.snapshot.refuse_writes()
    known = {column.lower() for column in pinned.snapshot.schema.names}
    new = workspace.engine.schema_of(data, known)
    if not len(new):
        return pinned, None
    refuse_rewritten(workspace, pinned)
    columns = tuple(column.with_nullable(True) for column in new)
    change = pinned.table.alter(pinned.snapshot, sql.AddColumns(columns))
    return replace(pinned, snapshot=pinned.table.preview(pinned.snapshot, change)), change


def _with(definition: Change | None, effect: Effect) -> Effect:
    """The effect with a change of the table's definition, in one commit."""
    if definition is None or not isinstance(effect.pending, TableChange):
        return effect
    both = replace(effect.pending.change, metadata=definition.metadata, protocol=definition.protocol)
    return replace(effect, pending=replace(effect.pending, change=both))


def refuse_rewritten(workspace: Workspace, pinned: Pinned) -> None:
    """InvalidInput if the transaction has changed rows of the table, so that its columns must stay."""
    if workspace.rewrote(pinned):
        name = pinned.ref.name
        raise InvalidInput(
            f"cannot alter table {name!r}: the transaction has already changed rows of it. Alter the table "
            "first, or in a separate transaction",
            table=name,
        )


def update(
    workspace: Workspace,
    name: str,
    assigned: Mapping[str, exp.Expr],
    where: exp.Expr | None,
    alias: str | None = None,
) -> Effect:
    """UPDATE name SET assigned WHERE where."""
    if not assigned:
        raise InvalidInput(f"UPDATE of table {name!r} sets no column", table=name)
    pinned = workspace.pin_target(name)
    sources = workspace.sources(tables_of(*assigned.values(), where))
    target = changing(workspace, pinned, "UPDATE")
    source = _called(workspace.source(pinned, keeps_files=False), alias)
    written = workspace.engine.update(target, source, assigned, where, sources, workspace.now_ms)
    return _effect(workspace, pinned, "UPDATE", _predicate(where), written, target)


def delete(workspace: Workspace, name: str, where: exp.Expr | None, alias: str | None = None) -> Effect:
    """DELETE FROM name WHERE where."""
    pinned = workspace.pin_target(name)
    sources = workspace.sources(tables_of(where))
    target = changing(workspace, pinned, "DELETE")
    source = _called(workspace.source(pinned, keeps_files=False), alias)
    written = workspace.engine.delete(target, source, where, sources, workspace.now_ms)
    return _effect(workspace, pinned, "DELETE", _predicate(where), written, target)


def merge(
    workspace: Workspace, name: str, using: object, clauses: sql.MergeClauses, tables: Sequence[TableName]
) -> Effect:
    """MERGE INTO name USING data or a query."""
    pinned = workspace.pin_target(name)
    sources = workspace.sources(tables)
    # Where rows match and nothing is done to them, it still matters that they are there.
    always = any(clause.condition is None for clause in clauses.matched)
    source = workspace.source(pinned, keeps_files=bool(clauses.not_matched) and not always)
    target = changing(workspace, pinned, "MERGE")
    written = workspace.engine.merge(target, source, using, clauses, sources, workspace.now_ms)
    return _effect(workspace, pinned, "MERGE", _predicate(clauses.on), written, target)


def _append(
    workspace: Workspace, pinned: Pinned, write: Callable[[Target], Rewritten]
) -> tuple[Pinned, Rewritten]:
    """Write new rows; once more if they did not fit a table that has moved since we last looked at it."""
    try:
        return pinned, write(workspace.target(pinned))
    except InvalidInput:
        newer = workspace.refresh(pinned)
        if newer is None:
            raise
        return newer, write(workspace.target(newer))


def _overwrite(
    workspace: Workspace,
    pinned: Pinned,
    data: object,
    where: exp.Expr | None,
    wider: Pinned | None = None,
) -> Effect:
    """`wider` is the table as the new files have it, where that differs."""
    if where is not None and where.find(exp.Query):
        raise InvalidInput(
            f"the condition of an overwrite cannot hold a subquery, found {spark_text(where)!r}: DELETE the "
            "rows and INSERT the new ones in one transaction"
        )
    source = workspace.source(wider or pinned, keeps_files=False)
    if where is None:
        # All rows are replaced, also those of a concurrent append: that is a conflict.
        source.files(ANYTHING)
    target = changing(workspace, wider or pinned, "WRITE", has_feed=where is not None)
    written = workspace.engine.overwrite(target, source, data, where, workspace.now_ms)
    parameters = {"mode": "Overwrite", **_predicate(where)}
    return _effect(workspace, pinned, "WRITE", parameters, written, target)


def _effect(
    workspace: Workspace,
    pinned: Pinned,
    operation: str,
    parameters: Mapping[str, str],
    done: Rewritten,
    target: Target | None = None,
) -> Effect:
    """What the statement did. `target` is where it wrote, unless it only appended."""
    masks = None if target is None else pinned.table.masks(pinned.snapshot, operation)
    masked = Masked()
    if target is not None and masks is not None:
        masked = masks.write(done.masked, target.store, workspace.txn)
    change = Change(
        operation=operation,
        parameters=parameters,
        added=done.added + masked.added,
        removed=done.removed + masked.removed,
        read=workspace.read_of(pinned),
        metrics={**_metrics(done), **masked.metrics},
        feed=done.feed if done.removed or masked.removed else (),
    )
    # A statement that changed no row publishes nothing: readers need not learn of it.
    idle = not change.added and not change.removed
    return Effect(done.counts, None if idle else TableChange(pinned, change))


def is_blind(statement: sql.Insert) -> bool:
    """Whether it appends rows and reads no table for that."""
    return not statement.overwrite and statement.where is None and not statement.tables


def _metrics(done: Rewritten) -> dict[str, int]:
    counts: Counts = done.counts
    return {
        "numFiles": len(done.added),
        "numRemovedFiles": len(done.removed),
        "numOutputRows": sum(file.rows for file in done.added),
        "numOutputBytes": sum(file.size for file in done.added),
        "numInsertedRows": counts.inserted,
        "numUpdatedRows": counts.updated,
        "numDeletedRows": counts.deleted,
    }


def _predicate(where: exp.Expr | None) -> dict[str, str]:
    return {} if where is None else {"predicate": json.dumps([spark_text(where)], ensure_ascii=False)}


def _named(statement: sql.Insert, columns: Sequence[str]) -> exp.Query:
    """The query of an INSERT with its columns named after the table's, by position."""
    if statement.by_name:
        return statement.query
    names: Sequence[Any] = statement.columns or tuple(columns)
    alias = exp.TableAlias(
        this=exp.to_identifier("rows"), columns=[exp.to_identifier(n, True) for n in names]
    )
    return exp.select("*").from_(exp.Subquery(this=statement.query.copy(), alias=alias))


def _called(source: Source, alias: str | None) -> Source:
    """The table under the name by which the statement's expressions call it."""
    own = source.name.rpartition(".")[2]
    return source if alias is None or alias == own else replace(source, name=alias)
