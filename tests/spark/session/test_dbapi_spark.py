"""DB-API on Spark: the same statements, rows and transactions as on the local engine."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lakevilla import dbapi


def test_statements_and_transactions_are_those_of_the_local_engine(quick: Any, tmp_path: Path) -> None:
    connection = dbapi.connect(tmp_path, spark=quick)
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE t (id BIGINT NOT NULL, name STRING, price DECIMAL(5, 2))")
    cursor.executemany("INSERT INTO t (id, price) VALUES (?, ?)", [(1, Decimal("1.5")), (2, None)])
    connection.commit()
    # Numbers for a text are assigned as INSERT does; one of several kinds takes statements of their own.
    cursor.executemany("INSERT INTO t (id, name) VALUES (?, ?)", [(3, 30), (4, 40)])
    cursor.executemany("INSERT INTO t (id, name) VALUES (:a, :b)", [{"a": 5, "b": 5}, {"a": 6, "b": "x"}])
    cursor.execute("SELECT * FROM t ORDER BY id")
    assert [column[1] for column in cursor.description or ()] == ["bigint", "string", "decimal(5,2)"]
    assert cursor.fetchmany(3) == [(1, None, Decimal("1.50")), (2, None, None), (3, "30", None)]
    assert cursor.fetch_arrow_table().column("name").to_pylist() == ["40", "5", "x"]
    with pytest.raises(dbapi.IntegrityError):
        cursor.execute("INSERT INTO t (name) VALUES ('x')")
    connection.rollback()
    assert cursor.execute("SELECT count(*) FROM t").fetchall() == [(2,)]
    connection.close()
