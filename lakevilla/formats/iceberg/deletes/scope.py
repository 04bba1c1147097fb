"""Which delete files apply to a data file (Iceberg's spec, "Scan Planning").

A position delete file concerns files of its partition that are not younger than it, an equality delete file
those that are older; one that is not partitioned concerns all of them. A deletion vector concerns one file,
and stands for all of its position deletes.
"""

import hashlib
import json
import re
import struct
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lakevilla.errors import Corrupt
from lakevilla.formats.iceberg.definition.layout import Layout
from lakevilla.formats.iceberg.definition.specs import Spec
from lakevilla.formats.iceberg.deletes.contents import DeleteReader, Kept
from lakevilla.formats.iceberg.deletes.position_file import FILE_PATH
from lakevilla.formats.iceberg.manifests.cache import Locate
from lakevilla.formats.iceberg.manifests.entries import EQUALITY_DELETES, PUFFIN, Entry, Mask
from lakevilla.formats.iceberg.metadata.paths import without_scheme
from lakevilla.model import Deletes
from lakevilla.store import keys

_Partition = tuple[int, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class _Applying:
    """The delete files that apply to one data file, as they have to be read."""

    vector: Entry | None
    positions: Sequence[Entry]
    equalities: Sequence[Entry]

    @property
    def all(self) -> list[Entry]:
        return [*([] if self.vector is None else [self.vector]), *self.positions, *self.equalities]


class DeleteIndex:
    """The live delete files of a snapshot, found by the data files that they concern."""

    def __init__(self, entries: Iterable[Entry], locate: Locate, layout: Layout, kept: Kept) -> None:
        everywhere = {number for number, spec in layout.specs.items() if _is_unpartitioned(spec)}
        vectors: dict[str, Entry] = {}
        by_path: dict[str, list[Entry]] = defaultdict(list)
        positions: dict[_Partition, list[Entry]] = defaultdict(list)
        equalities: dict[_Partition | None, list[Entry]] = defaultdict(list)
        for entry in entries:
            path = only_data_file(entry)
            if entry.content == EQUALITY_DELETES:
                equalities[None if entry.spec_id in everywhere else _partition(entry)].append(entry)
            elif entry.format == PUFFIN:
                if path is None or path in vectors:
                    raise Corrupt(f"{entry.path} has a deletion vector for no data file, or a second for one")
                vectors[path] = entry
            elif path is not None:
                by_path[path].append(entry)
            else:
                positions[_partition(entry)].append(entry)
        self._vectors = vectors
        self._by_path = {path: _Queue(found) for path, found in by_path.items()}
        self._positions = {place: _Queue(found) for place, found in positions.items()}
        self._equalities = {place: _Queue(found) for place, found in equalities.items()}
        self._reader = DeleteReader(locate, layout, kept)

    @property
    def is_empty(self) -> bool:
        return not (self._vectors or self._by_path or self._positions or self._equalities)

    def masks(self, data: Entry) -> list[Entry]:
        """The live deletes that concern only this data file, which is published."""
        path = without_scheme(data.path)
        vector = self._vectors.get(path)
        found = [vector] if vector is not None and vector.sequence >= data.sequence else []
        return found + (self._by_path[path].since(data.sequence) if path in self._by_path else [])

    def of(self, data: Entry, masks: Sequence[Mask]) -> Deletes | None:
        """The deleted rows of a data file, read when they are asked for; None if no delete file applies.

        `masks` are the deletes that concern it alone. Of the others none applies to a file that is not
        published yet."""
        found = self._applying(data, [mask.entry for mask in masks])
        named = found.all
        if not named:
            return None
        identity = _identity(named)
        return Deletes(
            identity,
            named[0].rows if len(named) == 1 and _is_counted(named[0]) else None,
            lambda: self._reader.rows(identity, data, found.vector, found.positions, found.equalities),
            tuple(mask.key for mask in masks),
        )

    def _applying(self, data: Entry, masks: Sequence[Entry]) -> _Applying:
        partition, is_new = _partition(data), data.sequence < 0
        equalities = [
            entry
            for place in (partition, None)
            if place in self._equalities and not is_new
            for entry in self._equalities[place].after(data.sequence)
        ]
        vector = next((mask for mask in masks if mask.format == PUFFIN), None)
        if vector is not None:
            return _Applying(vector, (), equalities)
        positions = list(masks)
        if partition in self._positions and not is_new:
            found = self._positions[partition].since(data.sequence)
            positions += [entry for entry in found if _may_name(entry, data.path)]
        return _Applying(None, positions, equalities)


class _Queue:
    """Delete files in the order of their sequence numbers."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = sorted(entries, key=lambda entry: entry.sequence)
        self._numbers = [entry.sequence for entry in self._entries]

    def since(self, sequence: int) -> list[Entry]:
        return self._entries[bisect_left(self._numbers, sequence) :]

    def after(self, sequence: int) -> list[Entry]:
        return self._entries[bisect_right(self._numbers, sequence) :]


def _is_unpartitioned(spec: Spec) -> bool:
    return all(str(field.transform) == "void" for field in spec.fields)


def _partition(entry: Entry) -> _Partition:
    return entry.spec_id, tuple(map(_distinct, entry.partition))


def _distinct(value: Any) -> Any:
    """A partition value that is equal where Iceberg's are: NaN equals itself, and 0.0 is not -0.0."""
    return struct.pack("<d", value) if isinstance(value, float) else value


def only_data_file(entry: Entry) -> str | None:
    """The path, without scheme and authority, of the only data file that position deletes concern.

    Where it is not named, equal bounds of the paths in them tell it: bounds that were cut are not equal.
    """
    if entry.content == EQUALITY_DELETES:
        return None
    referenced = entry.file.get("referenced_data_file")
    if referenced is None:
        low, high = (entry.of_column(name, FILE_PATH) for name in ("lower_bounds", "upper_bounds"))
        referenced = low.decode() if low is not None and low == high else None
    return None if referenced is None else without_scheme(referenced)


def _may_name(entry: Entry, path: str) -> bool:
    """Whether position deletes may concern this file, by the bounds of the paths in it.

    Bounds may be cut, so they cannot be stripped of their scheme: those of another scheme exclude nothing.
    """
    low, high = (entry.of_column(name, FILE_PATH) for name in ("lower_bounds", "upper_bounds"))
    text = path.encode()
    start = text[: len(text) - len(without_scheme(path).encode())]
    if low is None or high is None or not (low.startswith(start) and high.startswith(start)):
        return True
    return bool(low <= text <= high)


def _identity(entries: Iterable[Entry]) -> str:
    """What distinguishes one set of delete files from another."""
    names = sorted([entry.path, entry.file.get("content_offset") or 0] for entry in entries)
    return hashlib.blake2b(json.dumps(names).encode(), digest_size=16).hexdigest()


def _is_counted(entry: Entry) -> bool:
    """Whether so many rows of a data file are deleted as the deletes are said to hold: a vector is a set, and
    we list each row once. Another client's position deletes may list a row twice."""
    return entry.format == PUFFIN or (
        only_data_file(entry) is not None and re.search(keys.DATA_FILE, entry.path) is not None
    )
