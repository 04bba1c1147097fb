"""What a marker in the log of an Iceberg table shows, where a version is the whole state."""

import gzip
import json
from typing import Any

import pytest

from lakevilla.errors import Corrupt, Unavailable
from lakevilla.formats.iceberg.log.versions import Version
from lakevilla.formats.iceberg.metadata.expiry import expire
from lakevilla.formats.iceberg.metadata.paths import HINT, metadata_key
from lakevilla.formats.iceberg.snapshot import IcebergSnapshot
from lakevilla.formats.port import Displaced, Published, Taken
from lakevilla.model import Author, Change, Notice
from lakevilla.store.faulty import always
from tests.unit.formats.marked import Log, record

FREED = record("theirs", live=False, put="m2")


@pytest.fixture
def log() -> Log:
    return Log("iceberg")


def shown(log: Log, above: int) -> tuple[int | None, Any]:
    """Of which version a marker shows the state, if it is one, and the snapshot that others see there."""
    raw = json.loads(log.found(above).data)
    return json.loads(raw["properties"]["lakevilla.commit"]).get("state_of"), raw["current-snapshot-id"]


def filled(log: Log) -> IcebergSnapshot:
    answer = log.fill()
    assert isinstance(answer, Published)
    assert isinstance(answer.snapshot, IcebergSnapshot)
    return answer.snapshot


def at(log: Log) -> Version:
    assert isinstance(log.base, IcebergSnapshot)
    return log.base.at


def test_freed_marker_is_the_version_below_it_also_if_that_was_filled_later(log: Log) -> None:
    log.mark(1, "theirs")
    log.rewrite(FREED, 1)
    made = filled(log)
    assert shown(log, 1)[0] == log.base.version, "it was not rewritten yet"
    for newest in (log.latest(), log.table.latest(log.base), log.table.at_version(log.ours + 1)):
        assert newest is not None
        assert (newest.version, log.ids(newest)) == (log.ours + 1, [1, 2])
    change, author = Change("WRITE", added=log.write(made, 3)), Author("next", "next", "p")
    taken = log.table.publish(made, change, author)
    assert isinstance(taken, Taken)
    assert (taken.snapshot.version, log.ids(taken.snapshot)) == (log.ours + 1, [1, 2])
    assert (taken.footprint.attempt, taken.footprint.removed) == (None, frozenset())
    told = [(entry.version, entry.operation, len(entry.added)) for entry in log.table.history()]
    assert told == [(log.ours + 1, "FREED MARKER", 0), (log.ours, "WRITE", 1), (1, "CREATE", 0)]
    assert log.table.at_time(2**62).version == log.ours + 1
    author = Author("next", "next", "p")
    assert isinstance(
        log.table.publish(log.latest(), Change("WRITE", added=log.write(made, 3)), author), Published
    )
    assert log.ids() == [1, 2, 3]
    assert log.ids(log.table.at_version(log.ours + 1)) == [1, 2], "also when others came above"


def test_hint_names_the_commit_and_the_freed_markers_above_show_it(log: Log) -> None:
    for above in (1, 2):
        log.mark(above, "theirs")
        log.rewrite(FREED, above)
    made = filled(log)
    log.table.maintain(made)
    hint = log.store.get(HINT)
    assert hint is not None
    assert int(hint.data) == log.ours
    assert shown(log, 1) == shown(log, 2) == (log.ours, made.raw["current-snapshot-id"])
    log.store.delete(HINT)
    newest = log.latest()
    log.table.renew_hint(newest)
    hint = log.store.get(HINT)
    assert hint is not None
    assert (newest.version, int(hint.data)) == (log.ours + 2, log.ours), "a freed one has no state of its own"


def test_next_commit_follows_the_freed_version_and_names_the_one_that_it_stands_on(log: Log) -> None:
    log.rewrite(FREED)
    base = log.latest()
    assert base.version == log.ours
    author = Author("next", "next", "p")
    made = log.table.publish(base, Change("WRITE", added=log.change.added), author)
    assert isinstance(made, Published)
    assert isinstance(made.snapshot, IcebergSnapshot)
    assert (made.snapshot.version, log.ids()) == (log.ours + 1, [1, 2])
    before = made.snapshot.raw["metadata-log"][-1]["metadata-file"]
    assert before.endswith(metadata_key(log.base.version))


def test_whoever_comes_late_after_a_crash_lets_the_top_show_the_commit(log: Log) -> None:
    """Its owner filled the marker, and died before it looked above."""
    log.mark(1, "theirs")
    log.rewrite(FREED, 1)
    filled(log)
    log.table.renew_hint(log.base)
    assert shown(log, 1)[0] == log.ours


def test_freed_marker_below_a_pending_one_shows_the_commit_too(log: Log) -> None:
    log.mark(1, "theirs")
    log.rewrite(FREED, 1)
    log.mark(2, "others")
    log.table.maintain(filled(log))
    assert [shown(log, above)[0] for above in (1, 2)] == [log.ours, log.base.version]


def test_pending_marker_is_left_to_its_owner_who_frees_it_with_the_newest_state(log: Log) -> None:
    log.mark(1, "theirs")
    pending = log.found(1)
    made = filled(log)
    log.table.maintain(made)
    assert log.found(1) == pending
    log.rewrite(FREED, 1)
    assert shown(log, 1) == (log.ours, made.raw["current-snapshot-id"])


