"""Tables that a catalog keeps: their places there, and the catalogs that a lake knows.

Such a table has a format that names its place: `iceberg@<catalog>/<table>`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING

from lakevilla.errors import InvalidInput, Unsupported

if TYPE_CHECKING:
    from lakevilla.formats.iceberg.log.catalogs import Catalogs


class NotConfigured(InvalidInput):
    """This client was not given what opens the table, or was given something else: another one may have it.
    It proves nothing about the table."""


@dataclass(frozen=True, slots=True)
class CatalogPlace:
    """The place of a table in a catalog."""

    catalog: str
    table: str

    @staticmethod
    def parse(format_name: str) -> "CatalogPlace | None":
        """The place that a table's format names; None for tables that no catalog keeps."""
        kind, separator, rest = format_name.partition("@")
        catalog, slash, table = rest.partition("/")
        return CatalogPlace(catalog, table) if separator and slash and kind == "iceberg" else None

    @property
    def format(self) -> str:
        return f"iceberg@{self.catalog}/{self.table}"


class KnownCatalogs:
    """The catalogs of a lake by name, with the options that were given for them. Opened when one is needed.

    InvalidInput if what was given is not a mapping of names to options.
    """

    def __init__(self, given: Mapping[str, Mapping[str, str]]) -> None:
        for name, options in given.items():
            if not isinstance(name, str) or not isinstance(options, Mapping):
                raise InvalidInput(
                    "catalogs must be a mapping of names to options, such as "
                    f"{{'prod': {{'type': 'sql', 'uri': 'sqlite:///catalog.db'}}}}; found {name!r}"
                )
        self._given = {name: dict(options) for name, options in given.items()}
        self._opened: Catalogs | None = None

    def location(self, place: CatalogPlace) -> str:
        """The URL of the folder of a catalog's table; InvalidInput if it is not there."""
        with needed_packages():
            from lakevilla.formats.iceberg.metadata.paths import url_of
        current = self.opened.table(place.catalog, place.table).current()
        if current is None:
            raise InvalidInput(
                f"unknown table {place.table!r} in catalog {place.catalog!r}", table=place.table
            )
        return url_of(current.location)

    @property
    def opened(self) -> "Catalogs":
        """What opens them."""
        if self._opened is None:
            with needed_packages():
                from lakevilla.formats.iceberg.log.catalogs import Catalogs
            self._opened = Catalogs(self._given)
        return self._opened


_IMPORTS = RLock()
"""Threads that import parts of PyIceberg in different orders are given modules that are only half loaded."""


@contextmanager
def needed_packages() -> Iterator[None]:
    """Only a lake with Iceberg tables needs these packages: Unsupported if they are not installed."""
    try:
        with _IMPORTS:
            yield
    except ImportError as error:
        raise Unsupported(
            f"Iceberg tables need more packages ({error}): pip install 'lakevilla[iceberg]'"
        ) from error
