"""Which tables have a layout that makes reads slow: many small files, or many deleted rows kept in files."""

from collections import Counter
from collections.abc import Iterator, Sequence

from lakevilla.errors import LakeVillaError
from lakevilla.maintenance.doctor.diagnosis import Check
from lakevilla.model import DataFile
from lakevilla.predicates import ANYTHING
from lakevilla.tables.pinned import Pinned

SMALL_BYTES = 16 * 1024 * 1024
MANY_FILES = 50
"""So many small files in one partition are worth a note."""
MANY_DELETED = 0.2
"""So large a part of the rows of files with deletes is worth a note."""


def look_at_layout(tables: Sequence[Pinned]) -> Iterator[Check]:
    """Notes for tables that should be optimized."""
    found = False
    for pinned in tables:
        name = pinned.ref.name
        try:
            texts = _texts(pinned.snapshot.files(ANYTHING))
        except LakeVillaError as error:
            # Whether a table can be read at all is another check's finding.
            texts = []
            yield Check("layout", "warning", f"the files of {name!r} cannot be counted: {error}", "", (name,))
            found = True
        if texts:
            found = True
            advice = (
                "rewrite the table in fewer files, such as by "
                f"lake.overwrite({name!r}, lake.read({name!r}).toArrow()), or by OPTIMIZE of another client"
            )
            yield Check("layout", "note", f"{name!r} has {', and '.join(texts)}", advice, (name,))
    if not found:
        yield Check("layout", "ok", "no table has many small files or many deleted rows in its files")


def _texts(files: Sequence[DataFile]) -> list[str]:
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
