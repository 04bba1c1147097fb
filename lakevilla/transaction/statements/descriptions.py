"""Statements about tables: columns, properties, details, history, and the statement that creates such a
table."""

import re

import pyarrow as pa

from lakevilla.errors import InvalidInput, Unsupported
from lakevilla.formats.columns import comment_of
from lakevilla.formats.properties import CONSTRAINT
from lakevilla.model import PartitionField
from lakevilla.predicates import ANYTHING
from lakevilla.sql import statements as sql
from lakevilla.sql.statements import TableName
from lakevilla.sql.tables import sql_name
from lakevilla.sql.types import type_name
from lakevilla.sql.words.suggestions import did_you_mean
from lakevilla.store.metered import Meter
from lakevilla.tables.pinned import Pinned
from lakevilla.timestamps import utc_text
from lakevilla.transaction.views import descriptions as view_descriptions
from lakevilla.transaction.views.definitions import literal
from lakevilla.transaction.workspace import Workspace
from lakevilla.versions.views import View

_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_WIDTH = re.compile(r"(\w+)\[(\d+)\]")
_TIME = pa.timestamp("us", "UTC")


def described(workspace: Workspace, statement: sql.Statement) -> pa.Table:
    """What SHOW or DESCRIBE says of a table or a view, as the transaction sees it."""
    found = _view(workspace, getattr(statement, "table", ""))
    if found is not None:
        return view_descriptions.described(*found, statement)
    match statement:
        case sql.Describe(table=name, extended=extended):
            pinned = workspace.pin(TableName(name))
            return extended_description(workspace, pinned) if extended else describe(pinned)
        case sql.DescribeDetail(table=name):
            return detail(workspace, workspace.pin(TableName(name)))
        case sql.DescribeHistory(table=name, limit=limit):
            return history(workspace.pin(TableName(name)), limit)
        case sql.ShowColumns(table=name):
            return pa.table({"col_name": workspace.pin(TableName(name)).snapshot.schema.names})
        case sql.ShowCreateTable(table=name):
            return pa.table({"createtab_stmt": [create_text(workspace.pin(TableName(name)))]})
        case sql.ShowProperties(table=name, key=key):
            return properties(workspace.pin(TableName(name)), key)
    raise AssertionError(f"{statement} is not about a table")


def _view(workspace: Workspace, name: str) -> tuple[View, bool] | None:
    own = workspace.stored_views.temporary.get(name.casefold())
    if own is not None:
        return own.view, True
    found = workspace.stored_views.find(name)
    return None if found is None else (found, False)


def describe(pinned: Pinned) -> pa.Table:
    """Name, type, nullability and comment of every column, as Spark's DESCRIBE has them."""
    schema = pinned.snapshot.schema
    return pa.table(
        {
            "col_name": [field.name for field in schema],
            "data_type": [type_name(field.type) for field in schema],
            "nullable": [field.nullable for field in schema],
            "comment": pa.array([comment_of(field) or None for field in schema], pa.string()),
        }
    )


def extended_description(workspace: Workspace, pinned: Pinned) -> pa.Table:
    """The columns with their comments, then facts about the table, as Spark's DESCRIBE EXTENDED has them."""
    snapshot, ref = pinned.snapshot, pinned.ref
    rows = [(field.name, type_name(field.type), comment_of(field)) for field in snapshot.schema]
    if snapshot.partitioning.fields:
        rows.append(("# Partitioned by", "", ""))
        rows += [(_transform(field), "", "") for field in snapshot.partitioning.fields]
    rows.append(("", "", ""))
    rows.append(("# Detailed Table Information", "", ""))
    rows += [
        ("Name", ref.name, ""),
        ("Provider", ref.format.partition(":")[0], ""),
        ("Location", _url(workspace, pinned), ""),
        ("Version", str(snapshot.version), ""),
        ("Last Modified", utc_text(snapshot.timestamp_ms), ""),
    ]
    if snapshot.comment:
        rows.append(("Comment", snapshot.comment, ""))
    rows += [(f"Check {name}", check, "") for name, check in sorted(snapshot.checks.items())]
    rows += [(f"Property {key}", value, "") for key, value in sorted(_plain_properties(pinned).items())]
    names = ("col_name", "data_type", "comment")
    return pa.table({name: pa.array([row[i] for row in rows], pa.string()) for i, name in enumerate(names)})


def detail(workspace: Workspace, pinned: Pinned) -> pa.Table:
    """One row of facts, in the columns of Delta's DESCRIBE DETAIL."""
    snapshot = pinned.snapshot
    files = snapshot.files(ANYTHING)
    counts = [file.living_rows for file in files]
    rows = None if None in counts else sum(count for count in counts if count is not None)
    text = pa.string()
    return pa.table(
        {
            "format": pa.array([pinned.ref.format.partition(":")[0]], text),
            "id": pa.array([snapshot.table_id], text),
            "name": pa.array([pinned.ref.name], text),
            "description": pa.array([snapshot.comment], text),
            "location": pa.array([_url(workspace, pinned)], text),
            "lastModified": pa.array([snapshot.timestamp_ms * 1000], _TIME),
            "partitionColumns": pa.array(
                [list(map(_transform, snapshot.partitioning.fields))], pa.list_(text)
            ),
            "numFiles": pa.array([len(files)], pa.int64()),
            "sizeInBytes": pa.array([sum(file.size for file in files)], pa.int64()),
            "numRows": pa.array([rows], pa.int64()),
            "version": pa.array([snapshot.version], pa.int64()),
            "properties": pa.array([list(_plain_properties(pinned).items())], pa.map_(text, text)),
        }
    )


