"""Which rows a version of a Delta table changed, by its log entry (PROTOCOL.md, "Add CDC File").

The files of a change data feed say all, where an entry names some. Else the rows of files that came are new,
and those of files that went are gone. Entries that change no data, as OPTIMIZE writes them, do not count.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from lakevilla.environment import Environment
from lakevilla.errors import InvalidInput
from lakevilla.formats.delta.log.actions import Commit
from lakevilla.formats.delta.log.encode import attempt_of, change_action, txn_of
from lakevilla.formats.delta.log.entry import identity_of
from lakevilla.formats.delta.log.load import read_entry
from lakevilla.formats.delta.log.replay import State
from lakevilla.formats.delta.snapshot import DeltaSnapshot
from lakevilla.formats.port_parts.row_changes import VersionChange
from lakevilla.model import DataFile, WrittenFile
from lakevilla.predicates import ANYTHING
from lakevilla.store.port import Store

_ENTRIES_AT_ONCE = 64
_SPELLED = ("path", "partitionValues", "size", "deletionVector", "stats", "tags")
"""What an action says of its file, whichever action it is."""


def changes(store: Store, environment: Environment, base: DeltaSnapshot, until: int) -> list[VersionChange]:
    """What each version after `base` up to this one did."""
    found: list[VersionChange] = []
    before = base
    for start in range(base.version + 1, until + 1, _ENTRIES_AT_ONCE):
        versions = range(start, min(start + _ENTRIES_AT_ONCE, until + 1))
        entries = environment.fan_out([partial(read_entry, store, version) for version in versions])
        for version, entry in zip(versions, entries, strict=True):
            if entry is None:
                raise InvalidInput(
                    f"the log of the table has no entry {version} any more: ask for changes since a later "
                    "instant, and read the table as it was there",
                    version=version,
                )
            # Only a version that has files of an old writer is looked up in the one before.
            found.append(_change_of(before, entry))
            before = before.advance([entry])
    return found


def feed_files(snapshot: DeltaSnapshot, feed: Sequence[WrittenFile]) -> list[DataFile]:
    """The files of a change's feed, as engines read them."""
    fields = snapshot.layout.partition_fields
    return files_of(snapshot, [change_action(file, fields)["cdc"] for file in feed])


def files_of(snapshot: DeltaSnapshot, actions: Iterable[Mapping[str, Any]]) -> list[DataFile]:
    """The files that these actions name, in a table with the definition of this version."""
    adds = [{name: action[name] for name in _SPELLED if action.get(name) is not None} for action in actions]
    commit = Commit(0, tuple({"partitionValues": {}, "dataChange": True, **add} for add in adds))
    state = State(-1, snapshot.protocol, snapshot.metadata).after([commit])
    known = {file.identity: file for file in DeltaSnapshot.of(state, snapshot.store, snapshot.locate).files()}
    return [known[identity_of(add)] for add in adds]


def _change_of(before: DeltaSnapshot, entry: Commit) -> VersionChange:
    after = before.advance([entry]) if entry.metadata or entry.protocol else before
    change = VersionChange(entry.version, txn_of(entry.info), attempt_of(entry.info))
    if entry.changes:
        feed = tuple(files_of(after, entry.changes))
        return VersionChange(change.version, change.txn, change.attempt, feed=feed)
    # Where only some actions say that they change data, the rows that they moved are on both sides.
    if not any(action.get("dataChange", True) for action in (*entry.removes, *entry.adds)):
        return change
    removed, added = tuple(_removed(before, entry.removes)), tuple(files_of(after, entry.adds))
    return VersionChange(change.version, change.txn, change.attempt, removed, added)


def _removed(before: DeltaSnapshot, removes: Sequence[Mapping[str, Any]]) -> list[DataFile]:
    """The files that went. Not every writer repeats in a `remove` what the `add` said."""
    if all("size" in one and "partitionValues" in one for one in removes):
        return files_of(before, removes)
    live = {file.identity: file for file in before.files(ANYTHING)}
    return [live[identity_of(one)] for one in removes if identity_of(one) in live]
