"""The metadata files of a table that is kept by files, by their numbers: as they are, markers among them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from lakevilla.environment import Environment
from lakevilla.formats.iceberg.log.versions import Version
from lakevilla.formats.iceberg.metadata.document import parse
from lakevilla.formats.iceberg.metadata.paths import METADATA, metadata_key, parse_metadata_key
from lakevilla.store.port import Store

_AHEAD_MAX = 8


@dataclass(frozen=True, slots=True)
class Found:
    """A metadata file as it was read, with the tag that its replace wants."""

    version: Version
    etag: str


def understand(store: Store, number: int, data: bytes, compressed: bool) -> Version:
    """The version in these bytes."""
    key = metadata_key(number, compressed)
    return Version(number, key, parse(data, f"{store.url}/{key}"), compressed=compressed)


def read(store: Store, number: int, compressed: bool = False) -> Found | None:
    """The metadata file of a version, or None if there is none. One GET."""
    found = store.get(metadata_key(number, compressed))
    return None if found is None else Found(understand(store, number, found.data, compressed), found.etag)


def written(store: Store, *, by_files: bool = True) -> dict[int, int]:
    """When each version was written whose metadata is there, by the store's clock, in the order of their
    numbers: of those that are kept by files, or of those that a catalog named. One LIST."""
    found = {}
    for meta in store.list(METADATA):
        name = parse_metadata_key(meta.key)
        if name is not None and name.by_files == by_files:
            found[name.version] = meta.modified_ms
    return dict(sorted(found.items()))


def read_up(store: Store, environment: Environment, start: int, compressed: bool) -> Iterator[Found]:
    """The metadata files from this number on, up to the first that does not exist.

    One is asked for, and as long as there are more, twice as many in each round.
    """
    ahead = 1
    while True:
        numbers = range(start, start + ahead)
        for found in environment.fan_out([partial(read, store, number, compressed) for number in numbers]):
            if found is None:
                return
            yield found
        start, ahead = start + ahead, min(2 * ahead, _AHEAD_MAX)
