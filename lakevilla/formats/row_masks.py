"""How a table deletes rows of files that stay, a part of the format port."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lakevilla.files.deleted_rows import DeletedRows
from lakevilla.model import DataFile, WrittenFile
from lakevilla.store.port import Store


@dataclass(frozen=True, slots=True)
class Masked:
    """Files that stay, but for rows that are deleted now: in the log each goes and comes again."""

    added: tuple[WrittenFile, ...] = ()
    removed: tuple[DataFile, ...] = ()
    metrics: Mapping[str, int] = field(default_factory=dict)


class RowMasks(Protocol):
    """Deletes rows of live files of one snapshot."""

    def write(self, rows: Sequence[DeletedRows], store: Store, txn: str) -> Masked:
        """Store which rows are deleted, those of before included.

        What it uploads, it puts through `store`, the table's own, under keys that name the transaction.
        Nothing is part of the table before a change with these files is published.
        """
        ...
