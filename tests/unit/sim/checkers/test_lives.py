"""The checkers of the suite `world` on writes that are made up: what they must find, and what is right."""

import json
from typing import Any

from sim.checkers.history import Operation
from sim.checkers.lives.lives import Lives
from sim.checkers.lives.retention import Keeping
from sim.checkers.tables.rows import Change, after, as_rows, first_rows, without
from sim.world.bucket import Write

ROOT = "lake/t"
DAY = 24 * 3600.0


class Story:
    """Writes of a table's log, told to the checkers one by one."""

    def __init__(self, *operations: Operation) -> None:
        known = {op.txn: op for op in operations if op.txn is not None}
        self.lives = Lives(known, set(), is_of=lambda root, name: root == f"lake/{name}")
        self.keeping = Keeping(self.lives, "sim://bucket", {"x": "lake", "z": "other"})
        self.rows = first_rows()

    def write(self, at: float, client: str, key: str, data: bytes | None) -> None:
        write = Write(at, client, "create", key, data)
        self.keeping.see(write)
        self.lives.see(write)

    def file(self, name: str, rows: list[dict[str, Any]], at: float = 0.0) -> None:
        self.write(at, "c0", f"{ROOT}/{name}.parquet", json.dumps(rows).encode())

    def version(self, number: int, *actions: dict[str, Any], at: float = 0.0, txn: str = "") -> None:
        info = {"commitInfo": {"lakevilla": {"txn": txn, "attempt": txn}} if txn else {}}
        lines = "\n".join(json.dumps(action) for action in (info, *actions))
        self.write(at, "c0", f"{ROOT}/_delta_log/{number:020d}.json", lines.encode())

    def begin(self, table_id: str = "one") -> None:
        self.file("a", self.rows)
        self.version(0, {"protocol": {}}, {"metaData": {"id": table_id}}, {"add": {"path": "a.parquet"}})

    @property
    def found(self) -> list[str]:
        return self.lives.violations + self.keeping.violations


def operation(txn: str, *changes: Change) -> Operation:
    return Operation(1, "c0", "", "change", None, {"t": list(changes)}, 0.0, 1.0, "ok", txn=txn)


def insert(story: Story, number: int, change: Change, at: float = 0.0, txn: str = "x") -> None:
    story.file(f"f{number}", [change.row], at)
    story.version(number, {"add": {"path": f"f{number}.parquet"}}, at=at, txn=txn)


def test_change_that_its_transaction_made_is_counted_once() -> None:
    change = Change("insert", 0, 7)
    story = Story(operation("x", change))
    story.begin()
    insert(story, 1, change)
    assert story.found == []
    assert story.lives.done[1, "t"] == 1


def test_change_that_no_client_made_is_found() -> None:
    story = Story(operation("x", Change("insert", 0, 7)))
    story.begin()
    insert(story, 1, Change("insert", 0, 8))
    assert "version 1" in story.found[0]


def test_restore_of_two_tables_to_equal_rows_is_counted_where_it_was_done() -> None:
    restored = [Change("restore", 0, 0, as_rows(first_rows()))]
    restore = operation("y")
    restore.value = {"s": restored, "t": restored}
    story = Story(operation("x", Change("insert", 0, 7)), restore)
    story.begin()
    insert(story, 1, Change("insert", 0, 7))
    story.version(2, {"remove": {"path": "f1.parquet"}}, txn="y")
    assert story.found == []
    assert [story.lives.done[1, name] for name in ("s", "t")] == [0, 2]


def test_version_after_a_gap_is_found() -> None:
    story = Story(operation("x", Change("insert", 0, 7)))
    story.begin()
    insert(story, 3, Change("insert", 0, 7))
    assert "created after version 0" in story.found[0]


def test_version_of_another_table_is_found() -> None:
    story = Story(operation("x"))
    story.begin()
    story.version(1, {"metaData": {"id": "two"}}, txn="x")
    assert "of the table two" in story.found[0]


