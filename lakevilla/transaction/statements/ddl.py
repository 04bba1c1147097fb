"""Statements that change what tables there are and what columns they have.

Registering and renaming a table are entries of the global log. So are creating and dropping one, alone or as
part of a commit on several tables. Altering one is a commit of that table like any other.
"""

import logging
from dataclasses import replace

import pyarrow as pa

from lakevilla.errors import Corrupt, InvalidInput, Unsupported
from lakevilla.formats.catalogs import CatalogPlace, NotConfigured
from lakevilla.model import Author, Counts, ReadSet, TableRef
from lakevilla.predicates import ANYTHING
from lakevilla.sql import statements as sql
from lakevilla.sql.dialect import spark_text
from lakevilla.sql.letters import refuse_surrogates_in
from lakevilla.sql.parser import parse_expression, select_from
from lakevilla.sql.statements import TableName
from lakevilla.sql.types import type_named
from lakevilla.store.locations import is_local_path, local_url
from lakevilla.store.names import check_table_name
from lakevilla.tables.pinned import Pinned, seen
from lakevilla.transaction.statements.definition import Definition
from lakevilla.transaction.statements.dml import refuse_rewritten
from lakevilla.transaction.statements.effect import Effect, LakeChange, TableChange, TableDrop
from lakevilla.transaction.views.information_schema import is_own_schema
from lakevilla.transaction.workspace import Workspace
from lakevilla.versions import registry
from lakevilla.versions.records import GONE, CreateTable, DropTable, RegisterTable, RenameTable

logger = logging.getLogger("lakevilla.transaction")


def create(workspace: Workspace, definition: Definition, data: object = None) -> Effect:
    """A new table, with rows if data is given. Rows are uploaded now; the table appears at the commit."""
    definition.refuse_surrogates()
    format_name = definition.format or workspace.catalog.default_format
    ref = _place(workspace, definition.name, format_name, definition.location)
    table = workspace.catalog.open(ref, workspace.meter)
    properties = workspace.catalog.properties_of_new(ref.format, definition.properties)
    change = table.first(definition.schema, definition.partition_by, properties, definition.comment)
    pinned = Pinned(ref, table, table.describe(change), workspace.environment.elapsed())
    rows = Counts()
    if data is not None:
        written = workspace.engine.append(workspace.target(pinned), data)
        change = replace(change, operation="CREATE TABLE AS SELECT", added=written.added)
        rows = written.counts
    if workspace.by_slots:
        return Effect(rows, TableChange(pinned, change, makes=True))
    author = Author(workspace.txn, workspace.txn, workspace.environment.new_id())
    first = table.encode_first(change, author).decode()
    return Effect(rows, LakeChange(lambda _: CreateTable(ref, first, pinned.snapshot.table_id)))


def register(workspace: Workspace, name: str, location: str) -> Effect:
    """An existing table gets a name in this lake."""
    check_table_name(name)
    place = _existing(workspace, location)
    registry.refuse_doomed(workspace.catalog.head(workspace.meter, fresh=True), place)
    ref = TableRef(name, place, workspace.catalog.detect(place, workspace.meter))
    table = workspace.catalog.open(ref, workspace.meter)
    if table.latest() is None:
        raise InvalidInput(f"no table found at {location!r}")
    return Effect(None, LakeChange(lambda _: RegisterTable(ref)))


def _existing(workspace: Workspace, location: str) -> str:
    """The location of a table that a client names by a URL or a path, as the registry keeps it.

    A relative path without a dot may mean a folder of the lake or, if the lake is on this machine, one of the
    working directory.
    """
    catalog, meter = workspace.catalog, workspace.meter
    if "://" in location:
        return catalog.place_of(location)
    if is_local_path(location):
        return catalog.place_of(local_url(location))
    inside = catalog.place_of(location)
    if not catalog.root(meter).url.startswith(("file:", "memory:")):
        return inside
    beside = catalog.place_of(local_url(location))
    if inside == beside or catalog.format_at(beside, meter) is None:
        return inside
    if catalog.format_at(inside, meter) is not None:
        raise InvalidInput(
            f"{location!r} is ambiguous: there is a table in this folder of the lake, and one in this folder "
            f"of the working directory; write './{location}' for the latter, or the whole path"
        )
    return beside


