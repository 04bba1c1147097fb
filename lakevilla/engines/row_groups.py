"""Rows by their values: equal rows share a number. Missing values are equal, and so are NaN."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Groups = np.ndarray[tuple[int], np.dtype[np.int64]]


def groups_of(rows: pa.Table) -> Groups:
    """The number of the group of each row."""
    groups: Groups = np.zeros(rows.num_rows, dtype=np.int64)
    for column in rows.columns:
        codes = _codes(column)
        # Both are smaller than the number of rows, so the product fits.
        groups = np.unique(groups * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1]
    return groups.reshape(-1)


def _codes(column: pa.ChunkedArray) -> Groups:
    values = column.combine_chunks()
    if isinstance(values.type, pa.BaseExtensionType):
        values = values.storage
    if pa.types.is_nested(values.type):
        values = pa.array([repr(value) for value in _plain(values)], pa.string())
    elif pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    encoded = pc.dictionary_encode(values, null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    codes: Groups = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _plain(values: pa.Array) -> list[Any]:
    """Nested values as Python has them, with moments as numbers: a calendar does not have all of them."""
    plain: list[Any] = values.cast(_without_moments(values.type)).to_pylist()
    return plain


def _without_moments(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(data_type):
        return pa.int64()
    if pa.types.is_date32(data_type):
        return pa.int32()
    if pa.types.is_struct(data_type):
        return pa.struct([child.with_type(_without_moments(child.type)) for child in data_type])
    if pa.types.is_map(data_type):
        return pa.map_(_without_moments(data_type.key_type), _without_moments(data_type.item_type))
    if pa.types.is_list(data_type):
        return pa.list_(_without_moments(data_type.value_type))
    return data_type
