"""The columns of a new or changed table: names and types that every format and engine can keep."""

from collections.abc import Iterable

import pyarrow as pa

from lakevilla.errors import InvalidInput
from lakevilla.files.column_mapping import COMMENT


def check_columns(fields: Iterable[pa.Field], inside: str = "") -> None:
    """InvalidInput if these cannot be the columns of a table (or of a struct column `inside`)."""
    seen: set[str] = set()
    for field in fields:
        where = f"{inside}{field.name}"
        if not field.name:
            raise InvalidInput("a column has an empty name")
        if field.name.lower() in seen:
            raise InvalidInput(
                f"duplicate column {where!r}; names that differ only in case are the same", column=where
            )
        seen.add(field.name.lower())
        _check_type(field.type, where)


def comment_of(field: pa.Field) -> str:
    """What people say of a column; empty if nothing."""
    return bytes((field.metadata or {}).get(COMMENT, b"")).decode()


def commented(field: pa.Field, comment: str) -> pa.Field:
    """The column with this comment, unless it already has one."""
    if not comment or comment_of(field):
        return field
    return field.with_metadata({**(field.metadata or {}), COMMENT: comment.encode()})


def _check_type(data_type: pa.DataType, where: str) -> None:
    if pa.types.is_null(data_type):
        raise InvalidInput(
            f"column {where!r} has no type (all its values are null): give the table a schema", column=where
        )
    if pa.types.is_struct(data_type):
        if not data_type.num_fields:
            raise InvalidInput(
                f"column {where!r} is a struct without fields, which Parquet cannot store", column=where
            )
        check_columns(data_type, f"{where}.")
    elif pa.types.is_map(data_type):
        _check_type(data_type.key_type, f"{where}.key")
        _check_type(data_type.item_type, f"{where}.value")
    elif (
        pa.types.is_list(data_type)
        or pa.types.is_large_list(data_type)
        or pa.types.is_fixed_size_list(data_type)
    ):
        _check_type(data_type.value_type, f"{where}.element")
