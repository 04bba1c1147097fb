"""The files of a Delta log that may go: the I/O around `expiry`.

A base is only a base if it can be read: its files are there, and every live file that it names can be
decoded. Otherwise the next older checkpoint is tried. What is deleted is for the caller to do, in the order
that is returned: a sidecar goes after all checkpoints that name it.
"""

import logging
from collections.abc import Collection, Iterator
from functools import partial

from lakevilla.environment import Environment
from lakevilla.errors import Corrupt
from lakevilla.formats.delta.checkpoints.reader import part_readers
from lakevilla.formats.delta.log.encode import is_pending
from lakevilla.formats.delta.log.expiry import LogFile, decide_expired, decide_oldest_kept
from lakevilla.formats.delta.log.listing import Checkpoint, Listing, Segment, list_log, log_files
from lakevilla.formats.delta.log.load import load, read_entry
from lakevilla.formats.delta.log.paths import SIDECARS, parse_log_key
from lakevilla.formats.delta.snapshot import DeltaSnapshot
from lakevilla.store.port import Meta, Store

logger = logging.getLogger("lakevilla.formats")

_ENTRIES_AT_ONCE = 256


def find_expired(
    store: Store, environment: Environment, newest: DeltaSnapshot, since_ms: int, needed: Collection[int]
) -> list[list[Meta]]:
    """The files that no client needs which reads versions that were current at this moment or later, or one
    of `needed`: groups, each to be deleted after the one before."""
    listing = list_log(store)
    oldest = listing.oldest()
    if oldest is None:
        return []
    # If another client has cleaned a needed version away, those after it are needed that are left: later
    # instants may name them, and the caller asks for the version of the first.
    left = [max(version, oldest) for version in needed]
    kept = decide_oldest_kept(listing.commits, newest.version, since_ms, left)
    if newest.coordination.markers_in_log:
        kept = _below_markers(store, environment, listing, kept)
    expired = _below_base(store, environment, listing, kept, since_ms)
    sidecars = _sidecars(store, environment, {meta.key for meta in expired}, since_ms)
    return [group for group in (expired, sidecars) if group]


def _below_markers(store: Store, environment: Environment, listing: Listing, kept: int) -> int:
    """Not above the first pending marker, which another client's checkpoint may cover: its owner looks for
    it, and releases it."""
    versions = sorted(version for version in listing.commits if version < kept)
    for start in range(0, len(versions), _ENTRIES_AT_ONCE):
        some = versions[start : start + _ENTRIES_AT_ONCE]
        entries = environment.fan_out([partial(read_entry, store, version) for version in some])
        for version, commit in zip(some, entries, strict=True):
            if commit is not None and is_pending(commit.info):
                return version
    return kept


def _below_base(
    store: Store, environment: Environment, listing: Listing, kept: int, since_ms: int
) -> list[Meta]:
    """What lies below the newest checkpoint at or below this version that can be read."""
    files = [file for meta in log_files(store, 0) if (file := LogFile.of(meta)) is not None]
    for version in sorted((found for found in listing.checkpoints if found <= kept), reverse=True):
        expired = decide_expired(files, version, since_ms)
        if not expired or _is_readable(store, environment, listing.checkpoints[version]):
            return [file.meta for file in expired]
    return []


def _is_readable(store: Store, environment: Environment, checkpoint: Checkpoint) -> bool:
    try:
        state = load(store, environment, Segment(checkpoint.version, checkpoint, ()))
        _ = state.definition
        for live in state.blocks:
            for _ in live.batches():
                pass
    except Corrupt as error:
        logger.warning(
            "the log of %s is cleaned below an older checkpoint, because that of version %d cannot be read: "
            "%s", store.url, checkpoint.version, error,
        )  # fmt: skip
        return False
    return True


def _sidecars(store: Store, environment: Environment, expired: Collection[str], since_ms: int) -> list[Meta]:
    """The sidecars that no checkpoint names which stays. None go if one of these cannot be read."""
    old = [meta for meta in store.list(SIDECARS) if meta.modified_ms < since_ms]
    if not old:
        return []
    try:
        named = {SIDECARS + path for path in _named_sidecars(store, environment, expired)}
    except Corrupt as error:
        logger.warning("no sidecar of %s is deleted, because a checkpoint is damaged: %s", store.url, error)
        return []
    return [meta for meta in old if meta.key not in named]


def _named_sidecars(store: Store, environment: Environment, expired: Collection[str]) -> Iterator[str]:
    for meta in log_files(store, 0):
        name = parse_log_key(meta.key)
        if name is None or name.kind in ("commit", "compacted") or meta.key in expired:
            continue
        checkpoint = Checkpoint(name.version, (meta.key,), (meta.size,))
        for part in environment.fan_out(part_readers(store, checkpoint)):
            for sidecar in part.sidecars:
                path = sidecar.get("path")
                if not isinstance(path, str):
                    raise Corrupt(f"{store.url}/{meta.key} refers to an invalid sidecar: {sidecar}")
                yield path.rpartition("/")[2]
