"""A store that only takes objects, for tests of what is written."""

import io
import itertools
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakevilla.files.writer import write_files
from lakevilla.model import Partitioning, WrittenFile


class Shelf:
    """The one verb of a store that the writer uses."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def put(self, key: str, data: bytes) -> None:
        assert key not in self.objects
        self.objects[key] = data

    def table(self, key: str) -> pa.Table:
        return pq.read_table(io.BytesIO(self.objects[key]))


def write(
    shelf: Shelf, *rows: Any, schema: pa.Schema | None = None, by: tuple[str, ...] = (), **limits: int
) -> list[WrittenFile]:
    """Write rows as the writer does, at 17 ms after the epoch."""
    numbers = itertools.count()
    return write_files(
        rows,
        schema=rows[0].schema if schema is None else schema,
        partitioning=Partitioning.by_columns(by),
        store=shelf,  # type: ignore[arg-type]
        new_key=lambda: f"part-{next(numbers)}.parquet",
        now_ms=lambda: 17,
        **limits,
    )
