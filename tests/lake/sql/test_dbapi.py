"""DB-API 2.0 over a lake: parameters, rows, real transactions, and errors by their kinds."""

import datetime as dt
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import lakevilla as lv
from lakevilla import dbapi


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[dbapi.Connection]:
    connection = dbapi.connect(tmp_path, engine="local", storage_options={"fsync": "false"})
    connection.execute("CREATE TABLE t (id BIGINT NOT NULL, name STRING, price DECIMAL(5, 2))")
    connection.commit()
    yield connection
    connection.close()


def count(connection: dbapi.Connection) -> int:
    found = connection.execute("SELECT count(*) FROM t").fetchone()
    assert found is not None
    return int(found[0])


def other(connection: dbapi.Connection) -> lv.Lake:
    return lv.Lake(connection.lake.url, engine="local", storage_options={"fsync": "false"})


def test_module_has_what_pep_249_asks_for() -> None:
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 1, "named")
    assert issubclass(dbapi.IntegrityError, dbapi.DatabaseError)
    assert dbapi.DateFromTicks(0) == dbapi.Date(1970, 1, 1)
    assert dbapi.TimestampFromTicks(60) == dbapi.Timestamp(1970, 1, 1, 0, 1, tzinfo=dt.UTC)
    assert dbapi.TimeFromTicks(60) == dbapi.Time(0, 1)


def test_parameters_are_named_or_marks(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("INSERT INTO t VALUES (?, ?, ?)", (1, "it's a '?'", Decimal("1.5")))
    cursor.execute("INSERT INTO t VALUES (:id, :name, NULL)", {"id": 2, "name": None})
    found = cursor.execute("SELECT id FROM t WHERE name LIKE '%?%' AND id = ? -- ?", [1]).fetchall()
    assert found == [(1,)]
    for wrong in ((), (1, 2), "1", {"no": 1}):
        with pytest.raises(dbapi.ProgrammingError):
            cursor.execute("SELECT id FROM t WHERE id = ?", wrong)


def test_rows_are_fetched_in_every_way(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    cursor.executemany("INSERT INTO t (id, name) VALUES (?, ?)", [(n, str(n)) for n in range(6)])
    assert cursor.rowcount == 6
    cursor.execute("SELECT id, name, price FROM t ORDER BY id")
    assert cursor.description is not None
    assert [column[:2] for column in cursor.description] == [
        ("id", "bigint"),
        ("name", "string"),
        ("price", "decimal(5,2)"),
    ]
    codes = [column[1] for column in cursor.description]
    assert (codes[0] == dbapi.NUMBER, codes[1] == dbapi.STRING, codes[2] == dbapi.NUMBER) == (True,) * 3
    assert codes[0] != dbapi.DATETIME
    assert cursor.rowcount == 6
    assert cursor.fetchone() == (0, "0", None)
    assert [row[0] for row in cursor.fetchmany(2)] == [1, 2]
    assert len(cursor.fetchmany()) == cursor.arraysize
    assert cursor.fetch_arrow_table().column("id").to_pylist() == [4, 5]
    assert (cursor.fetchone(), cursor.fetchall(), cursor.rownumber) == (None, [], 6)
    assert [row[0] for row in connection.execute("SELECT id FROM t WHERE id < 2 ORDER BY id")] == [0, 1]


def test_transaction_covers_all_cursors_until_it_is_committed(connection: dbapi.Connection) -> None:
    connection.execute("INSERT INTO t (id) VALUES (1)")
    connection.execute("CREATE TABLE u AS SELECT id FROM t")
    assert count(connection) == 1
    assert len(other(connection).read("t")) == 0
    connection.rollback()
    assert count(connection) == 0
    connection.execute("INSERT INTO t (id) VALUES (1)")
    connection.commit()
    assert len(other(connection).read("t")) == 1
    assert other(connection).tables() == ["t"]


def test_with_block_commits_or_rolls_back(connection: dbapi.Connection) -> None:
    with connection:
        connection.execute("INSERT INTO t (id) VALUES (1)")
    with pytest.raises(ZeroDivisionError), connection:
        connection.execute("INSERT INTO t (id) VALUES (2)")
        raise ZeroDivisionError
    assert count(connection) == 1


def test_words_of_sql_end_transactions_too(connection: dbapi.Connection) -> None:
    connection.autocommit = True
    connection.execute("INSERT INTO t (id) VALUES (1)")
    assert len(other(connection).read("t")) == 1
    connection.execute("BEGIN TRANSACTION")
    connection.execute("INSERT INTO t (id) VALUES (2)")
    connection.execute("ROLLBACK")
    connection.execute("begin")
    connection.execute("INSERT INTO t (id) VALUES (3)")
    connection.execute("commit;")
    assert sorted(row[0] for row in connection.execute("SELECT id FROM t")) == [1, 3]


def test_statements_of_a_session_run_too(connection: dbapi.Connection) -> None:
    connection.execute("BEGIN ISOLATION LEVEL SNAPSHOT")
    connection.execute("INSERT INTO t (id) VALUES (1)")
    connection.execute("SAVEPOINT here")
    connection.execute("INSERT INTO t (id) VALUES (2)")
    connection.execute("ROLLBACK TO here")
    assert count(connection) == 1
    connection.commit()
    connection.execute("SET isolation = snapshot")
    assert connection.isolation == "snapshot"
    connection.isolation = "serializable"
    with pytest.raises(dbapi.ProgrammingError):
        connection.isolation = "none"
    connection.lake.tag("now")
    assert connection.execute("SHOW TAGS").fetchall()[0][0] == "now"


def test_savepoint_is_returned_to(connection: dbapi.Connection) -> None:
    connection.execute("INSERT INTO t (id) VALUES (1)")
    connection.savepoint("here")
    connection.execute("INSERT INTO t (id) VALUES (2)")
    connection.rollback_to("here")
    connection.commit()
    assert count(connection) == 1
    connection.commit()
    with pytest.raises(dbapi.OperationalError):
        connection.rollback_to("here")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SELECT * FROM none", dbapi.ProgrammingError),
        ("SELECT none FROM t", dbapi.ProgrammingError),
        ("SELECT 'open", dbapi.ProgrammingError),
        ("INSERT INTO t (name) VALUES ('x')", dbapi.IntegrityError),
        ("SELECT * FROM t TABLESAMPLE (5 PERCENT)", dbapi.Error),
    ],
)
def test_error_has_the_kind_of_pep_249(connection: dbapi.Connection, text: str, kind: Any) -> None:
    connection.execute("INSERT INTO t (id) VALUES (1)")
    with pytest.raises(kind) as failed:
        connection.execute(text)
    assert isinstance(failed.value.__cause__, lv.LakeVillaError)
    connection.commit()
    assert count(connection) == 1


