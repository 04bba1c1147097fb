"""Which format the tables of a simulated world have: one for all, or both, by their names."""

from dataclasses import dataclass
from typing import Any

DELTA, ICEBERG = "delta", "iceberg"


@dataclass(frozen=True)
class Formats:
    """A choice for a whole world. Everybody who makes or finds a table there knows its format by its name."""

    name: str

    def of(self, table: str) -> str:
        """The format of a table; in a mixed world about half of the names have each."""
        if self.name != "mixed":
            return self.name
        return DELTA if sum(table.encode()) % 2 else ICEBERG

    def making(self, table: str) -> dict[str, Any]:
        """With what a table is made: where the format has manifests, they are gathered often."""
        if self.of(table) == DELTA:
            return {"format": DELTA}
        return {"format": ICEBERG, "properties": {"commit.manifest.min-count-to-merge": "5"}}

    def __str__(self) -> str:
        return self.name


FORMATS = {name: Formats(name) for name in (DELTA, ICEBERG, "mixed")}
PLAIN = FORMATS[DELTA]
"""What seeds are played with unless another choice is made."""
