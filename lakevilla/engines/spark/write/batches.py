"""In what batches Spark hands rows to Python workers.

Spark bounds a batch by rows and by bytes, and for the bytes it asks every column for its size after every
row: most of the time of a large append. A bound by rows alone costs nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from lakevilla.engines.spark.session.connect import is_connect

_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_UNBOUNDED = str(2**31 - 1)
_FIXED_ROWS = 64 * 1024
_VARIABLE_ROWS = 8 * 1024
"""Rows of 8 KB still make no larger batches than Spark's own bound of 64 MB."""


@contextmanager
def bounded_by_rows(session: Any, schema: pa.Schema) -> Iterator[None]:
    """Jobs of this thread get batches bounded by rows, fewer where a row may be large.

    They are told by properties of the thread's jobs, which leave the session's settings alone; what the
    user has set there goes before them. With Spark Connect the jobs' thread is in the server.
    """
    if is_connect(session):
        yield
        return
    context = session.sparkContext
    rows = _FIXED_ROWS if all(_is_fixed(field.type) for field in schema) else _VARIABLE_ROWS
    before = {name: context.getLocalProperty(name) for name in (_BYTES, _ROWS)}
    context.setLocalProperty(_BYTES, _UNBOUNDED)
    context.setLocalProperty(_ROWS, str(rows))
    try:
        yield
    finally:
        for name, value in before.items():
            context.setLocalProperty(name, value)


def _is_fixed(type_: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(type_) or pa.types.is_decimal(type_))