def test_commit_that_came_first_is_an_operational_error(connection: dbapi.Connection) -> None:
    assert count(connection) == 0
    connection.execute("INSERT INTO t (id) VALUES (1)")
    other(connection).append("t", [{"id": 2}])
    with pytest.raises(dbapi.OperationalError) as failed:
        connection.commit()
    assert isinstance(failed.value.__cause__, lv.Conflict)
    assert [row[0] for row in connection.execute("SELECT id FROM t")] == [2]


def test_transaction_that_a_statement_lost_must_be_rolled_back(
    connection: dbapi.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.execute("INSERT INTO t (id) VALUES (1)")

    def conflict(*_: Any, **__: Any) -> None:
        raise lv.Conflict("another commit came first")

    with monkeypatch.context() as patched:
        patched.setattr(lv.Transaction, "sql", conflict)
        with pytest.raises(dbapi.OperationalError):
            connection.execute("SELECT 1")
    for go_on in (lambda: connection.execute("SELECT 1"), connection.commit):
        with pytest.raises(dbapi.OperationalError, match="rollback"):
            go_on()
    connection.rollback()
    assert count(connection) == 0


def test_row_count_is_part_of_the_transaction_only_if_it_was_asked_for(connection: dbapi.Connection) -> None:
    connection.execute("INSERT INTO t (id) VALUES (1)")
    connection.commit()
    connection.execute("DELETE FROM t WHERE id < 5")
    other(connection).append("t", [{"id": 2}])
    connection.commit()
    assert count(connection) == 0
    connection.rollback()
    other(connection).append("t", [{"id": 3}])
    assert connection.execute("DELETE FROM t WHERE id < 5").rowcount == 1
    other(connection).append("t", [{"id": 4}])
    with pytest.raises(dbapi.OperationalError):
        connection.commit()


def test_many_rows_are_one_write_whatever_the_marks(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    cursor.executemany("INSERT INTO t (id, price) VALUES (:a, :b)", [{"a": n, "b": n} for n in range(100)])
    connection.commit()
    newest = connection.lake.history("t")[0]
    assert (len(newest.added), count(connection)) == (1, 100)
    cursor.executemany("UPDATE t SET name = ? WHERE id = ?", [("x", 1), ("y", 2)])
    cursor.executemany("INSERT INTO t VALUES (?, upper(?), NULL)", [(200, "z")])
    cursor.executemany("DELETE FROM t WHERE id = ?", [])
    found = cursor.execute("SELECT name FROM t WHERE name IS NOT NULL ORDER BY id").fetchall()
    assert found == [("x",), ("y",), ("Z",)]
    with pytest.raises(dbapi.ProgrammingError):
        cursor.executemany("SELECT ?", [(1,)])


def test_what_is_closed_is_not_used(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    with pytest.raises(dbapi.ProgrammingError):
        cursor.fetchone()
    cursor.close()
    with pytest.raises(dbapi.InterfaceError):
        cursor.execute("SELECT 1")
    connection.close()
    connection.close()
    for use in (connection.cursor, connection.commit, connection.rollback):
        with pytest.raises(dbapi.InterfaceError):
            use()


def test_closing_rolls_back_and_leaves_a_lake_of_others_open(tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, engine="local", storage_options={"fsync": "false"})
    lake.create("t", "id INT")
    connection = dbapi.connect(lake=lake, isolation="snapshot")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.close()
    assert len(lake.read("t")) == 0
    with pytest.raises(dbapi.ProgrammingError):
        dbapi.connect("")


@pytest.mark.filterwarnings("ignore:pandas only supports SQLAlchemy")
def test_pandas_reads_from_a_connection(connection: dbapi.Connection) -> None:
    connection.execute("INSERT INTO t (id) VALUES (1), (2)")
    frame = pd.read_sql("SELECT id FROM t WHERE id > :id", connection, params={"id": 1})
    assert frame["id"].tolist() == [2]


def test_many_rows_are_assigned_as_single_ones(connection: dbapi.Connection) -> None:
    cursor = connection.cursor()
    texts = [5, 1.5, "x", True, Decimal("1.10"), None]
    rows = [(number, value) for number, value in enumerate(texts)]
    for row in rows:
        cursor.execute("INSERT INTO t (id, name) VALUES (?, ?)", row)
    one_by_one = cursor.execute("SELECT id, name FROM t ORDER BY id").fetchall()
    connection.rollback()
    cursor.executemany("INSERT INTO t (id, name) VALUES (?, ?)", rows)
    assert cursor.rowcount == 6
    assert cursor.execute("SELECT id, name FROM t ORDER BY id").fetchall() == one_by_one
    for rows in ([(1, 5), (2, 6)], [(1, Decimal("1.5")), (2, Decimal("2.25"))]):
        connection.rollback()
        cursor.executemany("INSERT INTO t (id, name) VALUES (?, ?)", iter(rows))
        found = cursor.execute("SELECT name FROM t ORDER BY id").fetchall()
        assert found == [(str(value),) for _, value in rows]
    with pytest.raises(dbapi.ProgrammingError, match="write a CAST"):
        cursor.executemany("INSERT INTO t (id) VALUES (?)", [("12",)])
    with pytest.raises(dbapi.IntegrityError):
        cursor.executemany("INSERT INTO t (id, name) VALUES (?, ?)", [(1, "x"), (None, "y")])
    with pytest.raises(dbapi.ProgrammingError) as failed:
        cursor.executemany("INSERT INTO t (id, price) VALUES (?, ?)", [(1, 1 << 40)])
    assert "source column" not in str(failed.value)


def test_many_statements_of_autocommit_are_one_transaction(tmp_path: Path) -> None:
    connection = dbapi.connect(tmp_path, engine="local", autocommit=True)
    connection.execute("CREATE TABLE t (id INT)")
    cursor = connection.cursor()
    with pytest.raises(dbapi.ProgrammingError):
        cursor.executemany("INSERT INTO t VALUES (CAST(? AS INT))", [("1",), ("x",)])
    assert count(connection) == 0
    cursor.executemany("INSERT INTO t VALUES (CAST(? AS INT))", [("1",), ("2",)])
    assert len(other(connection).read("t")) == 2


def test_autocommit_is_not_changed_in_a_transaction(connection: dbapi.Connection) -> None:
    connection.execute("INSERT INTO t (id) VALUES (1)")
    with pytest.raises(dbapi.ProgrammingError, match=r"commit\(\) or rollback\(\)"):
        connection.autocommit = True
    connection.autocommit = False
    connection.commit()
    connection.autocommit = True
    connection.execute("INSERT INTO t (id) VALUES (2)")
    assert len(other(connection).read("t")) == 2


def test_value_of_each_type_comes_back(connection: dbapi.Connection) -> None:
    values: dict[str, Any] = {
        "BOOLEAN": True,
        "TINYINT": -128,
        "BIGINT": -(2**63),
        "DOUBLE": 0.1,
        "DECIMAL(38, 4)": Decimal("-1.2500"),
        "STRING": "it's `x` ? :y; -- \\ \n \U0001f600",
        "BINARY": b"\x00'\xff",
        "DATE": dt.date(1582, 10, 10),
        "TIMESTAMP": dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC),
        "TIMESTAMP_NTZ": dt.datetime(2026, 1, 2, 3, 4, 5, 6),
        "ARRAY<INT>": [1, None],
    }
    columns = ", ".join(f"c{number} {name}" for number, name in enumerate(values))
    connection.execute(f"CREATE TABLE every (id INT, {columns})")
    names = ", ".join(["id", *(f"c{number}" for number in range(len(values)))])
    text = f"INSERT INTO every ({names}) VALUES ({', '.join('?' * (len(values) + 1))})"
    cursor = connection.cursor()
    cursor.execute(text, (1, *values.values()))
    cursor.executemany(text, [(2, *values.values()), (3, *([None] * len(values)))])
    found = cursor.execute("SELECT * FROM every ORDER BY id").fetchall()
    assert found == [(1, *values.values()), (2, *values.values()), (3, *([None] * len(values)))]
    assert cursor.execute("SELECT ?, ?", (bytearray(b"a"), memoryview(b"b"))).fetchall() == [(b"a", b"b")]


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        (None, None),
        (b"SELECT 1", None),
        ("SELECT ?", 5),
        ("SELECT ?", "a"),
        ("SELECT ?", {"a": 1}),
        ("SELECT ?", ()),
        ("SELECT ?, ?", (1,)),
        ("SELECT :a", (1,)),
        ("SELECT :a", {"b": 1}),
        ("SELECT ?", (object(),)),
        ("SELECT 1; SELECT 2", None),
    ],
)
def test_wrong_statement_or_parameters_are_a_programming_error(
    connection: dbapi.Connection, text: Any, parameters: Any
) -> None:
    with pytest.raises(dbapi.ProgrammingError):
        connection.execute(text, parameters)
    assert count(connection) == 0


