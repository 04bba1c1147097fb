"""INSERT, UPDATE, DELETE and overwrite: what changes, which files are touched, and what is refused."""

from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakevilla.engines.local import copy_on_write
from lakevilla.engines.local.engine import LocalEngine
from lakevilla.errors import InvalidInput
from lakevilla.model import Counts
from lakevilla.predicates import Compare
from lakevilla.sql.parser import parse_expression
from tests.unit.engines.local.tables import NOW_MS, Database, Table, schema


def accounts(**options: Any) -> Table:
    """Three files: ids 1-2, 3-4, 5 with nulls."""
    table = Table(
        "accounts", schema(id=pa.int64(), owner=pa.string(), balance=pa.decimal128(10, 2)), **options
    )
    table.add([account(1, "ann", "10"), account(2, "bob", "20")])
    table.add([account(3, "cid", "30"), account(4, None, "40")])
    return table.add([account(5, "eve", None)])


def account(number: int, owner: str | None, balance: str | None) -> dict[str, Any]:
    return {"id": number, "owner": owner, "balance": None if balance is None else Decimal(balance)}


def balances(db: Database) -> dict[int, Any]:
    return dict(db.rows("SELECT id, CAST(balance AS INT) FROM accounts"))


def test_update_of_one_row_rewrites_its_file_alone() -> None:
    table = accounts()
    db, before = Database(table), set(table.files)
    done = db.run("UPDATE accounts SET balance = balance - 5 WHERE id = 3")
    assert done.counts == Counts(updated=1)
    assert (len(done.added), len(done.removed)) == (1, 1)
    assert len(before & set(table.files)) == 2
    assert table.asked == [Compare(("id",), "=", 3)]
    assert balances(db) == {1: 10, 2: 20, 3: 25, 4: 40, 5: None}


STRUCT = pa.struct([("a", pa.int64()), ("l", pa.list_(pa.string()))])


@pytest.mark.parametrize("where", ["id % 3 = 1", "id >= 0", "id IN (0, 4, 99)"])
def test_update_keeps_rows_in_place_and_gives_each_its_own_value(where: str) -> None:
    def row(number: int) -> dict[str, Any]:
        nested = None if number % 5 == 4 else {"a": number, "l": [f"x{number}", None]}
        return {"id": number, "s": f"s{number}" if number % 4 else None, "n": nested, "other": number / 8}

    table = Table("t", schema(id=pa.int64(), s=pa.string(), n=STRUCT, other=pa.float64()))
    table.add([row(number) for number in range(10)]).add([row(number) for number in range(10, 30)])
    table.add([row(99)])
    db = Database(table)
    hit = {"id % 3 = 1": lambda i: i % 3 == 1, "id >= 0": lambda _: True}.get(where, {0, 4, 99}.__contains__)
    # The value comes of a join, whose rows may come in any order.
    value = "(SELECT max(concat('new', u.id)) FROM t AS u WHERE u.id = t.id)"
    done = db.run(f"UPDATE t SET s = {value}, n = struct(-id AS a, array(s) AS l) WHERE {where}")
    expected = [row(number) for number in (*range(30), 99)]
    for one in expected:
        if hit(one["id"]):
            one["n"] = {"a": -one["id"], "l": [one["s"]]}
            one["s"] = f"new{one['id']}"
    assert done.counts.updated == sum(hit(one["id"]) for one in expected)
    found = {one[0]: one[1:] for one in db.rows("SELECT id, s, n.a, n.l, other FROM t")}
    for one in expected:
        nested = one["n"] or {"a": None, "l": None}
        assert found.pop(one["id"]) == (one["s"], nested["a"], nested["l"], one["other"])
    assert not found


@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.string(), pa.list_(pa.int64()), pa.struct([("a", pa.int64())])], ids=str
)
def test_new_values_go_to_their_rows_whatever_the_pieces_of_a_column(kind: pa.DataType) -> None:
    def values(numbers: list[int]) -> list[Any]:
        if pa.types.is_struct(kind):
            return [{"a": number} for number in numbers]
        if pa.types.is_list(kind):
            return [[number, None] for number in numbers]
        return [str(number) if pa.types.is_string(kind) else number for number in numbers]

    old = pa.chunked_array([pa.array(values(part), kind) for part in ([0, 1, 2], [], [3, 4], [5, 6], [7])])
    flags = np.array([False, True, False, True, True, False, False, True])
    new = pa.chunked_array([pa.array(values(part), kind) for part in ([10, 13], [14, 17])])
    found = copy_on_write._replaced(old, flags, new)
    assert found.to_pylist() == values([0, 10, 2, 13, 14, 5, 6, 17])


def test_delete_leaves_the_other_rows_of_files_with_deleted_ones_as_they_are() -> None:
    db = Database(accounts())
    assert db.run("DELETE FROM accounts WHERE balance > 15 AND owner IS NOT NULL").counts.deleted == 2
    assert balances(db) == {1: 10, 4: 40, 5: None}


