"""Rows of the suite `world`, and what a change makes of them: the specification, in a few lines.

All tables hold (k, v, items) and perhaps more columns, which do not count here: a row is a key whose list is
`items`. Every change carries a value of its own, so a list tells which changes it has seen, and how often.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

KEYS = 3
INSERTED = 1000
"""Keys from here on are rows that were inserted."""

Row = tuple[int, int, str]
Rows = tuple[Row, ...]
"""In the order of their keys."""


@dataclass(frozen=True, slots=True)
class Change:
    """`insert` a row, `append` the value to the list of a key, `make` a table with its first rows, or
    `restore` it to these rows."""

    action: str
    key: int
    value: int
    rows: Rows = ()

    @property
    def row(self) -> dict[str, Any]:
        """The row that is inserted."""
        return {"k": INSERTED + self.value, "v": 0, "items": f",{self.value}"}


Work = dict[str, list[Change]]
"""What a transaction changes, by the name of the table."""


def first_rows() -> list[dict[str, Any]]:
    """What every table begins with."""
    return [{"k": key, "v": 100, "items": ""} for key in range(KEYS)]


def as_rows(found: Iterable[Mapping[str, Any]]) -> Rows:
    return tuple(sorted((row["k"], row["v"], row["items"]) for row in found))


def after(changes: Sequence[Change], rows: Rows) -> Rows:
    """The rows after these changes, in this order."""
    for change in changes:
        match change.action:
            case "insert":
                rows = tuple(sorted((*rows, (INSERTED + change.value, 0, f",{change.value}"))))
            case "append":
                rows = tuple(
                    (k, v, f"{items},{change.value}" if k == change.key else items) for k, v, items in rows
                )
            case "make":
                rows = as_rows(first_rows())
            case "restore":
                rows = change.rows
            case other:
                raise ValueError(f"no effect is written down for {other}")
    return rows


def without(changes: Sequence[Change], rows: Rows) -> Rows:
    """The rows as if these changes had not happened."""
    gone = {INSERTED + change.value for change in changes if change.action == "insert"}
    texts = [f",{change.value}" for change in changes if change.action == "append"]
    kept = []
    for k, v, items in rows:
        if k not in gone:
            for text in texts:
                items = "".join(f",{item}" for item in items.split(",")[1:] if f",{item}" != text)
            kept.append((k, v, items))
    return tuple(kept)