def test_entry_in_a_deleted_folder_is_found_if_its_client_began_later() -> None:
    late = operation("x", Change("insert", 0, 7))
    late.invoked = 20.0
    story = Story(late)
    story.begin()
    story.write(10.0, "wrecker", f"{ROOT}/_delta_log/{0:020d}.json", None)
    insert(story, 1, Change("insert", 0, 7), at=30.0)
    assert "where no table is" in story.found[0]


def test_new_table_whose_folder_is_deleted_right_before_its_first_entry_is_right() -> None:
    for wrecked in (False, True):
        story = Story(operation("x", Change("make", 0, 0)))
        story.file("a", story.rows)
        story.write(0.5, "wrecker" if wrecked else "c9", f"{ROOT}/a.parquet", None)
        first = {"protocol": {}}, {"metaData": {"id": "one"}}, {"add": {"path": "a.parquet"}}
        story.version(0, *first, at=0.6, txn="x")
        assert (story.found == []) is wrecked


def test_another_table_in_a_deleted_folder_begins_a_new_life() -> None:
    story = Story()
    story.begin()
    story.write(10.0, "wrecker", f"{ROOT}/_delta_log/{0:020d}.json", None)
    story.begin("two")
    assert story.found == []
    assert [life.id for life in story.lives.lives] == ["one", "two"]


def test_checkpoint_of_a_deleted_log_spoils_the_folder_if_it_was_written_right_then() -> None:
    for client, seconds, is_spoiled in (
        ("stranger", 0.1, True),
        ("stranger", 120.0, False),
        ("c0", 0.1, True),
        ("c0", 12.0, False),
    ):
        story = Story()
        story.begin()
        story.write(10.0, "wrecker", f"{ROOT}/_delta_log/{0:020d}.json", None)
        story.write(10.0 + seconds, client, f"{ROOT}/_delta_log/{4:020d}.checkpoint.parquet", b"")
        assert (ROOT in story.lives.spoiled) == is_spoiled


def test_entry_of_a_new_table_that_a_stranger_deletes_right_then_spoils_the_folder() -> None:
    for client, seconds, is_spoiled in (
        ("stranger", 3.0, True),
        ("stranger", 120.0, False),
        ("c0", 3.0, False),
    ):
        story = Story(operation("x", Change("insert", 0, 7)))
        story.begin()
        story.write(10.0, "wrecker", f"{ROOT}/_delta_log/{0:020d}.json", None)
        story.begin("two")
        insert(story, 1, Change("insert", 0, 7))
        story.write(10.0 + seconds, client, f"{ROOT}/_delta_log/{1:020d}.json", None)
        assert (ROOT in story.lives.spoiled) == is_spoiled


def test_entry_under_a_number_that_was_cleaned_up_is_found_unless_its_client_had_ended() -> None:
    for at, is_found in ((0.5, True), (5.0, False)):
        story = Story(operation("x", Change("insert", 0, 7)))
        story.begin()
        insert(story, 1, Change("insert", 0, 7), at=0.1, txn="x")
        story.write(0.2, "stranger", f"{ROOT}/_delta_log/{1:020d}.json", None)
        story.version(1, {"add": {"path": "f1.parquet"}}, at=at, txn="x")
        assert bool(story.lives.left_over()) == is_found


def test_checkpoint_of_a_log_that_was_deleted_hours_ago_is_found() -> None:
    for hours, is_found in ((0.5, False), (2.0, True)):
        story = Story()
        story.begin()
        story.write(10.0, "wrecker", f"{ROOT}/_delta_log/{0:020d}.json", None)
        story.begin("two")
        at = 10.0 + hours * 3600.0
        story.write(at, "c0", f"{ROOT}/_delta_log/{4:020d}.checkpoint.parquet", b"")
        assert bool(story.found) == is_found


def drop(story: Story, number: int, at: float = 0.0) -> None:
    notice = {"lakevilla": {"txn": "d", "attempt": "d", "notice": {"dropped": True}}}
    line = json.dumps({"commitInfo": notice}).encode()
    story.write(at, "c0", f"{ROOT}/_delta_log/{number:020d}.json", line)


def test_table_in_the_folder_of_one_that_was_dropped_and_deleted_begins_a_new_life() -> None:
    story = Story()
    story.begin()
    drop(story, 1)
    for number in (0, 1):
        story.write(9 * DAY, "c-upkeep", f"{ROOT}/_delta_log/{number:020d}.json", None)
    story.begin("two")
    assert story.found == []
    assert [life.id for life in story.lives.lives] == ["one", "two"]


