"""The leaf columns of a logical schema, in the order in which Parquet stores them.

Parquet stores one column per leaf, depth first. Statistics and encodings are asked per leaf, so this
walk is the one place that knows which leaf is which.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.files.column_mapping import physical_name


@dataclass(frozen=True, slots=True)
class Leaf:
    """One stored column. `path` has logical names; it is None below a list or a map.

    `stored` is Parquet's dotted path of physical names.
    """

    path: tuple[str, ...] | None
    stored: str
    type: pa.DataType


def leaves(schema: pa.Schema) -> tuple[Leaf, ...]:
    """All leaves of the columns that a data file stores."""
    return tuple(leaf for field in schema for leaf in _below(field, (), ""))


def member(array: pa.Array | pa.ChunkedArray, name: str) -> pa.Array | pa.ChunkedArray:
    """The member of this name of an array of structs. Arrow itself takes a name that begins with a dot for a
    path."""
    return pc.struct_field(array, array.type.get_field_index(name))


def _below(field: pa.Field, parents: tuple[str, ...] | None, stored: str) -> Iterator[Leaf]:
    here = None if parents is None else (*parents, field.name)
    path = f"{stored}.{physical_name(field)}" if stored else physical_name(field)
    yield from _of_type(field.type, here, path)


def _of_type(data_type: pa.DataType, path: tuple[str, ...] | None, stored: str) -> Iterator[Leaf]:
    if pa.types.is_struct(data_type):
        for child in data_type:
            yield from _below(child, path, stored)
    elif pa.types.is_map(data_type):
        yield from _of_type(data_type.key_type, None, f"{stored}.key_value.key")
        yield from _of_type(data_type.item_type, None, f"{stored}.key_value.value")
    elif pa.types.is_list(data_type):
        yield from _of_type(data_type.value_type, None, f"{stored}.list.element")
    else:
        yield Leaf(path, stored, data_type)
