"""Which files of a table are rewritten together. Pure.

Files of one partition are packed into bins of the target size, in the order in which the table lists them. A
file takes part if it is small, or if enough of its rows are deleted; with `full` every file does. To be
clustered all files have to take part, in groups that fit into memory.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lakevilla.model import DataFile

SMALL = 0.75
"""A file of less than this part of the target size is packed."""
MANY_DELETED = 0.05
"""A file of whose rows this part is deleted is rewritten without them."""
CLUSTER_BYTES = 256 * 1024 * 1024
"""So many bytes of files are clustered together: their rows are in memory at once, several times as large."""
COMMIT_BYTES = 4 * 1024 * 1024 * 1024
"""So many bytes of files are rewritten by one commit."""

_READABLE = ("parquet", "orc")

Group = tuple[DataFile, ...]


@dataclass(frozen=True)
class Wanted:
    """What is asked for: the size of new files, whether all are rewritten, and by which columns they are
    clustered."""

    target_bytes: int
    full: bool = False
    order: tuple[str, ...] = ()


def plan(files: Iterable[DataFile], wanted: Wanted) -> list[Group]:
    """The groups of files to rewrite."""
    partitions: dict[Hashable, list[DataFile]] = {}
    for file in files:
        if file.format in _READABLE and (wanted.order or _is_due(file, wanted)):
            partitions.setdefault(partition_of(file), []).append(file)
    most = max(CLUSTER_BYTES, wanted.target_bytes) if wanted.order else wanted.target_bytes
    groups = [group for found in partitions.values() for group in _packed(found, most)]
    return [group for group in groups if wanted.order or _is_worth_it(group, wanted)]


def units(groups: Sequence[Group]) -> Iterator[list[Group]]:
    """The groups, those together that one commit rewrites."""
    unit: list[Group] = []
    size = 0
    for group in groups:
        more = sum(file.size for file in group)
        if unit and size + more > COMMIT_BYTES:
            yield unit
            unit, size = [], 0
        unit.append(group)
        size += more
    if unit:
        yield unit


def partition_of(file: DataFile) -> Hashable:
    """The partition of a file as its table's log has it."""
    if isinstance(file.entry, Mapping):
        return tuple(sorted((file.entry.get("partitionValues") or {}).items()))
    return file.entry.spec_id, tuple(map(repr, file.entry.partition))


def has_many_deleted(file: DataFile) -> bool:
    """Whether the file is worth rewriting without its deleted rows; so is one that does not tell how many
    they are."""
    if file.deletes is None:
        return False
    if file.rows is None or file.living_rows is None:
        return True
    return file.rows - file.living_rows >= MANY_DELETED * file.rows


def _is_due(file: DataFile, wanted: Wanted) -> bool:
    return wanted.full or has_many_deleted(file) or file.size < SMALL * wanted.target_bytes


def _is_worth_it(group: Group, wanted: Wanted) -> bool:
    return wanted.full or len(group) > 1 or has_many_deleted(group[0])


def _packed(files: Sequence[DataFile], most_bytes: int) -> Iterator[Group]:
    """The files in bins of at most so many bytes of rows that stay; a larger file is alone."""
    packed: list[DataFile] = []
    size = 0.0
    for file in files:
        living = _living_bytes(file)
        if packed and size + living > most_bytes:
            yield tuple(packed)
            packed, size = [], 0.0
        packed.append(file)
        size += living
    if packed:
        yield tuple(packed)


def _living_bytes(file: DataFile) -> float:
    if not file.rows or file.living_rows is None:
        return file.size
    return file.size * file.living_rows / file.rows
