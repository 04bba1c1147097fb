"""A pinned table as an engine reads it, with a note of what it reads."""

from collections.abc import Callable, Sequence

from lakevilla.engines.port import Source
from lakevilla.model import DataFile
from lakevilla.predicates import Predicate
from lakevilla.tables.pinned import Pinned

Note = Callable[[Predicate, Sequence[DataFile]], None]
"""Called with what the engine asks for, and the files that it gets."""


def table_source(pinned: Pinned, note: Note) -> Source:
    """The table for an engine."""
    snapshot = pinned.snapshot

    def files(predicate: Predicate) -> Sequence[DataFile]:
        found = snapshot.files(predicate)
        note(predicate, found)
        return found

    return Source(
        pinned.ref.name,
        snapshot.schema,
        snapshot.partition_columns,
        files,
        pinned.table.open,
        snapshot.about_bytes,
        snapshot.has_deletes,
        snapshot.formats,
        snapshot.unstored,
    )
