"""What a read gives back: the verbs of a Spark DataFrame, over Arrow."""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from lakevilla.engines.local.display import drawn
from lakevilla.errors import Unsupported
from lakevilla.files.row_checks import together


class Row(tuple[Any, ...]):
    """One row: equal to a tuple, with access by name as in Spark."""

    _names: tuple[str, ...]

    def __new__(cls, values: tuple[Any, ...], names: tuple[str, ...]) -> "Row":
        row = super().__new__(cls, values)
        row._names = names
        return row

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self._names:
            raise AttributeError(name)
        return self[self._names.index(name)]

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self._names:
                raise KeyError(key)
            key = self._names.index(key)
        return super().__getitem__(key)

    def __reduce__(self) -> tuple[Any, ...]:
        return Row, (tuple(self), self._names)

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{n}={v!r}' for n, v in zip(self._names, self, strict=True))})"

    def asDict(self, recursive: bool = False) -> dict[str, Any]:
        """The row as a dict; with `recursive` rows inside it too."""
        values = (_plain(value) for value in self) if recursive else iter(self)
        return dict(zip(self._names, values, strict=True))


def _plain(value: Any) -> Any:
    if isinstance(value, Row):
        return value.asDict(recursive=True)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, dict) else value


class LocalResult:
    """Rows of the local engine, read when they are first asked for.

    `rows` counts without reading, where the number is known; `batches` gives the rows piece by piece.
    """

    def __init__(
        self,
        schema: pa.Schema,
        batches: Callable[[], Iterator[pa.Table | pa.RecordBatch]],
        rows: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._schema, self._batches, self._rows = schema, batches, rows
        self._table: pa.Table | None = None

    @classmethod
    def of(cls, table: pa.Table) -> "LocalResult":
        """A result that is there already."""
        result = cls(table.schema, lambda: iter([table]), lambda: table.num_rows)
        result._table = table
        return result

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def columns(self) -> list[str]:
        return list(self._schema.names)

    def batches(self) -> Iterator[pa.Table | pa.RecordBatch]:
        """The rows in pieces; a result that was read once is not read again."""
        return self._batches() if self._table is None else iter([self._table])

    def toArrow(self) -> pa.Table:
        if self._table is None:
            pieces = [p if isinstance(p, pa.Table) else pa.Table.from_batches([p]) for p in self._batches()]
            self._table = together(pieces, self._schema)
        return self._table

    def toPandas(self) -> Any:
        return self.toArrow().to_pandas()

    def collect(self) -> list[Row]:
        table = self.toArrow()
        names = tuple(table.schema.names)
        columns = [_values(name, column) for name, column in zip(names, table.columns, strict=True)]
        return [Row(values, names) for values in zip(*columns, strict=True)]

    def count(self) -> int:
        known = self._rows()
        return self.toArrow().num_rows if known is None else known

    def show(self, n: int = 20, truncate: bool | int = True) -> None:
        """Print the first rows in Spark's layout."""
        head, more = self._head(n)
        columns = [_values(name, column) for name, column in zip(self.columns, head.columns, strict=True)]
        rows = [list(values) for values in zip(*columns, strict=True)]
        print(drawn(head.schema, rows, truncate, n if more else None))

    def _head(self, n: int) -> tuple[pa.Table, bool]:
        taken: list[pa.Table] = []
        for piece in self.batches():
            taken.append(piece if isinstance(piece, pa.Table) else pa.Table.from_batches([piece]))
            if sum(table.num_rows for table in taken) > n:
                break
        table = together(taken, self._schema)
        return table.slice(0, n), table.num_rows > n


def _values(name: str, column: pa.ChunkedArray) -> list[Any]:
    data_type = column.type
    try:
        values: list[Any] = column.to_pylist()
    except (ValueError, OverflowError) as error:
        raise Unsupported(
            f"column {name!r} has a value that Python cannot represent ({error}), such as a date outside of "
            "the years 1 to 9999; use toArrow()",
            column=name,
        ) from error
    return [_value(value, data_type) for value in values] if pa.types.is_nested(data_type) else values


def _value(value: Any, data_type: pa.DataType) -> Any:
    """Structs are rows and maps are dicts, as Spark gives them."""
    if value is None:
        return None
    if pa.types.is_struct(data_type):
        names = tuple(field.name for field in data_type)
        return Row(tuple(_value(value[field.name], field.type) for field in data_type), names)
    if pa.types.is_map(data_type):
        return {_value(key, data_type.key_type): _value(item, data_type.item_type) for key, item in value}
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return [_value(item, data_type.value_type) for item in value]
    return value