def test_owner_that_frees_its_marker_while_one_below_is_filled_looks_again(log: Log) -> None:
    log.entries.decode(log.ours, log.found().data)
    log.mark(1, "theirs")
    tombstone = log.entries.encode(log.ours + 1, FREED)
    log.table.maintain(filled(log))
    log.store.replace(log.key(1), tombstone, log.found(1).etag)
    assert shown(log, 1)[0] == log.base.version
    log.entries.freed(log.ours + 1)
    assert shown(log, 1)[0] == log.ours


def test_one_that_knows_less_and_rewrites_first_does_not_win(log: Log) -> None:
    theirs = log.mark(1, "theirs")
    log.mark(2, "gone")
    log.rewrite(FREED, 2)
    made = filled(log)
    less = log.table.log_markers(made).entries.encode(log.ours + 2, FREED)
    newer = log.table.log_markers(made).fill(
        Change("WRITE", added=log.write(made, 3)), Author("t", "t", "p"), theirs
    )
    assert isinstance(newer, Published)
    replaced: list[str] = []

    def other_first(kind: str, key: str, _number: int) -> None:
        if kind == "replace" and not replaced:
            replaced.append(key)
            log.store.put(key, less)

    log.client(log.shaky(other_first)).maintain(newer.snapshot)
    assert (replaced, shown(log, 2)[0]) == ([log.key(2)], log.ours + 1)


def test_top_that_cannot_be_rewritten_harms_nobody(log: Log) -> None:
    log.mark(1, "theirs")
    log.rewrite(FREED, 1)
    made = filled(log)
    log.client(log.shaky(always(Unavailable("no"), "replace"))).maintain(made)
    assert shown(log, 1)[0] == log.base.version
    assert log.ids() == [1, 2]


@pytest.mark.parametrize("hint", [b"", b"2", b"3", b"9"])
def test_newest_version_is_found_below_markers_whatever_the_hint_says(log: Log, hint: bytes) -> None:
    log.mark(1, "theirs")
    log.store.put(HINT, hint)
    assert (log.latest().version, log.ids()) == (log.base.version, [1])
    log.rewrite(FREED, 1)
    assert log.latest().version == log.base.version
    filled(log)
    assert (log.latest().version, log.ids()) == (log.ours + 1, [1, 2])


def test_snapshots_do_not_expire_by_a_commit_that_holds_no_version(log: Log) -> None:
    newest = filled(log)
    assert expire(newest.raw, 2**62, ()) is not None
    assert log.table.expiry(newest, 2**62) is None


def test_marker_on_nothing_is_damage(log: Log) -> None:
    log.store.delete(metadata_key(log.base.version))
    log.store.put(HINT, b"2")
    with pytest.raises(Corrupt, match="there is no version below it"):
        log.table.latest()


def test_notice_frees_what_is_held_below_it_and_the_owner_finds_that(log: Log) -> None:
    log.mark(1, "theirs")
    log.table.publish_notice(log.base.version, Notice("lake", 7, dropped=True), "drop", "drop")
    newest = log.latest()
    assert (newest.version, newest.coordination.notice) == (log.ours + 2, Notice("lake", 7, dropped=True))
    assert isinstance(log.fill(), Displaced)
    assert log.ids() == [1]
    log.table.publish_notice(log.base.version, Notice("lake", 7, dropped=True), "drop", "drop")
    assert log.latest().version == newest.version, "it is told once"


def test_commit_that_is_filled_while_a_notice_comes_is_kept(log: Log) -> None:
    """It meets the marker, and frees it too late."""

    def fills(kind: str, key: str, _number: int) -> None:
        if kind == "replace" and key == log.key():
            filled(log)

    client = log.client(log.shaky(fills))
    client.publish_notice(log.base.version, Notice("lake", 7, dropped=False), "move", "move")
    assert (log.latest().version, log.ids()) == (log.ours + 1, [1, 2])


def test_markers_of_a_compressed_table_are_compressed(log: Log) -> None:
    first = log.store.get(metadata_key(1))
    assert first is not None
    log.store.delete(metadata_key(log.ours))
    log.store.delete(metadata_key(1))
    log.store.put(metadata_key(1, compressed=True), gzip.compress(first.data))
    log.store.delete(HINT)
    log.base = log.latest()
    log.entries = log.table.log_markers(log.base).entries
    log.etag = log.mark()
    assert log.store.get(metadata_key(log.ours, compressed=True)) is not None
    assert (log.latest().version, filled(log).version, log.ids()) == (1, 2, [1, 2])


def test_property_that_another_client_copied_makes_no_marker(log: Log) -> None:
    log.store.put(metadata_key(log.ours + 1), log.found().data)
    log.rewrite(record(live=False))
    assert log.latest().version == log.ours + 1
    raw = json.loads(log.found().data)
    log.store.put(metadata_key(log.ours + 1), json.dumps({**raw, "last-updated-ms": 1}).encode())
    assert log.latest().timestamp_ms == 1, "a version without a marker counts as it is"
