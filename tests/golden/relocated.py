"""Copies of tables of others that can be written: Iceberg's metadata names the place where a table lies."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import fastavro


def writable_copy(table: Path, place: Path) -> Path:
    """A copy of the table at this place, which its metadata names. Versions of a catalog are numbered."""
    shutil.copytree(table, place)
    for folder, _, names in os.walk(place):
        for path in (Path(folder), *(Path(folder, name) for name in names)):
            path.chmod(0o755)
    metadata = place / "metadata"
    if metadata.exists():
        for path in metadata.glob("*.metadata.json"):
            if not path.name.startswith("v"):
                path.rename(metadata / f"v{int(path.name[:5]) + 1}.metadata.json")
        _relocate(metadata, place)
    return place


def _relocate(metadata: Path, place: Path) -> None:
    """Names the new place in every file of the metadata."""
    old: str = json.loads(next(metadata.glob("*.metadata.json")).read_text())["location"]
    for path in metadata.glob("*.metadata.json"):
        path.write_text(json.dumps(_replaced(json.loads(path.read_text()), old, f"file://{place}")))
    for path in metadata.glob("*.avro"):
        with path.open("rb") as stream:
            reader = fastavro.reader(stream)
            records, schema, known = list(reader), reader.writer_schema, reader.metadata
        kept = {key: value for key, value in known.items() if not key.startswith("avro.")}
        moved = _replaced(records, old, f"file://{place}")
        with path.open("wb") as stream:
            fastavro.writer(stream, schema, moved, metadata=kept)
    for path in metadata.glob(".*.crc"):
        path.unlink()


def _replaced(value: Any, old: str, new: str) -> Any:
    if isinstance(value, str):
        return new + value.removeprefix(old) if value == old or value.startswith(old + "/") else value
    if isinstance(value, dict):
        return {key: _replaced(inner, old, new) for key, inner in value.items()}
    return [_replaced(inner, old, new) for inner in value] if isinstance(value, list) else value
