"""UUIDs as Spark shows them: as text."""

from typing import Any
from uuid import UUID

import pyarrow as pa

from lakevilla.engines.spark.types import has_uuid


def as_text(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    """The column with its UUIDs as text, where it has any; `kind` is its type then."""
    return pa.array(map(_text, column.to_pylist()), kind) if has_uuid(column.type) else column


def _text(value: Any) -> Any:
    match value:
        case UUID():
            return str(value)
        case dict():
            return {name: _text(member) for name, member in value.items()}
        case list() | tuple():
            return [_text(member) for member in value]
    return value
