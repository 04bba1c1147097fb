"""Catalogs as PyIceberg opens them: which metadata file of a table is current, and the swap to the next one.

What a catalog answers to a commit is a value: it made the version, it refused, or it did not say. Everything
else that goes wrong there is one of our errors.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, cast

from pyiceberg.catalog import Catalog, MetastoreCatalog, load_catalog
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    ForbiddenError,
    NoSuchIdentifierError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NotInstalledError,
    OAuthError,
    UnauthorizedError,
)
from pyiceberg.table import Table
from pyiceberg.table.update import TableRequirement, TableUpdate

from lakevilla.errors import InvalidInput, LakeVillaError, Unavailable, Unsupported
from lakevilla.formats.catalogs import NotConfigured
from lakevilla.formats.iceberg.metadata.paths import url_of
from lakevilla.store.locations import real_location

ANSWER_SECONDS = 60.0
"""A request that a REST catalog has not answered for so long counts as unanswered."""

_NOT_THERE = (NoSuchTableError, NoSuchNamespaceError, NoSuchIdentifierError)
_NO_RIGHTS = (UnauthorizedError, ForbiddenError, OAuthError)


@dataclass(frozen=True, slots=True)
class Current:
    """What a catalog says about a table: its location, and its current metadata file."""

    location: str
    metadata: str


@dataclass(frozen=True, slots=True)
class Applied:
    """The catalog made the version whose metadata file this is."""

    metadata: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The catalog did nothing with this copy of the commit. `final` says that it will refuse every other one
    too: a conflict may be that of a lock, or of another request that is still running."""

    reason: str
    final: bool


@dataclass(frozen=True, slots=True)
class Unanswered:
    """The catalog did not say: it may have made the version, or may yet make it."""

    reason: str


class NoAnswer(Unavailable):
    """The catalog did not answer a question. It can be asked again."""


class Cataloged:
    """One table of a catalog. `location` is where the lake knows it to lie, if it knows. `proven` are the
    names of catalogs that have shown such a table at its location: they are the lake's."""

    def __init__(
        self, catalog: Catalog, catalog_name: str, name: str, location: str | None, proven: set[str]
    ) -> None:
        self._catalog = catalog
        self._catalog_name = catalog_name
        self._name = name
        self._location = location
        self._proven = proven
        self._loaded: Table | None = None

    def __str__(self) -> str:
        return f"the table {self._name!r} of the catalog {self._catalog_name!r}"

    @property
    def judges_here(self) -> bool:
        """Whether requirements are checked in this process, so that they may be of a kind of our own."""
        return isinstance(self._catalog, MetastoreCatalog)

    def current(self) -> Current | None:
        """The table as it is now; None if the catalog has none of this name.

        NoAnswer if the catalog did not say. NotConfigured where that proves nothing, because this may be
        another catalog than the lake's: it has another table of this name, or it has not shown any table of
        the lake yet. SQLite, for example, creates an empty one where the file of a URI does not exist.
        """
        try:
            loaded = self._catalog.load_table(self._name)
        except _NOT_THERE as error:
            self._loaded = None
            if self._location is None or self._catalog_name in self._proven:
                return None
            raise self._unproven(
                f"there is no table {self._name!r} in catalog {self._catalog_name!r}"
            ) from error
        except _NO_RIGHTS as error:
            raise Unavailable(f"{self} cannot be read: {_reason(error)}") from error
        except Exception as error:
            raise NoAnswer(f"{self} cannot be read: {_reason(error)}") from error
        # Optional in PyIceberg's answer: a catalog may not reveal it.
        metadata: Any = loaded.metadata_location
        if not metadata:
            raise Unsupported(f"the catalog does not say where the metadata of {self} lies")
        current = Current(loaded.metadata.location, metadata)
        if self._location is not None:
            if real_location(url_of(current.location)) != real_location(self._location):
                raise self._unproven(f"{self} lies at {current.location}, and the lake's at {self._location}")
            self._proven.add(self._catalog_name)
        self._loaded = loaded
        return current

    def _unproven(self, found: str) -> NotConfigured:
        return NotConfigured(
            f"{found}: check that the options of catalogs={{{self._catalog_name!r}: ...}} open the catalog "
            "in which the table was registered. If it was dropped or moved there, DROP it from the lake",
            table=self._name,
        )

    def commit(
        self, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> Applied | Refused | Unanswered:
        """Let the catalog make the next version if all requirements hold."""
        if self._loaded is None and self.current() is None:
            raise InvalidInput(f"{self} does not exist any more")
        try:
            done = self._catalog.commit_table(cast(Table, self._loaded), requirements, updates)
        except CommitFailedException as error:
            return Refused(_reason(error), final=False)
        except (BadRequestError, NotImplementedError) as error:
            return Refused(_reason(error), final=True)
        except _NOT_THERE as error:
            raise InvalidInput(f"{self} does not exist any more: {_reason(error)}") from error
        except _NO_RIGHTS as error:
            raise Unavailable(f"{self} cannot be changed: {_reason(error)}") from error
        except Exception as error:  # noqa: BLE001 - whatever a driver raises, the commit may have been made
            return Unanswered(_reason(error))
        return Applied(done.metadata_location)


class Catalogs:
    """The catalogs that a lake knows by name. `given` are their options; other catalogs are found in
    PyIceberg's own configuration. Each is opened once in a process, when it is first needed."""

    def __init__(self, given: Mapping[str, Mapping[str, str]]) -> None:
        self._given = given
        self._proven: set[str] = set()
        self._lock = Lock()
        self._opened: dict[tuple[int, str], Catalog] = {}

    def table(self, catalog: str, name: str, location: str | None = None) -> Cataloged:
        """A table of a catalog, whether it exists or not, which the lake knows at this location. Sends no
        request except to open the catalog."""
        with self._lock:
            # Connections do not survive a fork.
            place = os.getpid(), catalog
            if place not in self._opened:
                self._opened[place] = _open(catalog, self._given.get(catalog, {}))
            return Cataloged(self._opened[place], catalog, name, location, self._proven)


def _open(name: str, options: Mapping[str, str]) -> Catalog:
    try:
        catalog = load_catalog(name, **options)
    except Exception as error:
        raise _not_opened(name, error) from error
    _wait_no_longer(catalog)
    return catalog


def _wait_no_longer(catalog: Catalog) -> None:
    """PyIceberg waits for a REST catalog for ever. Its sessions have adapters, which take a timeout."""
    session: Any = getattr(catalog, "_session", None)
    for adapter in getattr(session, "adapters", {}).values():
        vars(adapter)["send"] = partial(_send, adapter.send)


def _send(send: Callable[..., Any], request: object, **given: Any) -> Any:
    return send(request, **{**given, "timeout": given.get("timeout") or ANSWER_SECONDS})


def _not_opened(name: str, error: Exception) -> LakeVillaError:
    text = f"the catalog {name!r} cannot be opened: {_reason(error)}"
    match error:
        case NotInstalledError() | ImportError():
            return Unsupported(text)
        case ValueError() | TypeError() | KeyError():
            return NotConfigured(
                f"{text}. Give its options, lv.Lake(..., catalogs={{{name!r}: {{'type': ..., 'uri': ...}}}}),"
                " or write them into PyIceberg's configuration (.pyiceberg.yaml)"
            )
    return Unavailable(text)


def _reason(error: Exception) -> str:
    """The first line: what follows may be a statement with its parameters, or a page of HTML."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
