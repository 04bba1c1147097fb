"""Which tables have a layout that makes reads slow: many small files, or many deleted rows kept in files."""

from collections import Counter
from collections.abc import Sequence

from lakevilla.model import DataFile

SMALL_BYTES = 16 * 1024 * 1024
MANY_FILES = 50
"""So many small files in one partition are worth a note."""
MANY_DELETED = 0.2
"""So large a part of the rows of files with deletes is worth a note."""


def layout_texts(files: Sequence[DataFile]) -> list[str]:
    """What is wrong with the layout of a table with these files, if anything."""
    small = Counter(tuple(sorted(map(str, f.partition.items()))) for f in files if f.size < SMALL_BYTES)
    texts = []
    most = max(small.values(), default=0)
    if most >= MANY_FILES:
        total = sum(small.values())
        where = "" if total == most else f", {most:,} of them in one partition"
        texts.append(f"{total:,} files of less than {SMALL_BYTES // 2**20} MiB{where}")
    marked = [file for file in files if file.deletes is not None]
    rows = sum(file.rows or 0 for file in marked)
    deleted = sum(
        (file.rows or 0) - (file.living_rows or 0) for file in marked if file.living_rows is not None
    )
    if rows and deleted / rows >= MANY_DELETED:
        texts.append(f"{deleted:,} deleted rows that are still kept in {len(marked):,} files")
    return texts
