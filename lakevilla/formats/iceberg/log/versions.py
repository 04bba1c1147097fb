"""The versions of an Iceberg table: what one is, and what finds them and makes the next one.

Tables are kept in two ways. By files alone (`file_log`): the create of the next metadata file makes a
version. By a catalog (`catalog_log`): its own compare-and-swap does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, Protocol

from lakevilla.formats.authorship import marker_of
from lakevilla.formats.iceberg.log.authorship import Info, commit_info
from lakevilla.formats.iceberg.metadata.document import Raw
from lakevilla.formats.iceberg.metadata.paths import metadata_key
from lakevilla.formats.lazy import lazy_property

FIRST = 1
"""The number of the first version of a table that is kept by files, as Spark's hadoop catalog gives it: of
all clients that create a table in the same place, the create of that one metadata file lets one through.
Tables that begin with another number are read and written all the same."""
_NOT_MADE = -1


class Keeper(Enum):
    """What decides which version of a table is the next one."""

    FILES = auto()
    CATALOG = auto()
    UNKNOWN = auto()
    """A catalog named the metadata files, and it is not known which one is current: the table is only
    read."""


@dataclass(frozen=True, eq=False)
class Version:
    """One metadata file. `key` is relative to the table's root, or a URL.

    `published` says that our commit, which the metadata names, made this version, whichever it had expected
    to make: only a catalog brings a commit further up than that. A version that was held by a marker and
    freed is the one below it once more, under another number: `freed_above` is the number of that one.
    """

    number: int
    key: str
    raw: Raw
    keeper: Keeper = Keeper.FILES
    compressed: bool = False
    published: bool = False
    freed_above: int | None = None

    @staticmethod
    def not_made(raw: Raw) -> "Version":
        """What the first version of a table is made after: there is none."""
        return Version(_NOT_MADE, metadata_key(FIRST), raw)

    @property
    def is_made(self) -> bool:
        """Whether there is such a version, so that it can be one before another."""
        return self.number != _NOT_MADE

    @property
    def next_number(self) -> int:
        """The number of the version after this one."""
        return self.number + 1 if self.is_made else FIRST

    @lazy_property
    def commit_info(self) -> Info:
        """What the metadata says about our commits, of this or an earlier version."""
        return commit_info(self.raw)

    @property
    def info(self) -> Info:
        """What the metadata says of the commit of this very version; empty if another client wrote it."""
        return self._ours if self.marker is None else {}

    @property
    def marker(self) -> Mapping[str, Any] | None:
        """The record of the marker that this metadata file is, pending or freed; None if it is none."""
        return marker_of(self._ours)

    @property
    def is_pending(self) -> bool:
        """Whether this is a marker that still holds its version: none of our clients reads it, nor what
        follows."""
        marker = self.marker
        return marker is not None and bool(marker["live"])

    @property
    def state_of(self) -> int:
        """The number of the version whose state this is: its own, unless it was freed."""
        return self.number if self.freed_above is None else self.freed_above

    def after(self, before: "Version") -> "Version":
        """This version, which is not pending, as it follows the one before: what a marker shows does not
        count, because one below it may have been filled since it was made."""
        if self.marker is None:
            return self
        return replace(before, number=self.number, published=False, freed_above=before.state_of)

    @property
    def _ours(self) -> Info:
        return self.commit_info if self.published or self.commit_info.get("version") == self.number else {}


@dataclass(frozen=True, slots=True)
class Made:
    """We made this version. `before` is the one that it builds on. `doubtful`: see `Created`."""

    version: Version
    before: Version
    doubtful: bool = False


class Log(Protocol):
    """What finds and makes the versions of one table."""

    @property
    def keeper(self) -> Keeper:
        """What keeps new versions."""
        ...

    def newest(self) -> Version | None:
        """The newest version, or None if there is no table here."""
        ...

    def follow(self, version: Version) -> list[Version]:
        """The versions after this one, in order, up to the first that a marker holds; none is left out."""
        ...

    def at(self, number: int, newest: Version) -> Version | None:
        """An earlier version of the table whose newest is this; None if it is not there any more."""
        ...

    def alone(self, number: int) -> Version | None:
        """An earlier version of a table whose newest cannot be read; None if it cannot be found so."""
        ...

    def has(self, version: Version) -> bool:
        """Whether this version, which was read before, is still one of the table here."""
        ...

    def written(self, newest: Version) -> Mapping[int, int]:
        """When versions were written whose metadata is still there, by the store's clock, in their order."""
        ...

    def create(self, base: Version, raw: Raw, txn: str) -> Made | Version:
        """Make the version after `base`; what it needs is uploaded. Otherwise the version that came first:
        perhaps our own, perhaps a marker that holds it. CommitUnknown if that cannot be found out."""
        ...

    def retract(self, number: int, put: str | None, orphaned: bool, displaced: bool) -> bool:
        """Delete our version of this number if the number had been used, see `Table.retract`."""
        ...

    def is_dropped_without(self, attempt: str, base: int) -> bool:
        """See `Table.is_dropped_without`."""
        ...

    def is_alone(self, number: int) -> bool:
        """Whether the log has no other version than this one."""
        ...

    def is_stale(self, number: int) -> bool:
        """Whether the version of this number took one that had been used, see `Table.is_stale`."""
        ...

    def leave_hint(self, version: Version) -> None:
        """Let other clients find this version: by a hint, and above it where they go by the greatest number.
        Failure harms no client."""
        ...

    def renew_hint(self, version: Version) -> None:
        """The same for a version that may have been made long ago: of the newest that came since."""
        ...
