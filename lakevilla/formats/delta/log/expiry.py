"""Which files of the log no client needs any more, decided over names, sizes and times. Pure.

The rules are Delta's (PROTOCOL.md, "Metadata Cleanup"), and stricter where a lake needs more:

1. A version stays readable if it was current within the retention, or if the caller names it. The oldest of
   these is the **oldest kept** version.
2. The newest checkpoint at or below it is the **base**. It stays, with its own log entry, and with every
   entry after it. Without such a checkpoint nothing goes.
3. Entries, checkpoints and checksums of versions below the base go, and compacted files that begin there or
   at the base; but nothing that is younger than the retention.

So the log stays one run of numbers up to the newest, cleaned from below. That is what a client relies on that
slept, and created a number that had been used (docs/protocol.md, section 1, "Age"): what covers its number is
older than its entry, and no number that it can meet without reading comes back to life. Such an entry is
itself young and far below the others: it stops the clean-up until it is as old as the retention.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from lakevilla.formats.delta.log.paths import parse_companion, parse_log_key
from lakevilla.store.port import Meta


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of the log, its version, and the lowest base with which no client reads it."""

    meta: Meta
    version: int
    unread_from: int

    @staticmethod
    def of(meta: Meta) -> "LogFile | None":
        name = parse_log_key(meta.key)
        if name is not None:
            # Its entries may lie on both sides of a base, and a reader starts with the first above it.
            return LogFile(meta, name.version, name.version + (name.kind != "compacted"))
        version = parse_companion(meta.key)
        return None if version is None else LogFile(meta, version, version + 1)


def decide_oldest_kept(
    commits: Mapping[int, Meta], newest: int, since_ms: int, needed: Collection[int]
) -> int:
    """The oldest version that must stay readable. `newest` is the newest version that a client reads."""
    # The version before the first young entry was current until then.
    young = [version - 1 for version, meta in commits.items() if meta.modified_ms >= since_ms]
    return min([newest, *young, *needed])


def decide_expired(files: Iterable[LogFile], base: int, since_ms: int) -> list[LogFile]:
    """The files that go once everything is read from this checkpoint on, oldest versions first."""
    doomed = [file for file in files if file.unread_from <= base and file.meta.modified_ms < since_ms]
    return sorted(doomed, key=lambda file: (file.version, file.meta.key))
