"""The judges of logs and histories, on hand-made ones: each kind of wrong is found, right ones pass."""

import ast
import json
from pathlib import Path
from typing import Any

from sim import checkers
from sim.checkers.history import History, Operation
from sim.checkers.lake.published import check_published
from sim.checkers.lake.registry import check_registry, read_registry
from sim.checkers.tables.replay import check_replay
from sim.checkers.tables.versions import table_versions
from sim.world.bucket import Write

FIRST = [{"protocol": {"minReaderVersion": 1}}, {"metaData": {"id": "t"}}]
HEAD = "_lakevilla/global/HEAD.json"


def entry(version: int, *actions: dict[str, Any], at: float = 0.0) -> Write:
    data = "\n".join(json.dumps(action) for action in actions).encode()
    return Write(at or float(version), "a", "create", f"t/_delta_log/{version:020d}.json", data)


def data(path: str, *rows: dict[str, Any]) -> Write:
    return Write(0.0, "a", "put", f"t/{path}", json.dumps(rows).encode())


def add(path: str) -> dict[str, Any]:
    return {"add": {"path": path}}


def remove(path: str) -> dict[str, Any]:
    return {"remove": {"path": path}}


def slot(seq: int, kind: str, name: str, at: float = 0.0, **more: str) -> Write:
    change = {"kind": kind, "name": name, "location": name, "format": "delta", **more}
    record = json.dumps({"seq": seq, "change": change}).encode()
    return Write(at, "a", "create", f"_lakevilla/global/log/{seq:020d}.json", record)


def head(seq: int, *names: str, at: float = 0.0) -> Write:
    tables = {name: {"location": name, "format": "delta"} for name in names}
    return Write(at, "a", "replace", HEAD, json.dumps({"lake": "l", "seq": seq, "tables": tables}).encode())


GOOD = [entry(0, *FIRST), data("f1"), entry(1, add("f1")), data("f2"), entry(2, remove("f1"), add("f2"))]


def test_valid_log_passes():
    assert check_published(GOOD) == []


def test_rewritten_entry_is_found():
    assert "changes" in check_published([*GOOD, entry(2, add("f2"))])[0]


def test_deleted_entry_is_found():
    gone = Write(9.0, "a", "delete", GOOD[2].key, None)
    assert "changes" in check_published([*GOOD, gone])[0]


def test_entry_repeated_with_equal_bytes_passes():
    assert check_published([*GOOD, GOOD[-1]]) == []


def test_gap_in_versions_is_found():
    assert "follows version 2" in check_published([*GOOD, entry(4)])[0]


def test_remove_of_a_dead_file_is_found():
    assert "not live" in check_published([*GOOD, entry(3, remove("f1"))])[0]


def test_file_added_while_live_is_found():
    assert "is live" in check_published([*GOOD, entry(3, add("f2"))])[0]


def test_entry_that_names_a_missing_file_is_found():
    assert "not there" in check_published([*GOOD, entry(3, add("f3"))])[0]


def test_first_entry_without_metadata_is_found():
    assert "lacks" in check_published([entry(0)])[0]


def test_data_file_that_changes_after_its_commit_is_found():
    assert "changes t/f2" in check_published([*GOOD, data("f2", {"k": 1})])[0]


def test_valid_global_log_passes():
    writes = [head(0), slot(1, "create", "t"), *GOOD, head(1, "t"), slot(2, "rename", "t", to="y")]
    last = Write(1.0, "b", "replace", HEAD, head(2, "y").data)
    renamed = last.data.replace(b'"location": "y"', b'"location": "t"') if last.data else b""
    assert check_published([*writes, Write(1.0, "b", "replace", HEAD, renamed)]) == []


def test_head_that_skips_or_goes_back_is_found():
    writes = [head(0), slot(1, "create", "t"), *GOOD, head(1, "t")]
    assert "from seq 1 to 0" in check_published([*writes, head(0)])[0]
    assert "from seq 0 to 2" in check_published([head(0), head(2)])[0]


def test_head_that_does_not_follow_from_its_slot_is_found():
    assert "does not follow" in check_published([head(0), slot(1, "create", "x"), head(1, "y")])[0]


def test_head_that_names_a_table_before_it_is_there_is_found():
    assert "no table yet" in check_published([head(0), slot(1, "create", "x"), head(1, "x")])[0]


def test_commit_to_a_dropped_table_is_found():
    last = entry(3, {"commitInfo": {"lakevilla": {"notice": {"dropped": True}}}})
    ours, legacy = entry(4, {"commitInfo": {"lakevilla": {"attempt": "a"}}}), entry(4, {"commitInfo": {}})
    assert "dropped" in check_published([*GOOD, last, ours])[0]
    assert check_published([*GOOD, last, legacy]) == []


