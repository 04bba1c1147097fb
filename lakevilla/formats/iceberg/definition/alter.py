"""Changes to a table's definition: columns and properties.

Each function is pure: from the metadata of one version to the `Change` that the next one publishes. Schemas
are changed as JSON, so that what we do not know of a column survives. Ids are never used twice, and old
schemas stay: data files and snapshots refer to them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakevilla.errors import NOT_NULL, Corrupt, InvalidInput, Unsupported
from lakevilla.formats.columns import check_columns
from lakevilla.formats.iceberg.definition.name_mapping import NAME_MAPPING, name_mapping, with_columns
from lakevilla.formats.iceberg.definition.properties import refuse_write, shown
from lakevilla.formats.iceberg.definition.schema import from_arrow
from lakevilla.formats.iceberg.definition.settings import FORMAT_VERSION, check_properties, no_constraints
from lakevilla.formats.iceberg.metadata.document import (
    FORMATS,
    Raw,
    current_schema,
    default_spec,
    format_version,
    properties,
    specs,
)
from lakevilla.formats.properties import check_markers_stay
from lakevilla.model import Change
from lakevilla.sql.statements import (
    Action,
    AddColumns,
    AddConstraint,
    DropColumns,
    DropConstraint,
    RenameColumn,
    RenameTable,
    SetProperties,
    UnsetProperties,
)
from lakevilla.sql.words.suggestions import unknown_column

Column = dict[str, Any]
"""A column of a schema as Iceberg's JSON has it."""


def alter(raw: Raw, action: Action) -> Change:
    """The change that an ALTER TABLE asks for."""
    match action:
        case AddColumns(columns):
            return add_columns(raw, columns)
        case RenameColumn(column, to):
            return rename_column(raw, column, to)
        case DropColumns(columns, if_exists):
            return drop_columns(raw, columns, if_exists=if_exists)
        case SetProperties(wanted):
            return set_properties(raw, wanted)
        case UnsetProperties(keys, if_exists):
            return unset_properties(raw, keys, if_exists=if_exists)
        case AddConstraint(name):
            raise no_constraints(name)
        case DropConstraint(name, if_exists):
            if not if_exists:
                raise InvalidInput(f"unknown constraint {name!r}", rule=name)
            return _change(raw, "DROP CONSTRAINT", {"name": name}, {})
        case RenameTable():
            raise InvalidInput("a table's own log cannot change its name: the lake keeps the names of tables")


def add_columns(raw: Raw, fields: Sequence[pa.Field]) -> Change:
    """ADD COLUMNS: at the end, nullable, because the rows that are there have no value for them."""
    columns = _columns(raw)
    check_columns(fields)
    last = _last_id(raw)
    added: list[Column] = []
    for field in fields:
        if not field.nullable:
            raise InvalidInput(
                f"cannot add column {field.name!r} as NOT NULL: existing rows have no value for it",
                column=field.name,
                rule=NOT_NULL,
            )
        if field.name.lower() in {column["name"].lower() for column in columns}:
            raise InvalidInput(f"column {field.name!r} already exists", column=field.name)
        fresh = from_arrow(pa.schema([field]), last + 1)
        last = fresh.highest_field_id
        added += json.loads(fresh.model_dump_json())["fields"]
        _check_partition_names(raw, added[-1])
    names = _text([column["name"] for column in added])
    return _change(raw, "ADD COLUMNS", {"columns": names}, _with_columns(raw, [*columns, *added], last))


def rename_column(raw: Raw, old: str, new: str) -> Change:
    """RENAME COLUMN: everything else refers to the column by its id."""
    columns = _columns(raw)
    renamed = _column(columns, old)
    if not new or new.lower() in {column["name"].lower() for column in columns if column is not renamed}:
        raise InvalidInput(
            f"cannot rename column {old!r} to {new!r}: the new name is empty or taken", column=old
        )
    renamed["name"] = new
    _check_partition_names(raw, renamed)
    parameters = {"oldColumnPath": old, "newColumnPath": new}
    return _change(raw, "RENAME COLUMN", parameters, _with_columns(raw, columns))


