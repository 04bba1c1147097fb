"""A pinned table as an engine reads it, with a note of what it reads."""

from collections.abc import Callable, Iterable, Sequence

from lakevilla.engines.port import Source
from lakevilla.model import DataFile
from lakevilla.predicates import Predicate
from lakevilla.pruning import Summary
from lakevilla.tables.pinned import Pinned

Note = Callable[[Predicate, frozenset[str], int], None]
"""Called with what the engine asks for, the identities of the files that answer it, and the bytes to read."""


def table_source(pinned: Pinned, note: Note, wait_for: Callable[[Iterable[DataFile]], None]) -> Source:
    """The table for an engine. `wait_for` waits until these files have been uploaded."""
    snapshot = pinned.snapshot

    def files(predicate: Predicate) -> Sequence[DataFile]:
        found = snapshot.files(predicate)
        note(predicate, frozenset(file.identity for file in found), sum(file.size for file in found))
        wait_for(found)
        return found

    def summary(predicate: Predicate, unless: Predicate, columns: Sequence[str]) -> Summary | None:
        found = snapshot.summary(predicate, unless, columns)
        if found is not None:
            note(predicate, found.files, 0)
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
        summary=summary,
    )
