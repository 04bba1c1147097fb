"""The logs of tables, whichever format they have: what all other checkers ask for.

A log entry is the object whose create made a version: an entry of Delta's log, a metadata file of Iceberg.
"""

from collections.abc import Iterable
from typing import Any

from sim.checkers.tables import delta, iceberg
from sim.checkers.tables.commits import Log, Objects, Place
from sim.checkers.tables.delta import DeltaLog
from sim.checkers.tables.iceberg import IcebergLog

_FIRST_VERSIONS = {"delta": delta.FIRST_VERSIONS, "iceberg": iceberg.FIRST_VERSIONS}


def place_of(key: str) -> Place | None:
    """Whose log entry lies at this key; None for other objects."""
    return delta.place_of(key) or iceberg.place_of(key)


def root_beside(key: str) -> str | None:
    """The table whose state an object repeats, such as a checkpoint; None for other objects."""
    beside = delta.root_beside(key)
    return iceberg.root_beside(key) if beside is None else beside


def new_log(place: Place) -> Log:
    """The log of the table in which an entry was found, with nothing read yet."""
    return DeltaLog(place.root) if place.format == "delta" else IcebergLog(place.root)


def told(place: Place, data: bytes) -> dict[str, Any]:
    """What LakeVilla says of itself in an entry; empty for anybody else's."""
    told_by = delta.told if place.format == "delta" else iceberg.told
    return told_by(place.version, data)


def entry_key(format_name: str, root: str, version: int) -> str:
    """The key of a table's log entry."""
    key = delta.log_key if format_name == "delta" else iceberg.log_key
    return key(root, version)


def read_log(objects: Objects, root: str) -> Log:
    """The log of a table, from its first version up to the first gap; empty if there is no table."""
    for name, versions in _FIRST_VERSIONS.items():
        for first in versions:
            if entry_key(name, root, first) in objects:
                return _read(objects, Place(root, first, name))
    return DeltaLog(root)


def _read(objects: Objects, place: Place) -> Log:
    log, version = new_log(place), place.version
    while (data := objects.get(entry_key(place.format, place.root, version))) is not None:
        log.read(version, data, objects)
        version += 1
    return log


def table_roots(objects: Iterable[str]) -> list[str]:
    """The roots of all tables in the store."""
    return sorted({place.root for place in map(place_of, objects) if place is not None})
