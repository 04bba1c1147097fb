"""Texts and the statements that they are."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp

from lakevilla.errors import InvalidInput, Position, Unsupported
from lakevilla.model import PartitionField
from lakevilla.sql.dialect import spark_text
from lakevilla.sql.parser import parse, parse_expression
from lakevilla.sql.statements import (
    AddColumns,
    AddConstraint,
    AlterTable,
    CreateTable,
    Delete,
    Describe,
    DescribeDetail,
    DescribeHistory,
    DropColumns,
    DropConstraint,
    DropTable,
    Insert,
    Merge,
    Query,
    RenameColumn,
    RenameTable,
    SetProperties,
    ShowColumns,
    ShowCreateTable,
    ShowProperties,
    ShowTables,
    TableName,
    UnsetProperties,
    Update,
)


def tables(text: str) -> list[str]:
    statement = parse(text)
    assert isinstance(statement, Query)
    return [table.key for table in statement.tables]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT 1", []),
        ("SELECT * FROM a", ["a"]),
        ("SELECT * FROM db.a JOIN `b` ON true, `c d`.e", ["db.a", "b", "c d.e"]),
        ("SELECT * FROM a x JOIN a y ON x.i = y.i", ["a"]),
        ("WITH c AS (SELECT * FROM a) SELECT * FROM c, b", ["a", "b"]),
        ("WITH c AS (SELECT * FROM c) SELECT * FROM C", ["c"]),
        ("WITH c AS (SELECT 1) SELECT * FROM db.c", ["db.c"]),
        ("SELECT * FROM (WITH c AS (SELECT 1) SELECT * FROM c), c", ["c"]),
        ("SELECT * FROM a WHERE i IN (SELECT i FROM b) AND EXISTS (SELECT 1 FROM d)", ["a", "b", "d"]),
        ("SELECT (SELECT max(i) FROM b) FROM a UNION SELECT 1 FROM e", ["b", "a", "e"]),
        ("SELECT * FROM range(10), VALUES (1) AS v(a)", []),
        ("SELECT * FROM a LATERAL VIEW explode(l) t AS x", ["a"]),
        ("SELECT * FROM (a JOIN b ON a.i = b.i)", ["a", "b"]),
        ("SELECT /*+ BROADCAST(b) */ * FROM a", ["a"]),
        ("SELECT * FROM a VERSION AS OF 3 x JOIN a", ["a@v3", "a"]),
    ],
)
def test_tables_are_those_that_the_text_reads(text: str, names: list[str]) -> None:
    assert sorted(tables(text)) == sorted(names)


def test_time_travel_is_a_version_or_a_time() -> None:
    statement = parse(
        "SELECT * FROM t VERSION AS OF :v, u TIMESTAMP AS OF '2024-01-01 01:00:00+01:00'", {"v": 7}
    )
    assert isinstance(statement, Query)
    assert statement.tables == (TableName("t", 7), TableName("u", None, 1_704_067_200_000))
    with pytest.raises(InvalidInput):
        parse("SELECT * FROM t TIMESTAMP AS OF 'yesterday'")


VALUES: list[tuple[Any, str]] = [
    (5, "5"),
    (-5, "(-5)"),
    (True, "TRUE"),
    (None, "NULL"),
    (1.5, "1.5e0"),
    (-0.0, "(-0.0e0)"),
    (1e300, "1e+300"),
    (float("nan"), "CAST('NaN' AS DOUBLE)"),
    ("it's; DROP TABLE t", "'it\\'s; DROP TABLE t'"),
    (Decimal("1.50"), "CAST('1.50' AS DECIMAL(3, 2))"),
    (Decimal("1E+3"), "CAST('1000' AS DECIMAL(4, 0))"),
    (date(2024, 1, 2), "CAST('2024-01-02' AS DATE)"),
    (datetime(2024, 1, 2, 3, tzinfo=UTC), "CAST('2024-01-02 03:00:00+00:00' AS TIMESTAMP_LTZ)"),
    (b"\x01\xff", "X'01ff'"),
    ([1, "a"], "ARRAY(1, 'a')"),
]


@pytest.mark.parametrize(("value", "text"), VALUES)
def test_parameter_becomes_a_literal_of_its_type(value: Any, text: str) -> None:
    assert spark_text(parse_expression(":p", {"p": value})) == text


def test_list_parameter_unfolds_in_an_in() -> None:
    assert spark_text(parse_expression("a IN (:p, 9)", {"p": [1, 2]})) == "a IN (9, 1, 2)"
    assert spark_text(parse_expression("a IN (:p)", {"p": []})) == "FALSE"


@pytest.mark.parametrize(
    ("text", "given"), [("a = :p", {}), ("a = 1", {"p": 1}), ("a = ?", {}), ("a = :p", {"p": {}})]
)
def test_parameters_and_values_must_correspond(text: str, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        parse_expression(text, given)


@pytest.mark.parametrize("text", ["", "a b c", "a, b", "a AS b", "*", "a FROM t", "a; b", "a WHERE b"])
def test_expression_alone_is_one_expression(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_expression(text)


def test_insert_has_columns_and_a_query() -> None:
    statement = parse("WITH c AS (SELECT * FROM b) INSERT INTO db.t (x, y) SELECT * FROM c")
    assert isinstance(statement, Insert)
    assert (statement.table, statement.columns, statement.tables) == ("db.t", ("x", "y"), (TableName("b"),))
    values = parse("INSERT OVERWRITE t VALUES (1, 'a')")
    assert isinstance(values, Insert)
    assert (values.overwrite, values.by_name, isinstance(values.query, exp.Select)) == (True, False, True)
    by_name = parse("INSERT INTO t BY NAME SELECT 1 AS a")
    assert isinstance(by_name, Insert)
    assert by_name.by_name
    replacing = parse("INSERT INTO t REPLACE WHERE a = 1 SELECT 1")
    assert isinstance(replacing, Insert)
    assert replacing.where is not None


def test_update_and_delete_have_alias_condition_and_tables() -> None:
    update = parse("UPDATE db.t AS x SET a = 1, x.b = (SELECT 1 FROM u) WHERE x.c IN (SELECT d FROM v)")
    assert isinstance(update, Update)
    assert (update.table, update.alias, set(update.set)) == ("db.t", "x", {"a", "b"})
    assert update.tables == (TableName("u"), TableName("v"))
    delete = parse("DELETE FROM t WHERE a")
    assert isinstance(delete, Delete)
    assert (delete.table, delete.alias, delete.where is None) == ("t", "t", False)
    assert parse("TRUNCATE TABLE t") == Delete("t", "t", None)


def test_merge_has_clauses_in_order() -> None:
    statement = parse(
        """MERGE INTO t USING s ON t.id = s.id
        WHEN MATCHED AND s.gone THEN DELETE
        WHEN MATCHED THEN UPDATE SET *
        WHEN NOT MATCHED AND s.id > (SELECT 1 FROM u) THEN INSERT (id, v) VALUES (s.id, 1)
        WHEN NOT MATCHED THEN INSERT *
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET t.v = 0"""
    )
    assert isinstance(statement, Merge)
    clauses = statement.clauses
    assert (statement.table, clauses.target_alias, clauses.source_alias) == ("t", "t", "s")
    assert [clause.set for clause in clauses.matched] == [None, "*"]
    assert [clause.values == "*" for clause in clauses.not_matched] == [False, True]
    assert list(clauses.not_matched_by_source[0].set or {}) == ["v"]
    assert set(statement.tables) == {TableName("s"), TableName("u")}


def test_create_table_has_schema_and_clauses() -> None:
    statement = parse(
        """CREATE TABLE IF NOT EXISTS db.t (
            a INT NOT NULL COMMENT 'key', b DECIMAL(10,2), c STRUCT<x: INT, y: ARRAY<STRING>>,
            m MAP<STRING, BIGINT>, n TIMESTAMP_NTZ, CONSTRAINT k CHECK (a > 0))
        USING delta PARTITIONED BY (b) LOCATION 's3://x/y' COMMENT 'hi' TBLPROPERTIES ('p.q' = 'r', z = 1)"""
    )
    assert isinstance(statement, CreateTable)
    assert statement.columns == pa.schema(
        [
            pa.field("a", pa.int32(), False, {"comment": "key"}),
            ("b", pa.decimal128(10, 2)),
            ("c", pa.struct([("x", pa.int32()), ("y", pa.list_(pa.field("element", pa.string())))])),
            ("m", pa.map_(pa.string(), pa.field("value", pa.int64()))),
            ("n", pa.timestamp("us")),
        ]
    )
    assert statement.columns.field("a").metadata == {b"comment": b"key"}
    assert (statement.name, statement.if_not_exists, statement.format) == ("db.t", True, "delta")
    assert (statement.location, statement.comment) == ("s3://x/y", "hi")
    assert statement.partitioned_by == (PartitionField("b", ("b",)),)
    assert statement.properties == {"p.q": "r", "z": "1"}
    assert statement.checks == {"k": "a > 0"}


def test_create_table_as_select_reads_tables() -> None:
    statement = parse("CREATE TABLE t USING delta AS SELECT * FROM u")
    assert isinstance(statement, CreateTable)
    assert (statement.as_query is not None, statement.tables) == (True, (TableName("u"),))


def test_partition_columns_defined_in_place_come_last() -> None:
    statement = parse("CREATE TABLE t (a INT) PARTITIONED BY (day DATE)")
    assert isinstance(statement, CreateTable)
    assert (statement.columns.names, statement.partitioned_by) == (
        ["a", "day"],
        (PartitionField("day", ("day",)),),
    )


ACTIONS = [
    (
        "ADD COLUMNS (a INT COMMENT 'x', b STRING)",
        AddColumns((pa.field("a", pa.int32()), pa.field("b", pa.string()))),
    ),
    ("ADD COLUMN a INT", AddColumns((pa.field("a", pa.int32()),))),
    ("ADD COLUMN (a INT)", AddColumns((pa.field("a", pa.int32()),))),
    ("ADD COLUMN a INT, b STRING", AddColumns((pa.field("a", pa.int32()), pa.field("b", pa.string())))),
    ("add column (a INT, b STRING)", AddColumns((pa.field("a", pa.int32()), pa.field("b", pa.string())))),
    ("DROP COLUMN (a, b)", DropColumns(("a", "b"))),
    ("DROP COLUMN IF EXISTS (a)", DropColumns(("a",), True)),
    ("RENAME COLUMN column TO add", RenameColumn("column", "add")),
    ("RENAME COLUMN a TO b", RenameColumn("a", "b")),
    ("DROP COLUMN a", DropColumns(("a",))),
    ("DROP COLUMNS IF EXISTS (a, b)", DropColumns(("a", "b"), True)),
    ("SET TBLPROPERTIES ('a' = 'b')", SetProperties({"a": "b"})),
    ("UNSET TBLPROPERTIES IF EXISTS ('a', 'b')", UnsetProperties(("a", "b"), True)),
    ("ADD CONSTRAINT k CHECK (a > 0)", AddConstraint("k", "a > 0")),
    ("DROP CONSTRAINT IF EXISTS k", DropConstraint("k", True)),
    ("RENAME TO u", RenameTable("u")),
]


@pytest.mark.parametrize(("text", "action"), ACTIONS)
def test_alter_table_is_one_action(text: str, action: object) -> None:
    assert parse(f"ALTER TABLE db.t {text}") == AlterTable("db.t", action)  # type: ignore[arg-type]


def test_other_statements() -> None:
    assert parse("DROP TABLE IF EXISTS db.t") == DropTable("db.t", True)
    assert parse("DESCRIBE TABLE t") == Describe("t")
    assert parse("DESC HISTORY db.t") == DescribeHistory("db.t")
    assert parse("SHOW HISTORY FOR db.t LIMIT 3") == DescribeHistory("db.t", 3)
    assert parse("DESCRIBE HISTORY db.t LIMIT 3") == DescribeHistory("db.t", 3)
    assert parse("DESCRIBE EXTENDED t") == parse("DESC FORMATTED `t`") == Describe("t", extended=True)
    assert parse("DESCRIBE DETAIL db.t") == DescribeDetail("db.t")
    assert parse("SHOW COLUMNS IN t") == ShowColumns("t")
    assert parse("SHOW CREATE TABLE db.t") == ShowCreateTable("db.t")
    assert parse("SHOW TBLPROPERTIES t (a.b)") == ShowProperties("t", "a.b")
    assert parse("show tables in db like 'a*';") == ShowTables("db", "a*")


REFUSED = [
    "CREATE MATERIALIZED VIEW v AS SELECT 1",
    "CREATE TABLE t (a INT DEFAULT 1)",
    "CREATE TABLE t (a INT GENERATED ALWAYS AS (1))",
    "CREATE TABLE t (a INTERVAL)",
    "CREATE TABLE t LIKE u",
    "ALTER TABLE t ALTER COLUMN a SET NOT NULL",
    "ALTER TABLE t ADD COLUMN a INT FIRST",
    "ALTER TABLE t ADD COLUMN s.b INT",
    "ALTER TABLE t ADD COLUMNS (s.b INT)",
    "INSERT INTO t PARTITION (a = 1) SELECT 1",
    "UPDATE t SET a.b = 1",
    "EXPLAIN SELECT 1",
    "SHOW DATABASES",
    "RELEASE SAVEPOINT a",
    "USE db",
]


EXTRA_CLAUSES = [
    ("DELETE FROM t ORDER BY a LIMIT 1", "DELETE with LIMIT"),
    ("DELETE FROM t TABLESAMPLE (1 ROWS)", "DELETE with TABLESAMPLE"),
    ("DELETE FROM t JOIN u ON t.a = u.a", "DELETE with JOIN"),
    ("DELETE FROM t VERSION AS OF 1", "DELETE with a version"),
    ("DELETE FROM t@v1", "DELETE with a version"),
    ("DELETE t FROM t", "DELETE with a list of tables"),
    ("DELETE FROM t RETURNING a", "DELETE with RETURNING"),
    ("UPDATE t SET a = 1 LIMIT 1", "UPDATE with LIMIT"),
    ("UPDATE t JOIN u ON t.a = u.a SET t.a = 1", "UPDATE with JOIN"),
    ("UPDATE t, u SET a = 1", "UPDATE with JOIN"),
    ("INSERT INTO t VALUES (1) ON CONFLICT (a) DO NOTHING", "INSERT with ON CONFLICT"),
    ("INSERT OR REPLACE INTO t VALUES (1)", "INSERT with OR"),
    ("INSERT INTO t VALUES (1) RETURNING a", "INSERT with RETURNING"),
    ("TRUNCATE TABLE t PARTITION (a = 1)", "TRUNCATE TABLE with PARTITION"),
    ("TRUNCATE TABLE IF EXISTS t", "TRUNCATE TABLE with IF EXISTS"),
    ("DROP TABLE t CASCADE", "DROP with CASCADE"),
    ("MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE RETURNING a", "MERGE with RETURNING"),
    (
        "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN UPDATE SET a = 1 WHERE t.a = 1",
        "MERGE with WHERE",
    ),
]


@pytest.mark.parametrize(("text", "words"), EXTRA_CLAUSES)
def test_clause_that_would_be_ignored_is_refused(text: str, words: str) -> None:
    with pytest.raises(Unsupported, match=words):
        parse(text)


@pytest.mark.parametrize("text", REFUSED)
def test_statement_that_is_not_supported_is_refused(text: str) -> None:
    with pytest.raises(Unsupported):
        parse(text)


@pytest.mark.parametrize(
    "word", ["BEGIN", "START TRANSACTION", "COMMIT", "ROLLBACK TO SAVEPOINT a", "SAVEPOINT a"]
)
def test_statement_of_a_session_says_what_to_write_in_python(word: str) -> None:
    with pytest.raises(InvalidInput, match=r"with lake\.transaction"):
        parse(word)


def test_syntax_error_names_the_place() -> None:
    with pytest.raises(InvalidInput, match=r"at line 2, column 8:\n  FROM t = 2\n         \^") as error:
        parse("SELECT a\nFROM t = 2")
    assert error.value.position == Position(start=16, end=17, line=2, column=8)
    assert error.value.message == "SQL syntax error: unexpected '='"


@pytest.mark.parametrize(
    "text", ["", "-- nothing", "SELECT 1; SELECT 2", "SELECT 'open", "SELECT (1", "SELEC 1", "a"]
)
def test_text_that_is_not_one_statement_is_invalid(text: str) -> None:
    with pytest.raises((InvalidInput, Unsupported)):
        parse(text)


def test_function_keeps_the_name_that_was_written() -> None:
    for text in ("nvl(a, b)", "date_add(a, 1)", "collect_list(a)", "array(1, 2)[0]", "len(a)", "ceil(a)"):
        assert spark_text(parse_expression(text)).lower() == text


def test_expression_parsed_twice_is_bound_and_changed_apart() -> None:
    first = parse_expression("a > :least", {"least": 1})
    second = parse_expression("a > :least", {"least": 2})
    first.this.replace(exp.column("b"))
    assert [tree.sql() for tree in (first, second)] == ["b > 1", "a > 2"]
    assert parse_expression("a > :least", {"least": 3}).sql() == "a > 3"
