"""The live files of a table in columns: a block is an immutable run of `add` actions.

A block comes from one Parquet file of a checkpoint, whose columns are read when they are first needed, or
from log entries, which are in memory anyway. A table of a million files is one block or a few, and never
a Python object for each file.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.errors import Corrupt
from lakevilla.files.column_mapping import Match
from lakevilla.files.parquet import ParquetObject
from lakevilla.files.projection import adapt_column
from lakevilla.formats.delta.files.statistics import text_of_parsed
from lakevilla.formats.lazy import lazy_property

_TEXTS = pa.map_(pa.string(), pa.string())
VECTOR = pa.struct(
    [
        pa.field("storageType", pa.string()),
        pa.field("pathOrInlineDv", pa.string()),
        pa.field("offset", pa.int32()),
        pa.field("sizeInBytes", pa.int32()),
        pa.field("cardinality", pa.int64()),
    ]
)
CORE = pa.schema(
    [
        pa.field("path", pa.string()),
        pa.field("partitionValues", _TEXTS),
        pa.field("size", pa.int64()),
        pa.field("modificationTime", pa.int64()),
        pa.field("tags", _TEXTS),
        pa.field("deletionVector", VECTOR),
        pa.field("baseRowId", pa.int64()),
        pa.field("defaultRowCommitVersion", pa.int64()),
        pa.field("clusteringProvider", pa.string()),
    ]
)
"""The columns of a block's files, except for statistics. Columns without any value are left out."""

_ALWAYS = ("path", "partitionValues", "size")


class FileBlock(Protocol):
    """A run of files. All columns have `count` rows, in the same order."""

    @property
    def count(self) -> int: ...

    @property
    def core(self) -> pa.Table:
        """The files' columns of `CORE`, as far as they have values."""
        ...

    @property
    def at_hand(self) -> bool:
        """Whether statistics are in memory, so that asking for them costs no request."""
        ...

    def texts(self) -> Iterator[pa.Array]:
        """The files' statistics as JSON, in pieces."""
        ...

    def parsed(self, paths: Sequence[str]) -> Iterator[pa.StructArray] | None:
        """These parts (dotted) of the statistics as a struct, in pieces; None if there is only JSON."""
        ...


class EntryBlock:
    """Files from log entries."""

    def __init__(self, adds: Sequence[Mapping[str, Any]]) -> None:
        self.adds = adds
        self.count = len(adds)
        self.at_hand = True

    @lazy_property
    def core(self) -> pa.Table:
        keys = {name for add in self.adds for name in add}
        keys.update(_ALWAYS)
        try:
            columns = {field.name: self._column(field) for field in CORE if field.name in keys}
        except (pa.ArrowException, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise Corrupt(f"an `add` in the Delta log has a field of the wrong type: {error}") from error
        used = [name for name, column in columns.items() if name in _ALWAYS or column.null_count < self.count]
        return pa.table({name: columns[name] for name in used})

    def texts(self) -> Iterator[pa.Array]:
        texts = [add.get("stats") for add in self.adds]
        yield pa.array([text if isinstance(text, str) else None for text in texts], pa.string())

    def parsed(self, paths: Sequence[str]) -> Iterator[pa.StructArray] | None:  # noqa: ARG002
        return None

    def _column(self, field: pa.Field) -> pa.Array:
        values = [add.get(field.name) for add in self.adds]
        if pa.types.is_map(field.type):
            values = [None if value is None else list(value.items()) for value in values]
        return pa.array(values, field.type)


class CheckpointBlock:
    """Files from one Parquet file of a checkpoint: the checkpoint itself, a part, or a sidecar."""

    def __init__(self, source: ParquetObject) -> None:
        self._source = source
        self._groups = source.groups_with("add.path")
        self._members = {field.name: field for field in _add_type(source.schema)}
        self.at_hand = source.in_memory

    @property
    def count(self) -> int:
        return int(self.core.num_rows)

    @property
    def core(self) -> pa.Table:
        return self._core[0]

    @lazy_property
    def _core(self) -> tuple[pa.Table, pa.ChunkedArray]:
        """The core, and which rows of the checkpoint it holds: `path` is what every `add` action has."""
        fields = [field for field in CORE if self._has_values(field.name)]
        pieces: dict[str, list[pa.Array]] = {field.name: [] for field in fields}
        flags: list[pa.Array] = []
        for adds in self._structs_of(["path", *(field.name for field in fields)]):
            flags.append(pc.and_(adds.is_valid(), adds.field("path").is_valid()))
            living = _filtered(adds, flags[-1])
            for field in fields:
                member = pa.chunked_array([living.field(field.name)])
                pieces[field.name] += adapt_column(member, field.type, Match.NAME).chunks
        table = pa.table(
            {field.name: pa.chunked_array(pieces[field.name], field.type) for field in fields}
            or {field.name: pa.array([], field.type) for field in CORE if field.name in _ALWAYS}
        )
        return table, pa.chunked_array(flags, pa.bool_())

    def texts(self) -> Iterator[pa.Array]:
        if "stats" not in self._members:
            yield from self._texts_from_structs()
            return
        for adds in self._adds(["stats"]):
            yield adds.field("stats").cast(pa.string())

    def parsed(self, paths: Sequence[str]) -> Iterator[pa.StructArray] | None:
        return self._structs(paths) if "stats_parsed" in self._members else None

    def _structs(self, paths: Sequence[str]) -> Iterator[pa.StructArray]:
        for adds in self._adds([f"stats_parsed.{path}" for path in paths]):
            known = adds.type.get_field_index("stats_parsed") >= 0
            yield adds.field("stats_parsed") if known else pa.nulls(len(adds), pa.struct([]))

    def _texts_from_structs(self) -> Iterator[pa.Array]:
        for adds in self._adds(["stats_parsed"] if "stats_parsed" in self._members else ["size"]):
            if "stats_parsed" not in self._members:
                yield pa.nulls(len(adds), pa.string())
                continue
            rows = adds.field("stats_parsed").to_pylist()
            texts = [None if row is None else text_of_parsed(row) for row in rows]
            yield pa.array(texts, pa.string())

    def _adds(self, members: Sequence[str]) -> Iterator[pa.StructArray]:
        """These members of the rows that are `add` actions."""
        living, start = self._core[1], 0
        # With a small column, because a checkpoint may lack all of the members. Paths are a large one.
        anchor = "size" if "size" in self._members else "path"
        for adds in self._structs_of([anchor, *members]):
            yield _filtered(adds, living.slice(start, len(adds)).combine_chunks())
            start += len(adds)

    def _structs_of(self, members: Sequence[str]) -> Iterator[pa.StructArray]:
        columns = [f"add.{member}" for member in dict.fromkeys(members)]
        for batch in self._source.batches(columns, self._groups):
            yield batch.column("add")

    def _has_values(self, member: str) -> bool:
        if member not in self._members:
            return False
        if member in _ALWAYS:
            return True
        return bool(self._source.groups_with(f"add.{member}"))


def _filtered(rows: pa.StructArray, flags: pa.Array) -> pa.StructArray:
    return rows if flags.true_count == len(rows) else rows.filter(flags)


def _add_type(schema: pa.Schema) -> pa.DataType:
    position = schema.get_field_index("add")
    if position < 0:
        return pa.struct([])
    found = schema.field(position).type
    if not pa.types.is_struct(found):
        raise Corrupt("the column `add` of a checkpoint is not a struct")
    return found
