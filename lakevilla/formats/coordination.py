"""What a version of a table says about LakeVilla's own protocol, in whatever format."""

from dataclasses import dataclass

from lakevilla.model import Notice


@dataclass(frozen=True, slots=True)
class Coordination:
    """What a version says about LakeVilla's protocol (docs/protocol.md), to clients that know it.

    A table that only legacy clients write says nothing: these values are the defaults.
    """

    notice: Notice | None = None
    """The newest notice about the table's name among the log entries that were read."""
    ticket: int = 0
    """The newest ticket that a log entry among those that were read names; 0 if none does."""
    contended: bool = False
    """Whether the newest version came from another client that had to queue for it."""
    slot: int = 0
    """The newest entry of the lake's global log that decided one of the log entries that were read."""
    exclusive: bool = False
    """Whether only transactions that the lake's global log decides change this table."""
    markers_in_log: bool = False
    """Whether writers hold versions of this table by markers in its log (section 3)."""
