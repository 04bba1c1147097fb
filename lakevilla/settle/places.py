"""What settling needs of a lake: its tables, their locations, and the lakes that own them."""

from typing import Protocol

from lakevilla.environment import Environment
from lakevilla.errors import Corrupt
from lakevilla.formats.port import Table
from lakevilla.model import TableRef
from lakevilla.store import keys
from lakevilla.store.port import Created, Store
from lakevilla.versions.owner import Owner


class Places(Protocol):
    """The tables of one lake."""

    @property
    def url(self) -> str:
        """The location of the lake, for people."""
        ...

    def open(self, ref: TableRef) -> Table: ...

    def store(self, ref: TableRef) -> Store:
        """The store of the table's folder."""
        ...


def owner_of(store: Store) -> Owner | None:
    """The lake that owns the table in this folder; None if no lake does."""
    found = store.get(keys.OWNER)
    return None if found is None else Owner.decode(found.data, f"{store.url}/{keys.OWNER}")


def claim(store: Store, environment: Environment, lake: str, url: str) -> Owner:
    """The lake that the table belongs to from here on: this one, unless another was first.

    The record is never changed, so every client gets the same answer.
    """
    mine = Owner(lake, url, environment.new_id())
    if isinstance(store.create(keys.OWNER, mine.encode()), Created):
        return mine
    found = owner_of(store)
    if found is None:
        raise Corrupt(
            f"{store.url}/{keys.OWNER} disappeared while it was read; delete it only while no client writes"
        )
    return found
