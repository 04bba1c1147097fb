"""Tables on their way into a statement: which files, which columns, and in one piece or as a stream.

Small tables are read before the statement runs, in the caller's thread. Large ones are handed to DuckDB as
a stream that can be started again, so that memory holds a window of files and not the table.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakevilla.engines.local.arrow import inward, inward_schema
from lakevilla.engines.local.translation.queries.scope import Reference
from lakevilla.engines.port import Source
from lakevilla.environment import Environment
from lakevilla.errors import InvalidInput, LakeVillaError
from lakevilla.files.reader import read_files
from lakevilla.files.row_checks import together
from lakevilla.model import DataFile
from lakevilla.predicates import ANYTHING, Predicate, conjunction, disjunction

EAGER_BYTES = 128 * 1024 * 1024


@dataclass(frozen=True)
class Scan:
    """Files of a source and the columns wanted of them."""

    environment: Environment
    source: Source
    files: Sequence[DataFile]
    schema: pa.Schema
    predicate: Predicate = ANYTHING

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)

    def tables(self) -> Iterator[pa.Table]:
        """The rows of each file in turn."""
        tables = read_files(
            self.environment,
            self.source.open,
            self.files,
            self.schema,
            self.source.partition_columns,
            self.predicate,
        )
        for file, table in zip(self.files, tables, strict=True):
            self.source.was_read(file)
            yield table

    def table(self) -> pa.Table:
        tables = list(self.tables())
        return together(tables, self.schema)


class Stream:
    """Rows that DuckDB asks for, from the beginning each time.

    DuckDB reports a failure as its own exception; `failure` is the original one.
    """

    def __init__(self, schema: pa.Schema, tables: Callable[[], Iterator[pa.Table]]) -> None:
        self._schema, self._tables = schema, tables
        self.failure: BaseException | None = None

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self._schema, self._batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for table in self._tables():
                yield from table.to_batches()
        except (LakeVillaError, pa.ArrowException, KeyboardInterrupt) as failure:
            self.failure = failure
            raise


def projected(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """The columns of these names, with the schema's metadata."""
    return pa.schema([schema.field(name) for name in names], metadata=schema.metadata)


def load(
    environment: Environment, references: Sequence[Reference], sources: Mapping[str, Source]
) -> dict[str, Any]:
    """What to register for the tables that a statement reads; a table read in two places is read once."""
    registered: dict[str, Any] = {}
    for key in dict.fromkeys(reference.key for reference in references):
        together = [reference for reference in references if reference.key == key]
        if key not in sources:
            raise InvalidInput(f"unknown table {key!r}", table=key)
        scan = _scan(environment, sources[key], together)
        rows = scan.table() if scan.bytes <= EAGER_BYTES else None
        if sources[key].rows is not None:
            rows = sources[key].rows
        for reference in together:
            registered[reference.sql] = _registered(scan, reference, rows)
    return registered


def _scan(environment: Environment, source: Source, references: list[Reference]) -> Scan:
    predicate = disjunction([conjunction(reference.predicates) for reference in references])
    needed = {name for reference in references for name in reference.needed}
    names = [name for name in source.schema.names if name in needed]
    return Scan(environment, source, source.files(predicate), projected(source.schema, names), predicate)


def _registered(scan: Scan, reference: Reference, rows: pa.Table | None) -> Any:
    needed = reference.needed
    names = [reference.columns[name] for name in needed]
    if rows is not None:
        return inward(rows.select(needed), names)
    schema = inward_schema(projected(scan.schema, needed), names)
    return Stream(schema, lambda: (inward(table.select(needed), names) for table in scan.tables()))
