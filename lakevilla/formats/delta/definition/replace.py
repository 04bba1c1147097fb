"""Another definition for a table that exists: CREATE OR REPLACE TABLE, and an overwrite with other columns.

Pure. The table stays the same one, with its id and its log, so that earlier versions stay readable. The
protocol only grows, and what the log itself depends on stays: column mapping, in-commit timestamps, markers.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from lakevilla.errors import InvalidInput
from lakevilla.formats.columns import check_columns
from lakevilla.formats.delta.definition.alter import Definition
from lakevilla.formats.delta.definition.columns import assign_ids, strip_metadata
from lakevilla.formats.delta.definition.create import check_partitioning
from lakevilla.formats.delta.definition.features import mapping_mode, refuse_write
from lakevilla.formats.delta.definition.properties import (
    IN_COMMIT,
    IN_COMMIT_TIME,
    IN_COMMIT_VERSION,
    MAPPING_MODE,
    MAX_COLUMN_ID,
    check_markers,
    check_properties,
)
from lakevilla.formats.delta.definition.schema import to_delta
from lakevilla.formats.delta.definition.upgrade import upgraded
from lakevilla.formats.properties import CONSTRAINT, MARKERS, check_markers_stay
from lakevilla.formats.uuids import dashed
from lakevilla.model import Change

_LASTING = (MAPPING_MODE, MAX_COLUMN_ID, IN_COMMIT, IN_COMMIT_VERSION, IN_COMMIT_TIME, MARKERS)


def replace_definition(
    table: Definition,
    schema: pa.Schema,
    *,
    partition_columns: Sequence[str],
    properties: Mapping[str, str] | None,
    comment: str | None,
    new_id: Callable[[], str],
) -> Change:
    """The change that gives the table these columns. Without `properties` its own stay, and its comment."""
    check_columns(schema)
    check_partitioning(schema, partition_columns)
    old = table.metadata
    configuration = _configuration(old.configuration, properties)
    body = json.loads(to_delta(schema))
    strip_metadata(body)
    before, after = mapping_mode(table.protocol, old), configuration.get(MAPPING_MODE, "none").lower()
    if before not in ("none", after):
        raise InvalidInput(f"{MAPPING_MODE} cannot be changed from {before!r} to {after!r}")
    if after != "none":
        # Ids and physical names of the columns before are not used again: earlier files have them.
        largest = int(old.configuration.get(MAX_COLUMN_ID, "0"))
        configuration[MAX_COLUMN_ID] = str(assign_ids(body, largest, lambda _: f"col-{dashed(new_id())}"))
    metadata = replace(
        old,
        schema_string=json.dumps(body, separators=(",", ":"), ensure_ascii=False),
        partition_columns=tuple(partition_columns),
        configuration=configuration,
        description=old.description if properties is None else comment,
    )
    check_markers_stay(old.configuration, configuration)
    protocol = upgraded(table.protocol, metadata)
    # Nothing may be published that we could not write to afterwards.
    refuse_write(protocol, metadata)
    parameters = {
        "isManaged": "false",
        "description": json.dumps(metadata.description, ensure_ascii=False),
        "partitionBy": json.dumps(list(partition_columns), ensure_ascii=False),
        "properties": json.dumps(dict(properties or {}), ensure_ascii=False),
    }
    return Change(
        "CREATE OR REPLACE TABLE",
        parameters,
        metadata=metadata,
        protocol=None if protocol == table.protocol else protocol,
        replaces=True,
    )


def _configuration(old: Mapping[str, str], given: Mapping[str, str] | None) -> dict[str, str]:
    """The properties of the table from now on."""
    if given is None:
        return dict(old)
    # Constraints are fine here: no row stays that would have to be checked.
    check_properties({key: value for key, value in given.items() if not key.startswith(CONSTRAINT)})
    configuration = {key: value for key, value in old.items() if key in _LASTING} | dict(given)
    check_markers(configuration)
    return configuration
