"""Which rows a version of a table changed, a part of the format port."""

from dataclasses import dataclass

from lakevilla.model import DataFile


@dataclass(frozen=True, slots=True)
class VersionChange:
    """What one version did to the rows of its table.

    `feed` are the files of its change data feed; None if it has none: then the rows follow from the files
    that went and came. A file that is in both, under one key, stayed, with other deleted rows. A version that
    changed no row has neither. `txn` and `attempt` are those of the LakeVilla transaction that wrote it.
    """

    version: int
    txn: str | None
    attempt: str | None
    removed: tuple[DataFile, ...] = ()
    added: tuple[DataFile, ...] = ()
    feed: tuple[DataFile, ...] | None = None
