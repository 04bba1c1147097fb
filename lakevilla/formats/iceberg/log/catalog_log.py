"""The versions of an Iceberg table that a catalog keeps: `metadata/00012-<uuid>.metadata.json`.

The catalog says which metadata file is current; those before it are found by the log in it, never by a LIST,
because losers of a race leave files of the same number. A commit is the catalog's compare-and-swap.

A catalog that is asked by requirements lets a commit pass over what these do not name: so ours may become a
later version than it expected. It is recognised by the snapshot that it made, which is why every commit of
ours on such a table makes one (docs/decisions/0012-iceberg-by-catalogs.md).
"""

import logging
from dataclasses import replace
from functools import partial
from itertools import pairwise

from lakevilla.environment import Environment
from lakevilla.errors import CommitUnknown, Corrupt, InvalidInput, Unavailable, Unsupported
from lakevilla.formats.iceberg.log.catalogs import (
    Applied,
    Cataloged,
    NoAnswer,
    Refused,
    Unanswered,
)
from lakevilla.formats.iceberg.log.updates import lets_pass, requirements_of, updates_of
from lakevilla.formats.iceberg.log.versions import Keeper, Made, Version
from lakevilla.formats.iceberg.metadata.document import Raw, parse, table_id
from lakevilla.formats.iceberg.metadata.paths import METADATA, Places, metadata_name
from lakevilla.formats.identity import recreated
from lakevilla.formats.port import CatalogRefusal
from lakevilla.formats.urls import Opener, located
from lakevilla.store.port import Store

logger = logging.getLogger("lakevilla.iceberg")

_TRIES = 4
_PAUSE_SECONDS = 0.1


