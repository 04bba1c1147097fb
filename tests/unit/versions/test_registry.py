"""The registry's decisions over HEAD, without I/O."""

from dataclasses import replace

import pytest

from lakevilla.errors import InvalidInput
from lakevilla.model import ReadSet, TableRef
from lakevilla.versions import registry
from lakevilla.versions.commits import NEW, Commit, Drop, Read, Settled, Write
from lakevilla.versions.records import (
    CreateTable,
    DropTable,
    Entry,
    Head,
    RegisterTable,
    RegistryChange,
    RenameTable,
)
from lakevilla.versions.tags import Expire, Tag, TagChange, Untag, check_tag_name

A = TableRef("Accounts", "Accounts", "delta")
OUTSIDE = TableRef("orders", "s3://other/orders", "delta")
EMPTY = Head("lake", 0, "p0")
HEAD = Head("lake", 4, "p4", {"Accounts": A, "orders": OUTSIDE}, frozenset({"old"}))


def _after(head: Head, change: RegistryChange | TagChange, published: bool = True) -> Head:
    registry.check(head, change)
    return registry.apply(head, Entry(head.seq + 1, "t", "a", "p", 0, change), Settled(published), "put")


def test_name_is_found_exactly_and_in_any_case() -> None:
    assert registry.find(HEAD, "Accounts") == A
    assert registry.find(HEAD, "aCCOUNTS") == A
    assert registry.find(HEAD, "account") is None
    assert registry.find(None, "Accounts") is None


def test_exact_name_wins_over_another_case() -> None:
    lower = TableRef("accounts", "accounts", "delta")
    both = Head("lake", 1, "p", {"Accounts": A, "accounts": lower})
    assert registry.find(both, "accounts") == lower


def test_unregistered_table_may_lie_only_where_nothing_is_known() -> None:
    assert registry.may_lie_at(None, "x")
    assert registry.may_lie_at(HEAD, "x")
    assert not registry.may_lie_at(HEAD, "old")
    assert not registry.may_lie_at(HEAD, "Accounts")


def test_name_used_before_gets_a_new_folder() -> None:
    assert registry.folder_for(HEAD, "fresh", "0a1b2c3d") == "fresh"
    assert registry.folder_for(HEAD, "old", "0a1b2c3d") == "old-lv0a1b2c3d"
    assert registry.folder_for(None, "old", "0a1b2c3d") == "old"


def test_folder_made_up_for_a_name_is_not_found_before_head_names_it() -> None:
    assert not registry.may_lie_at(HEAD, registry.folder_for(HEAD, "old", "0a1b2c3d"))
    assert registry.may_lie_at(HEAD, "sales-20260101")


def test_create_adds_the_table_and_moves_head_on() -> None:
    head = _after(EMPTY, CreateTable(A, ""))
    assert (head.seq, head.tables, head.put) == (1, {"Accounts": A}, "put")


def test_create_that_could_not_be_published_changes_only_the_number() -> None:
    head = _after(EMPTY, CreateTable(A, ""), published=False)
    assert (head.seq, head.tables) == (1, {})


@pytest.mark.parametrize("name", ["Accounts", "ACCOUNTS"])
def test_create_of_a_name_that_is_taken_in_any_case_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        registry.check(HEAD, CreateTable(TableRef(name, "elsewhere", "delta"), ""))
    assert caught.value.table == "Accounts"


def test_register_of_a_location_that_has_a_name_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        registry.check(HEAD, RegisterTable(TableRef("again", OUTSIDE.location, "delta")))
    assert caught.value.table == "orders"


def test_drop_below_the_root_remembers_the_folder() -> None:
    head = _after(HEAD, DropTable(A, base=3))
    assert head.tables == {"orders": OUTSIDE}
    assert head.dropped == {"old", "Accounts"}


def test_drop_outside_the_root_forgets_the_table() -> None:
    head = _after(HEAD, DropTable(OUTSIDE, base=None))
    assert head.tables == {"Accounts": A}
    assert head.dropped == {"old"}


