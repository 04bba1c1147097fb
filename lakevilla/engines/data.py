"""Data in: Arrow, pandas, polars, lists of dicts, and results of the local engine; brought to a table's
columns by name, without loss. Both engines take what is not their own this way.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from numbers import Integral, Number
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from lakevilla.errors import InvalidInput
from lakevilla.files.column_mapping import COMMENT
from lakevilla.files.row_checks import together
from lakevilla.sql.types import TIMESTAMP, TIMESTAMP_NTZ


@runtime_checkable
class Result(Protocol):
    """Rows that a query gave, read when they are asked for, and again when they are asked for again."""

    @property
    def schema(self) -> pa.Schema: ...

    def batches(self) -> Iterator[pa.Table | pa.RecordBatch]: ...

    def toArrow(self) -> pa.Table: ...


def is_data(data: object) -> bool:
    """Whether rows can be read from it."""
    return (
        isinstance(data, Result) or hasattr(data, "__arrow_c_stream__") or _is_frame(data) or _is_rows(data)
    )


def schema_of(data: object) -> pa.Schema:
    """The schema of a table made from the data: Arrow types that Spark does not have are brought to its.

    Python's datetimes and those of pandas become `timestamp`, as in Spark, without a zone in UTC.
    """
    given = data.schema if isinstance(data, Result) else arrow_of(data).schema
    of_python = _is_frame(data) or _is_rows(data)
    fields = []
    for field in given:
        data_type = table_type(field.type, field.name)
        if of_python and data_type == TIMESTAMP_NTZ:
            data_type = TIMESTAMP
        fields.append(pa.field(field.name, data_type, field.nullable, _comment(field)))
    return pa.schema(fields)


def arrow_of(data: object) -> pa.Table | pa.RecordBatchReader:
    """The data as Arrow. A reader stays one: it can be read once. InvalidInput for what Arrow cannot hold."""
    try:
        return _arrow_of(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidInput(f"cannot read these rows as a table: {_told(error)}") from error


def _told(error: Exception) -> str:
    """What Arrow or pandas says, its arguments in one sentence."""
    return "; ".join(str(part) for part in error.args) or type(error).__name__


def _arrow_of(data: object) -> pa.Table | pa.RecordBatchReader:
    # What costs little is asked first.
    if isinstance(data, pa.Table | pa.RecordBatchReader):
        return data
    if isinstance(data, Result):
        return data.toArrow()
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if _is_frame(data):
        return _of_frame(data)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if _is_rows(data):
        return _from_rows(data)
    raise InvalidInput(
        f"cannot read rows from a {type(data).__name__}; "
        "give an Arrow table, a pandas DataFrame or a list of dicts"
    )


def batches_of(data: object, schema: pa.Schema) -> Iterator[pa.Table]:
    """The data with exactly the columns of the schema, piece by piece."""
    if isinstance(data, list) and _is_rows(data):
        data = _from_rows(data, schema)
    if not isinstance(data, pa.Table) and isinstance(data, Result):
        pieces: Iterable[Any] = data.batches()
        given = data.schema
    else:
        _refuse_index(data, schema)
        arrow = arrow_of(data)
        pieces, given = ([arrow] if isinstance(arrow, pa.Table) else arrow), arrow.schema
    order = _matched(given, schema)
    for piece in pieces:
        yield _conformed(piece, order, schema)


def table_type(data_type: pa.DataType, name: str) -> pa.DataType:
    """The type of a table's column that holds such values."""
    if pa.types.is_dictionary(data_type):
        return table_type(data_type.value_type, name)
    if pa.types.is_large_string(data_type) or pa.types.is_string_view(data_type):
        return pa.string()
    if pa.types.is_large_binary(data_type) or pa.types.is_binary_view(data_type):
        return pa.binary()
    if pa.types.is_timestamp(data_type):
        return TIMESTAMP_NTZ if data_type.tz is None else TIMESTAMP
    if pa.types.is_date64(data_type):
        return pa.date32()
    if pa.types.is_time(data_type):
        return pa.time64("us")
    if pa.types.is_unsigned_integer(data_type):
        wider = {8: pa.int16(), 16: pa.int32(), 32: pa.int64(), 64: pa.decimal128(20, 0)}
        return wider[data_type.bit_width]
    if pa.types.is_struct(data_type):
        return pa.struct(
            [pa.field(f.name, table_type(f.type, name), f.nullable, _comment(f)) for f in data_type]
        )
    if pa.types.is_map(data_type):
        return pa.map_(table_type(data_type.key_type, name), table_type(data_type.item_type, name))
    if (
        pa.types.is_list(data_type)
        or pa.types.is_large_list(data_type)
        or pa.types.is_fixed_size_list(data_type)
    ):
        return pa.list_(pa.field("element", table_type(data_type.value_type, name)))
    if pa.types.is_null(data_type):
        raise InvalidInput(
            f"cannot infer the type of column {name!r}: all its values are missing; give a schema",
            column=name,
        )
    return data_type


