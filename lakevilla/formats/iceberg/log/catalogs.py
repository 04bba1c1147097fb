"""Catalogs as PyIceberg opens them: which metadata file of a table is current, and the swap to the next one.

What a catalog answers to a commit is a value: it made the version, it refused, or it did not say. Everything
else that goes wrong there is one of our errors.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
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
    """The catalog did nothing, and will not any more."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unanswered:
    """The catalog did not say: it may have made the version, or may yet make it."""

    reason: str


class Cataloged:
    """One table of a catalog."""

    def __init__(self, catalog: Catalog, catalog_name: str, name: str) -> None:
        self._catalog = catalog
        self._catalog_name = catalog_name
        self._name = name
        self._loaded: Table | None = None

    def __str__(self) -> str:
        return f"the table {self._name!r} of the catalog {self._catalog_name!r}"

    @property
    def judges_here(self) -> bool:
        """Whether requirements are checked in this process, so that they may be of a kind of our own."""
        return isinstance(self._catalog, MetastoreCatalog)

    def current(self) -> Current | None:
        """The table as it is now; None if the catalog has none of this name.

        NotConfigured if not even its namespace is there: then this is likely another catalog, for example
        the empty one that SQLite creates where the file of a URI does not exist.
        """
        try:
            self._loaded = self._catalog.load_table(self._name)
        except _NOT_THERE:
            self._must_know_namespace()
            return None
        except Exception as error:
            raise Unavailable(f"{self} cannot be read: {_reason(error)}") from error
        # Optional in PyIceberg's answer: a catalog may not reveal it.
        metadata: Any = self._loaded.metadata_location
        if not metadata:
            raise Unsupported(f"the catalog does not say where the metadata of {self} lies")
        return Current(self._loaded.metadata.location, metadata)

    def _must_know_namespace(self) -> None:
        namespace = Catalog.namespace_from(self._name)
        try:
            known = self._catalog.namespace_exists(namespace)
        except NotImplementedError:
            # A REST server that does not offer this: its answer about the table is all there is.
            return
        except Exception as error:
            raise Unavailable(f"{self} cannot be read: {_reason(error)}") from error
        if not known:
            raise NotConfigured(
                f"unknown table {self._name!r} in catalog {self._catalog_name!r}, which does not have its "
                f"namespace {'.'.join(namespace)!r} either: check that the options open the right catalog"
            )

    def commit(
        self, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> Applied | Refused | Unanswered:
        """Let the catalog make the next version if all requirements hold."""
        if self._loaded is None and self.current() is None:
            raise InvalidInput(f"{self} does not exist any more")
        try:
            done = self._catalog.commit_table(cast(Table, self._loaded), requirements, updates)
        except (CommitFailedException, BadRequestError, NotImplementedError) as error:
            return Refused(_reason(error))
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
        self._lock = Lock()
        self._opened: dict[tuple[int, str], Catalog] = {}

    def table(self, catalog: str, name: str) -> Cataloged:
        """A table of a catalog, whether it exists or not. Sends no request except to open the catalog."""
        with self._lock:
            # Connections do not survive a fork.
            place = os.getpid(), catalog
            if place not in self._opened:
                self._opened[place] = _open(catalog, self._given.get(catalog, {}))
            return Cataloged(self._opened[place], catalog, name)


def _open(name: str, options: Mapping[str, str]) -> Catalog:
    try:
        return load_catalog(name, **options)
    except Exception as error:
        raise _not_opened(name, error) from error


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
