"""A change that is not published: what the table would be with it, and its form in a transaction's record.

The record holds Delta's own actions, without the `commitInfo` that only a publisher can write: the client
that publishes them later, on whichever version, needs nothing else.
"""

from collections.abc import Mapping
from typing import Any

from lakevilla.errors import Corrupt
from lakevilla.formats.delta.files.deletion_vectors import vector_key
from lakevilla.formats.delta.files.stored_statistics import statistics_of
from lakevilla.formats.delta.log.actions import Commit
from lakevilla.formats.delta.log.encode import CARRIED, Action
from lakevilla.formats.delta.log.entry import commit_of, identity_of
from lakevilla.formats.delta.log.next_version import actions_of, context_of
from lakevilla.formats.delta.log.paths import data_key
from lakevilla.formats.delta.row_changes import onto, pairs
from lakevilla.formats.delta.snapshot import DeltaSnapshot
from lakevilla.model import Author, Batch, Change, DataFile, ReadSet, WrittenFile
from lakevilla.predicates import ANYTHING

_NOBODY = Author("", "", "")


def unpublished(base: DeltaSnapshot, change: Change, now_ms: int, author: Author | None = None) -> Commit:
    """The change as the entry after `base`; with its author, as it is published."""
    return commit_of(base.version + 1, _actions(base, onto(base, change, author).change, now_ms))


def inverse(base: DeltaSnapshot, change: Change, now_ms: int, author: Author) -> Change:
    """The change that undoes this one, which this author published on `base`.

    Restored files have no statistics, because a `remove` action has none; but those with a deletion vector
    have them as before, because every `add` with a vector must. Rows that came after the table was replaced
    do not fit its old columns: they prevent the inverse.
    """
    commit = unpublished(base, change, now_ms, author)
    root = base.store.url
    masked = {identity_of(remove) for remove in commit.removes if remove.get("deletionVector")}
    statistics = statistics_of(base.state, masked)
    return Change(
        operation="ROLLBACK",
        parameters={"of": change.operation},
        added=tuple(_written(_added_again(remove, statistics), root) for remove in commit.removes),
        removed=tuple(_removed(add, root) for add in commit.adds),
        metadata=base.metadata if commit.metadata is not None else None,
        read=ReadSet((ANYTHING,)) if change.replaces else ReadSet(),
        inverse=True,
        once=None if change.once is None else _newest_before(base, change.once),
    )


def _newest_before(base: DeltaSnapshot, once: Batch) -> Batch:
    """The newest batch of the same app at this version; -1 if it names none. A `txn` cannot be removed."""
    known = base.state.txns.get(once.app)
    return Batch(once.app, -1 if known is None else int(known["version"]))


def encode_change(base: DeltaSnapshot, change: Change, now_ms: int) -> dict[str, Any]:
    """A change as a JSON object."""
    return {
        "operation": change.operation,
        "parameters": dict(change.parameters),
        "metrics": dict(change.metrics),
        "actions": _actions(base, change, now_ms)[1:],
        **({"replaces": True} if change.replaces else {}),
        **({"rows": True} if pairs(change) else {}),
    }


def decode_change(record: Mapping[str, Any], root: str) -> Change:
    """The change of such an object, of a table at the URL `root`."""
    try:
        commit = commit_of(0, list(record["actions"]))
        return Change(
            operation=str(record["operation"]),
            parameters={str(name): str(value) for name, value in record["parameters"].items()},
            metrics={str(name): int(value) for name, value in record["metrics"].items()},
            added=tuple(_written(add, root) for add in commit.adds),
            removed=tuple(_removed(remove, root) for remove in commit.removes),
            metadata=commit.metadata,
            protocol=commit.protocol,
            replaces=bool(record.get("replaces")),
            feed=tuple(_changed(cdc, root) for cdc in commit.changes),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Corrupt(f"the record of a change is malformed: {error!r}") from error


def keys_of(file: WrittenFile, root: str) -> list[str]:
    """The keys of all files that a file of a change needs: its own, and that of its deletion vector."""
    return [file.key, *(vector_keys(file.entry, root) if file.entry is not None else ())]


def vector_keys(entry: Mapping[str, Any], root: str) -> list[str]:
    """The key of the file that holds the vector of a file of the log; none if it is in the log itself."""
    vector = entry.get("deletionVector")
    key = None if vector is None else vector_key(vector, root)
    return [] if key is None else [key]


def _actions(base: DeltaSnapshot, change: Change, now_ms: int) -> list[Action]:
    # The time of the version before is asked for only when it is published: it may take a request.
    return actions_of(change, _NOBODY, context_of(base, lambda: 0), now_ms)


def _written(add: Mapping[str, Any], root: str) -> WrittenFile:
    key = data_key(add["path"], root)
    return WrittenFile(key, int(add["size"]), 0, {}, {}, int(add["modificationTime"]), entry=dict(add))


def _changed(cdc: Mapping[str, Any], root: str) -> WrittenFile:
    return WrittenFile(data_key(cdc["path"], root), int(cdc["size"]), 0, {}, {}, 0, entry=dict(cdc))


def _added_again(remove: Mapping[str, Any], statistics: Mapping[str, str]) -> dict[str, Any]:
    """The `add` that brings back what a `remove` of ours took away."""
    carried = {name: value for name, value in remove.items() if name in CARRIED}
    text = statistics.get(identity_of(remove))
    return {
        "path": remove["path"],
        **carried,
        "modificationTime": remove["deletionTimestamp"],
        "dataChange": remove["dataChange"],
        **({} if text is None else {"stats": text}),
    }


def _removed(remove: Mapping[str, Any], root: str) -> DataFile:
    key = data_key(remove["path"], root)
    return DataFile(key, identity_of(remove), int(remove.get("size", 0)), None, {}, entry=dict(remove))