def _comment(field: pa.Field) -> dict[bytes, bytes] | None:
    return {key: value for key, value in (field.metadata or {}).items() if key == COMMENT} or None


def _is_frame(data: object) -> bool:
    """A pandas DataFrame, without importing pandas."""
    return type(data).__name__ == "DataFrame" and type(data).__module__.partition(".")[0] == "pandas"


def _of_frame(data: Any) -> pa.Table:
    """A pandas DataFrame as Arrow. Levels of its index that have names are columns."""
    named = _index_names(data)
    try:
        frame = data.reset_index(level=named) if named else data
        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise InvalidInput(f"the pandas DataFrame cannot be read as a table: {error}") from error


def _index_names(data: Any) -> list[Any]:
    return [name for name in data.index.names if name is not None]


def _refuse_index(data: object, schema: pa.Schema) -> None:
    """InvalidInput for a named index without a column that it could fill."""
    known = {name.lower() for name in schema.names}
    named = _index_names(data) if _is_frame(data) else []
    unknown = [name for name in named if str(name).lower() not in known]
    if unknown:
        raise InvalidInput(
            f"unknown column {str(unknown[0])!r}, which is the index of the pandas DataFrame: rename it, or "
            "drop it with reset_index(drop=True)",
            column=str(unknown[0]),
        )


def _is_rows(data: object) -> bool:
    return isinstance(data, list) and all(isinstance(row, Mapping) for row in data)