def test_threads_that_share_a_connection_lose_no_rows(connection: dbapi.Connection) -> None:
    """`threadsafety` is 1, so programs should not do it: they share the transaction."""
    refused: list[BaseException] = []

    def work(start: int) -> None:
        for number in range(start, start + 20):
            try:
                connection.execute("INSERT INTO t (id) VALUES (?)", (number,))
            except dbapi.Error as error:
                refused.append(error)

    threads = [threading.Thread(target=work, args=(100 * n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (refused, count(connection)) == ([], 60)


def test_two_connections_see_each_other_after_a_commit(connection: dbapi.Connection) -> None:
    second = dbapi.connect(lake=other(connection))
    assert count(second) == 0
    connection.execute("INSERT INTO t (id) VALUES (1)")
    connection.commit()
    assert count(second) == 0
    second.commit()
    assert count(second) == 1
    assert second.execute("SELECT name FROM t").fetchall() == [(None,)]
    second.execute("UPDATE t SET name = 'b' WHERE id = 1")
    connection.execute("UPDATE t SET name = 'a' WHERE id = 1")
    connection.commit()
    with pytest.raises(dbapi.OperationalError):
        second.commit()
    assert second.execute("SELECT name FROM t").fetchall() == [("a",)]


def test_cursor_keeps_its_rows_when_the_transaction_ends(connection: dbapi.Connection) -> None:
    connection.execute("INSERT INTO t (id) VALUES (1), (2)")
    cursor = connection.execute("SELECT id FROM t ORDER BY id")
    assert cursor.fetchone() == (1,)
    connection.rollback()
    assert cursor.fetchall() == [(2,)]
    with pytest.raises(dbapi.ProgrammingError):
        cursor.fetchmany(-1)


def test_lake_and_root_are_not_given_together(connection: dbapi.Connection, tmp_path: Path) -> None:
    with pytest.raises(dbapi.InterfaceError):
        dbapi.connect(tmp_path, lake=connection.lake)
    connection.close()
    with pytest.raises(dbapi.InterfaceError):
        connection.rollback_to("here")
