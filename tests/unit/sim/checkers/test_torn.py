"""Torn tables: only an outside client that built on what had to be rolled back excuses a transaction."""

import json
from dataclasses import replace
from typing import Any

from sim.checkers.atomicity import standing
from sim.checkers.history import Operation
from sim.checkers.isolation.cycles import Append
from sim.checkers.tables.commits import Commit, File
from sim.checkers.tables.torn import Torn, is_built_on, torn_parts
from sim.suites.tables import play
from sim.world.bucket import Bucket

TXN = "t1"
SEEDS = range(246, 400)
"""They begin a little before the one that tears a table."""


def table(root: str, *entries: list[dict[str, Any]]) -> dict[str, bytes]:
    """The log of a table."""
    return {
        f"{root}/_delta_log/{version:020d}.json": "\n".join(map(json.dumps, entry)).encode()
        for version, entry in enumerate(entries)
    }


FIRST = [{"protocol": {}}, {"metaData": {}}]


def ours(*actions: dict[str, Any], attempt: str = "a1") -> list[dict[str, Any]]:
    return [{"commitInfo": {"lakevilla": {"txn": TXN, "attempt": attempt}}}, *actions]


def added(path: str) -> dict[str, Any]:
    return {"add": {"path": path}}


def removed(path: str) -> dict[str, Any]:
    return {"remove": {"path": path}}


COMMIT = ours(added("new"))
INVERSE = ours(removed("new"), attempt="a1-inverse")
COMPACTED = [{"commitInfo": {}}, removed("new"), added("all")]


def told(objects: dict[str, bytes], *flagged: str, published: tuple[str, ...] = ()) -> Torn:
    """A run that left these objects, with a HEAD that calls tables torn and transactions published."""
    bucket = Bucket()
    for key, data in objects.items():
        bucket.put(0.0, "c", key, data)
    steps = [{"txn": txn, "published": True} for txn in published]
    head = {"lake": "l", "seq": 1, "tables": {}, "versions": {}, "torn": flagged, "steps": steps}
    bucket.put(0.0, "c", "_lakevilla/global/HEAD.json", json.dumps(head).encode())
    return Torn(bucket.writes)


def ended(outcome: Any = "torn") -> Operation:
    return Operation(3, "c", "lists", "multi", None, 4, 0.0, 1.0, outcome, txn=TXN, error="Corrupt: torn")


def test_table_on_which_an_outside_client_built_is_torn():
    assert torn_parts(table("a", FIRST, COMMIT, COMPACTED), TXN) == {"a": 1}


def test_table_where_an_outside_client_deleted_rows_of_unnamed_files_is_torn():
    before = Commit(3, adds={"new": File("new", "new")}, ours={"txn": TXN, "attempt": "a1"})
    vague = Commit(4, adds={"other#deletes": File("other", "other", ("deletes",))}, removes=["other"])
    assert not is_built_on(before, [vague])
    assert is_built_on(before, [replace(vague, shadows=frozenset({"new", "other"}))])
    assert not is_built_on(before, [replace(vague, shadows=frozenset({"other"}))])


def test_table_that_somebody_else_tore_is_no_part_of_a_published_transaction():
    """Seed 515519 of the tables: an unknown outcome was published, and another commit tore its table."""
    objects = table("a", FIRST, COMMIT, COMPACTED)
    assert told(objects, "a").parts(TXN) == {"a"}
    assert told(objects, "a", published=(TXN,)).parts(TXN) == set()


def test_table_that_was_taken_back_first_is_not_torn():
    assert torn_parts(table("a", FIRST, COMMIT, INVERSE, [{"commitInfo": {}}, added("x")]), TXN) == {}


def test_outside_append_tears_nothing():
    assert torn_parts(table("a", FIRST, COMMIT, [{"commitInfo": {}}, added("x")]), TXN) == {}


def test_one_of_us_who_builds_on_it_is_no_excuse():
    other = [{"commitInfo": {"lakevilla": {"txn": "t2", "attempt": "b"}}}, removed("new"), added("x")]
    objects = table("a", FIRST, COMMIT, other)
    assert torn_parts(objects, TXN) == {}
    assert "no table is torn" in told(objects).check([ended()])[0]


def test_torn_table_that_head_does_not_name_is_found():
    objects = table("a", FIRST, COMMIT, COMPACTED)
    assert "HEAD never said so" in told(objects).check([ended()])[0]
    assert told(objects, "a").check([ended()]) == []


def test_torn_transaction_stands_on_the_torn_table_and_nowhere_else():
    torn = told(table("a", FIRST, COMMIT, COMPACTED), "a")
    appends = [Append("a/0", 4), Append("b/0", 4)]
    alone = standing(ended(), appends, {"a/0": (4,), "b/0": ()}, torn)
    assert (alone.appends, alone.violations, alone.torn) == ([Append("a/0", 4)], [], True)
    assert "by half" in standing(ended(), appends, {"a/0": (4,), "b/0": (4,)}, torn).violations[0]
    assert "by half" in standing(ended("unknown"), appends, {"a/0": (), "b/0": (4,)}, torn).violations[0]


def test_commit_that_is_whole_is_not_torn_though_an_outside_client_built_on_it():
    objects, appends = table("a", FIRST, COMMIT, COMPACTED), [Append("a/0", 4), Append("b/0", 4)]
    whole = standing(ended("unknown"), appends, {"a/0": (4,), "b/0": (4,)}, told(objects, "a"))
    assert (whole.committed, whole.torn, whole.violations) == (True, False, [])
    alone = standing(ended("unknown"), appends[:1], {"a/0": (4,)}, told(objects))
    assert (alone.committed, alone.torn) == (True, False)


def test_files_that_came_back_may_be_compacted():
    inverse = ours(removed("new"), added("old"), attempt="a1-inverse")
    compacted = [{"commitInfo": {}}, removed("old"), added("all")]
    assert torn_parts(table("a", FIRST, COMMIT, inverse, compacted), TXN) == {}


def test_seeds_with_outside_writers_that_compact_tear_tables_and_show_no_violation():
    for seed in SEEDS:
        report = play(seed, compacting=1.0)
        assert report.violations == [], seed
        if any(op.error.startswith("Torn: transaction") for op in report.history.operations):
            return
    raise AssertionError(f"no table was torn in seeds {SEEDS}")
