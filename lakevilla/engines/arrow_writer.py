"""Rows that are in this process, written as data files of a target. Both engines write them this way."""

from collections.abc import Iterable

import pyarrow as pa

from lakevilla.engines.port import Target
from lakevilla.files.writer import write_files
from lakevilla.model import WrittenFile


def write(target: Target, pieces: Iterable[pa.Table]) -> tuple[WrittenFile, ...]:
    """Write pieces of rows as data files."""
    return write_files(
        pieces,
        schema=target.schema,
        partitioning=target.partitioning,
        store=target.store,
        new_key=target.new_key,
        now_ms=target.now_ms,
        file_bytes=target.file_bytes,
        file_rows=target.file_rows,
    )
