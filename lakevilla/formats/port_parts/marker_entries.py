"""How a table's log holds markers, a part of the format port."""

from collections.abc import Mapping
from typing import Any, Protocol


class MarkerEntries(Protocol):
    """The entries of a table's log as places for markers, which are records, see `markers.records`. For one
    thread at a time."""

    def key(self, version: int) -> str:
        """The key of the log entry of this version."""
        ...

    def encode(self, version: int, record: Mapping[str, Any]) -> bytes:
        """The entry that is this marker: valid and empty for every client that knows no markers.

        May read the versions below it, where an entry holds the whole state of the table."""
        ...

    def decode(self, version: int, data: bytes) -> Mapping[str, Any] | None:
        """The marker that an entry is, pending or freed; None for any other entry."""
        ...

    def taken(self, after: int) -> Mapping[int, int]:
        """The versions after this one that have entries or checkpoints, with their times. One LIST."""
        ...

    def freed(self, version: int) -> None:
        """After a marker was freed: see that it does not hide from others what was committed below it
        meanwhile. Failure harms no client."""
        ...
