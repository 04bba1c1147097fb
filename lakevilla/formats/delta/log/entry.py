"""One entry of the Delta log: from the JSON lines of a commit to `actions.Commit`.

Unknown actions and unknown fields are ignored, as the protocol demands; what contradicts it is Corrupt.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from lakevilla.errors import Corrupt
from lakevilla.formats.delta.log.actions import Commit, Metadata, Protocol

VECTOR_MARK = "?dv="
"""Between path and vector in the identity of a file; a path in the log has no bare question mark."""

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"\s*")
_EMPTY_SCHEMA = '{"type":"struct","fields":[]}'


def parse_entry(version: int, data: bytes) -> Commit:
    """The actions of log entry `version`. Files stay raw; the last of any repeated action wins."""
    return commit_of(version, parse_lines(version, data))


def parse_lines(version: int, data: bytes) -> list[dict[str, Any]]:
    """The JSON objects of a log file, one for each action."""
    # One object per line is the rule, but there are writers that break lines inside of objects.
    lines = []
    try:
        text = data.decode()
        position = _after_space(text, 0)
        while position < len(text):
            line, position = _DECODER.raw_decode(text, position)
            lines.append(line)
            position = _after_space(text, position)
    except (ValueError, RecursionError) as error:
        raise Corrupt(f"entry {version} of the Delta log is not JSON: {error}", version=version) from error
    return lines


def _after_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return position if found is None else found.end()


def commit_of(version: int, lines: list[dict[str, Any]]) -> Commit:
    """A commit from its actions, each the JSON object of one line."""
    try:
        return _commit_of(version, lines)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Corrupt(
            f"entry {version} of the Delta log holds a malformed action: {error!r}", version=version
        ) from error


def _commit_of(version: int, lines: list[dict[str, Any]]) -> Commit:
    adds: list[Mapping[str, Any]] = []
    removes: list[Mapping[str, Any]] = []
    changes: list[Mapping[str, Any]] = []
    txns: dict[str, Mapping[str, Any]] = {}
    domains: dict[str, Mapping[str, Any]] = {}
    protocol, metadata, info = None, None, None
    for line in lines:
        for name, body in line.items():
            if body is None:
                continue
            match name:
                case "add":
                    adds.append(_file(body))
                case "remove":
                    removes.append(_file(body))
                case "cdc":
                    changes.append(_file(body))
                case "metaData":
                    metadata = metadata_of(body)
                case "protocol":
                    protocol = protocol_of(body)
                case "commitInfo" if isinstance(body, dict):
                    info = body
                case "txn":
                    txns[body["appId"]] = body
                case "domainMetadata":
                    domains[body["domain"]] = body
    return Commit(
        version, tuple(adds), tuple(removes), protocol, metadata, info, txns, domains, tuple(changes)
    )


def protocol_of(body: Mapping[str, Any]) -> Protocol:
    """A `protocol` action."""
    readers, writers = body.get("readerFeatures"), body.get("writerFeatures")
    return Protocol(
        int(body["minReaderVersion"]),
        int(body["minWriterVersion"]),
        None if readers is None else frozenset(_texts(readers)),
        None if writers is None else frozenset(_texts(writers)),
    )


def metadata_of(body: Mapping[str, Any]) -> Metadata:
    """A `metaData` action; maps may come as pairs, as Arrow gives them."""
    table_format = body.get("format") or {}
    created = body.get("createdTime")
    return Metadata(
        id=str(body.get("id") or ""),
        schema_string=body.get("schemaString") or _EMPTY_SCHEMA,
        partition_columns=_texts(body.get("partitionColumns") or ()),
        configuration=_text_map(body.get("configuration")),
        name=body.get("name"),
        description=body.get("description"),
        created_ms=None if created is None else int(created),
        format_provider=table_format.get("provider") or "parquet",
        format_options=_text_map(table_format.get("options")),
    )


def _texts(values: Any) -> tuple[str, ...]:
    if isinstance(values, str) or not all(isinstance(value, str) for value in values):
        raise TypeError(f"{values!r} is not a list of names")
    return tuple(values)


def _text_map(pairs: Any) -> dict[str, str]:
    return {str(key): str(value) for key, value in dict(pairs or {}).items() if value is not None}


def _file(body: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(body["path"], str):
        raise TypeError("the path of a file is not a string")
    vector = body.get("deletionVector")
    if vector is not None:
        dv_id(vector)
    return body


def dv_id(vector: Mapping[str, Any] | None) -> str | None:
    """The unique id of a deletion vector (PROTOCOL.md, "Derived Fields"); None without a vector."""
    if vector is None:
        return None
    unique: str = vector["storageType"] + vector["pathOrInlineDv"]
    offset = vector.get("offset")
    return unique if offset is None else f"{unique}@{offset}"


def identity_of(body: Mapping[str, Any]) -> str:
    """The name under which conflicts and removals know a logical file: its path, and its vector if any."""
    vector = dv_id(body.get("deletionVector"))
    path: str = body["path"]
    return path if vector is None else path + VECTOR_MARK + vector
