"""Rows that a statement deletes of a file that stays: what an engine hands to a table's format.

The format stores them its own way (deletion vectors, in Delta). This file also has the one decision that all
engines share: from how many deleted rows on a file is rewritten instead. Pure.
"""

from dataclasses import dataclass

from lakevilla.files.bitmaps import Positions, joined
from lakevilla.model import DataFile


@dataclass(frozen=True, slots=True, eq=False)
class DeletedRows:
    """Rows of one live file that go, while the file stays.

    `rows` are their positions in the file: sorted, distinct, and none of them deleted before. `file_rows` is
    how many rows the file holds, deleted ones included.
    """

    file: DataFile
    rows: Positions
    file_rows: int

    def all_deleted(self) -> Positions:
        """These rows, and those that were deleted before."""
        if self.file.deletes is None:
            return self.rows
        before: Positions = self.file.deletes.rows().to_numpy(zero_copy_only=False)
        return joined(before, self.rows)


def is_worth_keeping(hits: int, deleted: int, file_rows: int) -> bool:
    """Whether a file of so many rows stays when `hits` of them go, after `deleted` went before.

    Every reader pays for deleted rows, and a rewrite copies what is left: when more than half of the rows
    are deleted, the file is rewritten.
    """
    return 2 * (hits + deleted) <= file_rows
