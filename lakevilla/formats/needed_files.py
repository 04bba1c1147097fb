"""Which files a table still needs, as vacuum asks a format: a part of the format port."""

from typing import Protocol

import pyarrow as pa


class References(Protocol):
    """Which files a table's log names, for vacuum. Keys are relative to the table's root."""

    def needed(self, keys: pa.Array) -> pa.BooleanArray:
        """Which of these files a version needs that was current at the moment that was asked for, or later.

        A file that the log spells in another way counts as needed too, wherever its name ends alike.
        """
        ...

    def removed(self, keys: pa.Array) -> pa.BooleanArray:
        """Which of these files the log removed, as far as it still records that; only for files not
        needed."""
        ...

    def named_since(self, keys: pa.Array) -> pa.BooleanArray:
        """Which of these files a version names that was published since: one GET that misses if none was."""
        ...