def history(pinned: Pinned, limit: int | None = None) -> pa.Table:
    """Every version that the table's log still knows, newest first; none that is later than what the
    statement sees."""
    found = pinned.table.history(limit, before=pinned.snapshot.version + 1)
    entries = [entry for entry in found if entry.version <= pinned.snapshot.version]
    return pa.table(
        {
            "version": pa.array([e.version for e in entries], pa.int64()),
            "timestamp": pa.array([e.timestamp_ms * 1000 for e in entries], _TIME),
            "operation": pa.array([e.operation for e in entries], pa.string()),
            "engineInfo": pa.array([e.engine for e in entries], pa.string()),
            "txn": pa.array([e.txn for e in entries], pa.string()),
        }
    )


def properties(pinned: Pinned, key: str | None) -> pa.Table:
    """The table's properties; InvalidInput for a key that it does not have."""
    found = dict(sorted(pinned.snapshot.properties.items()))
    if key is not None and key not in found:
        hint = did_you_mean(key, found, f"it has {', '.join(map(repr, found)) or 'none'}")
        raise InvalidInput(
            f"table {pinned.ref.name!r} has no property {key!r}: {hint}", table=pinned.ref.name
        )
    chosen = found if key is None else {key: found[key]}
    text = pa.string()
    return pa.table({"key": pa.array(list(chosen), text), "value": pa.array(list(chosen.values()), text)})


def create_text(pinned: Pinned) -> str:
    """The CREATE TABLE statement that makes an empty table like this one."""
    snapshot = pinned.snapshot
    lines = [_column_text(field) for field in snapshot.schema]
    lines += [f"CONSTRAINT {_quoted(name)} CHECK ({check})" for name, check in _named_checks(pinned).items()]
    parts = [
        f"CREATE TABLE {sql_name(pinned.ref.name)} (\n  " + ",\n  ".join(lines) + ")",
        f"USING {pinned.ref.format.partition(':')[0].upper()}",
    ]
    if snapshot.partitioning.fields:
        parts.append(f"PARTITIONED BY ({', '.join(_transform(f) for f in snapshot.partitioning.fields)})")
    if snapshot.comment:
        parts.append(f"COMMENT {literal(snapshot.comment)}")
    kept = {key: value for key, value in _plain_properties(pinned).items() if key != "comment"}
    if kept:
        pairs = ",\n  ".join(f"{literal(key)} = {literal(value)}" for key, value in sorted(kept.items()))
        parts.append(f"TBLPROPERTIES (\n  {pairs})")
    return "\n".join(parts)


def _column_text(field: pa.Field) -> str:
    text = f"{_quoted(field.name)} {_type_text(field)}"
    if not field.nullable:
        text += " NOT NULL"
    comment = comment_of(field)
    return f"{text} COMMENT {literal(comment)}" if comment else text


def _type_text(field: pa.Field) -> str:
    try:
        return _told_type(field.type)
    except Unsupported as error:
        error.column = field.name
        raise


def _told_type(data_type: pa.DataType) -> str:
    """A type as a statement writes it, with the comments of the fields of structs."""
    if pa.types.is_struct(data_type):
        return f"struct<{', '.join(map(_field_text, data_type))}>"
    if pa.types.is_map(data_type):
        return f"map<{_told_type(data_type.key_type)},{_told_type(data_type.item_type)}>"
    if pa.types.is_list(data_type):
        return f"array<{_told_type(data_type.value_type)}>"
    return type_name(data_type).upper()


def _field_text(field: pa.Field) -> str:
    text = f"{_quoted(field.name)}: {_told_type(field.type)}"
    if not field.nullable:
        text += " NOT NULL"
    comment = comment_of(field)
    return f"{text} COMMENT {literal(comment)}" if comment else text


def _named_checks(pinned: Pinned) -> dict[str, str]:
    """The constraints that the table names; those of Delta are among its properties."""
    found = pinned.snapshot.properties.items()
    return {k.removeprefix(CONSTRAINT): value for k, value in found if k.startswith(CONSTRAINT)}


def _plain_properties(pinned: Pinned) -> dict[str, str]:
    """The properties that are not constraints."""
    return {k: v for k, v in pinned.snapshot.properties.items() if not k.startswith(CONSTRAINT)}


def _transform(field: PartitionField) -> str:
    """A field of PARTITIONED BY as a statement writes it."""
    column = ".".join(map(_quoted, field.source))
    if field.transform == "identity":
        return column
    sized = _WIDTH.fullmatch(field.transform)
    return f"{sized[1]}({sized[2]}, {column})" if sized else f"{field.transform}s({column})"


def _url(workspace: Workspace, pinned: Pinned) -> str:
    return workspace.catalog.store_of(pinned.ref.location, Meter()).url


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`"
