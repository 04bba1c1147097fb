"""How a logical column finds its values in a data file.

Formats annotate the fields of a logical Arrow schema, nested ones too, with the metadata keys of this
module; readers and writers of data files follow them. A field without annotation goes by its own name.
"""

import pyarrow as pa

PHYSICAL_NAME = b"lakevilla.physical_name"
"""The column's name in data files, where it differs from the logical one."""

FIELD_ID = b"PARQUET:field_id"
"""The column's id in data files; Arrow writes it into the Parquet schema."""

BY_ID = b"lakevilla.by_id"
"""On the schema: present if data files are matched by field id, not by name."""


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
