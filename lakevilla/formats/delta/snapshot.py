"""A version of a Delta table, as the format port wants it: schema, properties, live files by predicate.

Immutable. Pruning is done in columns; only files that may match become objects.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.errors import Corrupt
from lakevilla.files.column_mapping import physical_name
from lakevilla.files.partitioning import plain_values
from lakevilla.formats.coordination import Coordination
from lakevilla.formats.delta.definition.features import refuse_write
from lakevilla.formats.delta.definition.layout import Layout
from lakevilla.formats.delta.definition.properties import (
    CHANGE_FEED,
    LOG_CLEANUP,
    LOG_RETENTION,
    duration_ms,
)
from lakevilla.formats.delta.files.blocks import CORE
from lakevilla.formats.delta.files.bounds import Leaf, partition_bounds
from lakevilla.formats.delta.files.deletion_vectors import Locate, deletes_of
from lakevilla.formats.delta.files.summary import FileCounts, range_of
from lakevilla.formats.delta.log.actions import Commit, Metadata, Protocol
from lakevilla.formats.delta.log.encode import ticket_of
from lakevilla.formats.delta.log.entry import identity_of, parse_entry
from lakevilla.formats.delta.log.paths import data_key, entry_key
from lakevilla.formats.delta.log.replay import LiveBlock, Mask, State
from lakevilla.formats.lazy import lazy_property
from lakevilla.formats.properties import EXCLUSIVE, is_true, markers_in_log
from lakevilla.model import DataFile, Partitioning
from lakevilla.predicates import ANYTHING, Column, Predicate, columns_of
from lakevilla.pruning import Bounds, Summary, may_match
from lakevilla.store.port import Store

_RETENTION = "delta.deletedFileRetentionDuration"
_MAPS = [field.name for field in CORE if pa.types.is_map(field.type)]


@dataclass(frozen=True, eq=False)
class DeltaSnapshot:
    """One version. `locate` finds the store of a key that may be outside of the table's root. `seen_at` is
    when the table was last seen to be this one, on the environment's clock."""

    state: State
    layout: Layout
    store: Store
    locate: Locate
    seen_at: float = math.inf

    @staticmethod
    def of(state: State, store: Store, locate: Locate) -> "DeltaSnapshot":
        return DeltaSnapshot(state, Layout.of(*state.definition), store, locate)

    def advance(self, commits: Sequence[Commit]) -> "DeltaSnapshot":
        """The version after these entries, which must follow this one."""
        if not commits:
            return self
        state = self.state.after(commits)
        changed = any(commit.protocol or commit.metadata for commit in commits)
        layout = Layout.of(*state.definition) if changed else self.layout
        return replace(self, state=state, layout=layout)

    @property
    def version(self) -> int:
        return self.state.version

    @property
    def table_id(self) -> str:
        return self.metadata.id

    @property
    def protocol(self) -> Protocol:
        return self.layout.protocol

    @property
    def metadata(self) -> Metadata:
        return self.layout.metadata

    @property
    def schema(self) -> pa.Schema:
        return self.layout.schema

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return tuple(self.layout.partition_fields)

    @property
    def partitioning(self) -> Partitioning:
        return Partitioning.by_columns(self.partition_columns)

    @property
    def properties(self) -> Mapping[str, str]:
        return self.metadata.configuration

    @lazy_property
    def coordination(self) -> Coordination:
        return Coordination(
            notice=self.state.notice,
            ticket=self.state.ticket,
            contended=ticket_of(self.state.info) > 0,
            slot=self.state.slot,
            exclusive=is_true(self.properties, EXCLUSIVE),
            markers_in_log=markers_in_log(self.properties),
        )

    @property
    def comment(self) -> str | None:
        return self.metadata.description

    @property
    def checks(self) -> Mapping[str, str]:
        return self.layout.checks

    @property
    def keeps_feed(self) -> bool:
        return is_true(self.properties, CHANGE_FEED)

    @property
    def retention_ms(self) -> int:
        return duration_ms(self.properties.get(_RETENTION, "interval 7 days"))

    @property
    def log_retention_ms(self) -> int | None:
        """How long log entries stay after a later one; None if the table keeps them all."""
        if not is_true(self.properties, LOG_CLEANUP, True):
            return None
        return duration_ms(self.properties.get(LOG_RETENTION, "interval 30 days"))

    @lazy_property
    def info(self) -> Mapping[str, Any]:
        """The version's `commitInfo`; empty if its entry has none or was deleted."""
        if self.state.info is not None:
            return self.state.info
        found = self.store.get(entry_key(self.version))
        commit = None if found is None else parse_entry(self.version, found.data)
        return (commit.info if commit is not None else None) or {}

    @property
    def timestamp_ms(self) -> int:
        """The commit's own time where the table keeps one, else the writer's clock as `commitInfo` has it."""
        key = "inCommitTimestamp" if self.layout.in_commit_timestamps else "timestamp"
        value = self.info.get(key)
        if isinstance(value, int):
            return value
        return self.metadata.created_ms or 0

    @property
    def has_deletes(self) -> bool:
        """By the protocol, also where rows were deleted before the table's property was turned off."""
        return "deletionVectors" in (self.protocol.reader_features or ())

    def formats(self) -> frozenset[str]:
        return frozenset({"parquet"})

    def unstored(self) -> frozenset[frozenset[str]]:
        return frozenset({frozenset()})

    def about_bytes(self) -> int:
        total = sum(int(add.get("size", 0)) for add in self.state.added.values())
        for live in self.state.blocks:
            for _, batch, flags in live.batches():
                sizes = batch.column("size").filter(pa.array(flags))
                total += pc.sum(sizes).as_py() or 0
        return total

    def refuse_writes(self) -> None:
        refuse_write(self.protocol, self.metadata)

    def files(self, predicate: Predicate = ANYTHING) -> list[DataFile]:
        found: list[DataFile] = []
        for block in self.state.blocks:
            found += self._files_of(block, predicate, self.state.hidden)
        if self.state.added:
            found += self._files_of(self.state.recent, predicate, frozenset())
        return found

    def summary(self, predicate: Predicate, unless: Predicate, columns: Sequence[str]) -> Summary | None:
        rows, files = 0, set[str]()
        values: dict[str, list[pa.Array]] = {name: [] for name in columns}
        for live in self.state.folded().blocks:
            keep = self._matching(live, predicate)
            if live.dead is not None:
                keep &= ~live.dead
            if (keep & self._matching(live, unless)).any():
                return None
            chosen = pa.array(np.flatnonzero(keep))
            counts = FileCounts(live.block, live.bounds, chosen)
            if counts.total is None:
                return None
            for name, pieces in values.items():
                found = self._values_of(name, live, counts)
                if found is None:
                    return None
                pieces.append(found)
            rows += counts.total
            files |= live.identities(chosen)
        types = {name: self.schema.field(name).type for name in columns}
        ranges = {name: range_of(pieces, types[name]) for name, pieces in values.items()}
        return Summary(rows, ranges, frozenset(files))

    def _values_of(self, name: str, live: LiveBlock, counts: FileCounts) -> pa.Array | None:
        field, leaf = self.layout.partition_fields.get(name), self.layout.leaf((name,))
        if leaf is None or not leaf.ordered:
            return None
        if field is None:
            return counts.of_column(leaf)
        return counts.of_partition(live.bounds.partition(physical_name(field), field.type))

    def _files_of(self, live: LiveBlock, predicate: Predicate, hidden: frozenset[str]) -> Iterator[DataFile]:
        keep = None if predicate == ANYTHING else self._matching(live, predicate)
        rows = live.bounds.rows()
        for start, batch, flags in live.batches(keep):
            chosen = np.flatnonzero(flags)
            if len(chosen):
                taken = pa.array(chosen)
                counts = None if rows is None else rows.take(pa.array(chosen + start)).to_pylist()
                partitions = self._partitions(live, pa.array(chosen + start))
                entries = entries_of(batch.take(taken))
                for at, entry in enumerate(entries):
                    if not hidden or identity_of(entry) not in hidden:
                        yield self._data_file(entry, counts and counts[at], partitions, at)

    def _data_file(
        self, entry: dict[str, Any], rows: int | None, partitions: Mapping[str, list[Any]], at: int
    ) -> DataFile:
        vector = entry.get("deletionVector")
        root = self.store.url
        return DataFile(
            key=data_key(entry["path"], root),
            identity=identity_of(entry),
            size=entry["size"],
            rows=rows,
            partition={name: values[at] for name, values in partitions.items()},
            deletes=None if vector is None else deletes_of(vector, root, self.locate),
            entry=entry,
        )

    def _partitions(self, live: LiveBlock, chosen: pa.Array) -> dict[str, list[Any]]:
        return {
            name: plain_values(live.bounds.partition(physical_name(field), field.type).take(chosen))
            for name, field in self.layout.partition_fields.items()
        }

    def _matching(self, live: LiveBlock, predicate: Predicate) -> Mask:
        fields = self.layout.partition_fields
        leaves = {
            column: self.layout.leaf(column) for column in columns_of(predicate) if column[0] not in fields
        }
        wanted = [leaf for leaf in leaves.values() if leaf is not None]
        if wanted:
            live.bounds.load(wanted)
        return may_match(predicate, self._bounds_of(live, leaves), live.block.count)

    def _bounds_of(
        self, live: LiveBlock, leaves: Mapping[Column, Leaf | None]
    ) -> Callable[[Column], Bounds | None]:
        def bounds_of(column: Column) -> Bounds | None:
            field = self.layout.partition_fields.get(column[0])
            if field is not None:
                return partition_bounds(live.bounds.partition(physical_name(field), field.type))
            leaf = leaves.get(column)
            return None if leaf is None else live.bounds.of(leaf)

        return bounds_of


def entries_of(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """`add` actions as the log has them, without statistics and without missing members."""
    entries = []
    try:
        rows = batch.to_pylist()
    except UnicodeDecodeError as error:
        raise Corrupt(f"a path in the Delta log is not UTF-8: {error}") from error
    for row in rows:
        entry = {name: value for name, value in row.items() if value is not None}
        for name in _MAPS:
            if name in entry:
                entry[name] = dict(entry[name])
        if "size" not in entry:
            raise Corrupt(f"the Delta log has no size of the file {entry['path']!r}")
        entries.append(entry)
    return entries