def test_slot_out_of_turn_is_found():
    assert "while HEAD is at 0" in check_published([head(0), slot(1, "create", "x"), slot(2, "drop", "x")])[0]


# Histories: versions 1 and 2 append the rows of operations 0 and 1.

ROW1, ROW2 = {"op": 1, "part": 0}, {"op": 2, "part": 0}
APPENDS = [entry(0, *FIRST), data("f1", ROW1), entry(1, add("f1")), data("f2", ROW2), entry(2, add("f2"))]


def history(*outcomes: str) -> list[Operation]:
    made = History()
    for number, outcome in enumerate(outcomes):
        op = made.begin("a", "t", "append", None, [{"op": number + 1, "part": 0}], 0.5)
        op.completed, op.outcome = 5.0, outcome  # type: ignore[assignment]
    return made.operations


def judge(writes: list[Write], operations: list[Operation]) -> list[str]:
    return check_replay(table_versions(writes, "t"), operations)


def test_acknowledged_and_unknown_operations_that_are_present_pass():
    assert judge(APPENDS, history("ok", "unknown")) == []


def test_unknown_operation_that_is_absent_passes():
    assert judge(APPENDS, history("ok", "ok", "unknown")) == []


def test_acknowledged_operation_that_is_absent_is_found():
    assert "in no version" in judge(APPENDS, history("ok", "ok", "ok"))[0]


def test_failed_operation_that_is_present_is_found():
    assert "failed" in judge(APPENDS, history("ok", "failed"))[0]


def test_version_of_nobody_is_found():
    assert "of no operation" in judge(APPENDS, history("ok"))[0]


def test_lost_update_is_found():
    """Both increments were computed on v = 0."""
    writes = [
        *(entry(0, *FIRST), data("f0", {"k": 1, "v": 0}), entry(1, add("f0"))),
        *(data("f1", {"k": 1, "v": 1}), entry(2, remove("f0"), add("f1"))),
        *(data("f2", {"k": 1, "v": 2}), entry(3, remove("f1"), add("f2"))),
    ]
    made = History()
    for action, value in (("append", [{"k": 1, "v": 0}]), ("increment", 1), ("increment", 2)):
        op = made.begin("a", "t", action, 1, value, 1.5 if action == "increment" else 0.5)
        op.completed, op.outcome = 9.0, "ok"
    assert judge(writes, made.operations) == [
        "version 3 is the effect of no operation on version 2",
        "operation 2 (a: increment 1 2 on t) was acknowledged and is in no version",
    ]


def test_read_of_an_old_version_is_found():
    made = History()
    op = made.begin("a", "t", "read", None, None, 2.5)
    op.completed, op.outcome, op.result = 2.6, "ok", [ROW1]
    assert "stale version 1" in judge(APPENDS, [*history("ok", "ok"), op])[0]
    op.result = [ROW1, ROW2]
    assert judge(APPENDS, [*history("ok", "ok"), op]) == []


def test_later_operation_with_a_smaller_version_is_found():
    first, second = history("ok", "ok")
    second.completed, first.invoked = 0.6, 0.7
    assert any("began after" in violation for violation in judge(APPENDS, [first, second]))


def registry_op(action: str, key: str, value: Any, outcome: str, **more: Any) -> Operation:
    op = Operation(0, "a", "", action, key, value, 0.0, 10.0)
    op.outcome = outcome  # type: ignore[assignment]
    op.result = more.get("result")
    return op


def test_registry_change_without_a_slot_is_found():
    registry = read_registry([head(0), slot(1, "create", "x", at=1.0, first="tag_7"), head(1, "x", at=2.0)])
    assert check_registry(registry, [registry_op("create", "x", 7, "ok")]) == []
    assert "no slot" in check_registry(registry, [registry_op("create", "x", 8, "ok")])[0]


def test_registry_change_with_two_slots_is_found():
    registry = read_registry([head(0), slot(1, "rename", "x", to="y"), slot(2, "rename", "x", to="y")])
    assert "repeats" in check_registry(registry, [registry_op("rename", "x", "y", "ok")])[0]


def test_listing_without_a_table_that_was_always_there_is_found():
    registry = read_registry([head(0), slot(1, "create", "x", first=""), head(1, "x")])
    assert check_registry(registry, [registry_op("tables", "", None, "ok", result=["x"])]) == []
    missing, early = check_registry(registry, [registry_op("tables", "", None, "ok", result=["z"])])
    assert "misses ['x']" in missing
    assert "shows ['z']" in early


def test_checkers_do_not_import_what_they_judge():
    for path in Path(checkers.__file__).parent.rglob("*.py"):
        assert "lakevilla" not in {name.partition(".")[0] for name in imported(path)}, path.name


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names