def drop_columns(raw: Raw, names: Sequence[str], *, if_exists: bool = False) -> Change:
    """DROP COLUMNS: the values stay in the data files, unseen; the ids are not used again."""
    columns = _columns(raw)
    present = {column["name"] for column in columns}
    dropped = [name for name in names if name in present or not if_exists]
    for name in dropped:
        column = _column(columns, name)
        _refuse_used(raw, name, set(_ids(column)))
        columns.remove(column)
    if not columns:
        raise InvalidInput(f"cannot drop {', '.join(map(repr, names))}: the table would have no column left")
    return _change(raw, "DROP COLUMNS", {"columns": _text(dropped)}, _with_columns(raw, columns))


def restore_columns(raw: Raw, then: Raw) -> Change | None:
    """The columns of an earlier version of the table; None if they are the same."""
    columns = _columns(then)
    if columns == _columns(raw):
        return None
    ids = {number for column in columns for number in _ids(column)}
    if set(_current(raw).get("identifier-field-ids") or ()) - ids:
        raise Unsupported(
            "the table cannot be restored to a version with other columns: rows are identified by a column "
            "that was added since"
        )
    changed = _with_columns(raw, columns)
    used = {field.source_id for field in default_spec(raw).fields if str(field.transform) != "void"}
    if used - ids:
        # Partitioned by a column that was added since: new files are divided as they were then.
        spec = default_spec(then)
        if spec.spec_id not in specs(raw):
            raise Unsupported(
                "the table cannot be restored to a version with other columns: it is partitioned by a column "
                "that was added since, and its metadata does not have the earlier partitioning any more"
            )
        changed["default-spec-id"] = spec.spec_id
        if format_version(raw) == 1:
            changed["partition-spec"] = then.get("partition-spec")
    return _change(raw, "RESTORE", {}, changed)


def set_properties(raw: Raw, wanted: Mapping[str, str]) -> Change:
    """SET TBLPROPERTIES."""
    given = dict(wanted)
    upgrade = upgraded(raw, given.pop(FORMAT_VERSION, None))
    check_properties(given)
    changed = {"properties": {**shown(properties(raw)), **given}, **upgrade}
    return _change(raw, "SET TBLPROPERTIES", {"properties": _text(dict(wanted))}, changed)


def unset_properties(raw: Raw, names: Iterable[str], *, if_exists: bool = False) -> Change:
    """UNSET TBLPROPERTIES."""
    names = list(names)
    left = dict(shown(properties(raw)))
    for name in names:
        if name == NAME_MAPPING and name in left:
            raise InvalidInput(f"cannot unset {name!r}: data files without column ids depend on it")
        if name not in left and not if_exists:
            raise InvalidInput(f"unknown property {name!r} of the table; write IF EXISTS to ignore this")
        left.pop(name, None)
    parameters = {"properties": _text(names), "ifExists": _text(if_exists)}
    return _change(raw, "UNSET TBLPROPERTIES", parameters, {"properties": left})


def _change(raw: Raw, operation: str, parameters: Mapping[str, str], changed: dict[str, Any]) -> Change:
    metadata = {"properties": shown(properties(raw)), **changed}
    check_markers_stay(properties(raw), metadata["properties"])
    # Nothing may be published that we could not write to afterwards.
    refuse_write({**raw, **metadata})
    return Change(operation, parameters, metadata=metadata)


def _with_columns(raw: Raw, columns: list[Column], last_id: int | None = None) -> dict[str, Any]:
    """The keys of the metadata that change with the columns of the current schema."""
    known = _schemas(raw)
    current = {**_current(raw), "fields": columns}
    same = next((schema for schema in known if _content(schema) == _content(current)), None)
    number = max(schema["schema-id"] for schema in known) + 1 if same is None else same["schema-id"]
    current["schema-id"] = number
    changed: dict[str, Any] = {
        "schemas": known if same is not None else [*known, current],
        "current-schema-id": number,
        "last-column-id": _last_id(raw) if last_id is None else last_id,
    }
    if format_version(raw) == 1:
        changed["schema"] = current
    try:
        after = current_schema({**raw, **changed})
    except Unsupported as error:
        # A column named like the path of another one's member.
        raise InvalidInput(f"the names of these columns conflict: {error}") from error
    mapping = name_mapping(properties(raw))
    if mapping is not None:
        text = with_columns(mapping, current_schema(raw), after)
        changed["properties"] = {**shown(properties(raw)), NAME_MAPPING: text}
    return changed


