"""Which formats there are, by name, and the folder that gives each away.

The one place where the type of a format's snapshots is forgotten: a table is only given its own. The formats
are imported with their first table: to list names needs none.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from lakevilla.environment import Environment
from lakevilla.errors import Unsupported
from lakevilla.formats.catalogs import CatalogPlace, KnownCatalogs, needed_packages
from lakevilla.formats.delta.log.paths import LOG
from lakevilla.sql.words.suggestions import did_you_mean
from lakevilla.store.port import Store

if TYPE_CHECKING:
    from lakevilla.formats.port import Table

FORMATS = {"delta": LOG, "iceberg": "metadata/"}

MARKS = {"delta": (LOG,), "iceberg": ("metadata/v", "metadata/0")}
"""How keys begin by which a table of each format is found: metadata files are `v<N>` or `<N>-<id>`."""

MERGE_ON_READ = {
    "delta": {"delta.enableDeletionVectors": "true"},
    "iceberg": {f"write.{verb}.mode": "merge-on-read" for verb in ("update", "delete", "merge")},
}
"""The properties by which changes of rows spare the files of a table, of the formats that have such."""


def check_format(name: str) -> None:
    """Raise Unsupported if there is no format of this name."""
    if name not in FORMATS:
        hint = did_you_mean(name, FORMATS, "available: 'delta', 'iceberg'")
        error = Unsupported(f"unknown table format {name!r}; {hint}")
        error.unknown = name
        raise error


def open_table(
    format_name: str,
    store: Store,
    environment: Environment,
    opener: Callable[[str], Store],
    catalogs: KnownCatalogs | None = None,
) -> "Table":
    """A table of this format at the root of a store; `opener` gives stores of other locations."""
    place = CatalogPlace.parse(format_name)
    check_format(format_name if place is None else "iceberg")
    if place is not None:
        return _in_catalog(place, store, environment, opener, catalogs or KnownCatalogs({}))
    if format_name == "iceberg":
        return _iceberg(store, environment, opener)
    from lakevilla.formats.delta.table import DeltaTable

    return cast("Table", DeltaTable(store, environment, opener))


def _iceberg(store: Store, environment: Environment, opener: Callable[[str], Store]) -> "Table":
    with needed_packages():
        from lakevilla.formats.iceberg.log.file_log import FileLog
        from lakevilla.formats.iceberg.table import IcebergTable
    return cast("Table", IcebergTable(FileLog(store, environment), store, environment, opener))


def _in_catalog(
    place: CatalogPlace,
    store: Store,
    environment: Environment,
    opener: Callable[[str], Store],
    catalogs: KnownCatalogs,
) -> "Table":
    with needed_packages():
        from lakevilla.formats.iceberg.log.catalog_log import CatalogLog
        from lakevilla.formats.iceberg.table import IcebergTable
    table = catalogs.opened.table(place.catalog, place.table, store.url)
    log = CatalogLog(table, store, environment, opener)
    return cast("Table", IcebergTable(log, store, environment, opener))
