"""How a logical column finds its values in a data file.

Formats annotate the fields of a logical Arrow schema, nested ones too, with the metadata keys of this
module; readers and writers of data files follow them. A field without annotation goes by its own name.
"""

import base64
import binascii
import enum
import json
from collections.abc import Iterable

import pyarrow as pa

from lakevilla.errors import Corrupt

PHYSICAL_NAME = b"lakevilla.physical_name"
"""The column's name in data files, where it differs from the logical one."""

FIELD_ID = b"PARQUET:field_id"
"""The column's id in data files; Arrow writes it into the Parquet schema."""

BY_ID = b"lakevilla.by_id"
REUSED_NAMES = b"lakevilla.reused_names"
"""On the schema: present if data files are matched by field id, not by name."""

NAMES = b"lakevilla.names"
"""The names that the column has in data files without any field id, as a JSON list.

A table with a name mapping has it on every field, as an empty list where the mapping does not know the field.
"""

COMMENT = b"comment"
"""What people say of the column, as Arrow's users and Spark's name it."""

DEFAULT = b"lakevilla.default"
"""What the column reads as where a data file does not hold it, as `encode_default` spells it; else null."""


class Match(enum.Enum):
    """By what the columns of one data file are found."""

    NAME = enum.auto()
    ID = enum.auto()
    MAPPED_NAME = enum.auto()


def physical_name(field: pa.Field) -> str:
    """The name of this column in data files."""
    metadata = field.metadata or {}
    name: bytes | None = metadata.get(PHYSICAL_NAME)
    return field.name if name is None else name.decode()


def field_id(field: pa.Field) -> int | None:
    """The id of this column in data files, if the table assigns ids."""
    metadata = field.metadata or {}
    text: bytes | None = metadata.get(FIELD_ID)
    return None if text is None else int(text)


def by_id(schema: pa.Schema) -> bool:
    """Whether data files are matched by field id."""
    return BY_ID in (schema.metadata or {})


def mapped_names(field: pa.Field) -> list[str]:
    """The names of this column in data files without field ids."""
    names: list[str] = json.loads((field.metadata or {}).get(NAMES, b"[]"))
    return names


def has_mapped_names(schema: pa.Schema) -> bool:
    """Whether the table has a name mapping, so that data files may lack field ids."""
    return any(NAMES in (field.metadata or {}) for field in schema)


def has_reused_names(schema: pa.Schema) -> bool:
    """Whether a column has a name that another one had before, so that files may have it under that name."""
    return REUSED_NAMES in (schema.metadata or {})


def has_ids(fields: Iterable[pa.Field]) -> bool:
    """Whether any of these fields of a data file, or of those below them, has an id."""
    return any(field_id(field) is not None or has_ids(_below(field.type)) for field in fields)


def encode_default(value: pa.Scalar) -> bytes:
    """A value as DEFAULT holds it: base 64 of an Arrow stream of one row."""
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([pa.repeat(value, 1)], names=["default"])
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return base64.b64encode(sink.getvalue())


def default_of(field: pa.Field) -> pa.Scalar:
    """What this column reads as where a data file does not hold it: null unless the table says otherwise."""
    text = (field.metadata or {}).get(DEFAULT)
    if text is None:
        return pa.scalar(None, field.type)
    try:
        value = pa.ipc.open_stream(base64.b64decode(text)).read_all().column(0)[0]
        return value.cast(field.type)
    except (pa.ArrowException, binascii.Error, IndexError) as error:
        raise Corrupt(
            f"the default of column {field.name!r} is not readable: {error}", column=field.name
        ) from error


def _below(data_type: pa.DataType) -> list[pa.Field]:
    return [data_type.field(position) for position in range(data_type.num_fields)]
