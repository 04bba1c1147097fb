"""From the columns of a data file to those of the table: found by name or id, renamed, widened, filled in.

A data file may be older than the table's schema: columns may be missing (they read as their default, mostly
null), renamed (see `files.column_mapping`) or of a narrower type. It may also spell the same values in
another way (INT96, large strings, dictionaries, other units of time). Rows are never dropped or reordered
here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.errors import Corrupt, Unsupported
from lakevilla.files.column_mapping import (
    Match,
    by_id,
    default_of,
    field_id,
    has_ids,
    has_mapped_names,
    mapped_names,
    physical_name,
)

_TEXT_BYTES = (1 << 31) - 1
"""So much an array of texts can hold: its offsets are numbers of 32 bits."""

_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, pa.types.is_list_view)
_NESTED: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_struct,
    pa.types.is_map,
    lambda data_type: any(is_list(data_type) for is_list in _LISTS),
)


def match_of(schema: pa.Schema, stored: pa.Schema, name: str) -> Match:
    """By what the columns of this schema are found in a data file. Ids win over names.

    Unsupported if the table goes by ids, the file has none and no name mapping helps: to go by the columns'
    order, as some readers do, gives wrong rows once a column was moved or dropped.
    """
    if not by_id(schema):
        return Match.NAME
    if has_ids(stored):
        return Match.ID
    if has_mapped_names(schema):
        return Match.MAPPED_NAME
    raise Unsupported(f"{name} has no field ids, and the table has no name mapping")


def find(field: pa.Field, stored: Iterable[pa.Field], match: Match) -> pa.Field | None:
    """The field of the data file that holds this logical column, or None if the file has none."""
    if match is Match.ID:
        wanted = field_id(field)
        return next((found for found in stored if field_id(found) == wanted), None)
    if match is Match.MAPPED_NAME:
        names = mapped_names(field)
        return next((found for found in stored if found.name in names), None)
    name = physical_name(field)
    candidates = list(stored)
    exact = next((found for found in candidates if found.name == name), None)
    if exact is not None:
        return exact
    # Spark, which wrote most tables, ignores case.
    similar = [found for found in candidates if found.name.lower() == name.lower()]
    return similar[0] if len(similar) == 1 else None


def stored_columns(field: pa.Field, stored: pa.Field, match: Match, above: str = "") -> list[str]:
    """The dotted paths to read from the file for this column: of structs, only the wanted members."""
    path = above + stored.name
    if not (pa.types.is_struct(field.type) and pa.types.is_struct(stored.type)):
        return [path]
    members: list[str] = []
    for child in field.type:
        found = find(child, stored.type, match)
        if found is not None:
            members += stored_columns(child, found, match, path + ".")
    # Without any member the struct itself still tells which rows are null.
    return members or [path]


def project(table: pa.Table, fields: Sequence[pa.Field], match: Match, name: str) -> pa.Table:
    """The table with exactly these logical columns. `name` tells errors which file it was."""
    arrays = []
    for field in fields:
        found = find(field, table.schema, match)
        if found is None:
            arrays.append(pa.chunked_array([missing(field, table.num_rows)], field.type))
            continue
        column = table.column(table.schema.names.index(found.name))
        try:
            arrays.append(adapt_column(column, field.type, match))
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise Corrupt(
                f"column {field.name!r} of {name} is {found.type}, not {field.type}: {error}",
                column=field.name,
            ) from error
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields)) if fields else table.select([])


def missing(field: pa.Field, rows: int) -> pa.Array:
    """The values of a column that the data file does not hold."""
    return pa.repeat(default_of(field), rows)


def adapt_column(column: pa.ChunkedArray, wanted: pa.DataType, match: Match) -> pa.ChunkedArray:
    """The column with the wanted type."""
    if column.type.equals(wanted) and not (match is not Match.NAME and pa.types.is_nested(wanted)):
        return column
    pieces = [piece for chunk in column.chunks for piece in _decodable(chunk)]
    return pa.chunked_array([_adapt(piece, wanted, match) for piece in pieces], wanted)


def _decodable(array: pa.Array) -> Iterator[pa.Array]:
    """The array in pieces none of which decodes to more than an array of texts can hold."""
    longest = 0
    if pa.types.is_dictionary(array.type) and _is_text(array.type.value_type):
        longest = pc.max(pc.binary_length(array.dictionary)).as_py() or 0
    rows = max(1, _TEXT_BYTES // longest) if longest else max(1, len(array))
    for start in range(0, len(array), rows):
        yield array.slice(start, rows)


def _is_text(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_binary(data_type))


def _adapt(array: pa.Array, wanted: pa.DataType, match: Match) -> pa.Array:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if not pa.types.is_nested(wanted):
        return _cast(array, wanted)
    if not any(is_kind(array.type) and is_kind(wanted) for is_kind in _NESTED):
        raise TypeError(f"{array.type} is not {wanted}")
    if array.offset:
        array = array.take(pa.array(range(len(array)), pa.int64()))
    mask = array.is_null() if array.null_count else None
    if pa.types.is_struct(wanted):
        return _adapt_struct(array, wanted, match, mask)
    if pa.types.is_map(wanted):
        keys = _adapt(array.keys, wanted.key_type, match)
        items = _adapt(array.items, wanted.item_type, match)
        return pa.MapArray.from_arrays(array.offsets, keys, items, type=wanted, mask=mask)
    if not pa.types.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    values = _adapt(array.values, wanted.value_type, match)
    return pa.ListArray.from_arrays(array.offsets, values, type=wanted, mask=mask)


def _adapt_struct(array: pa.StructArray, wanted: pa.StructType, match: Match, mask: pa.Array) -> pa.Array:
    stored = list(array.type)
    children = []
    for child in wanted:
        found = find(child, stored, match)
        if found is None:
            children.append(missing(child, len(array)))
        else:
            children.append(_adapt(array.field(stored.index(found)), child.type, match))
    if not children:
        return pa.StructArray.from_buffers(wanted, len(array), array.buffers()[:1], array.null_count)
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=mask)


def _cast(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if array.type == wanted:
        return array
    if pa.types.is_null(wanted):
        return pa.nulls(len(array))
    if pa.types.is_timestamp(wanted):
        # Nanoseconds are cut to microseconds, as Spark does; a zone changes the type, not the instant.
        return pc.cast(array, wanted, safe=False)
    return pc.cast(array, wanted)
