"""Queries against answers worked out by hand from Spark's definitions, rows and types."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from lakevilla.errors import InvalidInput
from lakevilla.sql.types import type_name
from tests.unit.engines.local.conftest import MOMENT, NAN
from tests.unit.engines.local.tables import Database, shown

WRONG = [
    "SELECT nope FROM people",
    "SELECT id FROM people a JOIN people b ON a.id = b.id",
    "SELECT id, count(*) FROM people",
    "SELECT count(count(*)) FROM people",
    "SELECT * FROM people WHERE name",
    "SELECT * FROM people WHERE count(*) > 1",
    "SELECT true + 1",
    "SELECT DATE '2024-01-01' = 1",
    "SELECT 1 UNION SELECT 1, 2",
    "SELECT name FROM people ORDER BY 2",
    "SELECT DISTINCT name FROM people ORDER BY id",
    "SELECT row_number() FROM people",
    "SELECT upper()",
    "SELECT * FROM VALUES (1), (1, 2)",
    "SELECT (SELECT id, name FROM people)",
    "SELECT place.nope FROM people",
    "SELECT * EXCEPT (nope) FROM people",
    "SELECT missing.* FROM people",
]


@pytest.mark.parametrize("text", WRONG)
def test_statement_that_spark_refuses_is_invalid_input(db: Database, text: str) -> None:
    with pytest.raises(InvalidInput):
        db.run(text)


# Statement, rows, types. Row order counts only where the statement orders.
STATEMENTS: list[tuple[str, list[tuple[Any, ...]], str]] = [
    ("SELECT id, NAME FROM people WHERE ID = 1", [(1, "Ann")], "int string"),
    ("SELECT p.id FROM people p WHERE p.x > 1 ORDER BY id", [(1,), (2,)], "int"),
    ("SELECT id FROM people WHERE x = 0", [(4,)], "int"),
    ("SELECT id FROM people ORDER BY x", [(3,), (4,), (1,), (2,)], "int"),
    ("SELECT id FROM people ORDER BY x DESC", [(2,), (1,), (4,), (3,)], "int"),
    ("SELECT id FROM people ORDER BY name NULLS LAST, id DESC LIMIT 2", [(4,), (1,)], "int"),
    ("SELECT id FROM people ORDER BY 1 LIMIT 2 OFFSET 1", [(2,), (3,)], "int"),
    (
        "SELECT count(*), count(name), count(DISTINCT name), sum(id), avg(id), sum(d), avg(d) FROM people",
        [(4, 3, 2, 10, 2.5, Decimal("0.65"), Decimal("0.216667"))],
        "bigint bigint bigint bigint double decimal(20,2) decimal(14,6)",
    ),
    (
        "SELECT count(*), sum(id), max(x), avg(d) FROM empty",
        [(0, None, None, None)],
        "bigint bigint double decimal(14,6)",
    ),
    ("SELECT id, sum(x) FROM empty GROUP BY id", [], "int double"),
    ("SELECT max(x), min(x) FROM people", [(NAN, -0.0)], "double double"),
    (
        "SELECT max(name), min(day), bool_and(ok), bool_or(ok) FROM people",
        [("bob", date(1969, 12, 31), False, True)],
        "string date boolean boolean",
    ),
    (
        "SELECT stddev(id), variance(id), stddev_pop(id) FROM people",
        [(1.2909944487358056, 1.6666666666666667, 1.118033988749895)],
        "double double double",
    ),
    ("SELECT stddev(b) FROM pairs WHERE b = 10", [(None,)], "double"),
    ("SELECT percentile(b, 0.5), median(b) FROM pairs", [(20.0, 20.0)], "double double"),
    (
        "SELECT sort_array(collect_list(b)), size(collect_set(a)) FROM pairs",
        [([10, 20, 40], 2)],
        "array<bigint> int",
    ),
    ("SELECT collect_list(id) FROM empty", [([],)], "array<int>"),
    ("SELECT count(DISTINCT a, b), count(a, b) FROM pairs", [(2, 2)], "bigint bigint"),
    ("SELECT sum(b) FILTER (WHERE a = 1), count_if(a = 1) FROM pairs", [(30, 2)], "bigint bigint"),
    ("SELECT name, count(*) AS c FROM people GROUP BY name HAVING c > 1", [("Ann", 2)], "string bigint"),
    (
        "SELECT upper(name) AS n, count(*) FROM people GROUP BY n ORDER BY n",
        [(None, 1), ("ANN", 2), ("BOB", 1)],
        "string bigint",
    ),
    (
        "SELECT name, count(*) FROM people GROUP BY 1 ORDER BY 2 DESC, 1",
        [("Ann", 2), (None, 1), ("bob", 1)],
        "string bigint",
    ),
    (
        "SELECT name, count(*) FROM people GROUP BY ALL ORDER BY ALL",
        [(None, 1), ("Ann", 2), ("bob", 1)],
        "string bigint",
    ),
    (
        "SELECT a, sum(b), grouping(a) FROM pairs GROUP BY ROLLUP (a) ORDER BY 3, 1",
        [(None, 40, 0), (1, 30, 0), (2, None, 0), (None, 70, 1)],
        "int bigint tinyint",
    ),
    ("SELECT DISTINCT name FROM people ORDER BY name DESC", [("bob",), ("Ann",), (None,)], "string"),
    (
        "SELECT p.id, q.b FROM people p JOIN pairs q ON p.id = q.a ORDER BY q.b",
        [(2, None), (1, 10), (1, 20)],
        "int bigint",
    ),
    (
        "SELECT p.id, q.b FROM people p LEFT JOIN pairs q ON p.id = q.a AND q.b > 15 ORDER BY 1",
        [(1, 20), (2, None), (3, None), (4, None)],
        "int bigint",
    ),
    (
        "SELECT p.id, q.a FROM people p FULL JOIN pairs q ON p.id = q.a WHERE p.id IS NULL",
        [(None, None)],
        "int int",
    ),
    (
        "SELECT q.a, p.id FROM pairs q RIGHT JOIN people p ON p.id = q.a WHERE p.id > 2 ORDER BY 2",
        [(None, 3), (None, 4)],
        "int int",
    ),
    ("SELECT id FROM people LEFT SEMI JOIN pairs ON id = a ORDER BY id", [(1,), (2,)], "int"),
    ("SELECT id FROM people LEFT ANTI JOIN pairs ON id = a ORDER BY id", [(3,), (4,)], "int"),
    (
        "SELECT * FROM pairs x JOIN pairs y USING (a) WHERE x.b = 10 ORDER BY y.b",
        [(1, 10, 10), (1, 10, 20)],
        "int bigint bigint",
    ),
    (
        "SELECT a, x.b, y.c FROM pairs x FULL JOIN (SELECT 7 AS a, 'c' AS c) y USING (a) WHERE a = 7",
        [(7, None, "c")],
        "int bigint string",
    ),
    ("SELECT count(*) FROM people, pairs", [(16,)], "bigint"),
    ("SELECT id FROM people WHERE id NOT IN (SELECT a FROM pairs)", [], "int"),
    ("SELECT id FROM people WHERE id IN (SELECT a FROM pairs) ORDER BY id", [(1,), (2,)], "int"),
    ("SELECT id FROM people p WHERE EXISTS (SELECT 1 FROM pairs WHERE a = p.id AND b = 20)", [(1,)], "int"),
    (
        "SELECT id, (SELECT max(b) FROM pairs WHERE a = id) FROM people WHERE id < 3 ORDER BY id",
        [(1, 20), (2, None)],
        "int bigint",
    ),
    (
        "WITH w AS (SELECT a, b FROM pairs), v AS (SELECT a FROM w WHERE b > 10) SELECT * FROM v ORDER BY a",
        [(None,), (1,)],
        "int",
    ),
    ("WITH w(q) AS (SELECT 1) SELECT x.q + y.q FROM w x, w y", [(2,)], "int"),
    ("SELECT a FROM pairs UNION SELECT id FROM people ORDER BY a", [(None,), (1,), (2,), (3,), (4,)], "int"),
    (
        "SELECT 1 AS v UNION ALL SELECT 2.5 ORDER BY v DESC",
        [(Decimal("2.5"),), (Decimal("1.0"),)],
        "decimal(11,1)",
    ),
    ("SELECT a FROM pairs EXCEPT SELECT 1 ORDER BY 1", [(None,), (2,)], "int"),
    ("SELECT a FROM pairs INTERSECT SELECT 1", [(1,)], "int"),
    ("SELECT a FROM pairs EXCEPT ALL SELECT 1 ORDER BY 1", [(None,), (1,), (2,)], "int"),
    ("(SELECT a FROM pairs ORDER BY a DESC LIMIT 1) UNION ALL SELECT 9 ORDER BY 1", [(2,), (9,)], "int"),
    (
        "SELECT b, row_number() OVER (ORDER BY b) r, rank() OVER (ORDER BY a) k FROM pairs ORDER BY r",
        [(None, 1, 4), (10, 2, 2), (20, 3, 2), (40, 4, 1)],
        "bigint int int",
    ),
    (
        "SELECT b, sum(b) OVER (PARTITION BY a ORDER BY b) s FROM pairs WHERE a = 1 ORDER BY b",
        [(10, 10), (20, 30)],
        "bigint bigint",
    ),
    (
        "SELECT b, lag(b) OVER (ORDER BY b), lead(b, 1, -1L) OVER (ORDER BY b) FROM pairs ORDER BY b",
        [(None, None, 10), (10, None, 20), (20, 10, 40), (40, 20, -1)],
        "bigint bigint bigint",
    ),
    (
        "SELECT b, count(*) OVER w c FROM pairs "
        "WINDOW w AS (ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) ORDER BY b",
        [(None, 1), (10, 2), (20, 2), (40, 2)],
        "bigint bigint",
    ),
    (
        "SELECT a, sum(sum(b)) OVER (ORDER BY a) FROM pairs GROUP BY a ORDER BY a",
        [(None, 40), (1, 70), (2, 70)],
        "int bigint",
    ),
    (
        "SELECT id, explode(tags) FROM people ORDER BY 1, 2",
        [(1, "a"), (1, "b"), (4, None), (4, "c")],
        "int string",
    ),
    (
        "SELECT id, t FROM people LATERAL VIEW OUTER explode(tags) e AS t WHERE id < 4 ORDER BY 1, 2",
        [(1, "a"), (1, "b"), (2, None), (3, None)],
        "int string",
    ),
    (
        "SELECT posexplode(tags) AS (i, t) FROM people WHERE id = 1 ORDER BY i",
        [(0, "a"), (1, "b")],
        "int string",
    ),
    (
        "SELECT id, k, v FROM people LATERAL VIEW explode(m) AS k, v ORDER BY id",
        [(1, "k", 1), (4, "k", 4)],
        "int string int",
    ),
    ("SELECT place.city, place.* FROM people WHERE id = 1", [("Oslo", "Oslo", 1)], "string string int"),
    ("SELECT id FROM people WHERE place.zip = 4", [(4,)], "int"),
    ("SELECT m['k'], tags[0] FROM people WHERE id = 1", [(1, "a")], "int string"),
    ("SELECT id + 1 AS n, n * 2 AS m FROM people WHERE id = 1", [(2, 4)], "int int"),
    (
        "SELECT * FROM VALUES (1, 'a'), (2L, NULL) AS v(n, s) ORDER BY n",
        [(1, "a"), (2, None)],
        "bigint string",
    ),
    ("SELECT id FROM range(3)", [(0,), (1,), (2,)], "bigint"),
    ("SELECT t.* EXCEPT (name) FROM (SELECT id, name FROM people WHERE id = 1) t", [(1,)], "int"),
    (
        "SELECT at, CAST(at AS DATE) FROM people WHERE at >= '2024-02-29 13:14:15' AND id = 1",
        [(MOMENT, date(2024, 2, 29))],
        "timestamp date",
    ),
    ("SELECT id FROM people WHERE day = '2024-02-29'", [(1,)], "int"),
    ("SELECT id FROM people WHERE d = 2.25", [(2,)], "int"),
    ("SELECT q.n FROM people p CROSS JOIN LATERAL (SELECT p.id * 10 AS n) q WHERE p.id = 2", [(20,)], "int"),
    ("SELECT CASE WHEN id = 3 THEN 1 / 0 ELSE 1 END FROM people WHERE id <> 3 LIMIT 1", [(1.0,)], "double"),
]


@pytest.mark.parametrize(("text", "rows", "types"), STATEMENTS, ids=[s[0] for s in STATEMENTS])
def test_statement_gives_spark_rows_and_types(
    db: Database, text: str, rows: list[tuple[Any, ...]], types: str
) -> None:
    result = db.run(text)
    assert " ".join(type_name(field.type) for field in result.schema) == types
    found = [tuple(row) for row in result.collect()]
    if "ORDER BY" not in text:
        found, rows = sorted(found, key=repr), sorted(rows, key=repr)
    assert shown(found) == shown(rows)


def test_columns_without_alias_have_spark_names(db: Database) -> None:
    result = db.run(
        "SELECT count(*), id + 1, CAST(id AS STRING), place.city, upper(name), 1 FROM people GROUP BY ALL"
    )
    assert result.columns == ["count(1)", "(id + 1)", "id", "city", "upper(name)", "1"]


def test_columns_of_one_name_are_both_given(db: Database) -> None:
    result = db.run("SELECT p.id, q.id FROM people p JOIN people q ON p.id = q.id WHERE p.id = 1")
    assert result.columns == ["id", "id"]
    assert result.collect() == [(1, 1)]


def test_parameter_is_a_value_and_never_text(db: Database) -> None:
    assert db.rows("SELECT :v AS v", v="x' OR '1'='1") == [("x' OR '1'='1",)]
    assert db.rows("SELECT id FROM people WHERE id IN (:ids) ORDER BY id", ids=[1, 4]) == [(1,), (4,)]
    assert db.rows("SELECT id FROM people WHERE id IN (:ids)", ids=[]) == []
    assert db.rows("SELECT id FROM people WHERE d > :d", d=Decimal("2")) == [(2,)]
