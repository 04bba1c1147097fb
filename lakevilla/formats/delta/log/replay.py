"""The state of a table at one version: what replaying the log up to it gives (PROTOCOL.md, "Action
Reconciliation").

A state is immutable and shares what did not change with the one before it: blocks of files (see `blocks`)
stay as they are, and what later entries added or removed lies over them, until that has grown enough to be
folded into blocks. So a step costs what the entry changed, not what the table holds.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.errors import Corrupt
from lakevilla.formats.delta.checkpoints.reader import CheckpointContent
from lakevilla.formats.delta.files.blocks import EntryBlock, FileBlock
from lakevilla.formats.delta.files.bounds import BlockBounds
from lakevilla.formats.delta.log.actions import Commit, Metadata, Protocol
from lakevilla.formats.delta.log.encode import notice_of, slot_of, ticket_of
from lakevilla.formats.delta.log.entry import VECTOR_MARK, identity_of
from lakevilla.formats.lazy import lazy_property
from lakevilla.model import Notice

Mask = np.ndarray[Any, np.dtype[np.bool_]]

_FOLD_FILES = 4096
_FOLD_BLOCKS = 16


@dataclass(frozen=True, eq=False)
class LiveBlock:
    """A block, its bounds, and which of its files are dead (None: all live)."""

    block: FileBlock
    bounds: BlockBounds
    dead: Mask | None = None

    @staticmethod
    def of(block: FileBlock) -> "LiveBlock":
        return LiveBlock(block, BlockBounds(block))

    def batches(self, keep: Mask | None = None) -> Iterator[tuple[int, pa.RecordBatch, Mask]]:
        """The block's files in batches, each with its first row and flags for those that are kept."""
        living = np.ones(self.block.count, dtype=np.bool_) if keep is None else keep
        if self.dead is not None:
            living = living & ~self.dead
        start = 0
        for batch in self.block.core.to_batches():
            yield start, batch, living[start : start + batch.num_rows]
            start += batch.num_rows

    def identities(self, chosen: pa.Array) -> set[str]:
        """The identities of the files at these places."""
        names = [name for name in ("path", "deletionVector") if name in self.block.core.schema.names]
        files = self.block.core.select(names).take(chosen)
        if len(names) == 1:
            return set(files.column("path").to_pylist())
        return {identity_of(row) for row in files.to_pylist()}

    def without(self, hidden: frozenset[str]) -> "LiveBlock":
        """The block with these files dead."""
        if not hidden:
            return self
        dead = np.zeros(self.block.count, dtype=np.bool_) if self.dead is None else self.dead.copy()
        paths = pa.array({identity.partition(VECTOR_MARK)[0] for identity in hidden}, pa.string())
        start = 0
        for batch in self.block.core.to_batches():
            candidates = np.flatnonzero(pc.is_in(batch.column("path"), paths).to_numpy(zero_copy_only=False))
            names = [name for name in ("path", "deletionVector") if name in batch.schema.names]
            rows = batch.select(names).take(pa.array(candidates)).to_pylist()
            doomed = [at for at, row in zip(candidates, rows, strict=True) if identity_of(row) in hidden]
            dead[start + np.array(doomed, dtype=np.int64)] = True
            start += batch.num_rows
        return replace(self, dead=dead)


@dataclass(frozen=True, eq=False)
class State:
    """All that the log says at `version`.

    `added` holds the files of recent entries, and `hidden` the identities of files that no longer count in a
    block, because a recent entry removed it or added it again. `info` is the version's `commitInfo`, None
    where the entry was not read. `ticket` and `slot` are the newest that an entry which was read names.
    """

    version: int
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    info: Mapping[str, Any] | None = None
    txns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    domains: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    blocks: tuple[LiveBlock, ...] = ()
    added: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()
    notice: Notice | None = None
    ticket: int = 0
    slot: int = 0

    @staticmethod
    def empty() -> "State":
        return State(-1)

    @staticmethod
    def of_checkpoint(version: int, content: CheckpointContent) -> "State":
        return State(
            version,
            content.protocol,
            content.metadata,
            txns=content.txns,
            domains={name: body for name, body in content.domains.items() if not body.get("removed")},
            blocks=tuple(LiveBlock.of(block) for block in content.blocks),
        )

    @property
    def definition(self) -> tuple[Protocol, Metadata]:
        """Protocol and metadata, which every table must have."""
        if self.protocol is None or self.metadata is None:
            missing = "protocol" if self.protocol is None else "metadata"
            raise Corrupt(f"the Delta log has no {missing} action")
        return self.protocol, self.metadata

    @lazy_property
    def recent(self) -> LiveBlock:
        """The files of recent entries as a block."""
        return LiveBlock.of(EntryBlock(tuple(self.added.values())))

    def after(self, commits: Sequence[Commit]) -> "State":
        """The state after these entries."""
        if not commits:
            return self
        added, hidden = dict(self.added), set(self.hidden)
        protocol, metadata = self.protocol, self.metadata
        for commit in commits:
            for remove in commit.removes:
                identity = identity_of(remove)
                added.pop(identity, None)
                hidden.add(identity)
            for add in commit.adds:
                identity = identity_of(add)
                added[identity] = add
                hidden.add(identity)
            protocol, metadata = commit.protocol or protocol, commit.metadata or metadata
        state = State(
            commits[-1].version,
            protocol,
            metadata,
            commits[-1].info,
            _merged(self.txns, (commit.txns for commit in commits)),
            _living_domains(_merged(self.domains, (commit.domains for commit in commits))),
            self.blocks,
            added,
            frozenset(hidden),
            _newest_notice(self.notice, commits),
            max(self.ticket, *(ticket_of(commit.info) for commit in commits)),
            max(self.slot, *(slot_of(commit.info) for commit in commits)),
        )
        return state.folded() if len(hidden) > _FOLD_FILES else state

    def folded(self) -> "State":
        """The same state with nothing lying over its blocks."""
        blocks = [block.without(self.hidden) for block in self.blocks]
        if self.added:
            blocks.append(self.recent)
        if len(blocks) > _FOLD_BLOCKS:
            blocks = _joined(blocks)
        living = tuple(block for block in blocks if block.dead is None or not block.dead.all())
        return replace(self, blocks=living, added={}, hidden=frozenset())


def _merged(
    older: Mapping[str, Mapping[str, Any]], newer: Iterable[Mapping[str, Mapping[str, Any]]]
) -> Mapping[str, Mapping[str, Any]]:
    changes: dict[str, Mapping[str, Any]] = {}
    for part in newer:
        changes |= part
    return {**older, **changes} if changes else older


def _living_domains(domains: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    if not any(body.get("removed") for body in domains.values()):
        return domains
    return {name: body for name, body in domains.items() if not body.get("removed")}


def _joined(blocks: list[LiveBlock]) -> list[LiveBlock]:
    """Blocks from log entries as one: a client that lives long collects many."""
    large = [block for block in blocks if not isinstance(block.block, EntryBlock)]
    adds: list[Mapping[str, Any]] = []
    for block in blocks:
        if isinstance(block.block, EntryBlock):
            dead = np.zeros(block.block.count, dtype=np.bool_) if block.dead is None else block.dead
            adds += [add for add, gone in zip(block.block.adds, dead, strict=True) if not gone]
    return [*large, LiveBlock.of(EntryBlock(tuple(adds)))]


def _newest_notice(known: Notice | None, commits: Sequence[Commit]) -> Notice | None:
    """A notice about the table's name counts until a later notice, no matter which client writes after
    it."""
    for commit in commits:
        known = notice_of(commit.info) or known
    return known
