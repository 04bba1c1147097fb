"""The rules of rows, one by one: what is asked, and what each fact decides."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from lakevilla.conflicts.files import decide_conflict
from lakevilla.conflicts.rows import Questions, RowFacts, masked_files, questions_of
from lakevilla.model import Change, DataFile, Footprint, ReadSet, Shrunk, WrittenFile
from lakevilla.predicates import Compare, Predicate

ID_5 = Compare(("id",), "=", 5)


@dataclass(frozen=True)
class Added:
    """Files that match every predicate."""

    identities: Sequence[str] = ()

    def matching(self, predicate: Predicate) -> Sequence[str]:
        return self.identities

    def files(self, predicate: Predicate) -> Sequence[DataFile]:
        return ()


def _shrunk() -> Shrunk:
    raise AssertionError("the rules read nothing")


def file_of(identity: str) -> str:
    return identity.partition("?")[0]


def deleting(path: str, before: str, after: str) -> Change:
    """A change of rows that match id = 5."""
    gone = DataFile(path, path + before, 1, 9, {}, entry={})
    again = WrittenFile(path, 1, 9, {}, {}, 0, entry={"dv": after})
    return Change("UPDATE", added=(again,), removed=(gone,), read=ReadSet((ID_5,)))


OURS = deleting("a", "", "?v1")
THEIRS = Footprint(
    7,
    None,
    None,
    "version 7",
    removed=frozenset({"a?v2"}),
    added=Added(("a?v3", "new")),
    metadata_changed=False,
    protocol_changed=False,
    shrunk={"a": _shrunk},
    file_of=file_of,
)
NOTHING = Questions(frozenset(), frozenset(), frozenset(), frozenset())
CLEAR = RowFacts(frozenset({"a"}), frozenset({"a"}), frozenset({"a"}), frozenset({"new"}))


def test_masked_file_is_one_that_goes_and_comes_again() -> None:
    assert masked_files(OURS) == {"a"}
    assert masked_files(replace(OURS, added=())) == frozenset()


def test_questions_name_what_both_touch_whatever_vector_the_file_has() -> None:
    asked = questions_of(OURS, THEIRS)
    assert (asked.shrunk, asked.apart, asked.unread) == ({"a"}, {"a"}, frozenset())
    assert asked.added == {"a?v3", "new"}
    reads = Change("READ", read=ReadSet((ID_5,), frozenset({"a?v1"})))
    assert questions_of(reads, THEIRS).unread == {"a"}


@pytest.mark.parametrize("field", ["metadata_changed", "protocol_changed", "dropped"])
def test_commit_that_conflicts_anyway_is_asked_nothing(field: str) -> None:
    assert questions_of(OURS, replace(THEIRS, **{field: True})) == NOTHING
    assert decide_conflict(OURS, replace(THEIRS, **{field: True}), CLEAR) is not None


def test_different_rows_without_new_ones_that_match_pass() -> None:
    assert decide_conflict(OURS, THEIRS, CLEAR) is None


def test_without_facts_the_file_conflicts_under_any_vector() -> None:
    hit = decide_conflict(OURS, THEIRS)
    assert hit is not None
    assert hit.file == "a?v2"


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (replace(CLEAR, shrunk=frozenset()), "a file that this statement read was removed"),
        (replace(CLEAR, apart=frozenset()), "a row that this statement changed was changed"),
        (replace(CLEAR, unmatched=frozenset()), "a file was added"),
    ],
    ids=["rows came back", "same row", "new rows may match"],
)
def test_each_fact_that_is_missing_is_a_conflict(facts: RowFacts, reason: str) -> None:
    hit = decide_conflict(OURS, THEIRS, facts)
    assert hit is not None
    assert hit.reason.startswith(reason)


def test_row_that_was_read_conflicts_unless_none_of_those_that_went_was() -> None:
    reads = replace(OURS, read=ReadSet((ID_5,), frozenset({"a"})))
    assert decide_conflict(reads, THEIRS, CLEAR) is None
    hit = decide_conflict(reads, THEIRS, replace(CLEAR, unread=frozenset()))
    assert hit is not None
    assert hit.reason == "a row that this statement read may have been changed"


def test_file_that_we_rewrite_conflicts_whatever_rows_went() -> None:
    rewrites = replace(OURS, added=(WrittenFile("b", 1, 9, {}, {}, 0),))
    assert decide_conflict(rewrites, THEIRS, CLEAR) is not None


def test_file_that_others_rewrite_conflicts_with_a_change_of_its_rows() -> None:
    rewritten = replace(THEIRS, shrunk={}, added=Added(("new",)))
    facts = replace(CLEAR, shrunk=frozenset())
    assert decide_conflict(OURS, rewritten, facts) is not None


def test_inverse_is_decided_by_whole_files() -> None:
    assert questions_of(replace(OURS, inverse=True), THEIRS) == NOTHING
