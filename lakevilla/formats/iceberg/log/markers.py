"""Markers in the log of an Iceberg table that is kept by files (docs/protocol.md, section 3).

A marker is a metadata file with the state of an earlier version, which our property says it is. For us it
says nothing: a client that reads stops before one that is pending, and takes one that was freed for the
version below it. What it shows is for clients that know no markers, and go by the greatest number: they must
not be shown less than what is committed for longer than it takes the next one of us to say so.
"""

import logging
from collections.abc import Mapping
from typing import Any

from lakevilla.environment import Environment
from lakevilla.errors import LakeVillaError
from lakevilla.formats.iceberg.log.authorship import as_marker, state_shown
from lakevilla.formats.iceberg.log.numbered_files import read, read_up, understand, written
from lakevilla.formats.iceberg.log.versions import Version
from lakevilla.formats.iceberg.metadata.document import encode
from lakevilla.formats.iceberg.metadata.paths import metadata_key
from lakevilla.store.port import Replaced, Store

logger = logging.getLogger("lakevilla.iceberg")


class IcebergMarkerEntries:
    """The metadata files after the version `base` of the table at the store's root, as places for markers.

    Remembers those that it was shown: what a marker shows is the newest state among them.
    """

    def __init__(self, store: Store, environment: Environment, base: Version) -> None:
        self._store = store
        self._environment = environment
        self._base = base
        self._seen: dict[int, Version] = {}

    def key(self, version: int) -> str:
        return metadata_key(version, self._base.compressed)

    def encode(self, version: int, record: Mapping[str, Any]) -> bytes:
        """Reads the versions below that were never shown; before one is released, also those that were
        pending."""
        return _encoded(record, version, self._state_below(version, again=not record["live"]))

    def decode(self, version: int, data: bytes) -> Mapping[str, Any] | None:
        seen = self._seen[version] = understand(self._store, version, data, self._base.compressed)
        return seen.marker

    def taken(self, after: int) -> dict[int, int]:
        return {version: at_ms for version, at_ms in written(self._store).items() if version > after}

    def freed(self, version: int) -> None:
        """A client that filled one below meanwhile may have met this one while it was pending, and let it
        be."""
        try:
            state = self._state_below(version)
            between = (self._seen.get(number) for number in range(state.number + 1, version))
            if any(seen is not None and seen.is_pending for seen in between):
                show_above(self._store, self._environment, state)
        except LakeVillaError as error:
            logger.warning(
                "the freed marker at version %d of %s may show an older state: %s",
                version,
                self._store.url,
                error,
            )

    def _state_below(self, version: int, again: bool = False) -> Version:
        """The newest state below a version, as far as we know."""
        for number in range(version - 1, self._base.number, -1):
            seen = self._seen.get(number)
            if seen is None or (again and seen.is_pending):
                found = read(self._store, number, self._base.compressed)
                seen = None if found is None else found.version
            if seen is not None:
                self._seen[number] = seen
                if seen.marker is None:
                    return seen
        return self._base


def show_above(store: Store, environment: Environment, version: Version) -> None:
    """Let the markers above this version that were freed show the newest state below them. A pending one is
    its owner's to write, which will commit or free it. One GET that misses if there is nothing above."""
    while not _shown_above(store, environment, version):
        # Another client rewrote one of them meanwhile, perhaps with less than we know.
        continue


def _shown_above(store: Store, environment: Environment, newest: Version) -> bool:
    """One try; False if it met another client."""
    undisturbed = True
    for found in read_up(store, environment, newest.state_of + 1, newest.compressed):
        there = found.version
        marker = there.marker
        if marker is None:
            newest = there
        elif not there.is_pending and state_shown(there.commit_info) < newest.state_of:
            answer = store.replace(there.key, _encoded(marker, there.number, newest), found.etag)
            undisturbed = undisturbed and isinstance(answer, Replaced)
    return undisturbed


def free_next(store: Store, environment: Environment, before: Version) -> None:
    """Free the marker that holds the version after this one, if it does still."""
    found = read(store, before.next_number, before.compressed)
    record = None if found is None or not found.version.is_pending else found.version.marker
    if found is None or record is None:
        return
    tombstone = {**record, "live": False, "put": environment.new_id(), "precedes": []}
    store.replace(found.version.key, _encoded(tombstone, found.version.number, before), found.etag)


def _encoded(record: Mapping[str, Any], number: int, state: Version) -> bytes:
    return encode(as_marker(record, number, state.raw, state.state_of), state.compressed)
