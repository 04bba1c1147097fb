"""Checkpoints of all kinds, read: classic, in parts, and V2 (JSON or Parquet) with sidecars.

The few actions that are not files are read at once; files stay behind in blocks, whose columns are read
when a query needs them (see `blocks`). So do tombstones: only writing a checkpoint and cleaning up ask for
them, and find them through `CheckpointContent.removes` and `.parquet`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.environment import Environment
from lakevilla.errors import Corrupt
from lakevilla.files.parquet import WHOLE_BYTES, ParquetObject
from lakevilla.formats.delta.files.blocks import CheckpointBlock, EntryBlock, FileBlock
from lakevilla.formats.delta.log.actions import Metadata, Protocol
from lakevilla.formats.delta.log.entry import commit_of, metadata_of, parse_lines, protocol_of
from lakevilla.formats.delta.log.listing import Checkpoint
from lakevilla.formats.delta.log.paths import SIDECARS
from lakevilla.store.port import Store

# The member that every action of a kind has: a struct without it is a null that a writer spelled out.
_KEY_MEMBERS = {
    "metaData": "id",
    "protocol": "minReaderVersion",
    "txn": "appId",
    "domainMetadata": "domain",
    "sidecar": "path",
}


@dataclass
class CheckpointContent:
    """What a checkpoint, or a part of one, says."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    txns: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    domains: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    blocks: list[FileBlock] = field(default_factory=list)
    removes: list[Mapping[str, Any]] = field(default_factory=list)
    parquet: list[ParquetObject] = field(default_factory=list)
    sidecars: list[Mapping[str, Any]] = field(default_factory=list)

    def merge(self, other: "CheckpointContent") -> None:
        self.protocol = other.protocol or self.protocol
        self.metadata = other.metadata or self.metadata
        self.txns |= other.txns
        self.domains |= other.domains
        self.blocks += other.blocks
        self.removes += other.removes
        self.parquet += other.parquet
        self.sidecars += other.sidecars


def part_readers(store: Store, checkpoint: Checkpoint) -> list[Callable[[], CheckpointContent]]:
    """A task for each file of the checkpoint, to be run side by side; then see `read_sidecars`."""
    return [
        _reader(store, checkpoint.version, key, size)
        for key, size in zip(checkpoint.keys, checkpoint.sizes, strict=True)
    ]


def gather(store: Store, environment: Environment, parts: Sequence[CheckpointContent]) -> CheckpointContent:
    """The whole checkpoint from what its files say, sidecars included."""
    whole = CheckpointContent()
    for part in parts:
        whole.merge(part)
    tasks = [_sidecar_reader(store, sidecar) for sidecar in whole.sidecars]
    for part in environment.fan_out(tasks):
        whole.merge(part)
    return whole


def _reader(store: Store, version: int, key: str, size: int | None) -> Callable[[], CheckpointContent]:
    if key.endswith(".json"):
        return lambda: _read_json(store, version, key)
    return lambda: _read_parquet(ParquetObject(store, key, _exact(store, key, size)), version)


def _exact(store: Store, key: str, size: int | None) -> int | None:
    # A hint's size only says that the object may be large. A small one is simply fetched.
    if size is None or size <= WHOLE_BYTES:
        return None
    meta = store.head(key)
    if meta is None:
        raise Corrupt(f"{store.url}/{key} is missing, but the log refers to it")
    return meta.size


def _sidecar_reader(store: Store, sidecar: Mapping[str, Any]) -> Callable[[], CheckpointContent]:
    path, size = sidecar.get("path"), sidecar.get("sizeInBytes")
    if not isinstance(path, str) or not (size is None or isinstance(size, int)):
        raise Corrupt(f"a checkpoint refers to an invalid sidecar: {sidecar}")
    key = SIDECARS + path.rpartition("/")[2]

    def read() -> CheckpointContent:
        source = ParquetObject(store, key, _exact(store, key, size))
        return CheckpointContent(blocks=[CheckpointBlock(source)], parquet=[source])

    return read


def _read_json(store: Store, version: int, key: str) -> CheckpointContent:
    found = store.get(key)
    if found is None:
        raise Corrupt(f"{store.url}/{key} is missing, but the log refers to it")
    lines = parse_lines(version, found.data)
    commit = commit_of(version, lines)
    return CheckpointContent(
        commit.protocol,
        commit.metadata,
        dict(commit.txns),
        dict(commit.domains),
        [EntryBlock(commit.adds)] if commit.adds else [],
        list(commit.removes),
        sidecars=[line["sidecar"] for line in lines if isinstance(line.get("sidecar"), dict)],
    )


def _read_parquet(source: ParquetObject, version: int) -> CheckpointContent:
    content = CheckpointContent(parquet=[source])
    try:
        for kind, row in _rows(source, _KEY_MEMBERS):
            match kind:
                case "protocol":
                    content.protocol = protocol_of(row)
                case "metaData":
                    content.metadata = metadata_of(row)
                case "txn":
                    content.txns[row["appId"]] = row
                case "domainMetadata":
                    content.domains[row["domain"]] = row
                case "sidecar":
                    content.sidecars.append(row)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Corrupt(
            f"the checkpoint of version {version} holds a malformed action: {error!r}", version=version
        ) from error
    if source.groups_with("add.path"):
        content.blocks.append(CheckpointBlock(source))
    return content


def _rows(source: ParquetObject, key_members: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The actions of these kinds, each with the name of its kind."""
    present = {}
    for kind, member in key_members.items():
        position = source.schema.get_field_index(kind)
        if position >= 0 and pa.types.is_struct(source.schema.field(position).type):
            names = [child.name for child in source.schema.field(position).type]
            present[kind] = member if member in names else names[0]
    for kind, member in present.items():
        for batch in source.batches([kind], source.groups_with(f"{kind}.{member}")):
            column = batch.column(kind)
            valid = pc.and_(column.is_valid(), column.field(member).is_valid())
            for row in column.filter(valid).to_pylist():
                yield kind, row