def test_entry_in_the_folder_of_a_table_that_was_dropped_and_deleted_is_found() -> None:
    story = Story(operation("x", Change("insert", 0, 7)))
    story.begin()
    drop(story, 1)
    for number in (0, 1):
        story.write(9 * DAY, "c-upkeep", f"{ROOT}/_delta_log/{number:020d}.json", None)
    insert(story, 2, Change("insert", 0, 7), at=9 * DAY + 1)
    assert "where no table is" in story.found[0]


def test_files_of_a_dropped_table_may_go_a_day_after_its_last_version() -> None:
    for hours, is_found in ((23, True), (25, False)):
        story = Story(operation("x"))
        story.begin()
        drop(story, 1)
        story.version(2, at=9 * DAY)
        story.write(9 * DAY + hours * 3600.0, "c-upkeep", f"{ROOT}/a.parquet", None)
        assert bool(story.found) == is_found


def test_entry_of_a_client_that_slept_over_the_deletion_of_the_folder_is_right_only_if_unknown() -> None:
    for outcome, is_found in (("ok", True), ("failed", True), ("unknown", False)):
        sleeper = operation("x", Change("insert", 0, 7))
        sleeper.outcome = outcome
        story = Story(sleeper)
        story.begin()
        story.write(10.0, "wrecker", f"{ROOT}/_delta_log/{0:020d}.json", None)
        insert(story, 1, Change("insert", 0, 7), at=9 * DAY)
        assert bool(story.found) == is_found


def decide(story: Story, table_id: str) -> None:
    """An entry that changes version 0 of the table with this id, and a HEAD that calls the table torn."""
    writes = [{"location": "t", "base": 0, "id": table_id}]
    entry = json.dumps({"change": {"writes": writes}}).encode()
    for seq, torn in ((0, []), (1, ["t"])):
        head = {"lake": "L", "seq": seq, "tables": {}, "versions": {}, "tags": {}, "torn": torn}
        if seq:
            story.write(20.0, "c0", f"lake/_lakevilla/global/log/{seq:020d}.json", entry)
        story.write(20.0, "c0", "lake/_lakevilla/global/HEAD.json", json.dumps(head).encode())


def test_table_is_torn_without_a_stranger_only_if_another_table_took_its_place() -> None:
    for table_id, is_found in (("one", True), ("zero", False)):
        story = Story()
        story.begin("one")
        decide(story, table_id)
        assert bool(story.found) == is_found


def test_table_is_torn_where_a_client_of_another_lake_has_built_and_not_where_one_of_its_own_has() -> None:
    for txn, is_found in (("z", False), ("x", True)):
        story = Story()
        story.begin("one")
        story.file("b", [])
        story.version(1, {"remove": {"path": "a.parquet"}}, {"add": {"path": "b.parquet"}}, at=10.0, txn=txn)
        decide(story, "one")
        assert bool(story.keeping.violations) == is_found


def test_entry_under_a_number_that_was_cleaned_away_does_nothing() -> None:
    change = Change("insert", 0, 7)
    story = Story(operation("x", change))
    story.begin()
    story.version(1, txn="y")
    story.write(0.0, "stranger", f"{ROOT}/_delta_log/{0:020d}.json", None)
    story.write(0.0, "stranger", f"{ROOT}/_delta_log/{1:020d}.json", None)
    insert(story, 1, change)
    assert story.found == []
    assert story.lives.done[1, "t"] == 0


def test_newest_entry_that_its_client_takes_back_is_as_if_it_had_not_been() -> None:
    change = Change("insert", 0, 7)
    story = Story(operation("x", change))
    story.begin()
    story.version(1, {"add": {"path": "gone.parquet"}}, txn="x")
    assert story.found != []
    story.write(0.0, "c0", f"{ROOT}/_delta_log/{1:020d}.json", None)
    assert story.found == []
    insert(story, 1, change)
    assert story.found == []


