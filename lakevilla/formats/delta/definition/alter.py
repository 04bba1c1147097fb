"""Changes to a table's definition: columns, properties, CHECK constraints.

Each function is pure: from the definition of one version to the `Change` that the next one publishes.
The client that adds a constraint checks the rows that are there; the client that publishes fills in what
depends on the version that publishes the change.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from typing import Protocol as Structural

import pyarrow as pa
import sqlglot
from sqlglot import exp

from lakevilla.errors import NOT_NULL, InvalidInput
from lakevilla.formats.columns import check_columns
from lakevilla.formats.delta.definition.columns import assign_ids, strip_metadata
from lakevilla.formats.delta.definition.features import mapping_mode, refuse_write
from lakevilla.formats.delta.definition.properties import (
    IN_COMMIT_TIME,
    IN_COMMIT_VERSION,
    MAPPING_MODE,
    MAX_COLUMN_ID,
    check_properties,
    column_list,
)
from lakevilla.formats.delta.definition.schema import to_delta
from lakevilla.formats.delta.definition.upgrade import upgraded
from lakevilla.formats.delta.log.actions import Metadata, Protocol
from lakevilla.formats.properties import CONSTRAINT, check_markers_stay
from lakevilla.formats.uuids import dashed
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

NewId = Callable[[], str]


class Definition(Structural):
    """What a snapshot says about its table, without the files."""

    @property
    def metadata(self) -> Metadata: ...

    @property
    def protocol(self) -> Protocol: ...


def alter(table: Definition, action: Action, new_id: NewId) -> Change:
    """The change that an ALTER TABLE asks for."""
    match action:
        case AddColumns(columns):
            return add_columns(table, columns, new_id)
        case RenameColumn(column, to):
            return rename_column(table, column, to)
        case DropColumns(columns, if_exists):
            return drop_columns(table, columns, if_exists=if_exists)
        case SetProperties(properties):
            return set_properties(table, properties)
        case UnsetProperties(keys, if_exists):
            return unset_properties(table, keys, if_exists=if_exists)
        case AddConstraint(name, check):
            return add_constraint(table, name, check)
        case DropConstraint(name, if_exists):
            return drop_constraint(table, name, if_exists=if_exists)
        case RenameTable():
            raise InvalidInput("a table's own log cannot change its name: the lake keeps the names of tables")


def add_columns(table: Definition, fields: Sequence[pa.Field], new_id: NewId) -> Change:
    """ADD COLUMNS: at the end, nullable, because the rows that are there have no value for them."""
    schema = json.loads(table.metadata.schema_string)
    present = {column["name"].lower() for column in schema["fields"]}
    for field in fields:
        if not field.nullable:
            raise InvalidInput(
                f"cannot add column {field.name!r} as NOT NULL: existing rows have no value for it",
                column=field.name,
                rule=NOT_NULL,
            )
        if field.name.lower() in present:
            raise InvalidInput(f"column {field.name!r} already exists", column=field.name)
    check_columns(fields)
    added = json.loads(to_delta(pa.schema(list(fields))))
    strip_metadata(added)
    schema["fields"] += added["fields"]
    configuration = dict(table.metadata.configuration)
    if mapping_mode(table.protocol, table.metadata) != "none":
        largest = assign_ids(schema, _largest_id(configuration), lambda _: f"col-{dashed(new_id())}")
        configuration[MAX_COLUMN_ID] = str(largest)
    columns = _text([{"column": column} for column in added["fields"]])
    return _change(table, "ADD COLUMNS", {"columns": columns}, schema, configuration)


def rename_column(table: Definition, old: str, new: str) -> Change:
    """RENAME COLUMN: data files keep the physical name, so column mapping must be on."""
    schema = _mapped_schema(table, old, "rename")
    if not new or new.lower() in {c["name"].lower() for c in schema["fields"] if c["name"] != old}:
        raise InvalidInput(
            f"cannot rename column {old!r} to {new!r}: the new name is empty or taken", column=old
        )
    _column(schema, old)["name"] = new
    return _change(table, "RENAME COLUMN", {"oldColumnPath": old, "newColumnPath": new}, schema)


def drop_columns(table: Definition, names: Sequence[str], *, if_exists: bool = False) -> Change:
    """DROP COLUMNS: the values stay in the data files, unseen, so column mapping must be on."""
    schema = json.loads(table.metadata.schema_string)
    present = {column["name"] for column in schema["fields"]}
    dropped = [name for name in names if name in present or not if_exists]
    for name in dropped:
        _mapped_schema(table, name, "drop")
        schema["fields"].remove(_column(schema, name))
    if len(schema["fields"]) <= len(table.metadata.partition_columns):
        raise InvalidInput(f"cannot drop {', '.join(map(repr, names))}: data files would have no column left")
    return _change(table, "DROP COLUMNS", {"columns": _text(dropped)}, schema)


def set_properties(table: Definition, properties: Mapping[str, str]) -> Change:
    """SET TBLPROPERTIES, with the upgrade of the protocol that a property asks for."""
    check_properties(properties)
    schema = json.loads(table.metadata.schema_string)
    configuration = dict(table.metadata.configuration) | dict(properties)
    before = mapping_mode(table.protocol, table.metadata)
    after = configuration.get(MAPPING_MODE, "none").lower()
    if after != before:
        if (before, after) != ("none", "name"):
            raise InvalidInput(f"{MAPPING_MODE} cannot be changed from {before!r} to {after!r}")
        # The files that are there know the columns by their present names.
        configuration[MAX_COLUMN_ID] = str(assign_ids(schema, _largest_id(configuration), lambda name: name))
    return _change(table, "SET TBLPROPERTIES", {"properties": _text(properties)}, schema, configuration)


def unset_properties(table: Definition, names: Iterable[str], *, if_exists: bool = False) -> Change:
    """UNSET TBLPROPERTIES. The protocol stays: other clients may rely on what it lists."""
    names = list(names)
    configuration = dict(table.metadata.configuration)
    for name in names:
        if name.startswith(CONSTRAINT):
            raise InvalidInput(f"cannot unset {name!r}: use ALTER TABLE ... DROP CONSTRAINT")
        if name in (MAPPING_MODE, MAX_COLUMN_ID, IN_COMMIT_VERSION, IN_COMMIT_TIME) and name in configuration:
            raise InvalidInput(f"cannot unset {name!r}: data files or the log depend on it")
        if name not in configuration and not if_exists:
            raise InvalidInput(f"unknown property {name!r} of the table; write IF EXISTS to ignore this")
        configuration.pop(name, None)
    parameters = {"properties": _text(names), "ifExists": _text(if_exists)}
    return _change(table, "UNSET TBLPROPERTIES", parameters, configuration=configuration)


def add_constraint(table: Definition, name: str, expression: str) -> Change:
    """ADD CONSTRAINT name CHECK (expression). The caller has checked the rows that are there."""
    key = CONSTRAINT + name.lower()
    if not name or key in table.metadata.configuration:
        raise InvalidInput(f"constraint {name!r} already exists: drop it first", rule=name)
    configuration = dict(table.metadata.configuration) | {key: expression}
    parameters = {"name": name, "expr": expression}
    return _change(table, "ADD CONSTRAINT", parameters, configuration=configuration)


def drop_constraint(table: Definition, name: str, *, if_exists: bool = False) -> Change:
    """DROP CONSTRAINT."""
    configuration = dict(table.metadata.configuration)
    dropped = configuration.pop(CONSTRAINT + name.lower(), None)
    if dropped is None and not if_exists:
        raise InvalidInput(f"unknown constraint {name!r}", rule=name)
    return _change(table, "DROP CONSTRAINT", {"name": name}, configuration=configuration)


def _change(
    table: Definition,
    operation: str,
    parameters: Mapping[str, str],
    schema: dict[str, Any] | None = None,
    configuration: Mapping[str, str] | None = None,
) -> Change:
    metadata = table.metadata
    if schema is not None:
        metadata = replace(metadata, schema_string=_text(schema))
    if configuration is not None:
        metadata = replace(metadata, configuration=configuration)
    check_markers_stay(table.metadata.configuration, metadata.configuration)
    protocol = upgraded(table.protocol, metadata)
    # Nothing may be published that we could not write to afterwards.
    refuse_write(protocol, metadata)
    return Change(
        operation,
        parameters,
        metadata=metadata,
        protocol=None if protocol == table.protocol else protocol,
    )


def _mapped_schema(table: Definition, column: str, verb: str) -> dict[str, Any]:
    """The schema, if this column may be renamed or dropped."""
    schema: dict[str, Any] = json.loads(table.metadata.schema_string)
    _column(schema, column)
    if mapping_mode(table.protocol, table.metadata) == "none":
        raise InvalidInput(
            f"cannot {verb} column {column!r}: the table needs column mapping first: "
            f"ALTER TABLE t SET TBLPROPERTIES ('{MAPPING_MODE}' = 'name')"
        )
    if column in table.metadata.partition_columns:
        raise InvalidInput(f"cannot {verb} {column!r}: it is a partition column", column=column)
    for name, text in table.metadata.configuration.items():
        if name.startswith(CONSTRAINT) and column.lower() in _columns_of(text):
            raise InvalidInput(
                f"cannot {verb} {column!r}: constraint {name.removeprefix(CONSTRAINT)!r} uses it ({text}); "
                "drop the constraint first",
                column=column,
                rule=name.removeprefix(CONSTRAINT),
            )
    named = table.metadata.configuration.get("delta.dataSkippingStatsColumns", "")
    if any(path[0].lower() == column.lower() for path in column_list(named)):
        raise InvalidInput(
            f"cannot {verb} {column!r}: delta.dataSkippingStatsColumns names it", column=column
        )
    return schema


def _columns_of(expression: str) -> set[str]:
    """The first names of all columns that a constraint uses, in lower case."""
    try:
        tree = sqlglot.parse_one(expression, dialect="spark")
    except sqlglot.errors.SqlglotError as error:
        raise InvalidInput(f"the constraint {expression!r} cannot be parsed: drop it first") from error
    return {column.parts[0].name.lower() for column in tree.find_all(exp.Column)}


def _column(schema: dict[str, Any], name: str) -> dict[str, Any]:
    for field in schema["fields"]:
        if field["name"] == name:
            found: dict[str, Any] = field
            return found
    raise unknown_column(name, [field["name"] for field in schema["fields"]])


def _largest_id(configuration: Mapping[str, str]) -> int:
    return int(configuration.get(MAX_COLUMN_ID, "0"))


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
