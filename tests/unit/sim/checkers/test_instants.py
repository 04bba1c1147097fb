"""The global log as a serial history, against what transactions say that they saw."""

import json
from typing import Any

from sim.checkers.history import Operation
from sim.checkers.isolation.cycles import Append
from sim.checkers.isolation.instants import check_instant, check_tables, read_instants
from sim.checkers.isolation.looks import Deed, Look, as_txn, up_to_date
from sim.world.bucket import Bucket


def bucket() -> Bucket:
    """Two tables: `a` and `b` get a value each by one commit at 2.0, and then `a` one from outside at 4.0."""
    made = Bucket()
    for table in "ab":
        _version(made, 0.0, table, 0, "")
    _head(made, 0.5, 0, {"a": 0, "b": 0})
    _version(made, 1.9, "a", 1, ",1")
    _version(made, 1.9, "b", 1, ",1")
    _head(made, 2.0, 1, {"a": 1, "b": 1})
    _version(made, 4.0, "a", 2, ",1,2")
    return made


def _version(made: Bucket, at: float, table: str, version: int, items: str) -> None:
    made.put(at, "c", f"{table}/{version}.parquet", json.dumps([{"k": 0, "v": 0, "items": items}]).encode())
    actions: list[dict[str, Any]] = [{"protocol": {}}, {"metaData": {}}] if version == 0 else []
    actions += [{"remove": {"path": f"{version - 1}.parquet"}}] if version else []
    actions += [{"add": {"path": f"{version}.parquet"}}]
    data = "\n".join(map(json.dumps, actions)).encode()
    made.put(at, "c", f"{table}/_delta_log/{version:020d}.json", data)


def _head(made: Bucket, at: float, seq: int, versions: dict[str, int]) -> None:
    head = {"lake": "l", "seq": seq, "tables": {}, "versions": versions}
    made.put(at, "c", "_lakevilla/global/HEAD.json", json.dumps(head).encode())


def look(table: str, items: str) -> Look:
    return Look(table, ((0, 0, items),))


def operation(invoked: float, completed: float) -> Operation:
    return Operation(0, "c", "lists", "reader", None, 1, invoked, completed, "ok")


def deed(*steps: Append | Look, seq: int | None = None) -> Deed:
    return Deed(isolated=True, snapshot=False, across=True, steps=list(steps), seq=seq)


INSTANTS = read_instants(bucket().writes, "ab")


def test_look_at_one_instant_passes():
    for items in ("", ",1"):
        saw = deed(look("a", items), look("b", items))
        assert check_instant(INSTANTS, operation(1.0, 3.0), saw, committed=False) == []


def test_half_of_a_commit_is_found():
    saw = deed(look("a", ",1"), look("b", ""))
    assert "saw no instant" in check_instant(INSTANTS, operation(1.0, 3.0), saw, committed=False)[0]


def test_instant_from_before_it_began_is_found():
    saw = deed(look("a", ""), look("b", ""))
    assert "saw no instant" in check_instant(INSTANTS, operation(2.5, 3.0), saw, committed=False)[0]


def test_outside_version_that_no_entry_adopted_is_found():
    saw = deed(look("a", ",1,2"), look("b", ",1"))
    assert "saw no instant" in check_instant(INSTANTS, operation(1.0, 5.0), saw, committed=False)[0]


def test_commit_on_an_older_instant_than_its_entry_is_found():
    saw = deed(look("a", ""), Append("b/0", 3), seq=2)
    assert "saw another instant" in check_instant(INSTANTS, operation(1.0, 5.0), saw, committed=True)[0]
    current = deed(look("a", ",1"), Append("b/0", 3), seq=2)
    assert check_instant(INSTANTS, operation(1.0, 5.0), current, committed=True) == []


def test_without_isolation_each_table_is_seen_at_one_of_its_versions():
    seen = [look("a", ",1,2"), look("b", ",1")]
    assert check_tables(INSTANTS, operation(1.0, 5.0), seen) == []
    assert "no version of a" in check_tables(INSTANTS, operation(1.0, 3.0), seen)[0]


def test_row_that_was_not_there_is_an_empty_list_for_who_looked_at_all_rows():
    keys = {"a": {0, 1004}, "b": {0}}
    saw = as_txn(1, operation(1.0, 2.0), deed(look("a", ",1"), Look("b", (), key=0)), True, keys)
    assert [(step.key, step.values) for step in saw.steps] == [("a/0", (1,)), ("a/1004", ()), ("b/0", ())]


def test_what_a_failed_transaction_saw_counts_without_its_own_appends():
    tried = deed(Append("a/0", 7), Look("a", ((0, 0, ",1,7"),), own=True))
    assert as_txn(1, operation(1.0, 2.0), tried, False, {"a": {0}}).steps[0].values == (1,)


def test_transaction_is_up_to_date_on_later_tables_if_nothing_that_it_touched_has_moved() -> None:
    looks = [Look("a", ()), Look("b", ()), Look("c", ())]

    def tables(
        *steps: Look | Append, moved: str = "", committed: bool = False, snapshot: bool = False
    ) -> str:
        deed = Deed(True, snapshot, True, [*steps], frozenset({"a"}))
        return "".join(sorted(up_to_date(deed, committed, lambda table: table != moved)))

    assert tables(*looks) == "abc"
    assert tables(*looks, moved="b") == "ab"
    assert tables(*looks, moved="a") == "a"
    assert tables(*looks, Append("d/1", 7), moved="a", committed=True) == "abcd"
    assert tables(*looks, Append("d/1", 7), moved="a", committed=True, snapshot=True) == "a"
    assert tables(*looks, Append("d/1", 7), moved="a") == "a"
