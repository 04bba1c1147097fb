"""What a statement leaves behind for the commit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lakevilla.model import Change
from lakevilla.tables.pinned import Pinned
from lakevilla.versions.commits import Commit
from lakevilla.versions.records import Head, RegistryChange
from lakevilla.versions.views import ViewChange


@dataclass(frozen=True)
class TableChange:
    """A change of one table, to be published on the version that it was computed on, or rebased.

    `makes` says that the change makes the table, which is new. `restores` says that it brings files of an
    earlier version back, and `instant` is the entry of the global log whose instant that version is part of:
    it must not have expired when the commit is decided.
    """

    pinned: Pinned
    change: Change
    makes: bool = False
    restores: bool = False
    instant: int | None = None


@dataclass(frozen=True)
class TableDrop:
    """A table that loses its name, as part of a transaction."""

    pinned: Pinned


@dataclass(frozen=True)
class LakeChange:
    """A change of the registry, a transaction of its own. `propose` makes it for the HEAD it follows."""

    propose: Callable[[Head], RegistryChange | Commit]


@dataclass(frozen=True)
class Effect:
    """A statement's result for the user, and what the commit has to publish; None for a read."""

    result: Any
    pending: TableChange | TableDrop | ViewChange | LakeChange | None = None
