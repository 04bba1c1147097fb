"""A table at one version, as a transaction works on it."""

from dataclasses import dataclass

from lakevilla.formats.port import Snapshot, Table
from lakevilla.model import TableRef


@dataclass(frozen=True)
class Pinned:
    """A table at one version, as a transaction works on it.

    `pinned_at` is when the version was seen to be the newest, on the environment's clock: the log may
    have been cleaned up behind a client that slept since. A version that is `fixed` was chosen by number or
    by time: what others commit does not change it.
    """

    ref: TableRef
    table: Table
    snapshot: Snapshot
    pinned_at: float
    fixed: bool = False

    @property
    def is_new(self) -> bool:
        """Whether there is no version yet: the transaction makes the table."""
        return self.snapshot.version < 0


def seen(ref: TableRef, version: int) -> int | None:
    """The version of a table below the root, whose log gets a notice about its name; None elsewhere."""
    return version if ref.is_inside else None
