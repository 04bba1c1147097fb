"""Views of the lake: names for queries, part of the lake's instants and of transactions."""

import json
from pathlib import Path
from typing import Any

import pytest

import lakevilla as lv
from lakevilla.store import keys
from lakevilla.store.records import decode

FEATURES = [lv.R | lv.CT | lv.I, lv.R | lv.CT, lv.R, lv.Features.NONE]


@pytest.fixture
def lake() -> lv.Lake:
    lake = lv.Lake("memory://", engine="local")
    lake.sql("CREATE TABLE orders (id BIGINT, name STRING, price INT)")
    lake.sql("INSERT INTO orders VALUES (1, 'a', 10), (2, 'b', 20), (3, 'c', 30)")
    return lake


def rows(lake: Any, text: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in lake.sql(text).collect())


@pytest.mark.parametrize("features", FEATURES)
def test_view_is_read_wherever_a_table_is(features: lv.Features) -> None:
    lake = lv.Lake("memory://", engine="local", features=features)
    lake.sql("CREATE TABLE orders (id BIGINT, name STRING)")
    lake.sql("INSERT INTO orders VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    lake.sql("CREATE VIEW dear AS SELECT id, name FROM orders WHERE id > 1")
    lake.sql("CREATE VIEW dearest (i) AS SELECT max(id) FROM dear")
    assert rows(lake, "SELECT * FROM dear") == [(2, "b"), (3, "c")]
    assert rows(lake, "SELECT d.name FROM dear d JOIN dearest ON d.id = i") == [("c",)]
    assert rows(lake, "SELECT id FROM orders WHERE id IN (SELECT i FROM dearest)") == [(3,)]
    assert sorted(map(tuple, lake.read("dear").collect())) == [(2, "b"), (3, "c")]
    assert lake.sql("UPDATE orders SET name = 'z' WHERE id = (SELECT i FROM dearest)").updated == 1
    assert lake.sql("DELETE FROM orders WHERE id IN (SELECT id FROM dear WHERE name = 'b')").deleted == 1
    lake.sql("CREATE TABLE copy AS SELECT * FROM dear")
    lake.sql("INSERT INTO copy SELECT * FROM dear")
    merged = lake.sql("MERGE INTO copy t USING dear s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = 'm'")
    assert merged.updated == 2
    lake.sql("DROP VIEW dearest")
    assert list(lake.views()) == ["dear"]


def test_names_in_a_view_mean_the_lakes_tables(lake: lv.Lake) -> None:
    lake.sql("CREATE VIEW v AS SELECT id FROM orders")
    assert rows(lake, "WITH orders AS (SELECT 9 AS id) SELECT v.id FROM v, orders WHERE orders.id = 9") == [
        (1,),
        (2,),
        (3,),
    ]
    frame = [{"id": 7}]
    found = lake.sql("SELECT v.id AS a, o.id AS b FROM v, orders o", views={"orders": frame}).collect()
    assert sorted(map(tuple, found)) == [(1, 7), (2, 7), (3, 7)]


def test_view_keeps_its_columns_when_its_table_gets_more(lake: lv.Lake) -> None:
    lake.sql("CREATE VIEW everything (k COMMENT 'the key', n, p) COMMENT 'all' AS SELECT * FROM orders")
    lake.sql("ALTER TABLE orders ADD COLUMNS (more INT)")
    assert lake.sql("SELECT * FROM everything").columns == ["k", "n", "p"]
    assert [tuple(row) for row in lake.sql("DESCRIBE everything").collect()] == [
        ("k", "bigint", True, "the key"),
        ("n", "string", True, None),
        ("p", "int", True, None),
    ]
    text = lake.sql("SHOW CREATE TABLE everything").collect()[0][0]
    lake.sql("DROP VIEW everything")
    lake.sql(text.replace("SELECT * FROM", "SELECT id, name, price FROM"))
    assert lake.sql("SHOW CREATE VIEW everything").collect()[0][0].startswith("CREATE VIEW everything (k")


def test_view_in_a_schema_is_reached_by_its_parts(lake: lv.Lake) -> None:
    lake.sql("CREATE VIEW sales.all_orders AS SELECT * FROM orders")
    assert rows(lake, "SELECT sales.all_orders.id FROM sales.all_orders WHERE all_orders.id = 2") == [(2,)]
    assert rows(lake, "SELECT x.id FROM Sales.All_Orders x WHERE x.id = 2") == [(2,)]


def test_parameters_of_a_view_are_bound_when_it_is_made(lake: lv.Lake) -> None:
    lake.sql("CREATE VIEW one AS SELECT name FROM orders WHERE id = :id AND name <> :no", id=2, no="it's")
    assert rows(lake, "SELECT * FROM one") == [("b",)]


def test_views_are_part_of_transactions(lake: lv.Lake) -> None:
    with lake.transaction() as tx:
        tx.sql("CREATE TABLE log (id INT)")
        tx.sql("CREATE VIEW last AS SELECT max(id) AS id FROM log")
        tx.savepoint("a")
        tx.sql("DROP VIEW last")
        tx.rollback_to("a")
        tx.sql("INSERT INTO log VALUES (5)")
        assert rows(tx, "SELECT * FROM last") == [(5,)]
        assert "last" not in lake.views()
    assert rows(lake, "SELECT * FROM last") == [(5,)]
    with lake.transaction() as tx:
        tx.sql("DROP VIEW last")
        tx.sql("CREATE TABLE last (id INT)")
        tx.sql("INSERT INTO last VALUES (1)")
    assert rows(lake, "SELECT * FROM last") == [(1,)]
    with pytest.raises(RuntimeError), lake.transaction() as tx:
        tx.sql("CREATE VIEW gone AS SELECT 1 AS x")
        raise RuntimeError
    assert lake.views() == {}


@pytest.mark.parametrize("features", [lv.R | lv.CT | lv.I, lv.R | lv.CT, lv.CT, lv.CT | lv.I])
def test_view_that_changed_since_it_was_read_is_a_conflict(lake: lv.Lake, features: lv.Features) -> None:
    lake.sql("CREATE VIEW v AS SELECT id FROM orders")
    tx = lake.transaction(features)
    assert len(rows(tx, "SELECT * FROM v")) == 3
    tx.sql("UPDATE orders SET price = 0 WHERE id = 1")
    lake.sql("CREATE OR REPLACE VIEW v AS SELECT id FROM orders WHERE id > 1")
    with pytest.raises(lv.Conflict, match="view 'v' was created, replaced or dropped by another client"):
        tx.commit()
    assert rows(lake, "SELECT price FROM orders WHERE id = 1") == [(10,)]


def test_snapshot_isolation_lets_a_view_change_that_was_only_read(lake: lv.Lake) -> None:
    lake.sql("CREATE VIEW v AS SELECT id FROM orders")
    with lake.transaction(isolation="snapshot") as tx:
        rows(tx, "SELECT * FROM v")
        tx.sql("UPDATE orders SET price = 0 WHERE id = 1")
        lake.sql("CREATE OR REPLACE VIEW v AS SELECT 1 AS id")
        assert len(rows(tx, "SELECT * FROM v")) == 3
    assert rows(lake, "SELECT * FROM v") == [(1,)]


def test_view_and_its_table_are_seen_at_one_instant(lake: lv.Lake) -> None:
    """A table that is pinned after the view brings no later instant, in which the view is another one."""
    lake.sql("CREATE VIEW v AS SELECT id FROM orders")
    other = lv.Lake("memory://", engine="local", store=lake._store)
    with lake.transaction() as tx:
        tx.sql("SHOW CREATE VIEW v").collect()
        other.sql("CREATE OR REPLACE VIEW v AS SELECT 10 * id AS id FROM orders")
        with other.transaction(lv.R) as outside:
            outside.sql("DELETE FROM orders WHERE id = 1")
        assert rows(tx, "SELECT * FROM v") == [(1,), (2,), (3,)]
    assert rows(lake, "SELECT * FROM v") == [(20,), (30,)]


def test_two_transactions_that_make_one_view_do_not_both_commit(lake: lv.Lake) -> None:
    first, second = lake.transaction(), lake.transaction()
    first.sql("CREATE VIEW v AS SELECT 1 AS x")
    second.sql("CREATE VIEW v AS SELECT 2 AS x")
    first.commit()
    with pytest.raises(lv.Conflict):
        second.commit()
    assert rows(lake, "SELECT * FROM v") == [(1,)]
    third, table = lake.transaction(), lake.transaction()
    third.sql("CREATE VIEW w AS SELECT 1 AS x")
    table.sql("CREATE TABLE w (id INT)")
    third.commit()
    with pytest.raises(lv.Conflict, match="view 'w' already exists"):
        table.commit()


def test_client_that_knows_an_older_registry_sees_new_views(lake: lv.Lake) -> None:
    other = lv.Lake("memory://", engine="local", store=lake._store, features=lv.R)
    assert len(rows(other, "SELECT * FROM orders")) == 3
    lake.sql("CREATE VIEW v AS SELECT id FROM orders")
    assert len(rows(other, "SELECT * FROM v")) == 3
    lake.sql("CREATE OR REPLACE VIEW v AS SELECT id FROM orders WHERE id = 1")
    assert rows(other, "SELECT * FROM v") == [(1,)]
    lake.sql("DROP VIEW v")
    with pytest.raises(lv.InvalidInput, match="unknown table 'v'"):
        other.sql("SELECT * FROM v")


def test_earlier_instants_have_their_views(lake: lv.Lake) -> None:
    lake.sql("CREATE VIEW v AS SELECT id FROM orders")
    lake.sql("CREATE VIEW w AS SELECT id FROM orders")
    lake.tag("then")
    lake.sql("CREATE OR REPLACE VIEW v AS SELECT 1 AS id")
    lake.sql("DROP VIEW w")
    lake.sql("CREATE VIEW later AS SELECT 1 AS one")
    lake.delete("orders")
    then = lake.at(tag="then")
    assert len(rows(then, "SELECT * FROM v")) == 3
    assert sorted(then.views()) == ["v", "w"]
    assert [row[0] for row in then.sql("SHOW TABLES").collect()] == ["orders", "v", "w"]
    with lake.session() as session:
        assert len(session.sql("SELECT * FROM w AT (TAG => 'then')").collect()) == 3
        report = "\n".join(row[0] for row in session.sql("RESTORE LAKE TO TAG 'then'").collect())
    assert "v: the view is as it was" in report
    assert "later: skipped" in report
    assert len(rows(lake, "SELECT * FROM w")) == 3
    assert sorted(lake.views()) == ["later", "v", "w"]
    lake.sql("DROP VIEW w")
    assert lake.restore(tag="then", tables=["w"]).views == ("w",)
    lake.sql("DROP VIEW w")
    lake.create("w", [{"id": 1}])
    assert "a table has its name now" in lake.restore(tag="then").skipped["w"]


MISTAKES = [
    ("CREATE VIEW orders AS SELECT 1 AS x", "table 'orders' already exists"),
    ("CREATE VIEW v AS SELECT 2 AS x", "view 'v' already exists"),
    ("CREATE TABLE v (id INT)", "view 'v' already exists"),
    ("CREATE OR REPLACE TABLE v (id INT)", "view 'v' already exists"),
    ("ALTER TABLE orders RENAME TO v", "view 'v' already exists"),
    ("INSERT INTO v VALUES (1)", "'v' is a view and cannot be changed"),
    ("DELETE FROM v", "'v' is a view and cannot be changed"),
    ("ALTER TABLE v RENAME TO w", "'v' is a view and cannot be renamed"),
    ("DROP TABLE v", "use DROP VIEW"),
    ("DROP VIEW orders", "use DROP TABLE"),
    ("DROP VIEW vv", "unknown view 'vv'"),
    ("SELECT * FROM v VERSION AS OF 1", "has no earlier versions"),
    ("DESCRIBE HISTORY v", "has no history"),
    ("CREATE OR REPLACE VIEW v AS SELECT * FROM w", "view 'v' reads itself"),
    ("CREATE VIEW x AS SELECT id, id FROM orders", "two columns 'id'"),
    ("CREATE VIEW x (a) AS SELECT id, name FROM orders", "names 1 columns, and its query has 2"),
    ("CREATE VIEW x AS SELECT nme FROM orders", "did you mean 'name'?"),
    ("CREATE VIEW x AS DELETE FROM orders", "a view needs a query"),
    ("CREATE VIEW information_schema.x AS SELECT 1 AS a", "the lake's own"),
    ("CREATE MATERIALIZED VIEW x AS SELECT 1 AS a", "MATERIALIZED views are not supported"),
    ("CREATE TEMP VIEW x AS SELECT 1 AS a", "belongs to a session"),
]


@pytest.mark.parametrize(("text", "words"), MISTAKES, ids=[text for text, _ in MISTAKES])
def test_mistake_with_views_says_what_to_do(lake: lv.Lake, text: str, words: str) -> None:
    lake.sql("CREATE VIEW v AS SELECT 1 AS x")
    lake.sql("CREATE VIEW w AS SELECT x FROM v")
    with pytest.raises((lv.InvalidInput, lv.Unsupported)) as error:
        lake.sql(text)
    assert words in str(error.value)
    assert sorted(lake.views()) == ["v", "w"]


def test_if_exists_and_if_not_exists_are_quiet(lake: lv.Lake) -> None:
    lake.sql("CREATE VIEW IF NOT EXISTS v AS SELECT 1 AS x")
    lake.sql("CREATE VIEW IF NOT EXISTS v AS SELECT 2 AS x")
    assert rows(lake, "SELECT * FROM v") == [(1,)]
    lake.sql("DROP VIEW IF EXISTS v")
    lake.sql("DROP VIEW IF EXISTS v")
    assert lake.views() == {}


def test_registry_with_views_is_refused_by_releases_without(tmp_path: Path) -> None:
    """They would write HEAD anew, and leave the views out."""
    lake = lv.Lake(tmp_path, engine="local", storage_options={"fsync": "false"})
    lake.create("t", [{"id": 1}])
    assert json.loads((tmp_path / keys.HEAD).read_text())["format"] == 2
    lake.sql("CREATE VIEW v AS SELECT id FROM t")
    lake.sync()
    head = (tmp_path / keys.HEAD).read_bytes()
    assert json.loads(head)["format"] == 5
    with pytest.raises(lv.Unsupported):
        decode(head, "HEAD", 4)
    entries = (tmp_path / keys.GLOBAL_LOG).glob("0*.json")
    formats = {json.loads(entry.read_text())["format"] for entry in entries}
    assert formats == {1, 3}


def test_resumed_transaction_has_its_views(lake: lv.Lake) -> None:
    lake.sql("CREATE VIEW v AS SELECT id FROM orders")
    tx = lake.transaction()
    tx.sql("CREATE VIEW w AS SELECT id FROM v WHERE id > 2")
    tx.sql("INSERT INTO orders SELECT id + 10, 'n', 0 FROM w")
    # Records are stored once a transaction has been open for a second.
    lake._environment.sleep(1.2)
    tx.sql("UPDATE orders SET price = 5 WHERE id = 13")
    lake.close()
    other = lv.Lake("memory://", engine="local", store=lake._store)
    resumed = other.resume(tx.id)
    assert rows(resumed, "SELECT * FROM w") == [(3,), (13,)]
    resumed.commit()
    assert rows(other, "SELECT * FROM w") == [(3,), (13,)]
    tx.step_back()
