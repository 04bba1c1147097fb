"""Rows that are equal in some columns, as equality deletes mean it: null equals null, NaN equals NaN, and 0.0
is not -0.0."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.files.column_mapping import field_id

_Flags = np.ndarray[Any, np.dtype[np.bool_]]


def chain(schema: pa.Schema, number: int, name: str | None = None) -> pa.Field | None:
    """The top-level column that is, or has in structs, the column of this id, with nothing else in it.

    `name` is what it shall be called; None if this schema does not have it.
    """
    for field in schema:
        found = _chain(field, number)
        if found is not None:
            return found if name is None else found.with_name(name)
    return None


def _chain(field: pa.Field, number: int) -> pa.Field | None:
    if field_id(field) == number:
        return field
    if pa.types.is_struct(field.type):
        for child in field.type:
            found = _chain(child, number)
            if found is not None:
                return field.with_type(pa.struct([found]))
    return None


def keys_of(rows: pa.Table) -> pa.Table:
    """The values of such columns, taken out of the structs around them."""
    columns = []
    for position in range(rows.num_columns):
        column = rows.column(position)
        while pa.types.is_struct(column.type):
            column = pc.struct_field(column, [0])
        # Arrow compares the storage values of an extension type, not the type itself.
        stored = getattr(column.type, "storage_type", column.type)
        columns.append(column.cast(stored))
    return pa.table(columns, names=[str(position) for position in range(len(columns))])


def among(rows: pa.Table, others: pa.Table) -> _Flags:
    """Which rows are equal to one of the others in all columns. Both have the same columns."""
    if rows.num_columns == 1:
        found = pc.is_in(rows.column(0), value_set=others.column(0))
        single: _Flags = found.to_numpy()
        return single
    codes = np.zeros(rows.num_rows + others.num_rows, dtype=np.int64)
    for position in range(rows.num_columns):
        both = pa.chunked_array([*rows.column(position).chunks, *others.column(position).chunks])
        encoded = both.combine_chunks().dictionary_encode(null_encoding="encode")
        codes = codes * (len(encoded.dictionary) + 1) + encoded.indices.to_numpy(zero_copy_only=False)
        # Dense again, so that the next column cannot overflow.
        _, codes = np.unique(codes, return_inverse=True)
    flags: _Flags = np.isin(codes[: rows.num_rows], codes[rows.num_rows :])
    return flags
