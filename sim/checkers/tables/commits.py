"""What a version of a table did, in the words that both formats have in common.

`logs` opens a table's log of either format; `delta` and `iceberg` read one each.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from sim.checkers.tables.vectors import Vector

Objects = Mapping[str, bytes]
"""What lies in a store, by key."""


@dataclass(frozen=True, slots=True)
class Place:
    """What the key of a log entry says: whose it is, and of which version."""

    root: str
    version: int
    format: str


@dataclass(frozen=True, slots=True)
class File:
    """A live data file. `path` is how the log spells it, `deletes` are the keys of files that name rows of it
    which are deleted: position deletes of Iceberg, or the `vector` of Delta, which may be in the log."""

    key: str
    path: str
    deletes: tuple[str, ...] = ()
    vector: Vector | None = None


@dataclass
class Commit:
    """One version. Files go by the name under which the log knows them: one whose deleted rows change goes,
    and comes again under another name.

    `names` are the objects that this version needs and none before it did, with their lengths if it tells
    them; `ours` is what LakeVilla says of itself, empty for anybody else's; `redefines` tells whether the
    table's definition changes; `shadows` are files that it may have deleted rows of, as far as the log tells;
    `problems` is what is wrong with the version, also after the one before.
    """

    version: int
    adds: dict[str, File] = field(default_factory=dict)
    removes: list[str] = field(default_factory=list)
    names: dict[str, int | None] = field(default_factory=dict)
    ours: dict[str, Any] = field(default_factory=dict)
    redefines: bool = False
    shadows: frozenset[str] = frozenset()
    problems: list[str] = field(default_factory=list)


class Log(Protocol):
    """One table's log, read version by version."""

    commits: list[Commit]
    live: dict[str, File]
    """The files of the newest version that was read."""

    def follows(self, version: int) -> bool:
        """Whether a version may be the next one."""
        ...

    def read(self, version: int, data: bytes, objects: Objects) -> Commit:
        """The next version, whose entry is `data`."""
        ...

    def beside(self, key: str, data: bytes) -> str | None:
        """What is wrong with an object that tells again what the log tells, such as a checkpoint."""
        ...


def rows_of(file: File, objects: Objects) -> list[dict[str, Any]] | None:
    """The rows of a live file; None if it is missing, or what says which of its rows are deleted."""
    if any(objects.get(key) is None for key in (file.key, *file.deletes)):
        return None
    return [row for _, row in numbered_rows(file, objects)]


def numbered_rows(file: File, objects: Objects) -> list[tuple[int, dict[str, Any]]]:
    """The rows of a live file with their positions."""
    rows = parse_rows(objects[file.key])
    if file.vector is not None:
        gone = file.vector.rows(objects)
        assert not gone or max(gone) < len(rows), f"{file.path} has no row {max(gone)}, which is deleted"
    else:
        gone = {position for key in file.deletes for position in deleted_rows(objects[key], file.path)}
    return [(position, row) for position, row in enumerate(rows) if position not in gone]


def deleted_rows(data: bytes, path: str) -> set[int]:
    """The positions in this data file that a file of position deletes names."""
    return {row["pos"] for row in parse_rows(data) if row["file_path"] == path}


def parse_rows(data: bytes) -> list[dict[str, Any]]:
    """The rows of one data file: a JSON list, or Parquet."""
    if data.startswith(b"PAR1"):
        table: list[dict[str, Any]] = parquet(data).read(use_threads=False).to_pylist()
        return table
    rows: list[dict[str, Any]] = json.loads(data)
    return rows


def parquet(data: bytes) -> pq.ParquetFile:
    return pq.ParquetFile(pa.BufferReader(data), pre_buffer=False)
