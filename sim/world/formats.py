"""Which format the tables of a simulated world have: one for all, or several, by their names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DELTA, ICEBERG = "delta", "iceberg"
VECTORS = "vectors"
"""Delta tables whose changes write deletion vectors."""
FEEDS = "feeds"
"""The same, with a change data feed."""
DELETES = "deletes"
"""Iceberg tables whose changes write position delete files."""
CATALOGED = "cataloged"
"""Iceberg, kept by a catalog."""

METASTORE, REST = "metastore", "rest"
"""The catalogs (see `catalogs`)."""

_MERGE_ON_READ = {VECTORS: DELTA, FEEDS: DELTA, DELETES: ICEBERG}

_CATALOG_OF = {
    "lists": REST,
    "registers": METASTORE,
    "counts": METASTORE,
    "blind": REST,
    "left": REST,
    "up": METASTORE,
}


@dataclass(frozen=True)
class Formats:
    """A choice for a whole world. Each client that makes or finds a table there knows its format by its
    name."""

    name: str

    @property
    def has_catalogs(self) -> bool:
        return self.name == CATALOGED

    @property
    def merge_on_read(self) -> bool:
        """Whether clients make tables whose changes write deletion vectors or delete files."""
        return self.name in _MERGE_ON_READ

    @property
    def has_feeds(self) -> bool:
        """Whether clients make tables with a change data feed."""
        return self.name == FEEDS

    def of(self, table: str) -> str:
        """The format of a table. In a mixed world about half of the names have each; in one with catalogs
        these keep most of the tables that are there from the beginning, and the others are Delta tables."""
        if self.has_catalogs:
            return DELTA if self.catalog_of(table) is None else CATALOGED
        if self.merge_on_read:
            return _MERGE_ON_READ[self.name]
        if self.name != "mixed":
            return self.name
        return DELTA if sum(table.encode()) % 2 else ICEBERG

    def catalog_of(self, table: str) -> str | None:
        """The catalog that keeps a table, if one does."""
        return _CATALOG_OF.get(table) if self.has_catalogs else None

    def making(self, table: str, properties: Mapping[str, str] | None = None) -> dict[str, Any]:
        """With what a table of these properties is made: where the format has manifests, they are gathered
        often."""
        given = dict(properties or {})
        if self.has_feeds:
            given["delta.enableChangeDataFeed"] = "true"
        if self.of(table) == DELTA:
            return {"format": DELTA, "properties": given}
        return {"format": ICEBERG, "properties": {**GATHERED_OFTEN, **given}}

    def __str__(self) -> str:
        return self.name


GATHERED_OFTEN = {"commit.manifest.min-count-to-merge": "5"}

FORMATS = {name: Formats(name) for name in (DELTA, VECTORS, FEEDS, ICEBERG, DELETES, "mixed", CATALOGED)}
PLAIN = FORMATS[DELTA]
"""What seeds are played with unless another choice is made."""
