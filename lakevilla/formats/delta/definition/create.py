"""A new table: metadata and the least protocol that admits it, from a schema and properties.

Pure; nothing is written here. What an unmodified client could not read is refused.
"""

import json
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from lakevilla.errors import InvalidInput
from lakevilla.formats.columns import check_columns
from lakevilla.formats.delta.definition.columns import assign_ids, strip_metadata
from lakevilla.formats.delta.definition.properties import (
    MAPPING_MODE,
    MAX_COLUMN_ID,
    check_feed,
    check_markers,
    check_properties,
)
from lakevilla.formats.delta.definition.schema import to_delta
from lakevilla.formats.delta.definition.upgrade import FIRST, upgraded
from lakevilla.formats.delta.log.actions import Metadata
from lakevilla.formats.properties import CONSTRAINT
from lakevilla.formats.uuids import dashed
from lakevilla.model import Change
from lakevilla.sql.words.suggestions import unknown_column


def create_table(
    schema: pa.Schema,
    *,
    partition_columns: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    comment: str | None = None,
    now_ms: int,
    new_id: Callable[[], str],
) -> Change:
    """The change that makes version 0 of a table. InvalidInput for what Delta cannot hold."""
    check_columns(schema)
    check_partitioning(schema, partition_columns)
    configuration = dict(properties or {})
    # Constraints are fine here: there are no rows yet that would have to be checked.
    check_properties({key: value for key, value in configuration.items() if not key.startswith(CONSTRAINT)})
    check_markers(configuration)
    body = json.loads(to_delta(schema))
    strip_metadata(body)
    if configuration.get(MAPPING_MODE, "none").lower() != "none":
        largest = assign_ids(body, 0, lambda _: f"col-{dashed(new_id())}")
        configuration[MAX_COLUMN_ID] = str(largest)
    metadata = Metadata(
        id=dashed(new_id()),
        schema_string=json.dumps(body, separators=(",", ":"), ensure_ascii=False),
        partition_columns=tuple(partition_columns),
        configuration=configuration,
        description=comment,
        created_ms=now_ms,
    )
    check_feed(metadata)
    parameters = {
        "isManaged": "false",
        "description": "null" if comment is None else json.dumps(comment, ensure_ascii=False),
        "partitionBy": json.dumps(list(partition_columns), ensure_ascii=False),
        "properties": json.dumps(dict(properties or {}), ensure_ascii=False),
    }
    return Change("CREATE TABLE", parameters, metadata=metadata, protocol=upgraded(FIRST, metadata))


def check_partitioning(schema: pa.Schema, columns: Sequence[str]) -> None:
    """InvalidInput if a table of these columns cannot be partitioned by those."""
    if not len(schema):
        raise InvalidInput("a table needs at least one column")
    if len(set(columns)) < len(columns):
        raise InvalidInput(f"duplicate partition column: {', '.join(map(repr, columns))}")
    for name in columns:
        position = schema.get_field_index(name)
        if position < 0:
            raise unknown_column(name, schema.names, kind="partition column")
        if pa.types.is_nested(schema.field(position).type):
            raise InvalidInput(
                f"{name!r} cannot be a partition column: its type {schema.field(position).type} is not "
                "simple",
                column=name,
            )
    if columns and len(columns) == len(schema):
        raise InvalidInput("not all columns can be partition columns: data files would have no column")
