"""Row ids of format 3 (Iceberg's spec, "Row Lineage"): which range of ids each data file has. Pure.

A manifest has a first id, from which its new files inherit theirs in the order in which it lists them. A
manifest of before the upgrade has none until the next snapshot gives it one. Files that are kept, or come
back, name their ids themselves.
"""

from collections.abc import Iterable
from dataclasses import replace

from lakevilla.formats.iceberg.manifests.entries import Entry

FIRST_ROW_ID = "first_row_id"


def numbered(entries: Iterable[Entry], first: int | None) -> list[Entry]:
    """The live entries of a data manifest whose first id is this one, in their order, with their ids."""
    found, following = [], first
    for entry in entries:
        own = None if first is None else entry.file.get(FIRST_ROW_ID)
        if own is None and following is not None:
            own, following = following, following + entry.rows
        same = entry.file.get(FIRST_ROW_ID) == own
        found.append(entry if same else replace(entry, file={**entry.file, FIRST_ROW_ID: own}))
    return found