def test_rename_keeps_the_location_and_frees_the_old_name() -> None:
    head = _after(HEAD, RenameTable(A, "konten", 3))
    assert head.tables["konten"] == TableRef("konten", "Accounts", "delta")
    assert "Accounts" not in head.tables
    assert not registry.may_lie_at(head, "Accounts")


def test_rename_to_another_case_of_itself_is_allowed() -> None:
    head = _after(HEAD, RenameTable(A, "ACCOUNTS", 3))
    assert set(head.tables) == {"ACCOUNTS", "orders"}


def test_rename_onto_another_table_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        registry.check(HEAD, RenameTable(A, "Orders", 3))
    assert caught.value.table == "orders"


def test_found_table_can_be_renamed_and_dropped_without_being_registered() -> None:
    found = TableRef("found", "found", "delta")
    assert _after(HEAD, RenameTable(found, "named", 3)).tables["named"].location == "found"
    assert "found" in _after(HEAD, DropTable(found, base=0)).dropped


@pytest.mark.parametrize("change", [DropTable(A, 3), RenameTable(A, "x", 3)])
def test_change_of_a_table_that_another_client_moved_is_refused(change: RegistryChange) -> None:
    moved = Head("lake", 9, "p", {"Accounts": TableRef("Accounts", "Accounts-2", "delta")})
    with pytest.raises(InvalidInput, match="renamed or dropped by another client"):
        registry.check(moved, change)
    with pytest.raises(InvalidInput, match="renamed or dropped by another client"):
        registry.check(Head("lake", 9, "p", {}, frozenset({"Accounts"})), change)


def _commit(*writes: tuple[TableRef, int], drops: tuple[Drop, ...] = ()) -> Commit:
    return Commit(tuple(Write(ref, base, {}, ReadSet(), False) for ref, base in writes), (), drops)


def _settled(head: Head, change: Commit, settled: Settled) -> Head:
    registry.check(head, change)
    return registry.apply(head, Entry(head.seq + 1, "t", "a", "p", 0, change), settled, "put")


def test_commit_gives_and_takes_names_when_it_is_published() -> None:
    new = TableRef("new", "new", "delta")
    change = _commit((new, NEW), (OUTSIDE, 4), drops=(Drop(A, 7),))
    versions = {"new": 0, OUTSIDE.location: 5}
    head = _settled(HEAD, change, Settled(True, versions, owned=frozenset({"new"})))
    assert head.tables == {"orders": OUTSIDE, "new": new}
    assert (head.dropped, head.versions) == ({"old", "Accounts"}, versions)
    assert head.owned == {"new", OUTSIDE.location}


def test_commit_that_was_taken_back_leaves_names_and_remembers_folders_that_it_used() -> None:
    change = _commit((TableRef("new", "new", "delta"), NEW), (OUTSIDE, 4), drops=(Drop(A, 7),))
    head = _settled(HEAD, change, Settled(False, {OUTSIDE.location: 6}, dropped=frozenset({"new"})))
    assert (head.tables, head.dropped) == (HEAD.tables, {"old", "new"})
    assert (head.versions, head.owned) == ({OUTSIDE.location: 6}, {OUTSIDE.location})


def test_name_that_the_commit_itself_gives_up_can_be_given_again() -> None:
    again = TableRef("accounts", "accounts-lv0a1b2c3d", "delta")
    head = _settled(HEAD, _commit((again, NEW), drops=(Drop(A, 3),)), Settled(True))
    assert head.tables == {"orders": OUTSIDE, "accounts": again}


def test_table_outside_that_a_commit_drops_is_forgotten() -> None:
    owned = replace(HEAD, owned=frozenset({OUTSIDE.location}), versions={OUTSIDE.location: 3})
    head = _settled(owned, _commit(drops=(Drop(OUTSIDE, None),)), Settled(True))
    assert (head.tables, head.dropped, head.owned, head.versions) == ({"Accounts": A}, {"old"}, set(), {})


