"""The metadata of an Iceberg table: one JSON document a version, held as it is, so that what we do not know
of survives. Pieces of it are read as PyIceberg's models; format 1 spells some of them in its own way.
"""

import gzip
import json
import zlib
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pyiceberg.exceptions import ValidationError as UnknownType
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema

from lakevilla.errors import Corrupt, Unsupported
from lakevilla.formats.iceberg.metadata.shape import misshapen

Raw = Mapping[str, Any]
"""A metadata document."""

FORMATS = (1, 2, 3)
_GZIP = b"\x1f\x8b"


def parse(data: bytes, name: str) -> dict[str, Any]:
    """The document in a metadata file, compressed or not; `name` is for errors."""
    try:
        raw = json.loads(gzip.decompress(data) if data[:2] == _GZIP else data)
    except (ValueError, EOFError, OSError, zlib.error, RecursionError) as error:
        raise Corrupt(f"{name} is not Iceberg metadata: {error}") from error
    if not isinstance(raw, dict) or not isinstance(raw.get("location"), str):
        raise Corrupt(f"{name} is not Iceberg metadata: it names no location")
    wrong = misshapen(raw)
    if wrong is not None:
        raise Corrupt(f"{name} is not valid Iceberg metadata: its member {wrong!r} is malformed")
    if raw.get("format-version") not in FORMATS:
        raise Unsupported(
            f"{name} has Iceberg's format {raw.get('format-version')!r}; LakeVilla reads 1, 2 and 3"
        )
    return raw


def encode(raw: Raw, compressed: bool) -> bytes:
    """The bytes of a metadata file."""
    data = json.dumps(raw, separators=(",", ":"), ensure_ascii=False).encode()
    return gzip.compress(data, mtime=0) if compressed else data


def format_version(raw: Raw) -> int:
    return int(raw["format-version"])


def schemas(raw: Raw) -> dict[int, Schema]:
    """The table's schemas by id."""
    given = raw.get("schemas") or [raw.get("schema") or {}]
    return {schema.schema_id: schema for schema in map(_schema, given)}


def current_schema(raw: Raw) -> Schema:
    """The schema that readers see."""
    wanted = raw.get("current-schema-id")
    for given in raw.get("schemas") or ():
        if given.get("schema-id", 0) == wanted:
            return _schema(given)
    if raw.get("schema") is None:
        raise Corrupt(f"the Iceberg metadata has no schema {wanted!r}")
    return _schema(raw["schema"])


def specs(raw: Raw) -> dict[int, PartitionSpec]:
    """The table's partition specs by id."""
    given = raw.get("partition-specs")
    if given is None:
        given = [{"spec-id": 0, "fields": _numbered(raw.get("partition-spec") or [])}]
    return {spec.spec_id: spec for spec in map(_spec, given)}


def default_spec(raw: Raw) -> PartitionSpec:
    """The spec of new files."""
    wanted = raw.get("default-spec-id") or 0
    found = specs(raw).get(wanted)
    if found is None:
        raise Corrupt(f"the Iceberg metadata has no partition spec {wanted!r}")
    return found


def properties(raw: Raw) -> Mapping[str, str]:
    found: Mapping[str, str] = raw.get("properties") or {}
    return found


def current_snapshot(raw: Raw) -> Mapping[str, Any] | None:
    """The snapshot that readers see; None for a table without rows."""
    wanted = raw.get("current-snapshot-id")
    if wanted is None or wanted == -1:
        return None
    for snapshot in raw.get("snapshots") or ():
        if snapshot["snapshot-id"] == wanted:
            found: Mapping[str, Any] = snapshot
            return found
    raise Corrupt(f"the Iceberg metadata has no snapshot {wanted}")


# Pydantic's and PyIceberg's own: of types that PyIceberg knows and cannot parse.
_UNREADABLE = (ValidationError, UnknownType, ValueError, TypeError, KeyError)


def _schema(given: Mapping[str, Any]) -> Schema:
    try:
        return Schema.model_validate(given)
    except _UNREADABLE as error:
        raise Unsupported(f"the schema of the Iceberg table is not readable: {_reason(error)}") from error


def _spec(given: Mapping[str, Any]) -> PartitionSpec:
    try:
        return PartitionSpec.model_validate(given)
    except _UNREADABLE as error:
        raise Unsupported(f"a partition spec of the table is not readable: {_reason(error)}") from error


def _numbered(fields: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Partition fields of format 1, which may leave out ids."""
    return [{"field-id": 1000 + position, **field} for position, field in enumerate(fields)]


def _reason(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def table_id(raw: Raw) -> str:
    """The table's `table-uuid`, which the first format version need not have."""
    return str(raw.get("table-uuid") or "")
