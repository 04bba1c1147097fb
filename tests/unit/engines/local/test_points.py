"""Point statements give what DuckDB gives for them. `AND true` is what makes a statement DuckDB's."""

from typing import Any

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.engines.local.connections import Connections

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 2, None, -7, 9], pa.int64()),
        "small": pa.array([1, 127, None, -128, 5, 5], pa.int8()),
        "name": pa.array(["a", "it's", None, "", "2", "ä"], pa.string()),
        "price": pa.array([1.0, 2.0, float("nan"), None, -0.0, 5.0]),
        "seen": pa.array([0, 1, 2, None, 4, 5], pa.timestamp("us", "UTC")),
        "place": pa.array([{"id": 2}, {"id": 1}, None, {"id": None}, {"id": 9}, {"id": 2}]),
    }
)


def _lake(**options: Any) -> lv.Lake:
    lake = lv.Lake("memory://", engine="local")
    lake.create("t", ROWS.slice(0, 3), **options)
    lake.append("t", ROWS.slice(3))
    return lake


def _outcome(lake: lv.Lake, statement: str) -> object:
    try:
        return lake.sql(statement).toArrow().to_pylist()
    except lv.InvalidInput as error:
        return str(error)


@pytest.fixture
def without_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("DuckDB was asked")

    monkeypatch.setattr(Connections, "run", refuse)
    monkeypatch.setattr(Connections, "stream", refuse)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM t WHERE id = 2",
        "SELECT name, ID FROM t WHERE Id = 1",
        "SELECT id, id FROM t WHERE id = 2",
        "SELECT seen, place FROM t WHERE id = 9",
        "SELECT name FROM t WHERE id = 2 AND name = 'it\\'s'",
        "SELECT name FROM t WHERE id = 2 AND small = 127",
        "SELECT id FROM t WHERE name = ''",
        "SELECT id FROM t WHERE id = -7",
        "SELECT id FROM t WHERE small = -128",
        "SELECT id FROM t WHERE id = 12345",
        "SELECT id FROM t VERSION AS OF 0 WHERE id = 9",
    ],
)
def test_point_query_gives_what_duckdb_gives_without_it(
    statement: str, request: pytest.FixtureRequest
) -> None:
    lake = _lake()
    expected = lake.sql(f"{statement} AND true").toArrow()

    request.getfixturevalue("without_duckdb")
    found = lake.sql(statement).toArrow()

    assert found.schema == expected.schema
    assert repr(found.to_pylist()) == repr(expected.to_pylist())


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count(*) FROM t WHERE id = 2",
        "SELECT DISTINCT id FROM t WHERE id = 2",
        "SELECT name FROM t WHERE id = 2 LIMIT 1",
        "SELECT id + 1 FROM t WHERE id = 2",
        "SELECT * EXCEPT (place) FROM t WHERE id = 1",
        "SELECT place.id FROM t WHERE id = 1",
        "SELECT id FROM t WHERE place.id = 2",
        "SELECT x.id FROM t AS x WHERE x.id = 2",
        "SELECT a FROM t AS x(a, b, c, d, e, f) WHERE a = 2",
        "SELECT id FROM t WHERE name = 2",
        "SELECT id FROM t WHERE id = '2'",
        "SELECT id FROM t WHERE id = 2.0",
        "SELECT id FROM t WHERE small = 300",
        "SELECT id FROM t WHERE id = 9223372036854775808",
        "SELECT id FROM t WHERE price = 2",
        "SELECT id FROM t WHERE id = 1 AND id = 2",
        "SELECT id FROM t WHERE id = 1 OR id = 2",
        "SELECT id FROM t WHERE NOT id = 2",
        "SELECT id FROM t WHERE id = NULL",
        "SELECT t.id FROM t JOIN t AS u ON t.id = u.id WHERE t.id = 2",
        "WITH t AS (SELECT 5 AS id) SELECT id FROM t WHERE id = 5",
    ],
)
def test_query_that_is_more_than_a_point_means_what_it_did(statement: str) -> None:
    lake = _lake()
    ordinary = statement.replace(" WHERE ", " WHERE true AND (").replace(" LIMIT", ") LIMIT")
    ordinary += "" if ")" in ordinary.rpartition("AND (")[2] else ")"

    assert _outcome(lake, statement) == _outcome(lake, ordinary)


@pytest.mark.parametrize("partition_by", [[], ["small"], ["name"]], ids=str)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET name = 'new' WHERE id = 2",
        "UPDATE t SET name = 'it\\'s', small = -3 WHERE id = 9",
        "UPDATE t SET small = 0 WHERE name = 'a' AND id = 1",
        "UPDATE t SET name = '' WHERE id = 12345",
        "UPDATE t SET id = 3 WHERE id = 2",
    ],
)
def test_point_update_leaves_what_duckdbs_update_leaves(
    statement: str, partition_by: list[str], request: pytest.FixtureRequest
) -> None:
    ours, theirs = _lake(partition_by=partition_by), _lake(partition_by=partition_by)
    expected_counts = theirs.sql(f"{statement} AND true")
    expected = theirs.read("t").toArrow()

    request.getfixturevalue("without_duckdb")
    counts = ours.sql(statement)

    assert counts == expected_counts
    assert sorted(map(repr, ours.read("t").toArrow().to_pylist())) == sorted(map(repr, expected.to_pylist()))
    assert len(ours.history("t")) == len(theirs.history("t"))


def test_point_update_keeps_files_without_a_hit() -> None:
    lake = _lake()

    with lake.transaction() as tx:
        tx.sql("UPDATE t SET name = 'new' WHERE id = 9")

    metrics = lake.history("t")[0].metrics
    assert metrics["numRemovedFiles"] == "1"
    assert metrics["numOutputRows"] == "3"


def test_point_update_of_a_table_with_checks_is_checked() -> None:
    lake = _lake()
    lake.sql("ALTER TABLE t ADD CONSTRAINT short CHECK (id IS NULL OR length(coalesce(name, '')) < 5)")

    with pytest.raises(lv.InvalidInput) as caught:
        lake.sql("UPDATE t SET name = 'too long' WHERE id = 9")
    assert caught.value.rule == "short"


def test_point_query_binds_parameters() -> None:
    lake = _lake()

    assert lake.sql("SELECT name FROM t WHERE id = :key", key=-7).toArrow().to_pylist() == [{"name": "2"}]
