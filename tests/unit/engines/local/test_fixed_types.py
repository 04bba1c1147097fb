"""Types that Iceberg tables have and Spark lacks: UUIDs, times of day, and binaries of a fixed length."""

from datetime import time
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from lakevilla.errors import InvalidInput
from tests.unit.engines.local.tables import Database, Table

LOW, HIGH = UUID(int=5), UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
MEMBERS = pa.struct([pa.field("u", pa.uuid()), pa.field("t", pa.time64("us")), pa.field("f", pa.binary(3))])
ITEMS = pa.list_(pa.field("element", pa.uuid()))
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("u", pa.uuid()),
        pa.field("t", pa.time64("us")),
        pa.field("f", pa.binary(3)),
        pa.field("s", MEMBERS),
        pa.field("l", ITEMS),
    ]
)
FIRST = {
    "id": 1,
    "u": LOW,
    "t": time(1, 2, 3, 4),
    "f": b"abc",
    "s": {"u": HIGH, "t": time(4, 5), "f": b"xyz"},
    "l": [HIGH],
}
SECOND = {"id": 2, "u": HIGH, "t": time(23, 59), "f": b"\xff\x00\x00", "s": None, "l": None}


def rows() -> pa.Table:
    # Arrow makes no UUIDs inside others from Python's.
    uuids = pa.array([HIGH.bytes], pa.uuid())
    members = [uuids, pa.array([time(4, 5)], MEMBERS[1].type), pa.array([b"xyz"], MEMBERS[2].type)]
    structs = [pa.StructArray.from_arrays(members, fields=list(MEMBERS)), pa.nulls(1, MEMBERS)]
    lists = [pa.ListArray.from_arrays([0, 1], uuids).cast(ITEMS), pa.nulls(1, ITEMS)]
    columns = {
        "id": [1, 2],
        "u": pa.array([LOW.bytes, HIGH.bytes], pa.uuid()),
        "t": pa.array([FIRST["t"], SECOND["t"]], pa.time64("us")),
        "f": pa.array([FIRST["f"], SECOND["f"]], pa.binary(3)),
        "s": pa.concat_arrays(structs),
        "l": pa.concat_arrays(lists),
    }
    return pa.table(columns, schema=SCHEMA)


@pytest.fixture
def database() -> Database:
    return Database(Table("t", SCHEMA).add(rows()))


def query(database: Database, text: str) -> list[Any]:
    return [tuple(row.values()) for row in database.run(text).toArrow().to_pylist()]


def test_values_come_back_with_their_types(database: Database) -> None:
    found = database.run("SELECT * FROM t").toArrow()
    assert found.schema.types == SCHEMA.types
    assert found.to_pylist() == [FIRST, SECOND]


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        (f"u = '{LOW}'", [1]),
        (f"u = upper('{HIGH}')", [2]),
        (f"u > '{LOW}'", [2]),
        (f"s.u = '{HIGH}'", [1]),
        ("t < '23:00:00'", [1]),
        ("t = CAST('23:59:00' AS STRING)", [2]),
        ("f = X'616263'", [1]),
        ("f > X'61'", [1, 2]),
        ("u IS NULL", []),
    ],
)
def test_values_are_compared_with_texts_and_bytes(
    database: Database, condition: str, found: list[int]
) -> None:
    assert query(database, f"SELECT id FROM t WHERE {condition} ORDER BY id") == [(id,) for id in found]


def test_values_are_written_as_text(database: Database) -> None:
    text = "SELECT CAST(u AS STRING) AS u, CAST(t AS STRING) AS t FROM t ORDER BY id"
    assert query(database, text) == [(str(LOW), "01:02:03.000004"), (str(HIGH), "23:59:00")]


def test_values_are_grouped_and_ordered(database: Database) -> None:
    assert query(database, "SELECT u, count(*) AS n FROM t GROUP BY u ORDER BY u DESC") == [
        (HIGH, 1),
        (LOW, 1),
    ]


def test_rewritten_rows_keep_them(database: Database) -> None:
    database.run("UPDATE t SET id = 3 WHERE id = 2")
    database.run("INSERT INTO t SELECT * FROM t")
    assert database.run("SELECT * FROM t WHERE id = 1").toArrow().to_pylist() == [FIRST, FIRST]
    assert query(database, "SELECT id, u FROM t WHERE id = 3") == [(3, HIGH), (3, HIGH)]


def test_new_values_are_stored(database: Database) -> None:
    database.run(f"INSERT INTO t (id, u, f) VALUES (9, '{HIGH}', X'010203')")
    assert query(database, "SELECT u, t, f, s FROM t WHERE id = 9") == [(HIGH, None, b"\x01\x02\x03", None)]


@pytest.mark.parametrize("values", ["(9, NULL, X'0102')", "(9, 'no uuid', NULL)", "(9, X'00', NULL)"])
def test_value_that_does_not_fit_is_refused(database: Database, values: str) -> None:
    with pytest.raises(InvalidInput):
        database.run(f"INSERT INTO t (id, u, f) VALUES {values}")
