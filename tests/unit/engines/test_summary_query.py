"""Which queries are `count(*)`, `min` and `max` of one table, and nothing else."""

import pyarrow as pa
import pytest
from sqlglot import exp

from lakevilla.engines.summary_query import Aggregate, SummaryQuery, recognise
from lakevilla.predicates import ANYTHING, NOTHING, Compare, IsNull, Or
from lakevilla.sql.parser import parse
from lakevilla.sql.statements import Query

SCHEMA = pa.schema([("id", pa.int64()), ("Day", pa.date32()), ("s", pa.struct([("x", pa.int64())]))])
COUNT = Aggregate("count")


def recognised(text: str, key: str = "t") -> SummaryQuery | None:
    statement = parse(text)
    assert isinstance(statement, Query)
    return recognise(statement.tree, key, SCHEMA)


@pytest.mark.parametrize(
    ("text", "aggregates"),
    [
        ("SELECT count(*) FROM t", (COUNT,)),
        ("SELECT COUNT(1) AS n FROM t AS x", (COUNT,)),
        ("SELECT min(id), MAX(day) AS last FROM t", (Aggregate("min", "id"), Aggregate("max", "Day"))),
        ("SELECT max(x.id), count(*) FROM t x", (Aggregate("max", "id"), COUNT)),
        ("SELECT min(t.id) FROM t", (Aggregate("min", "id"),)),
    ],
)
def test_aggregates_of_one_table_are_recognised(text: str, aggregates: tuple[Aggregate, ...]) -> None:
    assert recognised(text) == SummaryQuery(aggregates, ANYTHING, NOTHING)


def test_condition_says_which_rows_count_and_which_do_not() -> None:
    found = recognised("SELECT count(*) FROM t WHERE id < 5")
    assert found is not None
    assert found.predicate == Compare(("id",), "<", 5)
    assert found.unless == Or((Compare(("id",), ">=", 5), IsNull(("id",))))


def test_condition_that_another_session_may_read_otherwise_is_unknown() -> None:
    statement = parse("SELECT count(*) FROM t WHERE id < 5")
    assert isinstance(statement, Query)
    found = recognise(statement.tree, "t", SCHEMA, lambda *_: exp.Anonymous(this="unknown"))
    assert found == SummaryQuery((COUNT,), ANYTHING, ANYTHING)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM t",
        "SELECT count(*), id FROM t",
        "SELECT count(id) FROM t",
        "SELECT count(NULL) FROM t",
        "SELECT count('1') FROM t",
        "SELECT count(DISTINCT id) FROM t",
        "SELECT count(id, day) FROM t",
        "SELECT count(t.*) FROM t",
        "SELECT count(*) + 1 FROM t",
        "SELECT count(*) FILTER (WHERE id = 1) FROM t",
        "SELECT count(*) OVER () FROM t",
        "SELECT sum(id) FROM t",
        "SELECT min(id + 1) FROM t",
        "SELECT min(s.x) FROM t",
        "SELECT min(nowhere) FROM t",
        "SELECT min(other.id) FROM t",
        "SELECT min(DISTINCT id) FROM t",
        "SELECT DISTINCT count(*) FROM t",
        "SELECT count(*) FROM t GROUP BY id",
        "SELECT count(*) FROM t HAVING count(*) > 1",
        "SELECT count(*) FROM t LIMIT 0",
        "SELECT count(*) FROM t ORDER BY 1",
        "SELECT count(*) FROM t, t AS u",
        "SELECT count(*) FROM t JOIN t AS u ON true",
        "SELECT count(*) FROM t CROSS JOIN LATERAL (SELECT 1)",
        "SELECT count(*) FROM t TABLESAMPLE (10 PERCENT)",
        "SELECT count(*) FROM t AS x (a, b, c)",
        "SELECT count(*) FROM (SELECT * FROM t)",
        "SELECT count(*) FROM t LATERAL VIEW explode(array(1, 2)) AS e",
        "SELECT count(*) FROM t UNION ALL SELECT count(*) FROM t",
        "WITH t AS (SELECT 1 AS id) SELECT count(*) FROM t",
        "SELECT count(*)",
        "SELECT count(*) FROM u",
    ],
)
def test_other_queries_are_scanned(text: str) -> None:
    assert recognised(text) is None
