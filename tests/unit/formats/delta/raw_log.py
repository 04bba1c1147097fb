"""Delta logs written by hand, action by action, for tests of reading."""

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakevilla.environment import SystemEnvironment
from lakevilla.formats.delta.log.paths import checkpoint_key, entry_key
from lakevilla.formats.delta.table import DeltaTable
from lakevilla.store.metered import Meter
from lakevilla.store.open import open_store
from lakevilla.store.port import Store

ENVIRONMENT = SystemEnvironment(threads=4)
PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}


def memory(meter: Meter | None = None) -> Store:
    return open_store("memory://", environment=ENVIRONMENT, meter=meter)


def table(store: Store) -> DeltaTable:
    return DeltaTable(store, ENVIRONMENT, lambda url: open_store(url, environment=ENVIRONMENT))


def metadata(
    *columns: tuple[str, Any], partition_by: tuple[str, ...] = (), **configuration: str
) -> dict[str, Any]:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns]
    return {
        "metaData": {
            "id": "a",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": list(partition_by),
            "configuration": configuration,
        }
    }


def add(path: str, **more: Any) -> dict[str, Any]:
    body = {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    return {"add": body | more}


def remove(path: str, **more: Any) -> dict[str, Any]:
    return {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True} | more}


def write_entry(store: Store, version: int, *actions: dict[str, Any]) -> None:
    store.put(entry_key(version), "".join(json.dumps(action) + "\n" for action in actions).encode())


_PAIRS = pa.map_(pa.string(), pa.string())
_CHECKPOINT = pa.schema(
    [
        pa.field("protocol", pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])),
        pa.field(
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("format", pa.struct([("provider", pa.string()), ("options", _PAIRS)])),
                    ("schemaString", pa.string()),
                    ("partitionColumns", pa.list_(pa.string())),
                    ("configuration", _PAIRS),
                ]
            ),
        ),
        pa.field(
            "add",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("partitionValues", _PAIRS),
                    ("size", pa.int64()),
                    ("modificationTime", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("stats", pa.string()),
                ]
            ),
        ),
        pa.field("remove", pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64())])),
        pa.field("sidecar", pa.struct([("path", pa.string()), ("sizeInBytes", pa.int64())])),
    ]
)


def checkpoint_bytes(*actions: dict[str, Any]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([_with_pairs(action) for action in actions], _CHECKPOINT), sink)
    return sink.getvalue()


def write_checkpoint(store: Store, version: int, *actions: dict[str, Any]) -> None:
    store.put(checkpoint_key(version), checkpoint_bytes(*actions))


def _with_pairs(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    maps = ("options", "configuration", "partitionValues")
    return {name: list(part.items()) if name in maps else _with_pairs(part) for name, part in value.items()}