def register_in_catalog(workspace: Workspace, name: str, catalog: str, table: str) -> Effect:
    """A table that a catalog keeps gets a name in this lake."""
    check_table_name(name)
    if not catalog or "/" in catalog or not table:
        raise InvalidInput(
            f"catalog and table must be names, such as catalog='prod', table='sales.orders'; found "
            f"catalog={catalog!r}, table={table!r}"
        )
    ref = workspace.catalog.in_catalog(name, CatalogPlace(catalog, table))
    if workspace.catalog.open(ref, workspace.meter).latest() is None:
        raise InvalidInput(f"unknown table {table!r} in catalog {catalog!r}", table=table)
    return Effect(None, LakeChange(lambda _: RegisterTable(ref)))


def rename(workspace: Workspace, name: str, to: str) -> Effect:
    """A table gets another name and stays where it is."""
    check_table_name(to)
    workspace.stored_views.refuse(name, "renamed")
    _refuse_view(workspace, to)
    found = _named(workspace, name)
    ref, version = (found.ref, found.snapshot.version) if isinstance(found, Pinned) else found
    taken = None if to.casefold() == ref.name.casefold() else workspace.catalog.find(to, workspace.meter)
    if taken is not None:
        raise InvalidInput(
            f"table {taken.ref.name!r} already exists: choose another name", table=taken.ref.name
        )
    return Effect(None, LakeChange(lambda _: RenameTable(ref, to, seen(ref, version))))


def drop(workspace: Workspace, name: str, if_exists: bool = False) -> Effect:
    """A table loses its name. Its files stay until vacuum; a table outside the root is not touched."""
    if workspace.stored_views.find(name) is not None:
        raise InvalidInput(f"{name!r} is a view, not a table: use DROP VIEW", table=name)
    try:
        if if_exists and workspace.find(name) is None:
            return Effect(None)
    except (Corrupt, Unsupported, NotConfigured) as error:
        logger.debug("table %r exists, and cannot be read: %s", name, error)
    found = _named(workspace, name)
    if workspace.by_slots and isinstance(found, Pinned):
        return Effect(None, TableDrop(found))
    ref, version = (found.ref, found.snapshot.version) if isinstance(found, Pinned) else found
    return Effect(None, LakeChange(lambda _: DropTable(ref, seen(ref, version))))


def _named(workspace: Workspace, name: str) -> Pinned | tuple[TableRef, int]:
    """The table of this name. A table that cannot be read can be dropped and renamed too: then its location
    and its last known version."""
    try:
        return workspace.pin(TableName(name))
    except (Corrupt, Unsupported, NotConfigured) as error:
        ref = workspace.catalog.registered(name, workspace.meter)
        if ref is None:
            raise
        if workspace.touched or workspace.own.made or workspace.own.dropped:
            raise InvalidInput(
                f"table {name!r} cannot be read ({error}): drop or rename it in a separate transaction",
                table=name,
            ) from error
        return ref, _last_version(workspace, ref)


def _last_version(workspace: Workspace, ref: TableRef) -> int:
    """The newest version of a table that cannot be read at the lake's instant; GONE if at none."""
    try:
        newest = workspace.catalog.newest(ref, workspace.meter)
    except (Corrupt, Unsupported, NotConfigured) as error:
        logger.warning(
            "the log of table %r cannot record its new name, or that it was dropped: %s", ref.name, error
        )
        return GONE
    return GONE if newest is None else newest.snapshot.version


