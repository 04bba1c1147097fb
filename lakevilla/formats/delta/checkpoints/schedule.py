"""When a version gets a checkpoint: where the table sets `delta.checkpointInterval` exactly as it says, else
when one pays off. Pure.

A checkpoint costs what it holds, all live files and young tombstones; without it, a client that opens the
table reads the log entries since the last one, each by a request. So:

- Only every tenth version is considered, so that most commits ask for nothing, and clients that know nothing
  of each other agree. There are never more checkpoints than with Delta's own interval of ten.
- One is written when the entries since the last one have as many bytes as that one (the first is due at
  once). Then all checkpoints together grow with the log, not with its square: n appends of one row leave
  checkpoints of about twelve times the last one's size.
- And it is written, however large, when there are `MOST_ENTRIES` entries since the last one.

A cold open reads one checkpoint and, if the owner of each considered version writes its checkpoint, fewer
than `MOST_ENTRIES` + `EVERY` entries. An owner that dies before it, or a legacy client that gets the version,
moves it by ten versions.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from lakevilla.formats.delta.definition.properties import CHECKPOINT_INTERVAL, whole_number

EVERY = 10
MOST_ENTRIES = 250


@dataclass(frozen=True, slots=True)
class Unfolded:
    """What a cold open reads of the log: bytes of the newest checkpoint (None if there is none), and number
    and bytes of the entries since."""

    checkpoint_bytes: int | None
    entries: int
    entry_bytes: int


def is_considered(version: int, configuration: Mapping[str, str]) -> bool:
    """Whether this version may get a checkpoint."""
    interval = whole_number(configuration, CHECKPOINT_INTERVAL, EVERY)
    return version > 0 and version % max(1, interval) == 0


def is_due(configuration: Mapping[str, str], found: Unfolded) -> bool:
    """Whether a version that is considered gets one."""
    if whole_number(configuration, CHECKPOINT_INTERVAL, 0) > 0:
        return True
    if found.checkpoint_bytes is None or found.entries >= MOST_ENTRIES:
        return True
    return found.entry_bytes >= found.checkpoint_bytes
