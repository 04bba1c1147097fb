"""Temporary views: queries that have names in one session."""

from collections.abc import Iterator
from typing import Any

import pytest

import lakevilla as lv


@pytest.fixture
def lake() -> lv.Lake:
    lake = lv.Lake("memory://", engine="local")
    lake.create("orders", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
    return lake


@pytest.fixture
def session(lake: lv.Lake) -> Iterator[lv.Session]:
    with lake.session() as session:
        yield session


def rows(session: lv.Session, text: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in session.sql(text).collect())


def test_temporary_view_is_its_sessions_alone(lake: lv.Lake, session: lv.Session) -> None:
    session.sql(
        "CREATE TEMPORARY VIEW mine (k COMMENT 'key') AS SELECT id FROM orders WHERE id > :low", low=1
    )
    assert rows(session, "SELECT * FROM mine") == [(2,)]
    assert ("mine", "temporary view") in rows(session, "SHOW TABLES")
    assert rows(session, "DESCRIBE mine") == [("k", "bigint", True, "key")]
    assert rows(session, "SELECT table_name FROM information_schema.views") == [("mine",)]
    assert lake.views() == {}
    with lake.session() as other, pytest.raises(lv.InvalidInput, match="unknown table 'mine'"):
        other.sql("SELECT * FROM mine")


def test_temporary_view_hides_a_table_and_not_what_views_read(session: lv.Session) -> None:
    session.sql("CREATE VIEW kept AS SELECT id FROM orders; CREATE TEMP VIEW before AS SELECT id FROM orders")
    session.sql("CREATE TEMP VIEW orders AS SELECT id + 10 AS id FROM orders")
    assert rows(session, "SELECT * FROM orders") == [(11,), (12,)]
    assert rows(session, "SELECT * FROM kept") == [(1,), (2,)]
    assert rows(session, "SELECT * FROM before") == [(1,), (2,)]
    with pytest.raises(lv.InvalidInput, match="'orders' is a view and cannot be changed"):
        session.sql("DELETE FROM orders")
    session.sql("DROP VIEW orders")
    assert rows(session, "SELECT id FROM orders") == [(1,), (2,)]


def test_temporary_view_outlives_a_rollback(session: lv.Session) -> None:
    session.sql("BEGIN; CREATE TEMP VIEW mine AS SELECT max(id) AS m FROM orders; DELETE FROM orders")
    assert rows(session, "SELECT * FROM mine") == [(None,)]
    session.sql("ROLLBACK")
    assert rows(session, "SELECT * FROM mine") == [(2,)]


def test_temporary_view_is_read_in_every_kind_of_statement(lake: lv.Lake, session: lv.Session) -> None:
    session.sql("CREATE TEMP VIEW mine AS SELECT id, name FROM orders WHERE id = 2")
    session.sql("CREATE TABLE copy AS SELECT * FROM mine; INSERT INTO copy SELECT * FROM mine")
    session.sql("BEGIN ATOMIC UPDATE orders SET name = 'z' WHERE id IN (SELECT id FROM mine); END")
    session.sql("MERGE INTO copy t USING mine s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name")
    assert rows(session, "SELECT * FROM copy") == [(2, "z"), (2, "z")]
    seq = lake.history()[0].seq
    session.sql("DELETE FROM orders")
    assert rows(session, f"SELECT * FROM mine AT (SEQ => {seq})") == [(2, "z")]


def test_mistakes_with_temporary_views(session: lv.Session) -> None:
    session.sql("CREATE TEMP VIEW mine AS SELECT 1 AS x")
    session.sql("CREATE TEMP VIEW IF NOT EXISTS mine AS SELECT 2 AS x")
    assert rows(session, "SELECT * FROM mine") == [(1,)]
    session.sql("CREATE OR REPLACE TEMP VIEW mine AS SELECT 3 AS x")
    assert rows(session, "SELECT * FROM mine") == [(3,)]
    for text, words in (
        ("CREATE TEMP VIEW mine AS SELECT 2 AS x", "already exists"),
        ("CREATE VIEW kept AS SELECT * FROM mine", "which only this session has"),
        ("BEGIN ATOMIC CREATE TEMP VIEW a AS SELECT 1 AS x; END", "cannot stand inside of BEGIN ATOMIC"),
        ("CREATE TEMP VIEW other AS SELECT nme FROM orders", "did you mean 'name'?\nat line 1, column 34"),
    ):
        with pytest.raises(lv.InvalidInput) as error:
            session.sql(text)
        assert words in str(error.value)
