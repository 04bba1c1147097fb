"""What a read gives back: the verbs of a Spark DataFrame and those of Arrow tools, over Arrow."""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from lakevilla.display import html_lines, html_table
from lakevilla.engines.local.display import drawn, text_of
from lakevilla.errors import InvalidInput, Unsupported
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


SHOWN = 20
"""How many rows `show`, a repr and a notebook show."""


class Result:
    """Rows that the local engine read: `lake.read` and `lake.sql` give them.

        result = lake.sql("SELECT * FROM accounts")
        result.to_pandas(), result.to_arrow(), result.to_polars(), result.to_dicts()
        for row in result:
            print(row.id, row["owner"])

    It has the methods of a Spark DataFrame too (`toArrow`, `toPandas`, `collect`, `count`, `show`), so that
    code runs on both engines. Libraries that take Arrow streams take it as it is: `pyarrow.table(result)`,
    `polars.DataFrame(result)`, and `SELECT * FROM result` in DuckDB. Rows are read when they are first asked
    for; `len(result)` reads nothing where the number of rows is known.
    """

    def __init__(
        self,
        schema: pa.Schema,
        batches: Callable[[], Iterator[pa.Table | pa.RecordBatch]],
        rows: Callable[[], int | None] = lambda: None,
    ) -> None:
        """`rows` counts without reading, where the number is known; `batches` gives the rows in pieces."""
        self._schema, self._batches, self._rows = schema, batches, rows
        self._table: pa.Table | None = None

    @classmethod
    def of(cls, table: pa.Table) -> "Result":
        """A result that is there already."""
        result = cls(table.schema, lambda: iter([table]), lambda: table.num_rows)
        result._table = table
        return result

    @property
    def schema(self) -> pa.Schema:
        """The names and Arrow types of the columns."""
        return self._schema

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._schema.names)

    def __len__(self) -> int:
        return self.count()

    def __iter__(self) -> Iterator[Row]:
        for piece in self.batches():
            yield from _rows(piece)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as an Arrow stream, for other libraries; they are read as the stream is."""
        pieces = (batch for piece in self.batches() for batch in _record_batches(piece))
        reader = pa.RecordBatchReader.from_batches(self._schema, pieces)
        return reader.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        try:
            return self._drawn(SHOWN, True).rstrip("\n")
        except Unsupported:
            return f"Result({', '.join(f'{field.name}: {field.type}' for field in self._schema)})"

    def _repr_html_(self) -> str:
        try:
            head, more = self._head(SHOWN)
            rows = [
                [text_of(value, field.type) for value, field in zip(row, head.schema, strict=True)]
                for row in _rows(head)
            ]
        except Unsupported:
            return html_lines([repr(self)])
        return html_table(self.columns, *rows) + (
            html_lines([f"only showing top {SHOWN} rows"]) if more else ""
        )

    def batches(self) -> Iterator[pa.Table | pa.RecordBatch]:
        """The rows in pieces; a result that was read once is not read again."""
        return self._batches() if self._table is None else iter([self._table])

    def to_arrow(self) -> pa.Table:
        """All rows as an Arrow table."""
        if self._table is None:
            self._table = together([_table(piece) for piece in self._batches()], self._schema)
        return self._table

    def to_pandas(self) -> Any:
        """All rows as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """All rows as a polars DataFrame."""
        try:
            import polars
        except ImportError as error:
            raise InvalidInput("to_polars needs polars: pip install polars") from error
        return polars.from_arrow(self.to_arrow())

    def to_dicts(self) -> list[dict[str, Any]]:
        """All rows as dicts; structs are dicts too."""
        return [row.asDict(recursive=True) for row in self]

    def toArrow(self) -> pa.Table:
        """As `to_arrow`; so Spark calls it."""
        return self.to_arrow()

    def toPandas(self) -> Any:
        """As `to_pandas`; so Spark calls it."""
        return self.to_pandas()

    def collect(self) -> list[Row]:
        """All rows as a list."""
        return list(_rows(self.to_arrow()))

    def count(self) -> int:
        """How many rows there are."""
        known = self._rows()
        return self.to_arrow().num_rows if known is None else known

    def show(self, n: int = SHOWN, truncate: bool | int = True) -> None:
        """Print the first rows in Spark's layout."""
        print(self._drawn(n, truncate))

    def _drawn(self, n: int, truncate: bool | int) -> str:
        head, more = self._head(n)
        return drawn(head.schema, list(_rows(head)), truncate, n if more else None)

    def _head(self, n: int) -> tuple[pa.Table, bool]:
        taken: list[pa.Table] = []
        for piece in self.batches():
            taken.append(_table(piece))
            if sum(table.num_rows for table in taken) > n:
                break
        table = together(taken, self._schema)
        return table.slice(0, n), table.num_rows > n


def _table(piece: pa.Table | pa.RecordBatch) -> pa.Table:
    return piece if isinstance(piece, pa.Table) else pa.Table.from_batches([piece])


def _record_batches(piece: pa.Table | pa.RecordBatch) -> list[pa.RecordBatch]:
    batches: list[pa.RecordBatch] = _table(piece).to_batches()
    return batches


def _rows(piece: pa.Table | pa.RecordBatch) -> Iterator[Row]:
    names = tuple(piece.schema.names)
    columns = [_values(name, column) for name, column in zip(names, piece.columns, strict=True)]
    return (Row(values, names) for values in zip(*columns, strict=True))


def _values(name: str, column: pa.Array | pa.ChunkedArray) -> list[Any]:
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