class CatalogLog:
    """The log of a table at a store's root that a catalog keeps. Implements `Log`."""

    keeper = Keeper.CATALOG

    def __init__(self, table: Cataloged, store: Store, environment: Environment, opener: Opener) -> None:
        self._table = table
        self._store = store
        self._environment = environment
        self._opener = opener

    def newest(self) -> Version | None:
        key = self._current()
        return None if key is None else self._placed(self._read(key))

    def follow(self, version: Version) -> list[Version]:
        key = self._current()
        if key is None:
            raise Corrupt(f"{self._table} disappeared from the catalog while it was read")
        if key == version.key:
            return []
        newest = self._read(key)
        if table_id(newest.raw) != table_id(version.raw):
            raise recreated(str(self._table), version.number)
        keys = self._between(version, newest)
        read = self._environment.fan_out([partial(self._read, key) for key in keys])
        found, before = list[Version](), version
        for after in (*read, newest):
            before = self._placed(after, before)
            found.append(before)
        return found

    def at(self, number: int, newest: Version) -> Version | None:
        """One GET, and one more for each hundred versions in between."""
        if number == newest.number:
            return newest
        known: Version | None = newest
        while known is not None and known.number > number:
            earlier = self._earlier(known)
            if number in earlier:
                found = self._read_if_there(earlier[number])
                return None if found is None else self._placed(found)
            known = self._read_if_there(earlier[min(earlier)]) if earlier else None
        return None

    def alone(self, number: int) -> Version | None:  # noqa: ARG002 - the port's signature
        """Only the newest metadata file says where earlier ones are."""
        return None

    def has(self, version: Version) -> bool:  # noqa: ARG002 - the port's signature
        """The catalog returns the current version with each request, and a commit names the one before."""
        return True

    def written(self, newest: Version) -> dict[int, int]:
        """By a LIST; metadata files elsewhere have the times that they record."""
        found = {}
        for entry in newest.raw.get("metadata-log") or ():
            number = _number(str(entry["metadata-file"]))
            if number is not None:
                found[number] = int(entry["timestamp-ms"])
        found[newest.number] = int(newest.raw.get("last-updated-ms", 0))
        for meta in self._store.list(METADATA):
            number = _number(meta.key)
            if number is not None:
                found[number] = meta.modified_ms
        return dict(sorted(found.items()))

    def create(self, base: Version, raw: Raw, txn: str) -> Made | Version:
        """A commit that went unanswered is looked for, and sent again while it may still come: of two copies
        the catalog takes one, because each needs the snapshot of `main` that the other replaces. What it
        answers to a later copy says nothing about an earlier one that may still come. A refusal while
        nothing has changed is that of a lock or of a race that another client lost too: it passes."""
        requirements = requirements_of(base.raw, exact=self._table.judges_here)
        updates, reason, doubtful = updates_of(base.raw, raw), "", False
        for tries in range(_TRIES):
            try:
                answer = self._table.commit(requirements, updates)
            except (InvalidInput, Unavailable) as error:
                if not doubtful:
                    raise
                raise self._unknown(txn, f"{reason}; {error}") from error
            if isinstance(answer, Applied):
                return self._made(base, answer, txn)
            reason = answer.reason
            doubtful = doubtful or isinstance(answer, Unanswered)
            later = self._later(base, txn, reason) if doubtful else self.follow(base)
            for before, after in pairwise((base, *later)):
                if after.raw.get("current-snapshot-id") == raw["current-snapshot-id"]:
                    return Made(replace(after, published=True), before)
            if later and not (doubtful and self._passes(base, later[-1])):
                return later[0]
            if isinstance(answer, Refused) and answer.final and not doubtful:
                raise CatalogRefusal(f"the catalog refuses to change {self._table}: {reason}")
            logger.warning("a commit of %s was not made: %s", self._table, reason)
            self._environment.sleep(_PAUSE_SECONDS * 2**tries)
        if doubtful:
            raise self._unknown(txn, reason)
        raise Unavailable(
            f"the catalog refuses to change {self._table} at the moment, although no other client has "
            f"changed it: {reason}. Nothing was changed; run it again"
        )

    def retract(self, number: int, put: str | None, orphaned: bool, displaced: bool) -> bool:  # noqa: ARG002
        """The catalog compares: no number is used twice."""
        return False

    def is_dropped_without(self, attempt: str, base: int) -> bool:
        """Its metadata files tell, because the table may be registered with one of them again: the catalog
        writes one before it makes it the current one. What was purged does not come back."""
        if self._current() is not None:
            return False
        left = {number: meta.key for meta in self._store.list(METADATA) if (number := _number(meta.key))}
        if not left:
            return next(self._store.list(""), None) is None
        later = [key for number, key in left.items() if number >= base]
        read = self._environment.fan_out([partial(self._read_if_there, key) for key in later])
        return base in left and all(v is not None and v.commit_info.get("attempt") != attempt for v in read)

    def is_alone(self, number: int) -> bool:  # noqa: ARG002
        """As above."""
        return False

    def is_stale(self, number: int) -> bool:  # noqa: ARG002
        """As above."""
        return False

    def leave_hint(self, version: Version) -> None:
        """A reader that asks the catalog needs none."""

    def renew_hint(self, version: Version) -> None:
        """As above."""

    def _passes(self, base: Version, newest: Version) -> bool:
        """Whether a commit on `base` that is on its way may still be taken."""
        return not self._table.judges_here and lets_pass(base.raw, newest.raw)

    def _made(self, base: Version, answer: Applied, txn: str) -> Made:
        try:
            version = self._read(self._key(answer.metadata))
            if version.number == base.number + 1:
                return Made(version, base)
            return Made(replace(version, published=True), self._before(version) or base)
        except Unavailable as error:
            raise self._unknown(txn, str(error)) from error

    def _later(self, base: Version, txn: str, reason: str) -> list[Version]:
        try:
            return self.follow(base)
        except Unavailable as error:
            raise self._unknown(txn, f"{reason}; {error}") from error

    def _unknown(self, txn: str, reason: str) -> CommitUnknown:
        return CommitUnknown(
            f"the catalog did not say whether transaction {txn} changed {self._table} ({reason}): ask "
            f"lake.outcome({txn!r}) when it answers again; do not rerun it blindly",
            transaction=txn,
        )

    def _placed(self, version: Version, before: Version | None = None) -> Version:
        """The version, and whether our commit that it names made it: then it added that snapshot."""
        info = version.commit_info
        number, snapshot = info.get("version"), version.raw.get("current-snapshot-id")
        if number == version.number or snapshot is None or info.get("snapshot") != snapshot:
            return version
        before = before or self._before(version)
        published = before is not None and before.raw.get("current-snapshot-id") != snapshot
        return replace(version, published=published)

    def _before(self, version: Version) -> Version | None:
        earlier = self._earlier(version)
        return self._read_if_there(earlier[max(earlier)]) if earlier else None

    def _between(self, version: Version, newest: Version) -> list[str]:
        """The keys of the versions between these two, in order."""
        keys = self._earlier(newest)
        while keys and min(keys) > version.number:
            older = self._earlier(self._read(keys[min(keys)]))
            if not older:
                break
            keys = {**older, **keys}
        if keys.get(version.number) != version.key:
            raise Corrupt(
                f"version {version.number}, which was read of {self._table}, is not one of its versions any "
                "more: the catalog has another table there now, or was restored to an earlier state. Drop it "
                "from the lake and register it again",
                version=version.number,
            )
        return [key for number, key in sorted(keys.items()) if number > version.number]

    def _earlier(self, version: Version) -> dict[int, str]:
        """The versions before this one, as far as it lists them: their metadata files by number."""
        found = {}
        for entry in version.raw.get("metadata-log") or ():
            key = self._key(str(entry["metadata-file"]))
            number = _number(key)
            if number is not None and number < version.number:
                found[number] = key
        return found

    def _current(self) -> str | None:
        """A question that was not answered is asked again: it changes nothing."""
        for tries in range(_TRIES - 1):
            try:
                return self._key_of_current()
            except NoAnswer as error:
                logger.warning("a question went unanswered: %s", error)
            self._environment.sleep(_PAUSE_SECONDS * 2**tries)
        return self._key_of_current()

    def _key_of_current(self) -> str | None:
        current = self._table.current()
        return None if current is None else self._key(current.metadata)

    def _key(self, path: str) -> str:
        return Places(self._store.url, self._store.url).key_of(path)

    def _read(self, key: str) -> Version:
        found = self._read_if_there(key)
        if found is None:
            raise Corrupt(f"the metadata file {key} of {self._table} is missing")
        return found

    def _read_if_there(self, key: str) -> Version | None:
        number = _number(key)
        if number is None:
            raise Unsupported(
                f"the name of the metadata file {key} of {self._table} has no version number: change the "
                "table once with another client of the catalog, which then writes a numbered metadata file"
            )
        store, name = located(key, self._store, self._opener)
        found = store.get(name)
        if found is None:
            return None
        return Version(number, key, parse(found.data, f"{store.url}/{name}"), Keeper.CATALOG)


def _number(key: str) -> int | None:
    """The number that a catalog gave to a metadata file; None if it did not."""
    name = metadata_name(key)
    return None if name is None or name.by_files else name.version
