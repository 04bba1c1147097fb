"""The content of a checkpoint, in columns: from a snapshot and its tombstones to Arrow tables. Pure.

The few actions that are not files come first, in a table of their own, so that a reader that needs only
them reads one small row group. Files stay in columns from the log to the checkpoint.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.errors import Corrupt
from lakevilla.files.column_mapping import Match, physical_name
from lakevilla.files.projection import adapt_column
from lakevilla.formats.delta.checkpoints.columns import ADD, REMOVE, checkpoint_schema
from lakevilla.formats.delta.definition.features import writer_features
from lakevilla.formats.delta.definition.layout import Layout
from lakevilla.formats.delta.files.partition_values import parse_values
from lakevilla.formats.delta.files.statistics import indexed_columns
from lakevilla.formats.delta.files.statistics_json import has_bounds, parse_texts
from lakevilla.formats.delta.log.encode import metadata_action, protocol_action
from lakevilla.formats.delta.log.replay import LiveBlock
from lakevilla.formats.delta.snapshot import DeltaSnapshot
from lakevilla.formats.properties import is_true

_BATCH_ROWS = 128 * 1024
Path = tuple[str, ...]
_MAPS = frozenset({"partitionValues", "tags", "options", "configuration"})


@dataclass(frozen=True)
class Shape:
    """How the table wants its checkpoints. `parsed` has the types of statistics kept as structs."""

    as_text: bool
    parsed: Mapping[Path, pa.DataType]
    partitions: Mapping[str, pa.DataType]
    v2: bool

    @staticmethod
    def of(layout: Layout) -> "Shape":
        """The shape that the table's properties ask for."""
        configuration = layout.metadata.configuration
        wanted = configuration.get("delta.checkpointPolicy", "classic").lower()
        # Without the feature in the protocol a reader does not know that such checkpoints exist.
        v2 = wanted == "v2" and "v2Checkpoint" in writer_features(layout.protocol)
        as_text = is_true(configuration, "delta.checkpoint.writeStatsAsJson", True)
        if not is_true(configuration, "delta.checkpoint.writeStatsAsStruct"):
            return Shape(as_text, {}, {}, v2)
        partitions = {physical_name(field): field.type for field in layout.partition_fields.values()}
        return Shape(as_text, _parsed_types(layout), partitions, v2)

    @property
    def add(self) -> pa.DataType:
        fields = list(ADD)
        if self.as_text:
            fields.append(pa.field("stats", pa.string()))
        if self.parsed:
            fields.append(pa.field("stats_parsed", _nested_type(self.parsed)))
        if self.partitions:
            fields.append(pa.field("partitionValues_parsed", pa.struct(list(self.partitions.items()))))
        return pa.struct(fields)

    @property
    def schema(self) -> pa.Schema:
        return checkpoint_schema(self.add, v2=self.v2)


def checkpoint_tables(
    snapshot: DeltaSnapshot, tombstones: pa.ChunkedArray, shape: Shape
) -> Iterator[pa.Table]:
    """The checkpoint's rows; every table has the shape's schema. `tombstones` are `remove` structs."""
    yield _few(snapshot, shape)
    if len(tombstones):
        yield _only("remove", tombstones, shape.schema)
    for block in snapshot.state.folded().blocks:
        for batch in _live_files(block).to_batches(_BATCH_ROWS):
            yield _only("add", _adds(batch, shape), shape.schema)


def _nested_type(types: Mapping[Path, pa.DataType]) -> pa.DataType:
    """A struct with these leaves."""
    members: dict[str, dict[Path, pa.DataType]] = {}
    for path, data_type in types.items():
        members.setdefault(path[0], {})[path[1:]] = data_type
    return pa.struct(
        [(name, below[()] if () in below else _nested_type(below)) for name, below in members.items()]
    )


def remove_column(removes: Sequence[Mapping[str, Any]]) -> pa.Array:
    """`remove` actions from log entries as a checkpoint's column."""
    return pa.array([_with_pairs(remove) for remove in removes], REMOVE)


def _parsed_types(layout: Layout) -> dict[Path, pa.DataType]:
    metadata = layout.metadata
    indexed = indexed_columns(layout.schema, layout.metadata.partition_columns, metadata.configuration)
    leaves = {stored: _type_at(layout.schema, path) for path, stored in indexed.items()}
    types: dict[Path, pa.DataType] = {("numRecords",): pa.int64()}
    for kind in ("minValues", "maxValues"):
        types |= {(kind, *stored): leaf for stored, leaf in leaves.items() if has_bounds(leaf)}
    return types | {("nullCount", *stored): pa.int64() for stored in leaves} | {("tightBounds",): pa.bool_()}


def _type_at(schema: pa.Schema, path: Path) -> pa.DataType:
    found = schema.field(path[0]).type
    for name in path[1:]:
        found = found.field(name).type
    return found


def _few(snapshot: DeltaSnapshot, shape: Shape) -> pa.Table:
    rows: list[dict[str, Any]] = [protocol_action(snapshot.protocol), metadata_action(snapshot.metadata)]
    rows += [{"txn": txn} for txn in snapshot.state.txns.values()]
    rows += [{"domainMetadata": {"removed": False, **domain}} for domain in snapshot.state.domains.values()]
    if shape.v2:
        rows.insert(0, {"checkpointMetadata": {"version": snapshot.version}})
    plain = [{kind: _with_pairs(body) for kind, body in row.items()} for row in rows]
    try:
        return pa.Table.from_pylist(plain, shape.schema)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise Corrupt(f"the Delta log has a field of the wrong type: {error}") from error


def _with_pairs(body: Mapping[str, Any]) -> dict[str, Any]:
    """Maps as pairs, as Arrow takes them."""
    return {
        name: list(value.items())
        if name in _MAPS and isinstance(value, Mapping)
        else _with_pairs(value)
        if isinstance(value, Mapping)
        else value
        for name, value in body.items()
    }


def _live_files(live: LiveBlock) -> pa.Table:
    """The files of a block that count, in columns, with their statistics as text."""
    texts = pa.chunked_array(list(live.block.texts()), pa.string())
    files = live.block.core.append_column("stats", texts)
    return files if live.dead is None else files.filter(pa.array(~live.dead))


def _adds(files: pa.RecordBatch, shape: Shape) -> pa.StructArray:
    members = dict(zip(files.schema.names, files.columns, strict=True))
    members["dataChange"] = pa.repeat(pa.scalar(False), files.num_rows)
    if shape.parsed:
        members["stats_parsed"] = parse_texts(members["stats"], shape.parsed)
    if shape.partitions:
        texts = {name: pc.map_lookup(members["partitionValues"], name, "first") for name in shape.partitions}
        values = [parse_values(texts[name], data_type) for name, data_type in shape.partitions.items()]
        members["partitionValues_parsed"] = pa.StructArray.from_arrays(values, list(shape.partitions))
    columns = [_member(members.get(field.name), field.type, files.num_rows) for field in shape.add]
    return pa.StructArray.from_arrays(columns, fields=list(shape.add))


def _member(column: pa.Array | None, data_type: pa.DataType, count: int) -> pa.Array:
    if column is None:
        return pa.nulls(count, data_type)
    return adapt_column(pa.chunked_array([column]), data_type, Match.NAME).combine_chunks()


def _only(kind: str, column: pa.Array | pa.ChunkedArray, schema: pa.Schema) -> pa.Table:
    """Rows of one kind of action: all other columns are null."""
    columns = [column if field.name == kind else pa.nulls(len(column), field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)
