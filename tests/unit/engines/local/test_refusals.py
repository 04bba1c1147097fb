"""What the local engine cannot mean exactly as Spark does is refused by name."""

import pyarrow as pa
import pytest

from lakevilla.errors import Unsupported
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
    ("SELECT a FROM t QUALIFY row_number() OVER (ORDER BY a) = 1", "qualify"),
    ("WITH RECURSIVE r AS (SELECT 1) SELECT * FROM r", "RECURSIVE"),
    ("SELECT a FROM t UNION BY NAME SELECT a FROM t", "by_name"),
    ("SELECT sum(a) OVER (ORDER BY a RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t", "1 PRECEDING"),
    ("SELECT (a, s) IN ((1, 'x')) FROM t", "several columns"),
    ("SELECT s LIKE ANY ('a', 'b') FROM t", "ANY"),
    ("SELECT a FROM t LIMIT 1 + 1", "LIMIT"),
    ("SELECT stddev(y) FROM VALUES (CAST('NaN' AS DOUBLE)), (1) AS v(y)", "engine='spark'"),
    ("SELECT * FROM read_csv('/etc/passwd')", "read_csv"),
]


@pytest.mark.parametrize(("text", "named"), REFUSED, ids=[r[0] for r in REFUSED])
def test_statement_is_refused_and_named(db: Database, text: str, named: str) -> None:
    with pytest.raises(Unsupported) as caught:
        db.run(text)
    message = str(caught.value)
    assert named.lower() in message.lower()
    assert "engine='spark'" in message