def test_commit_that_gives_a_taken_name_or_takes_one_that_is_gone_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        registry.check(HEAD, _commit((TableRef("accounts", "elsewhere", "delta"), NEW)))
    assert caught.value.table == "Accounts"
    with pytest.raises(InvalidInput) as caught:
        registry.check(HEAD, _commit(drops=(Drop(TableRef("old", "old", "delta"), 3),)))
    assert caught.value.table == "old"


def test_commit_on_a_table_that_another_client_dropped_is_refused() -> None:
    with pytest.raises(InvalidInput, match="table 'old' was dropped by another client"):
        registry.check(HEAD, _commit((OUTSIDE, 3), (TableRef("old", "old", "delta"), 3)))


TAGGED = replace(HEAD, tags={"end": 1, "mid": 3}, horizon=3)


def test_tag_is_kept_until_it_is_taken_back() -> None:
    tagged = _after(HEAD, Tag("end", 2))
    assert tagged.tags == {"end": 2}
    assert _after(tagged, Untag("end")).tags == {}


def test_horizon_moves_forward_only() -> None:
    later = _after(HEAD, Expire(3))
    assert later.horizon == 3
    assert _after(later, Expire(2)).horizon == 3


@pytest.mark.parametrize("change", [Tag("new", 3), Tag("new", 4), Tag("again", 1), Untag("end")])
def test_tag_of_an_instant_that_is_kept_is_allowed(change: TagChange) -> None:
    registry.check(TAGGED, change)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (Tag("end", 4), "tag 'end' already exists, at entry 1"),
        (Tag("new", 5), "unknown entry 5 of the lake; the newest is 4"),
        (Tag("new", -1), "unknown entry -1"),
        (Tag("new", 2), r"entry 2 .* expired.* begins with entry 3; .*'end' \(entry 1\), 'mid' \(entry 3\)"),
        (Untag("enD"), "unknown tag 'enD'; available: 'end', 'mid'"),
    ],
)
def test_tag_that_makes_no_sense_is_refused_with_what_there_is(change: TagChange, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        registry.check(TAGGED, change)


@pytest.mark.parametrize("name", ["", "  ", "42", "2026-01-31", "2026-01-31T12:00Z", "a\nb", "x" * 201, 7])
def test_name_that_could_mean_another_instant_cannot_be_a_tag(name: object) -> None:
    with pytest.raises(InvalidInput, match="tag"):
        check_tag_name(name)


@pytest.mark.parametrize("name", ["month-end", "Månad 1", "v1.0", "2026-01"])
def test_name_of_a_tag_is_any_other_text(name: str) -> None:
    assert check_tag_name(name) == name


def test_table_that_a_commit_only_read_gets_its_name_unless_the_commit_drops_it() -> None:
    found = TableRef("found", "found", "delta")
    read = Commit((), (Read(found, 3, ReadSet()),))
    entry = Entry(HEAD.seq + 1, "t", "a", "p", 0, read)
    after = registry.apply(HEAD, entry, Settled(True), "put")
    assert (after.tables["found"], after.versions["found"]) == (found, 3)
    dropped = replace(entry, change=replace(read, drops=(Drop(found, 3),)))
    gone = registry.apply(HEAD, dropped, Settled(True), "put")
    assert "found" not in gone.tables
    assert "found" not in gone.versions


def test_table_of_a_commit_that_was_taken_back_gets_its_name_with_its_version() -> None:
    found = TableRef("found", "found", "delta")
    write = Write(found, 0, {}, ReadSet(), blind=False)
    entry = Entry(HEAD.seq + 1, "t", "a", "p", 0, Commit((write,)))
    met = registry.apply(HEAD, entry, Settled(False, {"found": 2}), "put")
    assert (met.tables["found"], met.versions["found"]) == (found, 2)
    unmet = registry.apply(HEAD, entry, Settled(False), "put")
    assert "found" not in unmet.tables
