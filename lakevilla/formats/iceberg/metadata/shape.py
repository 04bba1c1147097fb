"""The shape of a metadata document: what the rest of this room takes for granted of the members that it uses.

Checked once, when a document is read. Members that are absent or null, and those that we do not know, are
fine.
"""

from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[Any], bool]


def misshapen(raw: Mapping[str, Any]) -> str | None:
    """The first member that is not what Iceberg's specification has there; None if all are."""
    return _first_wrong(raw, _DOCUMENT)


def _first_wrong(value: Mapping[str, Any], members: Mapping[str, Check]) -> str | None:
    # A plain loop: a table of 1,000 snapshots has 8,000 members to look at.
    for name, check in members.items():
        member = value.get(name)
        if member is not None and not check(member):
            return name
    return None


def _is(*kinds: type) -> Check:
    # A boolean is an integer to Python, but not here.
    return lambda value: isinstance(value, kinds) and not isinstance(value, bool)


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _map_of(check: Check) -> Check:
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def _object(**members: Check) -> Check:
    """An object whose members, named here as in Python, are absent or fit."""
    named = {name.replace("_", "-"): check for name, check in members.items()}
    return lambda value: isinstance(value, dict) and _first_wrong(value, named) is None


def _with(name: str, check: Check) -> Check:
    return lambda value: check(value) and value.get(name) is not None


_NUMBER, _TEXT = _is(int), _is(str)
_TEXTS = _map_of(lambda value: value is None or isinstance(value, str))
_SNAPSHOT = _with(
    "snapshot-id",
    _object(
        snapshot_id=_NUMBER,
        parent_snapshot_id=_NUMBER,
        sequence_number=_NUMBER,
        timestamp_ms=_NUMBER,
        schema_id=_NUMBER,
        manifest_list=_TEXT,
        manifests=_list_of(_TEXT),
        summary=_is(dict),
    ),
)
_DOCUMENT: dict[str, Check] = {
    "table-uuid": _TEXT,
    "last-updated-ms": _NUMBER,
    "last-sequence-number": _NUMBER,
    "last-column-id": _NUMBER,
    "last-partition-id": _NUMBER,
    "current-schema-id": _NUMBER,
    "default-spec-id": _NUMBER,
    "default-sort-order-id": _NUMBER,
    "current-snapshot-id": _NUMBER,
    "next-row-id": _NUMBER,
    "schema": _is(dict),
    "schemas": _list_of(_is(dict)),
    "partition-spec": _list_of(_is(dict)),
    "partition-specs": _list_of(_is(dict)),
    "sort-orders": _list_of(_is(dict)),
    "properties": _TEXTS,
    "snapshots": _list_of(_SNAPSHOT),
    "refs": _map_of(_with("snapshot-id", _object(snapshot_id=_NUMBER, type=_TEXT))),
    "snapshot-log": _list_of(_object(snapshot_id=_NUMBER, timestamp_ms=_NUMBER)),
    "metadata-log": _list_of(_object(metadata_file=_TEXT, timestamp_ms=_NUMBER)),
}
