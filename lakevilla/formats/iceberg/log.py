"""The versions of an Iceberg table that is kept by files alone: `metadata/v<N>.metadata.json`.

A cold open asks for the hint and goes on from there; if the hint is missing, old, or leads nowhere, a LIST
tells the same. Going on from a known version is one GET that normally misses. Both end before a pending
marker (placement `log`).

Metadata files that a catalog gave names to (`00012-<uuid>.metadata.json`) are read too, by a LIST: the one
with the greatest number counts. Such a table is only read, because its catalog decides which one is current.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lakevilla.environment import Environment
from lakevilla.errors import Corrupt
from lakevilla.formats.iceberg.commits import is_pending
from lakevilla.formats.iceberg.metadata import Raw, parse
from lakevilla.formats.iceberg.paths import HINT, METADATA, MetadataName, metadata_key, parse_metadata_key
from lakevilla.store.port import Store

_AHEAD_MAX = 8


@dataclass(frozen=True, eq=False)
class Version:
    """One metadata file. `by_files` is False if a catalog named it."""

    number: int
    key: str
    raw: Raw
    by_files: bool = True
    compressed: bool = False


def newest(store: Store, environment: Environment) -> Version | None:
    """The newest version, or None if there is no table here."""
    hinted = _by_hint(store)
    if hinted is not None:
        return (follow(store, environment, hinted) or [hinted])[-1]
    names = listed(store)
    numbers = sorted((name.version for name in names.values() if name.by_files), reverse=True)
    for number in numbers:
        found = read(store, number, _is_compressed(names, number))
        if found is not None and not is_pending(found.raw, number):
            return found
    return None if numbers else _by_catalog(store, environment, names)


def follow(store: Store, environment: Environment, version: Version) -> list[Version]:
    """The versions after this one, in order, up to the first that does not exist or is a pending marker.

    One is asked for, and as long as there are more, twice as many in each round.
    """
    if not version.by_files:
        found = _by_catalog(store, environment, listed(store))
        return [] if found is None or found.number <= version.number else [found]
    start, ahead = version.number + 1, 1
    versions: list[Version] = []
    while True:
        tasks = [_reader(store, number, version.compressed) for number in range(start, start + ahead)]
        for found in environment.fan_out(tasks):
            if found is None or is_pending(found.raw, found.number):
                return versions
            versions.append(found)
        start, ahead = start + ahead, min(2 * ahead, _AHEAD_MAX)


def read(store: Store, number: int, compressed: bool = False) -> Version | None:
    """The metadata file of a version, or None if there is none."""
    key = metadata_key(number, compressed)
    found = store.get(key)
    if found is None:
        return None
    return Version(number, key, parse(found.data, f"{store.url}/{key}"), compressed=compressed)


def at(store: Store, number: int, like: Version) -> Version | None:
    """An earlier version of the table whose newest is `like`."""
    if like.by_files:
        found = read(store, number, like.compressed)
        return found if found is not None else read(store, number, not like.compressed)
    for key, name in listed(store).items():
        if name.version == number:
            return _named(store, key, name)
    return None


def listed(store: Store) -> dict[str, MetadataName]:
    """All metadata files that tell their version."""
    names = ((meta.key, parse_metadata_key(meta.key)) for meta in store.list(METADATA))
    return {key: name for key, name in names if name is not None}


def _by_hint(store: Store) -> Version | None:
    """The version that the hint leads to. It is a hint: anything odd counts as none."""
    hint = store.get(HINT)
    text = "" if hint is None else hint.data.decode(errors="replace").strip()
    if not (text.isascii() and text.isdecimal()):
        return None
    found = read(store, int(text))
    return None if found is None or is_pending(found.raw, found.number) else found


def _by_catalog(store: Store, environment: Environment, names: dict[str, MetadataName]) -> Version | None:
    """The newest of the files that a catalog named; losers of a race there may have the same number."""
    top = max((name.version for name in names.values()), default=None)
    if top is None:
        return _only(store)
    keys = [key for key, name in names.items() if name.version == top]
    found = environment.fan_out([_named_reader(store, key, names[key]) for key in keys])
    return max(found, key=lambda version: version.raw.get("last-updated-ms", 0))


def _only(store: Store) -> Version | None:
    """The only metadata file, if it has a name that tells nothing."""
    keys = [meta.key for meta in store.list(METADATA) if meta.key.endswith(".metadata.json")]
    if not keys:
        return None
    if len(keys) > 1:
        raise Corrupt(f"{store.url} has {len(keys)} metadata files, and nothing tells which one is current")
    return _named(store, keys[0], MetadataName(0, False, False))


def _named(store: Store, key: str, name: MetadataName) -> Version:
    found = store.get(key)
    if found is None:
        raise Corrupt(f"{store.url}/{key} was listed and is gone")
    raw = parse(found.data, f"{store.url}/{key}")
    return Version(name.version, key, raw, name.by_files, name.compressed)


def _named_reader(store: Store, key: str, name: MetadataName) -> Callable[[], Version]:
    return lambda: _named(store, key, name)


def _reader(store: Store, number: int, compressed: bool) -> Callable[[], Version | None]:
    return lambda: read(store, number, compressed)


def _is_compressed(names: dict[str, MetadataName], number: int) -> bool:
    alike: Sequence[MetadataName] = [
        name for name in names.values() if name.version == number and name.by_files
    ]
    return all(name.compressed for name in alike)