def test_update_without_a_match_writes_nothing() -> None:
    db = Database(accounts())
    done = db.run("UPDATE accounts SET balance = 0 WHERE owner = 'nobody'")
    assert (done.added, done.removed, done.counts) == ((), (), Counts())


def test_update_of_several_files_puts_their_rows_together() -> None:
    table = accounts()
    done = Database(table).run("UPDATE accounts SET owner = upper(owner)")
    assert (len(done.added), len(done.removed), done.counts.updated) == (1, 3, 5)


def test_update_reads_old_values_on_the_right_side() -> None:
    table = Table("t", schema(a=pa.int32(), b=pa.int32())).add([{"a": 1, "b": 2}])
    db = Database(table)
    db.run("UPDATE t SET a = b, b = a")
    assert db.rows("SELECT a, b FROM t") == [(2, 1)]


def test_update_with_a_null_condition_leaves_the_row() -> None:
    db = Database(accounts())
    done = db.run("UPDATE accounts SET balance = 0 WHERE owner <> 'ann'")
    assert done.counts == Counts(updated=3)
    assert balances(db)[4] == 40


def test_update_computes_new_values_only_where_the_condition_holds() -> None:
    db = Database(accounts())
    db.run("UPDATE accounts SET balance = 100 / (id - 3) WHERE id <> 3")
    assert balances(db)[3] == 30


def test_update_with_subqueries_sees_other_tables_and_the_target() -> None:
    other = Table("vip", schema(id=pa.int64())).add([{"id": 1}, {"id": 5}])
    db = Database(accounts(), other)
    done = db.run(
        "UPDATE accounts SET balance = (SELECT max(balance) FROM accounts) WHERE id IN (SELECT id FROM vip)"
    )
    assert done.counts == Counts(updated=2)
    assert balances(db) == {1: 40, 2: 20, 3: 30, 4: 40, 5: 40}


def test_correlated_subquery_reaches_the_target_by_its_name() -> None:
    other = Table("rates", schema(id=pa.int64(), rate=pa.int32())).add([{"id": 2, "rate": 3}])
    db = Database(accounts(), other)
    db.run("UPDATE accounts SET balance = (SELECT rate FROM rates r WHERE r.id = accounts.id) WHERE id < 3")
    assert balances(db) == {1: None, 2: 3, 3: 30, 4: 40, 5: None}


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE accounts SET nope = 1",
        "UPDATE accounts SET id = 'x'",
        "UPDATE accounts SET id = true",
        "UPDATE accounts SET balance = 123456789012",
        "UPDATE accounts SET id = 1 WHERE nope",
        "UPDATE accounts SET id = 1, ID = 2",
        "UPDATE accounts SET id = sum(id)",
        "DELETE FROM accounts WHERE owner",
        "INSERT INTO accounts VALUES (1, 'x')",
        "INSERT INTO accounts VALUES ('1', 'x', 1)",
        "INSERT INTO accounts (id, id) VALUES (1, 2)",
        "INSERT INTO accounts (nope) VALUES (1)",
        "INSERT INTO accounts VALUES (99999999999999999999, 'x', 1)",
    ],
)
def test_change_that_spark_refuses_is_invalid_and_leaves_no_file(text: str) -> None:
    table = accounts()
    before = {meta.key for meta in table.store.list("")}
    with pytest.raises(InvalidInput):
        Database(table).run(text)
    assert {meta.key for meta in table.store.list("")} == before


def test_delete_of_some_rows_keeps_the_others() -> None:
    table = accounts()
    db = Database(table)
    done = db.run("DELETE FROM accounts WHERE id IN (1, 4)")
    assert done.counts == Counts(deleted=2)
    assert (len(done.added), len(done.removed)) == (1, 2)
    assert set(balances(db)) == {2, 3, 5}


def test_delete_that_bounds_prove_to_be_whole_files_reads_nothing() -> None:
    table = accounts()
    done = Database(table).run("DELETE FROM accounts WHERE id >= 3")
    assert (len(done.added), len(done.removed), done.counts) == (0, 2, Counts(deleted=3))
    assert table.opened == []


def test_delete_without_a_condition_removes_all_files_unread() -> None:
    table = accounts()
    done = Database(table).run("DELETE FROM accounts")
    assert (len(done.removed), done.counts, table.opened) == (3, Counts(deleted=5), [])


def test_delete_by_a_nullable_column_does_not_take_null_rows_along() -> None:
    table = accounts()
    db = Database(table)
    done = db.run("DELETE FROM accounts WHERE owner >= 'a'")
    assert done.counts == Counts(deleted=4)
    assert db.rows("SELECT id FROM accounts") == [(4,)]


