"""A change as the actions of the version that publishes it. Pure.

The same change gives other actions on another base: the commit's own time grows from version to version,
and what a property remembers of the version that it was turned on at is only known here.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from lakevilla.errors import InvalidInput
from lakevilla.formats.authorship import keeps_rows
from lakevilla.formats.delta.definition.features import in_commit_timestamps, mapping_mode
from lakevilla.formats.delta.definition.properties import APPEND_ONLY, IN_COMMIT_TIME, IN_COMMIT_VERSION
from lakevilla.formats.delta.definition.schema import to_arrow
from lakevilla.formats.delta.files.statistics import indexed_columns
from lakevilla.formats.delta.log.actions import Metadata, Protocol
from lakevilla.formats.delta.log.encode import (
    Action,
    add_action,
    change_action,
    commit_info,
    metadata_action,
    protocol_action,
    remove_action,
    txn_action,
)
from lakevilla.formats.delta.snapshot import DeltaSnapshot
from lakevilla.formats.properties import is_true
from lakevilla.model import Author, Change


@dataclass(frozen=True, slots=True)
class TableContext:
    """The version that a change builds on. `timestamp_ms` is when it was committed; to learn it may take a
    request, so it is asked only where the next version must be later."""

    version: int
    metadata: Metadata
    protocol: Protocol
    timestamp_ms: Callable[[], int]


def context_of(base: DeltaSnapshot, timestamp_ms: Callable[[], int] | None = None) -> TableContext | None:
    """What a change on this version builds on; None if it makes the table, which has no version yet."""
    if base.version < 0:
        return None
    return TableContext(
        base.version, base.metadata, base.protocol, timestamp_ms or (lambda: base.timestamp_ms)
    )


def actions_of(change: Change, author: Author, context: TableContext | None, now_ms: int) -> list[Action]:
    """The actions of the version after `ground`, or of version 0 without one."""
    metadata, protocol = _definition(change, context)
    if context is not None:
        _refuse_removal(change, context)
    in_commit_ms = None
    if in_commit_timestamps(protocol, metadata):
        in_commit_ms = now_ms if context is None else max(now_ms, context.timestamp_ms() + 1)
        metadata = _remember_enablement(metadata, context, in_commit_ms)
    read_version = None if context is None else context.version
    actions = [
        commit_info(change, author, now_ms=now_ms, read_version=read_version, in_commit_ms=in_commit_ms)
    ]
    if change.protocol is not None:
        actions.append(protocol_action(protocol))
    if change.metadata is not None:
        actions.append(metadata_action(metadata))
    if change.once is not None:
        actions.append(txn_action(change.once, now_ms))
    return actions + _files(change, metadata, protocol, now_ms)


def _definition(change: Change, context: TableContext | None) -> tuple[Metadata, Protocol]:
    """Metadata and protocol as they are after the change."""
    metadata = change.metadata if context is None else change.metadata or context.metadata
    protocol = change.protocol if context is None else change.protocol or context.protocol
    if not isinstance(metadata, Metadata) or not isinstance(protocol, Protocol):
        raise InvalidInput("the first version of a table needs metadata and a protocol")
    return metadata, protocol


def _refuse_removal(change: Change, context: TableContext) -> None:
    if change.inverse or not change.removed or keeps_rows(change):
        return
    if is_true(context.metadata.configuration, APPEND_ONLY):
        raise InvalidInput(
            f"{change.operation} would remove rows, but the table is append-only: unset its property "
            f"{APPEND_ONLY!r} first, by ALTER TABLE ... UNSET TBLPROPERTIES"
        )


def _remember_enablement(metadata: Metadata, context: TableContext | None, in_commit_ms: int) -> Metadata:
    """Where in-commit timestamps begin later than the table, readers need to know from when on."""
    if context is None or in_commit_timestamps(context.protocol, context.metadata):
        return metadata
    since = {IN_COMMIT_VERSION: str(context.version + 1), IN_COMMIT_TIME: str(in_commit_ms)}
    return replace(metadata, configuration={**metadata.configuration, **since})


def _files(change: Change, metadata: Metadata, protocol: Protocol, now_ms: int) -> list[Action]:
    """Removes before adds, as Spark orders them, then the changed rows."""
    data_change = not keeps_rows(change)
    removes = [remove_action(file.entry, now_ms=now_ms, data_change=data_change) for file in change.removed]
    if not change.added and not change.feed:
        return removes
    schema = to_arrow(metadata.schema_string, mapping_mode(protocol, metadata))
    partitions = {name: schema.field(name) for name in metadata.partition_columns}
    indexed = indexed_columns(schema, metadata.partition_columns, metadata.configuration)
    adds = [add_action(file, partitions, indexed, data_change=data_change) for file in change.added]
    return removes + adds + [change_action(file, partitions) for file in change.feed]
