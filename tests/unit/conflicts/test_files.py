"""The rules of conflict, one by one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakevilla.conflicts.files import decide_conflict, follow
from lakevilla.conflicts.replays import decide_redo
from lakevilla.conflicts.rows import NO_FACTS
from lakevilla.model import Change, DataFile, Footprint, ReadSet, WrittenFile
from lakevilla.predicates import ANYTHING, Compare, Predicate

OLD = DataFile("a.parquet", "a.parquet", 1, 1, {})
NEW = WrittenFile("b.parquet", 1, 1, {}, {}, 0)
ID_5 = Compare(("id",), "=", 5)


@dataclass(frozen=True)
class Added:
    """Files that match exactly these predicates."""

    files: Sequence[str] = ()
    matched_by: tuple[Predicate, ...] = ()

    def matching(self, predicate: Predicate) -> Sequence[str]:
        return self.files if predicate in self.matched_by else ()


QUIET = Footprint(5, None, None, "version 5", frozenset(), Added(), False, False)
BLIND = Change("WRITE", added=(NEW,))
UPDATE = Change("UPDATE", added=(NEW,), removed=(OLD,), read=ReadSet((ID_5,)))


def test_quiet_commit_conflicts_with_nobody() -> None:
    assert decide_conflict(BLIND, QUIET) is None
    assert decide_conflict(UPDATE, QUIET) is None


def test_blind_append_passes_removed_and_added_files() -> None:
    busy = replace(QUIET, removed=frozenset({"a.parquet"}), added=Added(["c"], (ANYTHING, ID_5)))
    assert BLIND.blind
    assert decide_conflict(BLIND, busy) is None


def test_removed_file_that_we_remove_too_conflicts_and_is_named() -> None:
    hit = decide_conflict(UPDATE, replace(QUIET, removed=frozenset({"a.parquet", "z"})))
    assert hit is not None
    assert hit.file == "a.parquet"


def test_removed_file_that_we_only_read_conflicts() -> None:
    reads = Change("WRITE", added=(NEW,), read=ReadSet((), frozenset({"r.parquet"})))
    hit = decide_conflict(reads, replace(QUIET, removed=frozenset({"r.parquet"})))
    assert hit is not None
    assert hit.file == "r.parquet"


def test_removed_file_that_we_never_touched_passes() -> None:
    assert decide_conflict(UPDATE, replace(QUIET, removed=frozenset({"other"}))) is None


def test_added_file_conflicts_only_if_a_predicate_may_match_it() -> None:
    hit = decide_conflict(UPDATE, replace(QUIET, added=Added(["c"], (ID_5,))))
    assert hit is not None
    assert hit.file == "c"
    assert decide_conflict(UPDATE, replace(QUIET, added=Added(["c"], (ANYTHING,)))) is None


def test_changed_definition_stops_everybody() -> None:
    for footprint in (
        replace(QUIET, metadata_changed=True),
        replace(QUIET, protocol_changed=True),
        replace(QUIET, dropped=True),
    ):
        for change in (BLIND, UPDATE):
            hit = decide_conflict(change, footprint)
            assert hit is not None
            assert hit.file == ""


COMPACTION = replace(
    QUIET,
    removed=frozenset({"a.parquet", "r.parquet"}),
    added=Added(["ar.parquet"], (ANYTHING, ID_5)),
    keeps_rows=True,
)


def test_commit_that_keeps_rows_conflicts_only_with_changes_of_its_files() -> None:
    reads = Change("WRITE", added=(NEW,), read=ReadSet((ID_5,), frozenset({"r.parquet"})))
    elsewhere = replace(UPDATE, removed=(replace(OLD, key="z", identity="z"),))
    assert decide_conflict(BLIND, COMPACTION) is None
    assert decide_conflict(reads, COMPACTION) is None
    assert decide_conflict(elsewhere, COMPACTION) is None
    hit = decide_conflict(UPDATE, COMPACTION)
    assert hit is not None
    assert hit.file == "a.parquet"


def test_compaction_conflicts_with_commits_that_remove_its_files_and_with_no_append() -> None:
    compaction = Change("OPTIMIZE", added=(NEW,), removed=(OLD,))
    assert decide_conflict(compaction, replace(QUIET, added=Added(["c"], (ANYTHING, ID_5)))) is None
    assert decide_conflict(compaction, replace(QUIET, removed=frozenset({"a.parquet"}))) is not None


def test_rows_that_moved_to_another_file_are_still_read() -> None:
    reads = Change("READ", read=ReadSet((ID_5,), frozenset({"r.parquet"})))
    update = replace(QUIET, version=6, removed=frozenset({"ar.parquet"}))
    assert decide_redo(reads, [(COMPACTION, NO_FACTS)], ()) is None
    hit = decide_redo(reads, [(COMPACTION, NO_FACTS), (update, NO_FACTS)], ())
    assert hit is not None
    assert hit.file == "ar.parquet"
    assert follow(reads.read, COMPACTION).files == {"r.parquet", "ar.parquet"}
    assert follow(ReadSet((ID_5,)), COMPACTION) == ReadSet((ID_5,))
    assert follow(reads.read, update) == reads.read
