"""What the local engine cannot mean exactly as Spark does is refused by name."""

import pyarrow as pa
import pytest

from lakevilla.errors import InvalidInput, Unsupported
from tests.unit.engines.local.tables import Database, Table, schema


@pytest.fixture(scope="module")
def db() -> Database:
    table = Table("t", schema(a=pa.int32(), s=pa.string(), x=pa.float64(), d=pa.decimal128(38, 10)))
    return Database(table.add([{"a": 1, "s": "straße", "x": 1e20, "d": None}]))


REFUSED = [
    ("SELECT rand()", "rand"),
    ("SELECT uuid()", "uuid"),
    ("SELECT approx_count_distinct(a) FROM t", "approx_count_distinct"),
    ("SELECT percentile_approx(a, 0.5) FROM t", "percentile_approx"),
    ("SELECT from_json(s, 'a INT') FROM t", "from_json"),
    ("SELECT initcap(s) FROM t", "initcap"),
    ("SELECT max_by(a, s) FROM t", "max_by"),
    ("SELECT aggregate(array(1), 0, (p, q) -> p + q)", "aggregate"),
    ("SELECT exists(array(1), q -> q > 1)", "exists"),
    ("SELECT date_format(DATE '2024-01-01', 'EEE')", "EEE"),
    ("SELECT to_date('01/02/2024', 'dd/MM/yyyy')", "dd/MM/yyyy"),
    ("SELECT split(s, '[0-9]') FROM t", "split"),
    ("SELECT s RLIKE '(?i)a' FROM t", "(?i)a"),
    ("SELECT s RLIKE s FROM t", "not a literal"),
    ("SELECT DATE '2024-01-02' - DATE '2024-01-01'", "-"),
    ("SELECT INTERVAL 1 DAY", "INTERVAL"),
    ("SELECT EXTRACT(SECOND FROM TIMESTAMP '2024-01-01 00:00:00')", "SECOND"),
    ("SELECT d * d FROM t", "38 digits"),
    ("SELECT d / 3 FROM t", "38 digits"),
    ("SELECT upper(s) FROM t", "upper"),
    ("SELECT CAST(x AS STRING) FROM t", "float"),
    ("SELECT CAST(array(1) AS STRING)", "array<int>"),
    ("SELECT a FROM t SORT BY a", "sort"),
    ("SELECT a FROM t DISTRIBUTE BY a", "distribute"),
    ("SELECT a FROM t TABLESAMPLE (10 PERCENT)", "sample"),
    ("SELECT * FROM t PIVOT (sum(a) FOR s IN ('x'))", "pivots"),
    ("WITH RECURSIVE r AS (SELECT 1) SELECT * FROM r", "RECURSIVE"),
    ("SELECT sum(a) OVER (ORDER BY a RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t", "1 PRECEDING"),
    ("SELECT (a, s) IN ((1, 'x')) FROM t", "several columns"),
    ("SELECT s LIKE ANY ('a', 'b') FROM t", "ANY"),
    ("SELECT a FROM t LIMIT 1 + 1", "LIMIT"),
    ("SELECT stddev(y) FROM VALUES (CAST('NaN' AS DOUBLE)), (1) AS v(y)", "engine='spark'"),
    ("SELECT * FROM read_csv('/etc/passwd')", "read_csv"),
    ("SELECT count(*) FROM t LEFT CROSS JOIN t u", "LEFT CROSS JOIN"),
    ("SELECT count(*) FROM t RIGHT SEMI JOIN t u ON t.a = u.a", "RIGHT SEMI JOIN"),
    ("SELECT count(*) FROM t RIGHT ANTI JOIN t u ON t.a = u.a", "RIGHT ANTI JOIN"),
    ("SELECT count(*) FROM t JOIN (SELECT 1 AS a) x JOIN t u ON x.a = u.a ON t.a = x.a", "nested"),
    ("SELECT percentile(a, 0.5, 2) FROM t", "percentile"),
    ("SELECT count_if(DISTINCT a > 1) FROM t", "count_if"),
]

INVALID = [
    "SELECT sum(a) IGNORE NULLS FROM t",
    "SELECT rank() IGNORE NULLS OVER (ORDER BY a) FROM t",
    "SELECT grouping(a) FILTER (WHERE a = 1) FROM t GROUP BY a",
    "SELECT grouping(DISTINCT a) FROM t GROUP BY a",
    "SELECT count() FROM t",
    "SELECT sum(a) OVER w FROM t WINDOW w AS (ORDER BY a), w AS (ORDER BY s)",
    "SELECT t.a FROM t NATURAL JOIN t u ON t.a = u.a",
    "SELECT t.a FROM t NATURAL CROSS JOIN t u",
    "SELECT t.a FROM t NATURAL LEFT ANTI JOIN t u",
]
"""What Spark refuses, too."""


@pytest.mark.parametrize(("text", "named"), REFUSED, ids=[r[0] for r in REFUSED])
def test_statement_is_refused_and_named(db: Database, text: str, named: str) -> None:
    with pytest.raises(Unsupported) as caught:
        db.run(text)
    message = str(caught.value)
    assert named.lower() in message.lower()
    assert "engine='spark'" in message


@pytest.mark.parametrize("text", INVALID)
def test_statement_is_refused_as_spark_refuses_it(db: Database, text: str) -> None:
    with pytest.raises(InvalidInput):
        db.run(text)


def test_type_with_a_collation_is_refused(db: Database) -> None:
    with pytest.raises(Unsupported, match="COLLATE"):
        db.run("SELECT a FROM t WHERE CAST(s AS STRING COLLATE UTF8_LCASE) = 'A'")