def take_back(story: Story, number: int, *actions: dict[str, Any], at: float = 0.0) -> None:
    info = {"commitInfo": {"lakevilla": {"txn": "x", "attempt": "x-inverse"}}}
    lines = "\n".join(json.dumps(action) for action in (info, *actions))
    story.write(at, "c0", f"{ROOT}/_delta_log/{number:020d}.json", lines.encode())


def test_version_that_does_nothing_is_no_change_and_its_inverse_takes_nothing_back() -> None:
    story = Story(operation("x", Change("insert", 0, 7)))
    story.begin()
    story.version(1, txn="x")
    take_back(story, 2)
    assert story.found == []
    assert story.lives.done[1, "t"] == 0


def test_version_whose_files_were_not_there_is_right_once_its_inverse_follows() -> None:
    change = Change("append", 0, 7)
    story = Story(operation("x", change))
    story.begin()
    gone, back = {"remove": {"path": "a.parquet"}}, {"add": {"path": "a.parquet"}}
    story.version(1, gone, {"add": {"path": "deleted.parquet"}}, txn="x")
    assert "not there" in story.found[0]
    take_back(story, 2, back, {"remove": {"path": "deleted.parquet"}})
    assert story.found == []
    assert story.lives.done[1, "t"] == 0


def test_files_of_a_version_may_go_only_if_its_client_takes_it_back_at_once() -> None:
    for seconds, is_found in ((1.0, False), (9 * DAY, True)):
        change = Change("insert", 0, 7)
        story = Story(operation("x", change))
        story.begin()
        insert(story, 1, change)
        story.write(1.0, "c-upkeep", f"{ROOT}/f1.parquet", None)
        assert "the newest within a day" in story.found[0]
        take_back(story, 2, {"remove": {"path": "f1.parquet"}}, at=seconds)
        assert bool(story.found) == is_found


def test_inverse_that_does_not_bring_back_what_its_version_removed_is_found() -> None:
    story = Story(operation("x", Change("append", 0, 7)))
    story.begin()
    story.version(1, {"remove": {"path": "a.parquet"}}, {"add": {"path": "deleted.parquet"}}, txn="x")
    take_back(story, 2, {"remove": {"path": "deleted.parquet"}})
    assert any("takes version 1 back" in problem for problem in story.found)


def test_entry_that_a_client_of_ours_deletes_is_found() -> None:
    story = Story()
    story.begin()
    story.version(1, txn="y")
    story.write(0.0, "c0", f"{ROOT}/_delta_log/{0:020d}.json", None)
    assert "deletes version 0" in story.found[0]


def test_file_that_goes_within_a_day_is_found_and_later_is_not() -> None:
    for hours, is_found in ((23, True), (25, False)):
        story = Story(operation("x"))
        story.begin()
        story.file("b", story.rows)
        gone, new = {"remove": {"path": "a.parquet"}}, {"add": {"path": "b.parquet"}}
        story.version(1, gone, new, at=0.0, txn="x")
        story.write(hours * 3600.0, "c-upkeep", f"{ROOT}/a.parquet", None)
        assert bool(story.found) == is_found


def test_file_that_a_tag_of_the_table_s_lake_names_never_goes() -> None:
    story = Story(operation("x"))
    story.begin()
    story.write(0.0, "c0", f"{ROOT}/_lakevilla/owner.json", b'{"lake": "L"}')
    head = {"lake": "L", "seq": 0, "tables": {}, "versions": {"t": 0}, "tags": {"kept": 0}}
    story.write(0.0, "c0", "lake/_lakevilla/global/HEAD.json", json.dumps(head).encode())
    story.file("b", story.rows)
    story.version(1, {"remove": {"path": "a.parquet"}}, {"add": {"path": "b.parquet"}}, txn="x")
    story.write(90 * DAY, "c-upkeep", f"{ROOT}/a.parquet", None)
    assert "the tag kept of lake" in story.found[0]


def test_rows_without_a_change_are_those_before_it() -> None:
    rows = as_rows(first_rows())
    changes = [Change("insert", 0, 5), Change("append", 1, 6), Change("append", 1, 7)]
    assert after(changes, rows) != rows
    assert without(changes, after(changes, rows)) == rows
