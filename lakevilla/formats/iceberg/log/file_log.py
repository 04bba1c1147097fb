"""The versions of an Iceberg table that is kept by files alone: `metadata/v<N>.metadata.json`.

A cold open asks for the hint and continues from there; if the hint is missing, old, or leads nowhere, a LIST
replaces it. Continuing from a known version is one GET that normally misses.

Metadata files that a catalog gave names to (`00012-<uuid>.metadata.json`) are read too, by a LIST: the one
with the greatest number counts. Such a table is only read, because its catalog decides which one is current.

Every way ends before the first pending marker (placement `log`), and takes no marker at its word: a version
that was freed is the one below it once more.
"""

import logging
from collections.abc import Callable
from functools import partial

from lakevilla.environment import Environment
from lakevilla.errors import Corrupt, LakeVillaError, Unsupported
from lakevilla.formats.authorship import put_of
from lakevilla.formats.conditional_commit import Damaged, create_version, was_used
from lakevilla.formats.iceberg.log.markers import show_above
from lakevilla.formats.iceberg.log.numbered_files import read, read_up, understand, written
from lakevilla.formats.iceberg.log.versions import FIRST, Keeper, Made, Version
from lakevilla.formats.iceberg.metadata.document import Raw, encode, parse, properties, table_id
from lakevilla.formats.iceberg.metadata.paths import (
    HINT,
    METADATA,
    MetadataName,
    metadata_key,
    parse_metadata_key,
)
from lakevilla.formats.properties import markers_in_log
from lakevilla.store.port import Created, Object, Store

logger = logging.getLogger("lakevilla.iceberg")


