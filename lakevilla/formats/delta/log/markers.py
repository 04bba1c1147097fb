"""Markers in the log (placement `log`; docs/protocol.md, section 3): written, read, and filled.

A marker is a log entry with `commitInfo` alone: for every other client an empty commit. Its owner replaces it
by the real commit. This is the one place where an entry of the log is rewritten, so it is looked at first
whether any client could have built on the empty one: a checkpoint or a compacted file that covers it, or a
commit above it that is not a marker. An outside writer that comes between the look and the replace is not
seen: tables with markers in the log are for LakeVilla clients alone.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from lakevilla.environment import Environment
from lakevilla.formats.conditional_commit import displaced, fill_version
from lakevilla.formats.delta.log.encode import attempt_of, encode_entry, is_pending, marker_info, marker_of
from lakevilla.formats.delta.log.entry import commit_of, parse_entry
from lakevilla.formats.delta.log.listing import list_log
from lakevilla.formats.delta.log.load import read_entry
from lakevilla.formats.delta.log.paths import entry_key
from lakevilla.formats.delta.log.publish import prepare
from lakevilla.formats.delta.snapshot import DeltaSnapshot
from lakevilla.formats.port import Displaced, Published
from lakevilla.model import Author, Change
from lakevilla.store.port import Store


class DeltaMarkerEntries:
    """The log of the table at the store's root, as places for markers."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def key(self, version: int) -> str:
        return entry_key(version)

    def encode(self, version: int, record: Mapping[str, Any]) -> bytes:
        return encode_entry([marker_info(record, version)])

    def decode(self, version: int, data: bytes) -> Mapping[str, Any] | None:
        return marker_of(parse_entry(version, data).info)

    def taken(self, after: int) -> dict[int, int]:
        listing = list_log(self._store, after + 1)
        versions = sorted({*listing.commits, *listing.checkpoints})
        return {v: listing.commits[v].modified_ms if v in listing.commits else 0 for v in versions}

    def freed(self, version: int) -> None:
        """An empty entry hides nothing."""


def fill(
    store: Store, environment: Environment, base: DeltaSnapshot, change: Change, author: Author, etag: str
) -> Published | Displaced:
    """Replace the marker with this tag, entry `base.version + 1`, by the change."""
    base.refuse_writes()
    version = base.version + 1
    actions = prepare(store, base, change, author, environment.now_ms())
    # Last, so that the time between the read and the replace is short.
    covered = _covered(store, environment, version)
    if covered is not None:
        return Displaced(covered)
    met = fill_version(store, entry_key(version), encode_entry(actions), etag, version, author.txn)
    commit = commit_of(version, actions) if met is None else parse_entry(version, met)
    if met is None or attempt_of(commit.info) == author.attempt:
        return Published(base.advance([commit]))
    return Displaced(displaced(version, is_pending(commit.info)))


def _covered(store: Store, environment: Environment, version: int) -> str | None:
    """Which clients may have built on the empty entry of this version, if any."""
    listing = list_log(store, version)
    if listing.checkpoints:
        return f"a checkpoint of version {max(listing.checkpoints)} covers our marker, version {version}"
    if listing.compacted:
        return f"a compacted log file from version {min(listing.compacted)} on covers our marker"
    above = sorted(number for number in listing.commits if number > version)
    found = environment.fan_out([partial(read_entry, store, number) for number in above])
    for number, commit in zip(above, found, strict=True):
        if commit is not None and marker_of(commit.info) is None:
            return f"version {number}, above our marker {version}, was written by a client that did not wait"
    return None
