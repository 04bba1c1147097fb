"""How many rows given data has, for counts of changes and reports of progress."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sized

import pyarrow as pa


def counted(pieces: Iterable[pa.Table], add: Callable[[int], None]) -> Iterator[pa.Table]:
    """The pieces, their rows counted on the way."""
    for piece in pieces:
        add(piece.num_rows)
        yield piece


def length_of(data: object) -> int | None:
    """How many rows data has that is all there; None if it is not known without reading it."""
    return len(data) if isinstance(data, Sized) and not isinstance(data, str | bytes | Mapping) else None
