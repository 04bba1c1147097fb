"""The judge of Iceberg tables, on one that a legacy client wrote: it passes; each kind of wrong is found."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from sim.checkers.history import History
from sim.checkers.lake.published import check_published
from sim.checkers.tables.iceberg import OURS
from sim.checkers.tables.logs import read_log
from sim.checkers.tables.versions import table_versions
from sim.legacy.client import LegacyReader, LegacyWriter, place_table
from sim.legacy.store import encode_json
from sim.world.bucket import Bucket, Write
from sim.world.client import World
from sim.world.faults import Calm
from sim.world.formats import FORMATS

ROWS = [{"k": number, "part": number % 2} for number in range(4)]
LAST = 4
"""The version of the table that the last of `steps` makes."""


@cache
def written() -> tuple[Bucket, History]:
    """A table with rows of which some were deleted, and one file for all that stayed, plus one more."""
    history = History()
    with World(0, Calm, formats=FORMATS["iceberg"]) as world:
        client = world.client("outsider")

        def steps() -> None:
            assert place_table(client, "t", (("k", "long"), ("part", "long")), ROWS)
            writer = LegacyWriter(client, history, encode_json)
            writer.delete("t", "t", "part", 0)
            writer.compact("t")
            writer.append("t", "t", [{"k": 9, "part": 1}], statistics=True)
            LegacyReader(client, history).read("t", "t")

        world.start(client, steps)
        world.run()
        return world.bucket, history


def test_table_of_a_legacy_client_passes_and_has_the_rows_that_it_wrote():
    bucket, history = written()
    assert check_published(bucket.writes) == []
    rows = [version.rows for version in table_versions(bucket.writes, "t")]
    keys = [sorted(row["k"] for row in each) for each in rows]
    assert keys == [[], [0, 1, 2, 3], [1, 3], [1, 3], [1, 3, 9]]
    assert sorted(row["k"] for row in history.operations[-1].result) == [1, 3, 9]


def test_commit_tells_which_files_came_and_went():
    commits = read_log(written()[0].contents(), "t").commits
    assert [(commit.version, len(commit.adds), len(commit.removes)) for commit in commits] == [
        *((1, 1, 0), (2, 1, 1)),
        *((3, 1, 1), (4, 1, 0)),
    ]
    assert [commit.redefines for commit in commits] == [True, False, False, False]
    # The deletes do not say which files they name.
    assert [commit.shadows == frozenset(commits[0].adds) for commit in commits] == [False, True, False, False]


def changed(version: int, change: Callable[[dict[str, Any]], None]) -> list[Write]:
    """The writes, with other metadata of this version."""
    found = []
    for write in written()[0].writes:
        if write.key == f"t/metadata/v{version}.metadata.json":
            assert write.data is not None
            raw = json.loads(write.data)
            change(raw)
            write = Write(write.at, write.client, write.kind, write.key, json.dumps(raw).encode())
        found.append(write)
    return found


def last_snapshot(raw: dict[str, Any]) -> dict[str, Any]:
    snapshot: dict[str, Any] = raw["snapshots"][-1]
    return snapshot


def expiring(raw: dict[str, Any]) -> dict[str, Any]:
    """The metadata, which says that it is there to forget snapshots."""
    raw["properties"][OURS] = json.dumps({"version": LAST, "operation": "EXPIRE SNAPSHOTS"})
    return raw


def test_version_that_says_so_may_forget_snapshots():
    def forget(raw: dict[str, Any]) -> None:
        expiring(raw)["snapshots"].pop(0)
        raw["snapshot-log"].pop(0)

    assert check_published(changed(LAST, forget)) == []


def forget_second(raw: dict[str, Any]) -> None:
    expiring(raw)["snapshots"].pop(1)


def test_version_that_forgets_a_snapshot_forgets_the_snapshot_log_up_to_it():
    def forget(raw: dict[str, Any]) -> None:
        forget_second(raw)
        del raw["snapshot-log"][:2]

    assert check_published(changed(LAST, forget)) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda raw: raw.update({"table-uuid": "another"}), "changes table-uuid"),
        (lambda raw: raw["snapshot-log"].pop(0), "has another snapshot-log"),
        (lambda raw: raw["metadata-log"].pop(), "says that it follows"),
        (lambda raw: raw["snapshots"].pop(0), "forgets snapshots"),
        (lambda raw: expiring(raw)["snapshots"][0].update({"timestamp-ms": 1}), "forgets snapshots"),
        (lambda raw: expiring(raw)["snapshot-log"].pop(0), "has another snapshot-log"),
        (lambda raw: (forget_second(raw), raw["snapshot-log"].pop(1)), "has another snapshot-log"),
        (lambda raw: (forget_second(raw), raw["snapshot-log"].clear()), "has another snapshot-log"),
        (lambda raw: raw.update({"last-updated-ms": 1}), "goes back in time"),
        (lambda raw: raw.update({"last-sequence-number": 9}), "ends with sequence number 9"),
        (lambda raw: last_snapshot(raw).update({"parent-snapshot-id": 7}), "whose parent is 7"),
        (lambda raw: last_snapshot(raw).update({"sequence-number": 3}), "sequence number 3 after 3"),
        (lambda raw: raw["refs"]["main"].update({"snapshot-id": 7}), "has its main branch at 7"),
        (lambda raw: raw.update({"current-snapshot-id": 7}), "has the current snapshot 7"),
        (
            lambda raw: last_snapshot(raw).update({"manifest-list": raw["location"] + "/metadata/no.avro"}),
            "no.avro, which is not there",
        ),
        (
            lambda raw: last_snapshot(raw)["summary"].update({"total-data-files": "5"}),
            "says total-data-files is 5, and it is 2",
        ),
        (
            lambda raw: last_snapshot(raw).update({"manifest-list": raw["snapshots"][0]["manifest-list"]}),
            "of another snapshot",
        ),
    ],
)
def test_metadata_that_does_not_follow_is_found(change: Callable[[dict[str, Any]], None], problem: str):
    found = check_published(changed(LAST, change))
    assert any(problem in each for each in found), found


def test_metadata_and_manifests_that_change_are_found():
    writes = written()[0].writes
    for ending in (f"v{LAST}.metadata.json", ".avro", ".parquet"):
        last = next(write for write in reversed(writes) if write.key.endswith(ending))
        again = Write(9.0, "b", "put", last.key, b"other")
        assert check_published([*writes, again]) == [f"b: changes {last.key}, which was published before"]


def test_file_of_another_length_is_found():
    def longer(write: Write) -> Write:
        if not (write.key.endswith(".parquet") and write.data and write.data.startswith(b"[")):
            return write
        return Write(write.at, write.client, write.kind, write.key, write.data + b" ")

    assert any("bytes, and it has" in each for each in check_published(map(longer, written()[0].writes)))


def test_hint_of_a_version_that_is_not_there_is_found():
    hint = Write(9.0, "b", "put", "t/metadata/version-hint.text", b"5")
    assert "names version 5, not there yet" in check_published([*written()[0].writes, hint])[0]


def test_copy_of_what_we_say_of_ourselves_is_not_ours():
    ours = json.dumps({"version": 1, "txn": "a", "attempt": "a"})
    first = changed(1, lambda raw: raw["properties"].update({"lakevilla.commit": ours}))
    objects = {write.key: write.data for write in first if write.data is not None}
    second = changed(2, lambda raw: raw["properties"].update({"lakevilla.commit": ours}))
    objects |= {w.key: w.data for w in second if w.data is not None and w.key.endswith("v2.metadata.json")}
    commits = read_log(objects, "t").commits
    assert [commit.ours.get("txn") for commit in commits[:2]] == ["a", None]
