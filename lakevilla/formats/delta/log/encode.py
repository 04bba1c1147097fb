"""Actions to the bytes of a log entry (PROTOCOL.md of Delta Lake, "Actions"): the inverse of `entry`.

One JSON object per line, `commitInfo` first. Our part of it, the object `lakevilla`, names the writer of the
entry: the attempt is the identity that recovery recognises, and the put-id makes the bytes unique.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from lakevilla.errors import NOT_NULL, InvalidInput
from lakevilla.files.column_mapping import physical_name
from lakevilla.files.partitioning import partition_text
from lakevilla.formats import authorship
from lakevilla.formats.delta.files.statistics import Path, statistics_text
from lakevilla.formats.delta.log.actions import Metadata, Protocol
from lakevilla.model import Author, Batch, Change, Notice, WrittenFile

Action = dict[str, Any]

# What a `remove` repeats of the `add` that it ends.
CARRIED = ("partitionValues", "size", "tags", "deletionVector", "baseRowId", "defaultRowCommitVersion")


def encode_entry(actions: Iterable[Action]) -> bytes:
    """The bytes of a log entry."""
    lines = (json.dumps(action, separators=(",", ":"), ensure_ascii=False) for action in actions)
    return "".join(f"{line}\n" for line in lines).encode()


def commit_info(
    change: Change, author: Author, *, now_ms: int, read_version: int | None, in_commit_ms: int | None
) -> Action:
    """The `commitInfo` action of a change; `in_commit_ms` where the table asks for the commit's own time."""
    info: dict[str, Any] = {} if in_commit_ms is None else {"inCommitTimestamp": in_commit_ms}
    info |= {
        "timestamp": now_ms,
        "operation": change.operation,
        "operationParameters": dict(change.parameters),
    }
    if read_version is not None:
        info["readVersion"] = read_version
    info |= {
        "isolationLevel": "Serializable",
        "isBlindAppend": bool(change.added) and change.blind,
        "operationMetrics": {name: str(value) for name, value in change.metrics.items()},
        "engineInfo": authorship.ENGINE,
        "txnId": author.txn,
        "lakevilla": authorship.signed(author, change.notice),
    }
    return {"commitInfo": info}


def marker_info(record: Mapping[str, Any], version: int) -> Action:
    """The only action of a marker in the log: `live` as long as it holds its version."""
    author = Author(record["txn"], record["attempt"], record["put"])
    change = Change(authorship.marker_operation(record))
    action = commit_info(
        change, author, now_ms=record["claimed_ms"], read_version=version - 1, in_commit_ms=None
    )
    action["commitInfo"]["lakevilla"] = authorship.marked(record)
    return action