class FileLog:
    """The log of a table at a store's root. Implements `Log`."""

    keeper = Keeper.FILES

    def __init__(self, store: Store, environment: Environment) -> None:
        self._store = store
        self._environment = environment

    def newest(self) -> Version | None:
        hinted = self._by_hint()
        if hinted is not None:
            return self._newest_from(hinted)
        names = self._listed()
        top = max((name.version for name in names.values() if name.by_files), default=None)
        if top is None:
            return self._by_catalog(names)
        listed = self._read(top, _is_compressed(names, top))
        return listed if listed is None or listed.marker is None else self._newest_from(listed)

    def follow(self, version: Version) -> list[Version]:
        """Up to the first version that does not exist.

        What follows a table that is not there yet is another client's, if one has begun one.
        """
        if version.keeper is Keeper.UNKNOWN:
            newest = self._by_catalog(self._listed())
            return [] if newest is None or newest.number <= version.number else [newest]
        versions: list[Version] = []
        for found in read_up(self._store, self._environment, version.next_number, version.compressed):
            if found.version.is_pending:
                return versions
            versions.append(found.version.after(versions[-1] if versions else version))
        if versions or version.is_made:
            return versions
        theirs = self._begun_elsewhere()
        return [] if theirs is None else [theirs, *self.follow(theirs)]

    def at(self, number: int, newest: Version) -> Version | None:
        if newest.keeper is Keeper.FILES:
            found = self._read(number, newest.compressed) or self._read(number, not newest.compressed)
            if found is None or found.marker is None:
                return found
            below = None if found.is_pending else self._below(found)
            return None if below is None else found.after(below)
        for key, name in self._listed().items():
            if name.version == number:
                return self._named(key, name)
        return None

    def alone(self, number: int) -> Version | None:
        found = self._read(number) or self._read(number, compressed=True)
        return None if found is None or found.marker is not None else found

    def has(self, version: Version) -> bool:
        """One GET if its metadata file is as it was; one that may be rewritten or has no number is judged by
        the newest version."""
        plain = version.keeper is Keeper.FILES and version.freed_above is None
        found = self._read(version.number, version.compressed) if plain else None
        if found is not None and (found.raw == version.raw or not markers_in_log(properties(version.raw))):
            return found.raw == version.raw
        newest = self.newest()
        if newest is None or newest.number < version.number:
            return False
        return table_id(newest.raw) == table_id(version.raw)

    def written(self, newest: Version) -> dict[int, int]:
        """One LIST."""
        return written(self._store, by_files=newest.keeper is Keeper.FILES)

    def create(self, base: Version, raw: Raw, txn: str) -> Made | Version:
        number, compressed = base.next_number, base.compressed
        theirs = None if base.is_made else self._begun_elsewhere()
        if theirs is not None:
            return theirs
        key = metadata_key(number, compressed)
        found = create_version(self._store, key, encode(raw, compressed), number, txn)
        if isinstance(found, Created):
            made = Version(number, key, raw, compressed=compressed)
            return Made(made, base, found.doubtful)
        try:
            there = understand(self._store, number, found, compressed)
        except (Corrupt, Unsupported) as error:
            # Of a format that we do not know: for a client that knows it, the upgrade is in the way too.
            raise Damaged(str(error)) from error
        return there if there.is_pending else there.after(base)

    def retract(self, number: int, put: str | None, orphaned: bool, displaced: bool) -> bool:
        key = self._find_stale(number, put, orphaned, displaced)
        if key is not None:
            self._store.delete(key)
        return key is not None

    def is_dropped_without(self, attempt: str, base: int) -> bool:  # noqa: ARG002 - the port's signature
        """No catalog drops it."""
        return False

    def is_alone(self, number: int) -> bool:
        """One LIST."""
        names = (parse_metadata_key(meta.key) for meta in self._store.list(METADATA))
        return all(name is None or (name.by_files and name.version == number) for name in names)

    def is_stale(self, number: int) -> bool:
        return self._find_stale(number) is not None

    def _find_stale(
        self, number: int, put: str | None = None, orphaned: bool = False, displaced: bool = False
    ) -> str | None:
        """The key of the metadata file of this number if it took one that had been used."""
        listed = [(meta, parse_metadata_key(meta.key)) for meta in self._store.list(METADATA)]
        numbered = {name.version: meta for meta, name in listed if name is not None and name.by_files}
        ours = numbered.get(number)
        there = None if ours is None else self._read(number, ours.key != metadata_key(number))
        if ours is None or there is None or (put is not None and put_of(there.info) != put):
            return None
        covering = {version: meta for version, meta in numbered.items() if version > number}
        alone = sum(name is not None for _, name in listed) == 1
        has_base = not displaced and (not alone or (number == FIRST and not orphaned))
        is_lowest = number > FIRST and number - 1 not in numbered
        return ours.key if was_used(ours, covering, number, has_base, is_lowest) else None

    def leave_hint(self, version: Version) -> None:
        """One put."""
        try:
            self._write_besides(version, partial(self._store.put, HINT, _hint_of(version)))
        except LakeVillaError as error:
            logger.warning(
                "the version hint could not be set to version %d of %s: %s",
                version.number,
                self._store.url,
                error,
            )

    def renew_hint(self, version: Version) -> None:
        """One GET of the hint, which may be right already, and one that misses if nothing came since.

        In this order, and by a conditional write: so the hint is never set back. A version that it names is
        found by the second GET, and one that another client names meanwhile stays.
        """
        try:
            hint = self._store.get(HINT)
            newest = (self.follow(version) or [version])[-1]
            self._write_besides(newest, *self._correction(hint, _hint_of(newest)))
        except LakeVillaError as error:
            logger.warning(
                "the version hint could not be updated after version %d of %s: %s",
                version.number,
                self._store.url,
                error,
            )

    def _correction(self, hint: Object | None, right: bytes) -> list[Callable[[], object]]:
        """What makes a hint right that was read so; nothing if it is."""
        if hint is None:
            return [partial(self._store.create, HINT, right)]
        if hint.data.strip() == right:
            return []
        return [partial(self._store.replace, HINT, right, hint.etag)]

    def _write_besides(self, version: Version, *tasks: Callable[[], object]) -> None:
        """Run these tasks. If other clients hold versions above this one by markers, also one GET that
        misses, or the replace of released ones that show an older state."""
        if markers_in_log(properties(version.raw)):
            tasks = (*tasks, partial(show_above, self._store, self._environment, version))
        self._environment.fan_out(tasks)

    def _read(self, number: int, compressed: bool = False) -> Version | None:
        """The metadata file of a version, or None if there is none."""
        found = read(self._store, number, compressed)
        return None if found is None else found.version

    def _newest_from(self, found: Version) -> Version:
        """The newest version, from one that was found."""
        context = found if found.marker is None else self._below(found)
        if context is None:
            raise Corrupt(f"{self._store.url}/{found.key} is a marker, but there is no version below it")
        return (self.follow(context) or [context])[-1]

    def _below(self, version: Version | None) -> Version | None:
        """The first version below a marker that is not a marker; None if that was deleted."""
        while version is not None and version.marker is not None:
            version = self._read(version.number - 1, version.compressed)
        return version

    def _listed(self) -> dict[str, MetadataName]:
        """All metadata files whose names have a version."""
        names = ((meta.key, parse_metadata_key(meta.key)) for meta in self._store.list(METADATA))
        return {key: name for key, name in names if name is not None}

    def _begun_elsewhere(self) -> Version | None:
        """The oldest version of a table that another client has here without our first metadata file.

        A client that makes a table by files at the same moment creates that same file, and the store lets one
        through: nothing needs to be looked for. This look finds what the create would not meet: files that a
        catalog named, a table whose first files are cleaned up, one that begins with 0, or compressed. It is
        a look: such a table that is begun right after it is not noticed.
        """
        names = self._listed()
        if not names or metadata_key(FIRST) in names:
            return None
        oldest = min(names, key=lambda key: names[key].version)
        return self._named(oldest, names[oldest])

    def _by_hint(self) -> Version | None:
        """The version that the hint leads to. It is a hint: anything odd counts as none."""
        hint = self._store.get(HINT)
        text = "" if hint is None else hint.data.decode(errors="replace").strip()
        if not (text.isascii() and text.isdecimal()):
            return None
        return self._read(int(text))

    def _by_catalog(self, names: dict[str, MetadataName]) -> Version | None:
        """The newest of the files that a catalog named; losers of a race there may have the same number."""
        top = max((name.version for name in names.values()), default=None)
        if top is None:
            return self._only()
        keys = [key for key, name in names.items() if name.version == top]
        found = self._environment.fan_out([partial(self._named, key, names[key]) for key in keys])
        return max(found, key=lambda version: version.raw.get("last-updated-ms", 0))

    def _only(self) -> Version | None:
        """The only metadata file, if its name has no version."""
        keys = [meta.key for meta in self._store.list(METADATA) if meta.key.endswith(".metadata.json")]
        if not keys:
            return None
        if len(keys) > 1:
            raise Corrupt(
                f"{self._store.url} has {len(keys)} metadata files, and nothing shows which one is current"
            )
        return self._named(keys[0], MetadataName(0, False, False))

    def _named(self, key: str, name: MetadataName) -> Version:
        found = self._store.get(key)
        if found is None:
            raise Corrupt(f"{self._store.url}/{key} was listed but is missing")
        raw = parse(found.data, f"{self._store.url}/{key}")
        keeper = Keeper.FILES if name.by_files else Keeper.UNKNOWN
        return Version(name.version, key, raw, keeper, name.compressed)


def _hint_of(version: Version) -> bytes:
    """A released version has no own state."""
    return str(version.state_of).encode()


def _is_compressed(names: dict[str, MetadataName], number: int) -> bool:
    alike = [name for name in names.values() if name.version == number and name.by_files]
    return all(name.compressed for name in alike)
