"""The columns of a checkpoint: one struct for each kind of action (PROTOCOL.md, "Checkpoint Schema").

Field names and types are those that Spark writes, so that every reader finds what it expects.
"""

import pyarrow as pa

from lakevilla.formats.delta.files.blocks import CORE, VECTOR

_TEXTS = pa.map_(pa.string(), pa.string())
_NAMES = pa.list_(pa.field("element", pa.string()))

TXN = pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])
ADD = pa.struct([*CORE, pa.field("dataChange", pa.bool_())])
REMOVE = pa.struct(
    [
        ("path", pa.string()),
        ("deletionTimestamp", pa.int64()),
        ("dataChange", pa.bool_()),
        ("extendedFileMetadata", pa.bool_()),
        ("partitionValues", _TEXTS),
        ("size", pa.int64()),
        ("tags", _TEXTS),
        ("deletionVector", VECTOR),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
    ]
)
METADATA = pa.struct(
    [
        ("id", pa.string()),
        ("name", pa.string()),
        ("description", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])),
        ("schemaString", pa.string()),
        ("partitionColumns", _NAMES),
        ("configuration", _TEXTS),
        ("createdTime", pa.int64()),
    ]
)
PROTOCOL = pa.struct(
    [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", _NAMES),
        ("writerFeatures", _NAMES),
    ]
)
DOMAIN = pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())])
V2_METADATA = pa.struct([("version", pa.int64()), ("tags", _TEXTS)])


def checkpoint_schema(add: pa.DataType, *, v2: bool) -> pa.Schema:
    """All columns of a checkpoint; `add` is `ADD` with the statistics that the table asks for."""
    kinds = {
        "txn": TXN,
        "add": add,
        "remove": REMOVE,
        "metaData": METADATA,
        "protocol": PROTOCOL,
        "domainMetadata": DOMAIN,
    }
    if v2:
        kinds["checkpointMetadata"] = V2_METADATA
    return pa.schema(list(kinds.items()))
