"""Which files of the log make a version: a checkpoint, if there is one, and the entries after it.

The hint `_last_checkpoint` saves the LIST when it is right; when it is missing, old, unreadable or points
to nothing, one LIST replaces it. A multi-part checkpoint without all of its parts does not exist, and
files whose names are not part of the log are ignored. A gap in the entries is Corrupt.

Nothing here is decided by time, except where a table has no other clock (`adjusted_times`).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lakevilla.errors import Corrupt, InvalidInput
from lakevilla.formats.delta.log.paths import (
    LAST_CHECKPOINT,
    LOG,
    checkpoint_key,
    checkpoint_part_keys,
    entry_key,
    parse_log_key,
    version_prefix,
)
from lakevilla.store.port import Meta, Store


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint. Sizes are None where only a name is known."""

    version: int
    keys: tuple[str, ...]
    sizes: tuple[int | None, ...]


@dataclass(frozen=True)
class Piece:
    """One file of the tail: the entry `end`, or the entries `start` to `end` compacted into one file."""

    start: int
    end: int
    key: str


@dataclass(frozen=True)
class Segment:
    """The files that make `version`."""

    version: int
    checkpoint: Checkpoint | None
    tail: tuple[Piece, ...]


@dataclass
class Listing:
    """What a LIST of the log found, from some version on."""

    commits: dict[int, Meta] = field(default_factory=dict)
    checkpoints: dict[int, Checkpoint] = field(default_factory=dict)
    compacted: dict[int, list[Piece]] = field(default_factory=dict)

    @property
    def newest(self) -> int | None:
        return max([*self.commits, *self.checkpoints], default=None)

    def segment(self, version: int | None = None) -> Segment | None:
        """The files that make this version (the newest if None), or None if there is no log."""
        newest = self.newest
        if newest is None:
            return None
        wanted = newest if version is None else version
        usable = [found for found in self.checkpoints if found <= wanted]
        checkpoint = self.checkpoints[max(usable)] if usable else None
        start = 0 if checkpoint is None else checkpoint.version + 1
        if version is not None and (wanted > newest or (not usable and 0 not in self.commits)):
            raise InvalidInput(f"version {version} is not available; {self._available()}", version=version)
        try:
            return Segment(wanted, checkpoint, self._tail(start, wanted))
        except Corrupt as gap:
            # Entries below a later checkpoint are cleaned up one by one: a gap there is not damage.
            if version is None or max(self.checkpoints, default=-1) <= wanted:
                raise
            raise InvalidInput(
                f"version {version} is not available; {self._available()}", version=version
            ) from gap

    def oldest(self) -> int | None:
        """The oldest version that can still be read."""
        starts = [*self.checkpoints, *({0} & self.commits.keys())]
        return min(starts, default=None)

    def _available(self) -> str:
        return f"versions {self.oldest()} to {self.newest} are"

    def _tail(self, start: int, end: int) -> tuple[Piece, ...]:
        tail: list[Piece] = []
        while start <= end:
            fitting = [piece for piece in self.compacted.get(start, ()) if piece.end <= end]
            if fitting:
                tail.append(max(fitting, key=lambda piece: piece.end))
            elif start in self.commits:
                tail.append(Piece(start, start, entry_key(start)))
            else:
                raise Corrupt(
                    f"the Delta log has a gap: entry {start} is missing, but entry {end} exists",
                    version=start,
                )
            start = tail[-1].end + 1
        return tuple(tail)


def list_log(store: Store, start: int = 0) -> Listing:
    """All files of the log from this version on."""
    listing = Listing()
    parts: dict[tuple[int, int], dict[int, Meta]] = {}
    for meta in log_files(store, start):
        name = parse_log_key(meta.key)
        if name is None:
            continue
        match name.kind:
            case "commit":
                listing.commits[name.version] = meta
            case "compacted":
                piece = Piece(name.version, name.end, meta.key)
                listing.compacted.setdefault(name.version, []).append(piece)
            case "multipart":
                parts.setdefault((name.version, name.parts), {})[name.part] = meta
            case "uuid" | "classic":
                # Any complete checkpoint of a version will do; a classic one sorts last and is one file.
                listing.checkpoints[name.version] = Checkpoint(name.version, (meta.key,), (meta.size,))
    for (version, count), found in parts.items():
        if len(found) == count and version not in listing.checkpoints:
            ordered = [found[part] for part in range(1, count + 1)]
            keys, sizes = tuple(meta.key for meta in ordered), tuple(meta.size for meta in ordered)
            listing.checkpoints[version] = Checkpoint(version, keys, sizes)
    return listing


def read_hint(store: Store) -> Checkpoint | None:
    """The checkpoint that `_last_checkpoint` points to. It is a hint: anything odd counts as none."""
    found = store.get(LAST_CHECKPOINT)
    if found is None:
        return None
    try:
        hint = json.loads(found.data)
        version = int(hint["version"])
        parts = int(hint.get("parts") or 1)
        v2 = hint.get("v2Checkpoint")
        size = int(hint.get("sizeInBytes") or 0) or None
        if v2 is not None:
            keys: tuple[str, ...] = (LOG + str(v2["path"]).rpartition("/")[2],)
        elif parts > 1:
            keys = checkpoint_part_keys(version, parts)
        else:
            keys = (checkpoint_key(version),)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
    if version < 0 or any(parse_log_key(key) is None for key in keys):
        return None
    # The size counts parts and sidecars too: it says no more than whether a file may be large.
    return Checkpoint(version, keys, tuple(size for _ in keys))


def adjusted_times(commits: Mapping[int, Meta]) -> list[tuple[int, int]]:
    """(version, time in ms) by the files' modification times, made to grow as Delta does."""
    times: list[tuple[int, int]] = []
    for version in sorted(commits):
        time = commits[version].modified_ms
        if times and time <= times[-1][1]:
            time = times[-1][1] + 1
        times.append((version, time))
    return times


def newest_at(times: Sequence[tuple[int, int]], timestamp_ms: int) -> int | None:
    """The newest version whose time is not after this one."""
    return max((version for version, time in times if time <= timestamp_ms), default=None)


def log_files(store: Store, start: int) -> Iterable[Meta]:
    """All objects of the log's folder from this version on that have a version in their names."""
    for meta in store.list(LOG, version_prefix(start) if start else ""):
        # Names of log files start with a digit; folders such as `_sidecars/` sort behind them.
        if meta.key.removeprefix(LOG)[:1] > "9":
            return
        yield meta
