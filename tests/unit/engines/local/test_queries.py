"""Queries against answers worked out by hand from Spark's definitions, values and types."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakevilla.errors import InvalidInput
from lakevilla.sql.types import type_name
from tests.unit.engines.local.tables import Database, Table, schema

NAN = float("nan")
INF = float("inf")
MOMENT = datetime(2024, 2, 29, 13, 14, 15, 600_000, tzinfo=UTC)


@pytest.fixture(scope="module")
def db() -> Database:
    people = Table(
        "people",
        schema(
            id=pa.int32(),
            name=pa.string(),
            x=pa.float64(),
            d=pa.decimal128(10, 2),
            ok=pa.bool_(),
            day=pa.date32(),
            at=pa.timestamp("us", "UTC"),
            tags=pa.list_(pa.field("element", pa.string())),
            place=pa.struct([("city", pa.string()), ("zip", pa.int32())]),
            m=pa.map_(pa.string(), pa.int32()),
        ),
    )
    people.add(
        [
            row(1, "Ann", 1.5, "1.50", True, date(2024, 2, 29), MOMENT, ["a", "b"], ("Oslo", 1), {"k": 1}),
            row(2, "bob", NAN, "2.25", False, date(1969, 12, 31), None, [], ("Rome", None), {}),
        ]
    ).add(
        [
            row(3, None, None, None, None, None, None, None, None, None),
            row(4, "Ann", -0.0, "-3.10", True, date(2024, 3, 1), MOMENT, [None, "c"], ("Oslo", 4), {"k": 4}),
        ]
    )
    empty = Table("empty", schema(id=pa.int32(), x=pa.float64(), d=pa.decimal128(10, 2)))
    pairs = Table("pairs", schema(a=pa.int32(), b=pa.int64())).add(
        [{"a": 1, "b": 10}, {"a": 1, "b": 20}, {"a": 2, "b": None}, {"a": None, "b": 40}]
    )
    return Database(people, empty, pairs)


def row(number: int, *values: Any) -> dict[str, Any]:
    names = ("name", "x", "d", "ok", "day", "at", "tags", "place", "m")
    given = dict(zip(names, values, strict=True))
    given["d"] = None if given["d"] is None else Decimal(given["d"])
    given["place"] = (
        None if given["place"] is None else dict(zip(("city", "zip"), given["place"], strict=True))
    )
    given["m"] = None if given["m"] is None else list(given["m"].items())
    return {"id": number, **given}


def shown(value: Any) -> str:
    """Text that tells 1 from 1.0 and from True, -0.0 from 0.0, and finds NaN equal to itself."""
    return repr(value).replace("zoneinfo.ZoneInfo(key='UTC')", "datetime.timezone.utc")


# Expression, value, type.
EXPRESSIONS: list[tuple[str, Any, str]] = [
    # literals
    ("1", 1, "int"),
    ("2147483648", 2147483648, "bigint"),
    ("-2147483648", -2147483648, "int"),
    ("9223372036854775808", Decimal("9223372036854775808"), "decimal(19,0)"),
    ("1.0", Decimal("1.0"), "decimal(2,1)"),
    ("0.05", Decimal("0.05"), "decimal(2,2)"),
    ("1e0", 1.0, "double"),
    ("1L", 1, "bigint"),
    ("1S", 1, "smallint"),
    ("1Y", 1, "tinyint"),
    ("1.5D", 1.5, "double"),
    ("1.5BD", Decimal("1.5"), "decimal(2,1)"),
    ("NULL", None, "void"),
    ("true", True, "boolean"),
    ("'it\\'s'", "it's", "string"),
    ('"quoted"', "quoted", "string"),
    ("'a\\tb'", "a\tb", "string"),
    ("X'1F'", b"\x1f", "binary"),
    ("DATE '2024-01-31'", date(2024, 1, 31), "date"),
    ("TIMESTAMP '2024-01-31 10:00:00'", datetime(2024, 1, 31, 10, tzinfo=UTC), "timestamp"),
    ("TIMESTAMP_NTZ '2024-01-31 10:00:00'", datetime(2024, 1, 31, 10), "timestamp_ntz"),
    # arithmetic
    ("1 + 1", 2, "int"),
    ("1 + 1L", 2, "bigint"),
    ("1Y + 1Y", 2, "tinyint"),
    ("1 / 2", 0.5, "double"),
    ("7 div 2", 3, "bigint"),
    ("-7 div 2", -3, "bigint"),
    ("-7 % 3", -1, "int"),
    ("-7 % 3.0", Decimal("-1.0"), "decimal(2,1)"),
    ("pmod(-7, 3)", 2, "int"),
    ("1 + 1.5", Decimal("2.5"), "decimal(3,1)"),
    ("1 + 1.5e0", 2.5, "double"),
    ("CAST(1 AS FLOAT) + 1", 2.0, "double"),
    ("CAST(1 AS FLOAT) + CAST(1 AS FLOAT)", 2.0, "float"),
    ("CAST(1.10 AS DECIMAL(10,2)) * CAST(2.5 AS DECIMAL(5,1))", Decimal("2.750"), "decimal(16,3)"),
    ("CAST(1 AS DECIMAL(10,2)) / CAST(3 AS DECIMAL(10,2))", Decimal("0.3333333333333"), "decimal(23,13)"),
    ("CAST(-2 AS DECIMAL(10,2)) / CAST(3 AS DECIMAL(10,2))", Decimal("-0.6666666666667"), "decimal(23,13)"),
    ("CAST(5 AS DECIMAL(10,2)) / 2", Decimal("2.500000"), "decimal(14,6)"),
    ("'2' + 1", 3, "bigint"),
    ("'2.5' + 1.0", 3.5, "double"),
    ("-(-5)", 5, "int"),
    ("5 & 3", 1, "int"),
    ("5 | 3", 7, "int"),
    ("5 ^ 3", 6, "int"),
    ("~5", -6, "int"),
    # comparisons
    ("1 = 1.0", True, "boolean"),
    ("1 == 1", True, "boolean"),
    ("'1' = 1", True, "boolean"),
    ("'10' < 9", False, "boolean"),
    ("NULL = NULL", None, "boolean"),
    ("NULL <=> NULL", True, "boolean"),
    ("1 <=> NULL", False, "boolean"),
    ("CAST('NaN' AS DOUBLE) = CAST('NaN' AS DOUBLE)", True, "boolean"),
    ("CAST('NaN' AS DOUBLE) > CAST('Infinity' AS DOUBLE)", True, "boolean"),
    ("DATE '2024-01-31' = '2024-01-31'", True, "boolean"),
    ("DATE '2024-01-31' < TIMESTAMP '2024-01-31 00:00:01'", True, "boolean"),
    ("1 IN (2, NULL)", None, "boolean"),
    ("1 NOT IN (2, NULL)", None, "boolean"),
    ("1 IN (1.0, 5)", True, "boolean"),
    ("2 BETWEEN 1 AND 3", True, "boolean"),
    ("'abc' LIKE 'a%'", True, "boolean"),
    ("'a%c' LIKE 'a\\\\%c'", True, "boolean"),
    ("'abc' LIKE 'a!%c' ESCAPE '!'", False, "boolean"),
    ("'ABC' ILIKE 'a_c'", True, "boolean"),
    ("'abc' RLIKE 'b.'", True, "boolean"),
    ("NOT true AND NULL", False, "boolean"),
    ("NULL OR true", True, "boolean"),
    ("true IS NOT NULL", True, "boolean"),
    # casts
    ("CAST('12' AS INT)", 12, "int"),
    ("CAST(' -7 ' AS INT)", -7, "int"),
    ("CAST(2.7 AS INT)", 2, "int"),
    ("CAST(-2.7e0 AS INT)", -2, "int"),
    ("CAST(true AS INT)", 1, "int"),
    ("CAST(0 AS BOOLEAN)", False, "boolean"),
    ("CAST('yes' AS BOOLEAN)", True, "boolean"),
    ("CAST('1.005' AS DECIMAL(5,2))", Decimal("1.01"), "decimal(5,2)"),
    ("CAST(1.005e0 AS DECIMAL(5,2))", Decimal("1.01"), "decimal(5,2)"),
    ("CAST('1e3' AS DOUBLE)", 1000.0, "double"),
    ("CAST('-Infinity' AS DOUBLE)", -INF, "double"),
    ("CAST(1.5 AS STRING)", "1.5", "string"),
    ("CAST(100000.0e0 AS STRING)", "100000.0", "string"),
    ("CAST(TIMESTAMP '2024-01-31 10:00:00.5' AS STRING)", "2024-01-31 10:00:00.5", "string"),
    ("CAST(DATE '2024-01-31' AS STRING)", "2024-01-31", "string"),
    ("CAST('2024-1-5' AS DATE)", date(2024, 1, 5), "date"),
    ("CAST('2024-01-05 11:12:13' AS DATE)", date(2024, 1, 5), "date"),
    (
        "CAST('2024-01-05T11:12:13+02:30' AS TIMESTAMP)",
        datetime(2024, 1, 5, 8, 42, 13, tzinfo=UTC),
        "timestamp",
    ),
    ("CAST('2024-01-05 11:12' AS TIMESTAMP)", datetime(2024, 1, 5, 11, 12, tzinfo=UTC), "timestamp"),
    ("CAST(TIMESTAMP '1969-12-31 23:59:59.5' AS BIGINT)", -1, "bigint"),
    ("CAST(NULL AS INT)", None, "int"),
    ("TRY_CAST('x' AS INT)", None, "int"),
    ("TRY_CAST('1.5' AS INT)", None, "int"),
    ("TRY_CAST(300 AS TINYINT)", None, "tinyint"),
    ("TRY_CAST('2024-13-01' AS DATE)", None, "date"),
    # conditions
    ("CASE WHEN 1 > 2 THEN 'a' END", None, "string"),
    ("CASE 1 WHEN 1 THEN 1 ELSE 2.5 END", Decimal("1.0"), "decimal(11,1)"),
    ("IF(true, 1, 2L)", 1, "bigint"),
    ("coalesce(NULL, 1, 2.5e0)", 1.0, "double"),
    ("nvl(NULL, 'x')", "x", "string"),
    ("nullif(1, 1)", None, "int"),
    ("greatest(1, NULL, 3)", 3, "int"),
    ("least(1, 2.5)", Decimal("1.0"), "decimal(11,1)"),
    ("isnan(NULL)", False, "boolean"),
    # strings
    ("concat('a', NULL)", None, "string"),
    ("concat(1, 'b')", "1b", "string"),
    ("'a' || 1 || 'c'", "a1c", "string"),
    ("concat_ws('-', 'a', NULL, 'b')", "a-b", "string"),
    ("substring('hello', 0, 2)", "he", "string"),
    ("substring('hello', -3, 2)", "ll", "string"),
    ("substring('hello', -10, 7)", "he", "string"),
    ("substring('hello', 2)", "ello", "string"),
    ("substring('hello' FROM 2 FOR 3)", "ell", "string"),
    ("left('hello', -1)", "", "string"),
    ("right('hello', 2)", "lo", "string"),
    ("upper('Müller')", "MÜLLER", "string"),
    ("lower('ÀB')", "àb", "string"),
    ("length('añb')", 3, "int"),
    ("trim('  a\\t ')", "a\t", "string"),
    ("trim(BOTH 'x' FROM 'xax')", "a", "string"),
    ("lpad('7', 3, '0')", "007", "string"),
    ("rpad('abcd', 2)", "ab", "string"),
    ("instr('hello', 'l')", 3, "int"),
    ("locate('z', 'hello')", 0, "int"),
    ("replace('abc', 'b', 'x')", "axc", "string"),
    ("repeat('ab', 2)", "abab", "string"),
    ("reverse('abc')", "cba", "string"),
    ("split('a,b,,', ',')", ["a", "b", "", ""], "array<string>"),
    ("split_part('a.b.c', '.', -1)", "c", "string"),
    ("startswith('abc', 'ab')", True, "boolean"),
    ("regexp_extract('a1b2', '([a-z])(\\\\d)', 2)", "1", "string"),
    ("regexp_replace('a1b2', '(\\\\d)', '<$1>')", "a<1>b<2>", "string"),
    ("translate('abcba', 'ab', 'x')", "xcx", "string"),
    ("md5('a')", "0cc175b9c0f1b6a831c399e269772661", "string"),
    # numbers
    ("abs(-1.5)", Decimal("1.5"), "decimal(2,1)"),
    ("ceil(-0.5e0)", 0, "bigint"),
    ("floor(-1.5)", Decimal("-2"), "decimal(2,0)"),
    ("round(2.5)", Decimal("3"), "decimal(2,0)"),
    ("round(-2.5e0)", -3.0, "double"),
    ("round(1.005e0, 2)", 1.01, "double"),
    ("round(25, -1)", 30, "int"),
    ("sqrt(-1)", NAN, "double"),
    ("power(2, 10)", 1024.0, "double"),
    ("sign(-3)", -1.0, "double"),
    ("mod(7, 4)", 3, "int"),
    ("try_divide(1, 0)", None, "double"),
    # dates
    ("year(DATE '2024-02-29')", 2024, "int"),
    ("dayofweek(DATE '2024-05-05')", 1, "int"),
    ("weekday(DATE '2024-05-05')", 6, "int"),
    ("weekofyear(DATE '2024-12-30')", 1, "int"),
    ("EXTRACT(MONTH FROM DATE '2024-02-29')", 2, "int"),
    ("hour(TIMESTAMP '2024-01-01 13:00:00')", 13, "int"),
    ("date_add(DATE '2024-02-28', 2)", date(2024, 3, 1), "date"),
    ("DATE '2024-01-31' + INTERVAL 1 MONTH", date(2024, 2, 29), "date"),
    ("DATE '2024-01-31' - 1", date(2024, 1, 30), "date"),
    ("DATE '2024-01-31' + INTERVAL 1 HOUR", datetime(2024, 1, 31, 1, tzinfo=UTC), "timestamp"),
    ("TIMESTAMP '2024-01-31 00:00:00' - INTERVAL '1' DAY", datetime(2024, 1, 30, tzinfo=UTC), "timestamp"),
    ("add_months(DATE '2024-02-29', 12)", date(2025, 2, 28), "date"),
    ("datediff(DATE '2024-03-01', DATE '2024-02-01')", 29, "int"),
    ("last_day(DATE '2024-02-01')", date(2024, 2, 29), "date"),
    ("date_trunc('week', TIMESTAMP '2024-05-05 10:00:00')", datetime(2024, 4, 29, tzinfo=UTC), "timestamp"),
    ("trunc(DATE '2024-05-05', 'MM')", date(2024, 5, 1), "date"),
    ("to_date('2024-05-06')", date(2024, 5, 6), "date"),
    ("date_format(TIMESTAMP '2024-05-06 07:08:09', 'yyyy/MM/dd HH:mm:ss')", "2024/05/06 07:08:09", "string"),
    ("unix_timestamp(TIMESTAMP '1970-01-02 00:00:00')", 86400, "bigint"),
    ("timestamp_seconds(1)", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "timestamp"),
    ("timestampdiff(HOUR, TIMESTAMP '2024-01-01 00:00:00', TIMESTAMP '2024-01-01 01:59:00')", 1, "bigint"),
    ("make_date(2024, 2, 29)", date(2024, 2, 29), "date"),
    ("current_timestamp()", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC), "timestamp"),
    ("current_date", date(2023, 11, 14), "date"),
    # nested
    ("array(1, 2.5)", [Decimal("1.0"), Decimal("2.5")], "array<decimal(11,1)>"),
    ("array(1, 2)[0]", 1, "int"),
    ("get(array(1, 2), 5)", None, "int"),
    ("element_at(array(1, 2), -1)", 2, "int"),
    ("size(array())", 0, "int"),
    ("size(CAST(NULL AS ARRAY<INT>))", None, "int"),
    ("array_contains(array(1, NULL), 2)", None, "boolean"),
    ("array_contains(array(1, NULL), 1)", True, "boolean"),
    ("sort_array(array(2, NULL, 1))", [None, 1, 2], "array<int>"),
    ("sort_array(array(2, NULL, 1), false)", [2, 1, None], "array<int>"),
    ("transform(array(1, 2), x -> x * 2)", [2, 4], "array<int>"),
    ("filter(array(1, NULL, 3), x -> x > 1)", [3], "array<int>"),
    ("flatten(array(array(1), array(2, 3)))", [1, 2, 3], "array<int>"),
    ("map('a', 1)['a']", 1, "int"),
    ("map('a', 1)['b']", None, "int"),
    ("map_keys(map('a', 1))", ["a"], "array<string>"),
    ("named_struct('a', 1, 'b', 'x').b", "x", "string"),
    ("typeof(struct(1, 'a'))", "struct<col1:int,col2:string>", "string"),
]


@pytest.mark.parametrize(("text", "value", "data_type"), EXPRESSIONS, ids=[e[0] for e in EXPRESSIONS])
def test_expression_has_spark_value_and_type(db: Database, text: str, value: Any, data_type: str) -> None:
    result = db.run(f"SELECT {text} AS v")
    assert type_name(result.schema.field("v").type) == data_type
    assert shown(result.collect()[0][0]) == shown(value)


FAILING = [
    "1 / 0",
    "5 % 0",
    "7 div 0",
    "CAST(1 AS DECIMAL(5,2)) / 0",
    "2147483647 + 1",
    "9223372036854775807L + 1",
    "127Y + 1Y",
    "-(CAST(-128 AS TINYINT))",
    "CAST('1.5' AS INT)",
    "CAST('x' AS DOUBLE)",
    "CAST('' AS INT)",
    "CAST('maybe' AS BOOLEAN)",
    "CAST('2024-13-01' AS DATE)",
    "CAST(300 AS TINYINT)",
    "CAST(1e10 AS INT)",
    "CAST(CAST('NaN' AS DOUBLE) AS INT)",
    "CAST(123.45 AS DECIMAL(4,2))",
    "'abc' = 1",
    "array(1, 2)[2]",
    "array(1, 2)[-1]",
    "element_at(array(1), 0)",
    "'abc' LIKE 'a\\\\bc'",
    "(SELECT col1 FROM VALUES (1), (2))",
    "abs(CAST(-2147483648 AS INT))",
]


@pytest.mark.parametrize("text", FAILING)
def test_value_that_ansi_refuses_is_invalid_input(db: Database, text: str) -> None:
    with pytest.raises(InvalidInput):
        db.run(f"SELECT {text}")


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
