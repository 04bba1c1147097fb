"""Data in: Arrow, pandas, polars, DuckDB, rows as dicts, files, and results of the local engine; brought to a
table's columns by name, without loss. Both engines take what is not their own this way.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from math import isfinite
from numbers import Integral, Number
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.interchange

from lakevilla.engines.lossless import comment_of, conformed, matched, refuse_unheld, table_type
from lakevilla.engines.port import Engine, Source
from lakevilla.engines.row_files import RowFile, is_path
from lakevilla.errors import InvalidInput
from lakevilla.files.row_checks import together
from lakevilla.model import DataFile
from lakevilla.sql.parameters import plain
from lakevilla.sql.types import TIMESTAMP, TIMESTAMP_NTZ, type_name
from lakevilla.store.port import Store

_CONTAINERS = (list, tuple, Mapping)
_DEEPEST = 100
_SHOWN = 60
_LARGEST_FLOAT = 3.4028234663852886e38


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
        isinstance(data, Result)
        or hasattr(data, "__arrow_c_stream__")
        or hasattr(data, "__dataframe__")
        or _is_lazy(data)
        or _is_rows(data)
        or is_path(data)
    )


def readable(data: object) -> object:
    """The data so that it can be read: files opened, lazy frames computed, and the rows of an iterator as a
    list. What statements are given goes through this once, before anything else."""
    if is_path(data):
        return RowFile(data)  # type: ignore[arg-type] # a path is text or a path object
    if _is_lazy(data):
        return _computed(data)
    is_rows = isinstance(data, Iterator) and not hasattr(data, "__arrow_c_stream__")
    return _checked_rows(list(data)) if is_rows else data  # type: ignore[call-overload] # an iterator


def _computed(data: Any) -> object:
    """The rows of a polars LazyFrame. What fails in a function of the user comes as it is."""
    try:
        return data.collect()
    except Exception as error:
        of_polars = type(error).__module__.partition(".")[0] == "polars"
        if not of_polars and not isinstance(error, OSError):
            raise
        raise InvalidInput(f"the polars LazyFrame cannot be computed: {error}") from error


def _checked_rows(rows: list[Any]) -> list[Any]:
    odd = next((row for row in rows if not isinstance(row, Mapping)), None)
    if odd is not None:
        raise InvalidInput(f"rows are dicts of columns and values; the iterator gave a {type(odd).__name__}")
    return rows


def _is_lazy(data: object) -> bool:
    """A polars LazyFrame, without importing polars."""
    return type(data).__name__ == "LazyFrame" and type(data).__module__.partition(".")[0] == "polars"


def schema_of(data: object, besides: Collection[str] = ()) -> pa.Schema:
    """The schema of a table made from the data: Arrow types that Spark does not have are brought to its.
    Columns of the names `besides`, in lower case, are left out.

    Python's datetimes and those of pandas become `timestamp`, as in Spark, without a zone in UTC.
    """
    given = data.schema if isinstance(data, Result) else arrow_of(data).schema
    of_python = _is_frame(data) or _is_rows(data)
    fields = []
    for field in given:
        if field.name.lower() in besides:
            continue
        data_type = table_type(field.type, field.name)
        refuse_unheld(data_type, field.name)
        if of_python and data_type == TIMESTAMP_NTZ:
            data_type = TIMESTAMP
        fields.append(pa.field(field.name, data_type, field.nullable, comment_of(field)))
    return pa.schema(fields)


def arrow_of(data: object) -> pa.Table | pa.RecordBatchReader:
    """The data as Arrow. A reader stays one: it can be read once. InvalidInput for what Arrow cannot hold."""
    with _explained():
        return _arrow_of(data)


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidInput(f"cannot read these rows as a table: {_told(error)}") from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("duckdb", "_duckdb"):
            raise
        raise InvalidInput(f"the DuckDB relation cannot be computed: {_told(error)}") from error


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
    if hasattr(data, "__dataframe__"):
        return pa.interchange.from_dataframe(data)
    if _is_rows(data):
        return _from_rows(data)
    raise InvalidInput(_unreadable(data))


def _unreadable(data: object) -> str:
    if isinstance(data, str):
        return f"cannot read rows from {data!r}: a file ends in .parquet or .csv"
    if isinstance(data, dict):
        return "cannot read rows from a dict: give a list of dicts, or columns as pyarrow.table(...)"
    return (
        f"cannot read rows from a {type(data).__name__}: give Arrow data, a DataFrame of pandas or polars, "
        "dicts, or the path of a .parquet or .csv file"
    )


def batches_of(data: object, schema: pa.Schema) -> Iterator[pa.Table]:
    """The data with exactly the columns of the schema, piece by piece."""
    if isinstance(data, list) and _is_rows(data):
        with _explained():
            data = _from_rows(data, schema)
    if isinstance(data, RowFile):
        pieces: Iterable[Any]
        given, pieces = data.fitting(schema)
    elif not isinstance(data, pa.Table) and isinstance(data, Result):
        pieces, given = data.batches(), data.schema
    else:
        _refuse_index(data, schema)
        arrow = arrow_of(data)
        pieces, given = ([arrow] if isinstance(arrow, pa.Table) else arrow), arrow.schema
    order = matched(given, schema)
    for piece in _read(pieces):
        yield conformed(piece, order, schema)


def _read(pieces: Iterable[Any]) -> Iterator[Any]:
    """The pieces; what Arrow or the files behind them fail with while they are read is InvalidInput."""
    try:
        yield from pieces
    except (pa.ArrowException, OSError) as error:
        raise InvalidInput(f"these rows cannot be read: {_told(error)}") from error


def source_of(name: str, data: object, engine: Engine) -> Source:
    """Rows that a client gave, as a table that queries read under this name. They stay as they are now."""
    rows = readable(data)
    if not engine.accepts(rows):
        raise InvalidInput(f"the view {name!r} is not data: {_unreadable(data)}", table=name)
    schema = engine.schema_of(rows)
    if is_data(rows):
        rows = together(list(batches_of(rows, schema)), schema)
    return Source(name, schema, (), lambda _: (), _no_file, lambda: 0, has_deletes=False, rows=rows)


def _no_file(file: DataFile) -> tuple[Store, str]:
    raise AssertionError(f"rows of a client are in no file, and not in {file.key}")


def _is_frame(data: object) -> bool:
    """A pandas DataFrame, without importing pandas."""
    return type(data).__name__ == "DataFrame" and type(data).__module__.partition(".")[0] == "pandas"


def _of_frame(data: Any) -> pa.Table:
    """A pandas DataFrame as Arrow. Levels of its index that have names are columns."""
    _refuse_lost_index(data)
    named = _index_names(data)
    frame = data
    try:
        frame = data.reset_index(level=named) if named else data
        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise InvalidInput(
            f"the pandas DataFrame cannot be read as a table: {_told(error)}", column=_odd_column(frame)
        ) from error


def _odd_column(frame: Any) -> str:
    """The first column that Arrow cannot hold; empty if it is not for a column alone."""
    for place, name in enumerate(frame.columns):
        try:
            pa.Array.from_pandas(frame.iloc[:, place])
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            return str(name)
    return ""


def _refuse_lost_index(data: Any) -> None:
    """InvalidInput for an index without a name that is not a mere count of rows: its values would be lost."""
    levels = [data.index.get_level_values(place) for place in range(data.index.nlevels)]
    if any(level.name is None and level.dtype.kind not in "iu" for level in levels):
        raise InvalidInput(
            "the index of the pandas DataFrame has values and no name, so they would be lost: name it with "
            "rename_axis('column'), or leave it out with reset_index(drop=True)"
        )


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
            columns.append(_column(values, wanted, str(name)))
        except pa.ArrowNotImplementedError as error:
            raise InvalidInput(
                f"column {name!r}: Arrow cannot build such values from dicts ({error}); give an Arrow table",
                column=name,
            ) from error
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            reason = _odd_value(values, wanted, str(name)) or str(error)
            raise InvalidInput(f"column {name!r}: {reason}", column=name) from error
    if not names:
        return pa.table({}) if schema is None else together([], schema)
    return pa.table(columns, names=[str(name) for name in names])


def _odd_value(values: Iterable[Any], wanted: pa.DataType | None, name: str) -> str:
    """The first value that the type cannot hold, in a sentence; empty if all can be held one by one."""
    if wanted is None:
        return ""
    for place, value in enumerate(values):
        try:
            _column([value], wanted, name)
        except (InvalidInput, pa.ArrowException, TypeError, ValueError, OverflowError):
            shown = repr(value)
            shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
            return f"{shown} in row {place + 1} cannot be stored as {type_name(wanted)}"
    return ""


def _column(values: list[Any], wanted: pa.DataType | None, name: str) -> pa.Array:
    """The values as Arrow. Those that Arrow does not know are given as what they are in SQL, such as members
    of enumerations and UUIDs."""
    try:
        return _array(values, wanted, name)
    except (InvalidInput, pa.ArrowException, TypeError, ValueError, OverflowError):
        _refuse_depths(values, name)
        plainer = [plain(value) for value in values]
        if all(one is other for one, other in zip(plainer, values, strict=True)):
            raise
        return _array(plainer, wanted, name)


def _array(values: list[Any], wanted: pa.DataType | None, name: str) -> pa.Array:
    if wanted is not None:
        _refuse_cuts(values, wanted, name)
    else:
        _refuse_depths(values, name)
    return pa.array(values, wanted)


def _refuse_depths(values: Iterable[Any], name: str) -> None:
    """InvalidInput for values inside values without end, or nearly: Arrow would exhaust the stack."""
    level = [value for value in values if isinstance(value, _CONTAINERS)]
    for _ in range(_DEEPEST):
        if not level:
            return
        inside = (value.values() if isinstance(value, Mapping) else value for value in level)
        level = [item for items in inside for item in items if isinstance(item, _CONTAINERS)]
        # Each is looked at once on its level, so that a value that holds itself twice does not grow.
        level = list({id(value): value for value in level}.values())
    raise InvalidInput(f"column {name!r}: a value has more than {_DEEPEST} levels inside it", column=name)


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
        if data_type == pa.float32() and any(abs(v) > _LARGEST_FLOAT for v in present if _is_finite(v)):
            raise InvalidInput(f"column {name!r}: a value is too large for a float", column=name)
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


def _is_finite(value: Any) -> bool:
    return isinstance(value, float) and isfinite(value)