def test_delete_in_a_partitioned_table_goes_by_partition_values() -> None:
    table = Table("t", schema(day=pa.date32(), v=pa.int32()), ("day",))
    table.add([{"day": date(2024, 1, d), "v": v} for d in (1, 2) for v in (1, 2)])
    db = Database(table)
    done = db.run("DELETE FROM t WHERE day = '2024-01-01'")
    assert (len(done.removed), len(done.added), table.opened) == (1, 0, [])
    assert done.counts == Counts(deleted=2)
    db.run("UPDATE t SET day = DATE '2024-01-05' WHERE v = 2")
    assert sorted(db.rows("SELECT day, v FROM t")) == [(date(2024, 1, 2), 1), (date(2024, 1, 5), 2)]


def test_delete_of_nan_follows_spark() -> None:
    table = Table("t", schema(x=pa.float64())).add([{"x": 1.0}, {"x": float("nan")}, {"x": None}])
    db = Database(table)
    assert db.run("DELETE FROM t WHERE x > 5").counts == Counts(deleted=1)
    assert sorted(db.rows("SELECT x FROM t"), key=repr) == [(1.0,), (None,)]


def test_insert_casts_as_store_assignment_does() -> None:
    table = Table("t", schema(a=pa.int8(), b=pa.string(), c=pa.float32(), d=pa.timestamp("us", "UTC")))
    db = Database(table)
    done = db.run("INSERT INTO t (d, c, b, a) SELECT DATE '2024-01-01', 1, 7, 2.9")
    assert done.counts == Counts(inserted=1)
    assert db.rows("SELECT a, b, c, CAST(d AS STRING) FROM t") == [(2, "7", 1.0, "2024-01-01 00:00:00")]
    with pytest.raises(InvalidInput):
        db.run("INSERT INTO t (a) SELECT 300")


def test_insert_leaves_missing_columns_null_and_takes_selects() -> None:
    db = Database(accounts())
    db.run("INSERT INTO accounts (id) SELECT id + 10 FROM accounts WHERE id < 3")
    assert db.rows("SELECT id, owner FROM accounts WHERE id > 5 ORDER BY id") == [(11, None), (12, None)]


def test_check_constraint_stops_new_rows_that_violate_it_or_make_it_null() -> None:
    table = accounts(checks={"positive": "balance > 0"})
    db = Database(table)
    for text in (
        "INSERT INTO accounts VALUES (9, 'x', -1)",
        "INSERT INTO accounts VALUES (9, 'x', NULL)",
        "UPDATE accounts SET balance = balance - 15 WHERE id = 1",
    ):
        with pytest.raises(InvalidInput) as caught:
            db.run(text)
        assert caught.value.rule == "positive"
    with pytest.raises(InvalidInput) as caught:
        db.engine.append(table.target, [{"id": 9, "balance": Decimal(0)}])
    assert caught.value.rule == "positive"
    db.run("INSERT INTO accounts VALUES (9, 'x', 1)")
    # Row 5 violates the constraint already and is only copied.
    db.run("UPDATE accounts SET owner = 'new' WHERE id = 9")
    assert balances(db)[9] == 1


def test_not_null_is_enforced() -> None:
    table = Table("t", pa.schema([pa.field("a", pa.int32(), nullable=False), pa.field("b", pa.int32())]))
    db = Database(table)
    for text in ("INSERT INTO t VALUES (NULL, 1)", "INSERT INTO t (b) VALUES (1)"):
        with pytest.raises(InvalidInput) as caught:
            db.run(text)
        assert caught.value.rule == "NOT NULL"


def test_overwrite_replaces_what_matches_and_refuses_other_rows() -> None:
    table = accounts()
    engine = LocalEngine(Database(table).engine._environment)
    where = parse_expression("id >= 3")
    with pytest.raises(InvalidInput, match="does not satisfy"):
        engine.overwrite(table.target, table.source, [{"id": 1}], where, NOW_MS)
    done = table.apply(engine.overwrite(table.target, table.source, [{"id": 7}, {"id": 8}], where, NOW_MS))
    assert done.counts == Counts(inserted=2, deleted=3)
    assert sorted(Database(table).rows("SELECT id FROM accounts")) == [(1,), (2,), (7,), (8,)]
    table.apply(engine.overwrite(table.target, table.source, [{"id": 1}], None, NOW_MS))
    assert Database(table).rows("SELECT id, owner FROM accounts") == [(1, None)]


def test_nested_columns_survive_a_rewrite() -> None:
    nested = schema(
        id=pa.int32(),
        s=pa.struct([("at", pa.timestamp("us", "UTC")), ("l", pa.list_(pa.field("element", pa.int32())))]),
        m=pa.map_(pa.string(), pa.float64()),
    )
    rows = [{"id": 1, "s": {"at": None, "l": [1, None]}, "m": [("k", 1.5)]}, {"id": 2, "s": None, "m": None}]
    table = Table("t", nested).add(rows)
    db = Database(table)
    db.run("UPDATE t SET id = 3 WHERE id = 2")
    found = db.run("SELECT * FROM t ORDER BY id").toArrow().to_pylist()
    assert found == [rows[0], {**rows[1], "id": 3}]
