"""The versions of an Iceberg table: what one is, and what finds them and makes the next one.

Tables are kept in two ways. By files alone (`by_files`): the create of the next metadata file makes a
version. By a catalog (`by_catalog`): its own compare-and-swap does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from lakevilla.formats.iceberg.commits import Info, told
from lakevilla.formats.iceberg.metadata import Raw
from lakevilla.formats.iceberg.paths import metadata_key
from lakevilla.formats.lazily import lazy_property

FIRST = 1
"""The number of the first version of a table that is kept by files, as Spark's hadoop catalog gives it: of
all who make a table in the same place, the create of that one metadata file lets one through. Tables that
begin with another number are read and written all the same."""
_NOT_MADE = -1


class Keeper(Enum):
    """Who decides which version of a table is the next one."""

    FILES = auto()
    CATALOG = auto()
    UNKNOWN = auto()
    """A catalog named the metadata files, and we were not told which one: the table is only read."""


@dataclass(frozen=True, eq=False)
class Version:
    """One metadata file. `key` is relative to the table's root, or a URL.

    `landed` says that our commit which the metadata tells of made this version, whichever it had expected to
    make: only a catalog brings a commit further up than that.
    """

    number: int
    key: str
    raw: Raw
    keeper: Keeper = Keeper.FILES
    compressed: bool = False
    landed: bool = False

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
    def told(self) -> Info:
        """What the metadata says of our commits, of whichever version."""
        return told(self.raw)

    @property
    def info(self) -> Info:
        """What the metadata says of this very version; empty if somebody else wrote it."""
        return self.told if self.landed or self.told.get("version") == self.number else {}


@dataclass(frozen=True, slots=True)
class Made:
    """We made this version. `before` is the one that it stands on."""

    version: Version
    before: Version


class Log(Protocol):
    """What finds and makes the versions of one table."""

    @property
    def keeper(self) -> Keeper:
        """Who keeps new versions."""
        ...

    def newest(self) -> Version | None:
        """The newest version, or None if there is no table here."""
        ...

    def follow(self, version: Version) -> list[Version]:
        """The versions after this one, in order; none is left out."""
        ...

    def at(self, number: int, newest: Version) -> Version | None:
        """An earlier version of the table whose newest is this; None if it is not there any more."""
        ...

    def written(self, newest: Version) -> Mapping[int, int]:
        """When versions were written whose metadata is still there, by the store's clock, in their order."""
        ...

    def create(self, base: Version, raw: Raw, txn: str) -> Made | Version:
        """Make the version after `base`; what it needs is uploaded. Otherwise the version that came first:
        perhaps our own. CommitUnknown if nobody tells."""
        ...

    def leave_hint(self, version: Version) -> None:
        """Leave a hint of this version for those who look for one. Failure harms nobody."""
        ...

    def renew_hint(self, version: Version) -> None:
        """The same for a version that may have been made long ago: of the newest that came since."""
        ...