def _from_rows(rows: Any, schema: pa.Schema | None = None) -> pa.Table:
    """Rows as Arrow; where the table is known its types read the values, so that an int is not guessed."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    known = {} if schema is None else {field.name.lower(): field.type for field in schema}
    columns = []
    for name in names:
        values = [row.get(name) for row in rows]
        wanted = known.get(str(name).lower())
        try:
            if wanted is not None:
                _refuse_cuts(values, wanted, str(name))
            columns.append(pa.array(values, wanted))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise InvalidInput(f"column {name!r}: {error}", column=name) from error
    if not names:
        return pa.table({}) if schema is None else together([], schema)
    return pa.table(columns, names=[str(name) for name in names])


def _refuse_cuts(values: Iterable[Any], data_type: pa.DataType, name: str) -> None:
    """InvalidInput for values that Arrow would silently cut to the type: 1.5 for an integer, say."""
    present = [value for value in values if value is not None]
    if pa.types.is_struct(data_type):
        rows = [value for value in present if isinstance(value, Mapping)]
        unknown = {key for row in rows for key in row} - {field.name for field in data_type}
        if unknown:
            raise InvalidInput(
                f"unknown field {', '.join(sorted(map(repr, map(str, unknown))))} in column {name!r}",
                column=name,
            )
        for field in data_type:
            _refuse_cuts((row.get(field.name) for row in rows), field.type, f"{name}.{field.name}")
    elif pa.types.is_map(data_type):
        pairs = [p for value in present for p in (value.items() if isinstance(value, Mapping) else value)]
        _refuse_cuts((pair[0] for pair in pairs), data_type.key_type, name)
        _refuse_cuts((pair[1] for pair in pairs), data_type.item_type, name)
    elif pa.types.is_list(data_type):
        _refuse_cuts((item for value in present for item in value), data_type.value_type, name)
    else:
        odd = [kind for kind in set(map(type, present)) if _is_cut(kind, data_type)]
        if odd:
            raise InvalidInput(
                f"column {name!r}: a {odd[0].__name__} cannot be stored as {data_type} without loss",
                column=name,
            )


def _is_cut(kind: type, data_type: pa.DataType) -> bool:
    if pa.types.is_integer(data_type):
        return issubclass(kind, Number) and not issubclass(kind, Integral)
    if pa.types.is_date(data_type):
        return issubclass(kind, Number | datetime)
    return bool(pa.types.is_timestamp(data_type) and issubclass(kind, Number))


def _matched(given: pa.Schema, schema: pa.Schema) -> list[int | None]:
    """For each column of the table the position of its column in the data; None where it is missing."""
    positions: dict[str, int] = {}
    for position, name in enumerate(given.names):
        if name.lower() in positions:
            raise InvalidInput(f"duplicate column {name!r} in the data", column=name)
        positions[name.lower()] = position
    unknown = [name for name in given.names if name.lower() not in {n.lower() for n in schema.names}]
    if unknown:
        raise InvalidInput(
            f"unknown column {', '.join(map(repr, unknown))}; available: "
            f"{', '.join(map(repr, schema.names))}",
            column=unknown[0],
        )
    return [positions.get(name.lower()) for name in schema.names]


def _conformed(piece: pa.Table | pa.RecordBatch, order: Sequence[int | None], schema: pa.Schema) -> pa.Table:
    columns = []
    for position, field in zip(order, schema, strict=True):
        if position is None:
            columns.append(pa.nulls(piece.num_rows, field.type))
        else:
            columns.append(_casted(piece.column(position), field))
    return pa.Table.from_arrays(columns, schema=pa.schema([f.with_nullable(True) for f in schema]))


def _casted(column: pa.Array | pa.ChunkedArray, field: pa.Field) -> pa.Array | pa.ChunkedArray:
    if column.type == field.type:
        return column
    if not _lossless(column.type, field.type):
        raise InvalidInput(
            f"column {field.name!r}: {column.type} cannot be stored as {field.type} without loss",
            column=field.name,
        )
    try:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_integer(column.type) and pa.types.is_decimal(field.type):
            # Arrow judges this cast by the types alone; through a wide decimal the values are judged.
            column = column.cast(pa.decimal256(76, field.type.scale))
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidInput(f"column {field.name!r}: {error}", column=field.name) from error


def _lossless(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Kinds between which a checked cast keeps the meaning; the cast refuses values that do not fit."""
    if pa.types.is_dictionary(given):
        return _lossless(given.value_type, wanted)
    if pa.types.is_null(given):
        return True
    if pa.types.is_nested(wanted) or pa.types.is_nested(given):
        return _lossless_nested(given, wanted)
    if pa.types.is_integer(wanted):
        return bool(pa.types.is_integer(given))
    if pa.types.is_floating(wanted):
        narrower = pa.types.is_floating(given) and given.bit_width <= wanted.bit_width
        return bool(narrower or pa.types.is_integer(given))
    if pa.types.is_decimal(wanted):
        return bool(pa.types.is_decimal(given) or pa.types.is_integer(given))
    if pa.types.is_timestamp(wanted):
        return bool(pa.types.is_timestamp(given) and (given.tz is None or wanted.tz is not None))
    if pa.types.is_fixed_size_binary(wanted):
        return bool(pa.types.is_fixed_size_binary(given) or table_type(given, "") == pa.binary())
    if wanted == pa.uuid():
        return bool(given in (wanted, wanted.storage_type))
    return bool(table_type(given, "") == wanted)


def _lossless_nested(given: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_struct(wanted) and pa.types.is_struct(given):
        names = {child.name for child in wanted}
        return all(f.name in names and _lossless(f.type, wanted.field(f.name).type) for f in given)
    if pa.types.is_map(wanted) and pa.types.is_map(given):
        return _lossless(given.key_type, wanted.key_type) and _lossless(given.item_type, wanted.item_type)
    lists = pa.types.is_list(given) or pa.types.is_large_list(given) or pa.types.is_fixed_size_list(given)
    return bool(pa.types.is_list(wanted) and lists and _lossless(given.value_type, wanted.value_type))