def _schemas(raw: Raw) -> list[dict[str, Any]]:
    """The table's schemas; format 1 may have but one, without a number."""
    return [{"schema-id": 0, **schema} for schema in raw.get("schemas") or [raw["schema"]]]


def _current(raw: Raw) -> dict[str, Any]:
    number = current_schema(raw).schema_id
    return next(schema for schema in _schemas(raw) if schema["schema-id"] == number)


def _columns(raw: Raw) -> list[Column]:
    """The columns of the current schema, to be changed."""
    return [dict(column) for column in _current(raw)["fields"]]


def _content(schema: Mapping[str, Any]) -> Any:
    """What makes two schemas the same."""
    return schema["fields"], sorted(schema.get("identifier-field-ids") or [])


def _column(columns: list[Column], name: str) -> Column:
    for column in columns:
        if column["name"] == name:
            return column
    raise unknown_column(name, [column["name"] for column in columns])


def _last_id(raw: Raw) -> int:
    try:
        return int(raw["last-column-id"])
    except (KeyError, ValueError, TypeError) as error:
        raise Corrupt("the Iceberg metadata has no last column id") from error


def _ids(column: Column) -> Iterator[int]:
    """The ids of a column and of the members of a struct: nothing refers to what is in lists and maps."""
    yield column["id"]
    if isinstance(column["type"], dict):
        for member in column["type"].get("fields", ()):
            yield from _ids(member)


def _refuse_used(raw: Raw, name: str, ids: set[int]) -> None:
    """InvalidInput if more than the schema refers to these columns."""
    if ids & set(_current(raw).get("identifier-field-ids") or ()):
        raise InvalidInput(f"cannot drop {name!r}: it is one of the table's identifier columns", column=name)
    for spec in specs(raw).values():
        for field in spec.fields:
            if field.source_id in ids and str(field.transform) != "void":
                raise InvalidInput(
                    f"cannot drop {name!r}: files are partitioned by it, as {field.name!r}", column=name
                )
    wanted = raw.get("default-sort-order-id", 0)
    orders = [order for order in raw.get("sort-orders") or () if order["order-id"] == wanted]
    if any(field["source-id"] in ids for order in orders for field in order["fields"]):
        raise InvalidInput(f"cannot drop {name!r}: the table is sorted by it", column=name)


def _check_partition_names(raw: Raw, column: Column) -> None:
    """A column and a partition field may share a name only if one is the other's value."""
    for spec in specs(raw).values():
        for field in spec.fields:
            own = field.source_id == column["id"] and str(field.transform) in ("identity", "void")
            if field.name.lower() == column["name"].lower() and not own:
                raise InvalidInput(
                    f"cannot name a column {field.name!r}: a partition field has this name", column=field.name
                )


def upgraded(raw: Raw, wanted: str | None) -> dict[str, Any]:
    """The keys of the metadata that change with the version of the format that a statement asks for.

    A lower version is refused: what the newer one brings would be lost."""
    now = format_version(raw)
    if wanted is None or wanted == str(now):
        return {}
    if wanted not in map(str, FORMATS):
        raise Unsupported(f"cannot change {FORMAT_VERSION!r} from {now} to {wanted}; available: '2', '3'")
    if int(wanted) < now:
        raise InvalidInput(
            f"cannot change {FORMAT_VERSION!r} from {now} to {wanted}: a table keeps its format or gets a "
            "newer one. Write its rows to a new table instead"
        )
    changed: dict[str, Any] = {"format-version": int(wanted)}
    if now == 1:
        changed |= {"last-sequence-number": 0} | _plural(raw)
    return changed | ({"next-row-id": 0} if wanted == "3" else {})


def _plural(raw: Raw) -> dict[str, Any]:
    """The members by which format 1 may leave out the lists of schemas, partition specs and sort orders."""
    current, spec = current_schema(raw), default_spec(raw)
    listed = [{"spec-id": n, **json.loads(one.model_dump_json())} for n, one in specs(raw).items()]
    found: dict[str, Any] = {
        "schemas": _schemas(raw),
        "current-schema-id": current.schema_id,
        "partition-specs": listed,
        "default-spec-id": spec.spec_id,
        "last-partition-id": max([999, *(f.field_id for one in specs(raw).values() for f in one.fields)]),
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
    }
    return {name: value for name, value in found.items() if raw.get(name) is None}


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