def alter(workspace: Workspace, name: str, action: sql.Action) -> Effect:
    """ALTER TABLE: columns, properties and constraints are a commit of the table, a name is not."""
    if isinstance(action, sql.RenameTable):
        return rename(workspace, name, action.to)
    pinned = workspace.pin_target(name)
    pinned.snapshot.refuse_writes()
    refuse_rewritten(workspace, pinned)
    change = pinned.table.alter(pinned.snapshot, action)
    if isinstance(action, sql.AddConstraint):
        _check_rows(workspace, pinned, action)
        # Rows that are added meanwhile would not have been checked.
        change = replace(change, read=ReadSet((ANYTHING,)))
    return Effect(None, TableChange(pinned, change))


def add_column(workspace: Workspace, name: str, column: str, type_: str | pa.DataType) -> Effect:
    """A nullable column at the end."""
    refuse_surrogates_in([column], "the column's name")
    data_type = type_named(type_) if isinstance(type_, str) else type_
    return alter(workspace, name, sql.AddColumns((pa.field(column, data_type),)))


def decide(workspace: Workspace, change: LakeChange) -> int:
    """Bring a registry change into the global log; the entry's number."""
    workspace.uploads.finish()
    author = Author(workspace.txn, workspace.txn, workspace.environment.new_id())
    return workspace.catalog.decide(change.propose, author, workspace.meter).entry.seq


def _place(workspace: Workspace, name: str, format_name: str, location: str | None) -> TableRef:
    check_table_name(name)
    _refuse_view(workspace, name)
    found = workspace.find(name)
    if found is not None:
        raise InvalidInput(
            f"table {found.ref.name!r} already exists: drop it first, or choose another name",
            table=found.ref.name,
        )
    if location is not None:
        if "://" not in location and not location.startswith(("/", "~")):
            # A redo may run in another directory.
            raise InvalidInput(
                f"location {location!r} is relative: write /path, file:///path or s3://bucket/path, or leave "
                f"it out. If a table is there, name it by lake.register({name!r}, {location!r})"
            )
        url = location if "://" in location else local_url(location)
        ref = TableRef(name, workspace.catalog.place_of(url), format_name)
        _refuse_used(workspace, ref, location)
        return ref
    head = workspace.catalog.head(workspace.meter)
    fresh = workspace.environment.new_id()[-8:]
    return TableRef(name, registry.folder_for(head, name, fresh, workspace.is_free), format_name)


def _refuse_view(workspace: Workspace, name: str) -> None:
    """InvalidInput for a name that a table cannot have, because a view has it, or the lake's own schema."""
    if is_own_schema(name):
        raise InvalidInput(f"{name!r} cannot be a table: the schema information_schema is the lake's own")
    view = workspace.stored_views.find(name)
    if view is not None:
        registry.refuse_view({view.name: view}, name)


def _refuse_used(workspace: Workspace, ref: TableRef, location: str) -> None:
    if not workspace.is_free(ref.location):
        raise InvalidInput(f"location {location!r} is already used by this transaction: choose another one")
    if workspace.catalog.open(ref, workspace.meter).latest() is not None:
        raise InvalidInput(
            f"a table already exists at {location!r}: name it by lake.register({ref.name!r}, {location!r}), "
            "or choose another location",
            table=ref.name,
        )


def _check_rows(workspace: Workspace, pinned: Pinned, action: sql.AddConstraint) -> None:
    """A row for which the condition is not true violates it, also if it is NULL: so Delta has it."""
    name, check = pinned.ref.name, spark_text(parse_expression(action.check))
    query = select_from(name, "count(*) AS violations", f"NOT coalesce({check}, false)")
    sources = workspace.sources(query.tables)
    violations = workspace.engine.query(query.tree, sources, workspace.now_ms).collect()[0][0]
    if violations:
        raise InvalidInput(
            f"cannot add constraint {action.name!r} to table {name!r}: {violations} of its rows violate it",
            table=name,
            rule=action.name,
        )
