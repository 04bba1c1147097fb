"""Compacted log files: a shortcut for entries, and never more than that."""

import json
from typing import Any

import pytest

from lakevilla.errors import Corrupt
from lakevilla.formats.delta.checkpoints.writer import write_checkpoint
from lakevilla.formats.delta.log.paths import LOG
from lakevilla.formats.delta.snapshot import DeltaSnapshot
from lakevilla.predicates import ANYTHING
from lakevilla.store.port import Store
from tests.unit.formats.delta.raw_log import (
    ENVIRONMENT,
    PROTOCOL,
    add,
    memory,
    metadata,
    remove,
    table,
    write_entry,
)

DEFINITION = (PROTOCOL, metadata(("id", "long")))


def write_log(store: Store, upto: int) -> None:
    """Version n adds the file f<n>."""
    for version in range(upto + 1):
        write_entry(store, version, *(DEFINITION if version == 0 else ()), add(f"f{version}"))


def at(store: Store, version: int) -> DeltaSnapshot:
    found = table(store).at_version(version)
    assert isinstance(found, DeltaSnapshot)
    return found


def seen(store: Store, version: int) -> Any:
    """What readers of a version are told."""
    found = at(store, version)
    files = sorted((file.identity, file.size) for file in found.files(ANYTHING))
    return files, found.schema.names, {name: txn["version"] for name, txn in found.state.txns.items()}


def vector(name: str) -> dict[str, Any]:
    return {"storageType": "p", "pathOrInlineDv": name, "offset": 1, "sizeInBytes": 40, "cardinality": 1}


NEWEST_FIRST = {
    "file added and removed": [[add("g")], [remove("g"), add("h")], [add("i")]],
    "file that got a deletion vector": [
        [add("g")],
        [remove("g"), add("g", deletionVector=vector("x"))],
        [remove("g", deletionVector=vector("x"))],
    ],
    "file added twice": [[add("g", size=1)], [add("g", size=2)], [add("h")]],
    "metadata changed twice": [[metadata(("a", "long"))], [metadata(("b", "long"))], [add("g")]],
    "application that wrote twice": [
        [{"txn": {"appId": "a", "version": 1}}],
        [{"txn": {"appId": "a", "version": 2}}],
        [add("g")],
    ],
}


@pytest.mark.parametrize("entries", NEWEST_FIRST.values(), ids=NEWEST_FIRST)
def test_compacted_file_that_is_not_reconciled_is_not_taken_for_its_entries(entries: list[Any]) -> None:
    store = memory()
    write_log(store, 1)
    for version, actions in enumerate(entries, 2):
        write_entry(store, version, *actions)
    known = [seen(store, version) for version in range(5)]
    lines = [json.dumps(action) for actions in reversed(entries) for action in actions]
    key = f"{LOG}{2:020}.{4:020}.compacted.json"
    store.put(key, "\n".join(lines).encode())
    assert [seen(store, version) for version in range(5)] == known
    write_checkpoint(store, ENVIRONMENT, at(store, 4))
    assert seen(store, 4) == known[4]


def test_compacted_file_that_is_not_reconciled_is_corrupt_without_its_entries() -> None:
    store = memory()
    write_log(store, 1)
    write_entry(store, 4, add("i"))
    lines = [remove("g"), add("h"), add("g")]
    store.put(f"{LOG}{2:020}.{3:020}.compacted.json", "\n".join(map(json.dumps, lines)).encode())
    with pytest.raises(Corrupt):
        table(store).latest()


def test_damaged_compacted_file_is_replaced_by_its_entries() -> None:
    store = memory()
    write_log(store, 3)
    known = seen(store, 3)
    store.put(f"{LOG}{1:020}.{3:020}.compacted.json", b'{"add": ')
    assert seen(store, 3) == known