def marker_of(info: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The record of the marker that an entry is, pending or freed; None for any other entry."""
    return authorship.marker_of(_ours(info))


def is_pending(info: Mapping[str, Any] | None) -> bool:
    """Whether the entry is a marker that still holds its version: no client reads it, nor what comes
    after."""
    marker = marker_of(info)
    return marker is not None and bool(marker["live"])


def attempt_of(info: Mapping[str, Any] | None) -> str | None:
    """The LakeVilla attempt that a `commitInfo` names; None for markers, and for any other client's
    commit."""
    return None if marker_of(info) is not None else authorship.attempt_of(_ours(info))


def put_of(info: Mapping[str, Any] | None) -> str | None:
    """The put-id that a `commitInfo` of ours names."""
    return authorship.put_of(_ours(info))


def txn_of(info: Mapping[str, Any] | None) -> str | None:
    """The LakeVilla transaction that a `commitInfo` names; None for markers, and for others' commits."""
    return None if marker_of(info) is not None else authorship.txn_of(_ours(info))


def ticket_of(info: Mapping[str, Any] | None) -> int:
    """The ticket that the commit used up; 0 if it had none."""
    return authorship.ticket_of(_ours(info))


def notice_of(info: Mapping[str, Any] | None) -> Notice | None:
    """What the entry says of the table's name, if it is there for that."""
    return authorship.notice_of(_ours(info))


def slot_of(info: Mapping[str, Any] | None) -> int:
    """The entry of the global log that decided the commit; 0 if none did."""
    return authorship.slot_of(_ours(info))


def _ours(info: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Our part of a `commitInfo`, empty where there is none."""
    ours = (info or {}).get("lakevilla")
    return ours if isinstance(ours, dict) else {}


def add_action(
    file: WrittenFile,
    partition_fields: Mapping[str, pa.Field],
    indexed: Mapping[Path, Path],
    *,
    data_change: bool,
) -> Action:
    """The `add` of a written file. `indexed` says which columns get statistics, see `statistics`."""
    if file.entry is not None:
        return {"add": file.entry}
    return {
        "add": {
            # Paths are URIs: what the key holds literally is percent-encoded once.
            "path": quote(file.key, safe="/="),
            "partitionValues": partition_values(file.partition, partition_fields),
            "size": file.size,
            "modificationTime": file.modified_ms,
            "dataChange": data_change,
            "stats": statistics_text(file.rows, file.statistics, indexed),
        }
    }


def change_action(file: WrittenFile, partition_fields: Mapping[str, pa.Field]) -> Action:
    """The `cdc` of a file of changed rows. The table itself does not have them, so it never changes data."""
    if file.entry is not None:
        return {"cdc": file.entry}
    return {
        "cdc": {
            "path": quote(file.key, safe="/="),
            "partitionValues": partition_values(file.partition, partition_fields),
            "size": file.size,
            "dataChange": False,
        }
    }


def partition_values(values: Mapping[str, Any], fields: Mapping[str, pa.Field]) -> dict[str, str | None]:
    """Partition values as text by physical name. Delta has no empty text here: it reads as null."""
    texts: dict[str, str | None] = {}
    for name, field in fields.items():
        text = partition_text(values[name], field.type) or None
        if text is None and not field.nullable:
            raise InvalidInput(
                f"column {name!r} is NOT NULL and a partition column: null and empty values cannot be stored",
                column=name,
                rule=NOT_NULL,
            )
        texts[physical_name(field)] = text
    return texts


def remove_action(added: Mapping[str, Any], *, now_ms: int, data_change: bool) -> Action:
    """The `remove` that ends a file, from the file's own `add` object."""
    body = {"path": added["path"], "deletionTimestamp": now_ms, "dataChange": data_change}
    body["extendedFileMetadata"] = True
    body |= {name: _without_empty_members(added[name]) for name in CARRIED if added.get(name) is not None}
    return {"remove": body}


def _without_empty_members(value: Any) -> Any:
    """A deletion vector without the members that it does not have; partition values may be null."""
    if isinstance(value, Mapping) and "storageType" in value:
        return {name: member for name, member in value.items() if member is not None}
    return value


def txn_action(once: Batch, now_ms: int) -> Action:
    """The `txn` action of a batch: it lets Delta's own writers see that the batch is committed."""
    return {"txn": {"appId": once.app, "version": once.number, "lastUpdated": now_ms}}


def metadata_action(metadata: Metadata) -> Action:
    """A `metaData` action."""
    body: dict[str, Any] = {"id": metadata.id}
    if metadata.name is not None:
        body["name"] = metadata.name
    if metadata.description is not None:
        body["description"] = metadata.description
    body |= {
        "format": {"provider": metadata.format_provider, "options": dict(metadata.format_options)},
        "schemaString": metadata.schema_string,
        "partitionColumns": list(metadata.partition_columns),
        "configuration": dict(metadata.configuration),
    }
    if metadata.created_ms is not None:
        body["createdTime"] = metadata.created_ms
    return {"metaData": body}


def protocol_action(protocol: Protocol) -> Action:
    """A `protocol` action; feature lists are sorted, so that equal protocols have equal bytes."""
    body: dict[str, Any] = {
        "minReaderVersion": protocol.min_reader,
        "minWriterVersion": protocol.min_writer,
    }
    if protocol.reader_features is not None:
        body["readerFeatures"] = sorted(protocol.reader_features)
    if protocol.writer_features is not None:
        body["writerFeatures"] = sorted(protocol.writer_features)
    return {"protocol": body}
