"""The names of a lake's tables, without a look at any table: listings and completion must be fast."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from lakevilla.environment import Environment, SystemEnvironment
from lakevilla.formats.registry import MARKS
from lakevilla.store.open import open_store
from lakevilla.store.port import Store
from lakevilla.store.prefixed import Prefixed
from lakevilla.versions import registry
from lakevilla.versions.log import GlobalLog, States
from lakevilla.versions.records import Head


@dataclass(frozen=True)
class Names:
    """What a lake has: the names of its tables, and its tags with the numbers of their entries."""

    url: str
    tables: list[str]
    tags: dict[str, int]


def names_at(url: str, storage_options: Mapping[str, str]) -> Names:
    """The names of the lake at this URL. Reads HEAD and lists folders of the root."""
    environment = SystemEnvironment()
    store = open_store(url, storage_options, environment=environment)
    found = GlobalLog(store, environment, States()).read_head()
    head = None if found is None else found.head
    tags = {} if head is None else dict(sorted(head.tags.items()))
    return Names(store.url, table_names(store, head, environment), tags)


def table_names(store: Store, head: Head | None, environment: Environment) -> list[str]:
    """Every table of a lake: those that HEAD has, and those found in folders of the root."""
    folders = [f for f in store.list_folders("") if f[0] not in "._" and registry.may_lie_at(head, f)]
    found = environment.fan_out([partial(format_of, Prefixed(store, folder)) for folder in folders])
    registered = [] if head is None else list(head.tables)
    return sorted(registered + [f for f, format_name in zip(folders, found, strict=True) if format_name])


def format_of(store: Store) -> str | None:
    """The format of the table at the root of this store; None if there is none."""
    for name, marks in MARKS.items():
        if any(next(iter(store.list(mark)), None) is not None for mark in marks):
            return name
    return None
