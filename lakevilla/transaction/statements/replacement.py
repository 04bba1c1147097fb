"""Replacing a table: another definition and other rows, as the next version of the same table.

The log goes on, so earlier versions stay readable, and RESTORE brings one back. Every concurrent change by
another client is a conflict: its rows would not fit the new columns.
"""

from dataclasses import replace

import pyarrow as pa

from lakevilla.errors import InvalidInput, Unsupported
from lakevilla.formats.columns import comment_of, commented
from lakevilla.formats.port import Snapshot
from lakevilla.model import Change, Counts
from lakevilla.predicates import ANYTHING
from lakevilla.tables.pinned import Pinned
from lakevilla.transaction.statements import ddl
from lakevilla.transaction.statements.definition import Definition
from lakevilla.transaction.statements.effect import Effect, TableChange
from lakevilla.transaction.workspace import Workspace


def create_or_replace(workspace: Workspace, definition: Definition, data: object = None) -> Effect:
    """The new definition of the table, whatever it was before; a table that does not exist is created."""
    if workspace.find(definition.name) is None:
        return ddl.create(workspace, definition, data)
    definition.refuse_surrogates()
    pinned = workspace.pin_target(definition.name)
    _refuse_moved(workspace, pinned, definition)
    pinned.snapshot.refuse_writes()
    properties = workspace.catalog.properties_of_new(pinned.ref.format, definition.properties)
    change = pinned.table.replace(
        pinned.snapshot, definition.schema, definition.partition_by, properties, definition.comment
    )
    return _replaced(workspace, pinned, change, data)


def overwrite(workspace: Workspace, name: str, data: object) -> Effect:
    """All rows and all columns replaced by those of the data. Partitioning, properties and comments stay."""
    pinned = workspace.pin_target(name)
    snapshot = pinned.snapshot
    snapshot.refuse_writes()
    schema = _with_comments(workspace.engine.schema_of(data), snapshot)
    kept = [field for field in snapshot.partitioning.fields if field.transform != "void"]
    names = {column.casefold() for column in schema.names}
    for field in kept:
        if field.source[0].casefold() not in names:
            raise InvalidInput(
                f"table {pinned.ref.name!r} is partitioned by {'.'.join(field.source)!r}, which the data "
                "does not have: add the column, or replace the table by create(..., replace=True)",
                table=pinned.ref.name,
                column=".".join(field.source),
            )
    change = pinned.table.replace(snapshot, schema, kept, None, None)
    change = replace(change, operation="WRITE", parameters={"mode": "Overwrite", "overwriteSchema": "true"})
    return _replaced(workspace, pinned, change, data)


def _replaced(workspace: Workspace, pinned: Pinned, definition: Change, data: object) -> Effect:
    """The change with the rows that go, which are all, and those that come."""
    gone = tuple(workspace.source(pinned, keeps_files=False).files(ANYTHING))
    change = replace(definition, removed=gone)
    rows = Counts(deleted=sum(file.living_rows or 0 for file in gone))
    if data is not None:
        after = replace(pinned, snapshot=pinned.table.preview(pinned.snapshot, change))
        written = workspace.engine.append(workspace.target(after), data)
        rows = replace(rows, inserted=written.counts.inserted)
        named = change.operation + (" AS SELECT" if change.operation.endswith("TABLE") else "")
        change = replace(change, operation=named, added=written.added)
    change = replace(change, read=workspace.read_of(pinned))
    return Effect(rows, TableChange(pinned, change))


def _refuse_moved(workspace: Workspace, pinned: Pinned, definition: Definition) -> None:
    """A table keeps its location and its format: its log continues."""
    name, known = pinned.ref.name, pinned.ref.format.partition(":")[0]
    wanted, location = definition.format, definition.location
    if wanted is not None and wanted.lower() != known:
        raise Unsupported(
            f"cannot replace table {name!r} by one of format {wanted!r}: it is of format {known!r}, and "
            "its log goes on. DROP it and CREATE it anew in one transaction",
            table=name,
        )
    if location is not None and workspace.catalog.place_of(location) != pinned.ref.location:
        raise InvalidInput(
            f"cannot replace table {name!r} at another location: leave LOCATION out, or DROP the table first",
            table=name,
        )


def _with_comments(schema: pa.Schema, snapshot: Snapshot) -> pa.Schema:
    """The columns of data with the comments that columns of their names have."""
    known = {field.name.casefold(): comment_of(field) for field in snapshot.schema}
    return pa.schema([commented(field, known.get(field.name.casefold(), "")) for field in schema])
