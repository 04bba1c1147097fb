"""The name mapping of a table: the names of its columns in data files without field ids.

It is kept in a table property, as JSON. A writer that renames or adds columns keeps it up to date, so that
such files are read as before.
"""

from collections.abc import Iterable, Mapping

from pydantic import ValidationError
from pyiceberg.schema import Schema
from pyiceberg.table.name_mapping import MappedField, NameMapping, parse_mapping_from_json, update_mapping

from lakevilla.errors import Corrupt

NAME_MAPPING = "schema.name-mapping.default"

_ROOT = -1


def name_mapping(properties: Mapping[str, str]) -> NameMapping | None:
    """The table's name mapping, if it has one; Corrupt if that cannot be read."""
    text = properties.get(NAME_MAPPING)
    if text is None:
        return None
    try:
        return parse_mapping_from_json(text)
    except ValidationError as error:
        reason = str(error).partition("\n")[0]
        raise Corrupt(f"the table property {NAME_MAPPING} is not a name mapping: {reason}") from error


def names_by_id(mapping: NameMapping) -> dict[int, list[str]]:
    """The names of every column that the mapping knows, nested ones too, by column id."""
    found: dict[int, list[str]] = {}
    _collect(mapping.root, found)
    return found


def with_columns(mapping: NameMapping, before: Schema, after: Schema) -> str:
    """The mapping, as its property has it, once the schema has changed: top-level columns that were added or
    renamed are known by their new names too, and no other column by these."""
    known = {column.field_id: column for column in before.fields}
    renamed = {
        column.field_id: column
        for column in after.fields
        if column.field_id in known and known[column.field_id].name != column.name
    }
    added = [column for column in after.fields if column.field_id not in known]
    return update_mapping(mapping, renamed, {_ROOT: added}).model_dump_json()


def _collect(fields: Iterable[MappedField], found: dict[int, list[str]]) -> None:
    for field in fields:
        if field.field_id is not None:
            found[field.field_id] = list(field.names)
        _collect(field.fields, found)
