"""What Spark SQL cannot say is refused by name, and never left out of what an engine is given."""

import pytest
from sqlglot import exp

from lakevilla.errors import Unsupported
from lakevilla.sql.dialect import exact_text
from lakevilla.sql.parser import parse, parse_expression
from lakevilla.sql.query_clauses import refuse_unknown_clauses
from lakevilla.sql.statements import Query
from tests.conformance.engines.known_refusals import STATEMENTS
from tests.conformance.engines.statements.topics import QUERIES
from tests.support.parts_of_trees import accepted_parts, few_trees, overlooked_parts

REFUSED = {
    "SELECT a FROM t LIMIT 1 BY a": "LIMIT BY",
    "SELECT a FROM t LIMIT 1 OFFSET 1 BY a": "OFFSET BY",
    "SELECT a FROM t ORDER BY a LIMIT 1 WITH TIES": "WITH TIES",
    "SELECT a FROM t LIMIT 50 PERCENT": "PERCENT",
    "SELECT a FROM t FETCH FIRST 1 ROWS WITH TIES": "WITH TIES",
    "SELECT a FROM t FETCH FIRST 50 PERCENT ROWS ONLY": "PERCENT",
    "SELECT a FROM t FETCH FIRST ROW ONLY": "FETCH without a number",
    "(SELECT a FROM t) LIMIT 1 BY a": "LIMIT BY",
    "SELECT 1 AS a UNION SELECT 2 AS a LIMIT 1 BY a": "LIMIT BY",
    "SELECT a FROM (t LIMIT 1)": "LIMIT after the name of a table",
    "SELECT a FROM t ORDER BY a WITH FILL FROM 1 TO 10 INTERPOLATE (a)": "WITH FILL",
    "SELECT DISTINCT ON (a) b FROM t": "DISTINCT ON",
    "SELECT a FROM t QUALIFY row_number() OVER (ORDER BY a) = 1": "QUALIFY",
    "SELECT a INTO x FROM t": "INTO",
    "SELECT a FROM t FOR UPDATE": "FOR UPDATE",
    "SELECT EXISTS (SELECT 1 FROM t FOR SHARE NOWAIT)": "FOR SHARE",
    "SELECT a FROM t START WITH a = 1 CONNECT BY PRIOR a = b": "CONNECT BY",
    "SELECT AS STRUCT a FROM t": "SELECT AS STRUCT",
    "SELECT * REPLACE (a + 1 AS a) FROM t": "* REPLACE",
    "SELECT t.* RENAME (a AS b) FROM t": "* RENAME",
    "SELECT a FROM t WITH (NOLOCK)": "hints after a table",
    "SELECT a FROM t WITH ORDINALITY": "WITH ORDINALITY",
    "SELECT a FROM t AT (VERSION => 1)": "AT or BEFORE",
    "SELECT a FROM t AS x TABLESAMPLE (1 ROWS), t": "TABLESAMPLE behind an alias",
    "SELECT a FROM t OUTER APPLY (SELECT 1) u": "OUTER APPLY",
    "SELECT b, count(*) FROM t GROUP BY b WITH TOTALS": "WITH TOTALS",
    "SELECT b, count(*) FROM t GROUP BY DISTINCT b": "GROUP BY DISTINCT",
    "SELECT b, count(*) FROM t GROUP BY ALL b": "GROUP BY ALL together with a list",
    "SELECT sum(a) OVER (ORDER BY b ROWS 1 PRECEDING EXCLUDE CURRENT ROW) FROM t": "EXCLUDE",
    "SELECT array_agg(a ORDER BY b) FROM t": "ORDER BY inside an aggregate",
    "SELECT array_agg(a LIMIT 1) FROM t": "LIMIT inside an aggregate",
    "SELECT any_value(a HAVING MAX b) FROM t": "HAVING MAX",
    "WITH w AS MATERIALIZED (SELECT 1) SELECT * FROM w": "MATERIALIZED",
    "WITH w AS NOT MATERIALIZED (SELECT 1) SELECT * FROM w": "MATERIALIZED",
    "WITH w(x) USING KEY (x) AS (SELECT 1) SELECT * FROM w": "USING KEY",
    "WITH w AS (SELECT 1 AS x) SEARCH DEPTH FIRST BY x SET y SELECT x FROM w": "SEARCH",
    "WITH w AS (SELECT 1 AS x) CYCLE x SET y USING z SELECT x FROM w": "SEARCH or CYCLE",
    "SELECT 1 AS a UNION ALL BY NAME SELECT 2 AS a": "UNION BY NAME",
    "SELECT CAST(a AS INT FORMAT 'x') FROM t": "CAST with FORMAT",
    "SELECT CAST(a AS INT DEFAULT 1 ON CONVERSION ERROR) FROM t": "CAST with DEFAULT",
    "SELECT a AT TIME ZONE 'UTC' FROM t": "AT TIME ZONE",
    "SELECT a IN UNNEST([1]) FROM t": "IN UNNEST",
    "INSERT INTO t SELECT a FROM u LIMIT 1 BY a": "LIMIT BY",
    "UPDATE t SET a = (SELECT max(b) FROM u LIMIT 1 WITH TIES)": "WITH TIES",
    "DELETE FROM t WHERE a IN (SELECT b FROM u FOR UPDATE)": "FOR UPDATE",
    "MERGE INTO t USING (SELECT a FROM u LIMIT 1 BY a) s ON t.a = s.a WHEN MATCHED THEN DELETE": "LIMIT BY",
    "CREATE TABLE n AS SELECT DISTINCT ON (a) b FROM t": "DISTINCT ON",
    "CREATE VIEW v AS SELECT a FROM t LIMIT 1 BY a": "LIMIT BY",
}

MORE = [
    "SELECT id FROM t CLUSTER BY id",
    "SELECT id FROM t DISTRIBUTE BY id SORT BY id",
    "SELECT a, count(*) FROM t GROUP BY a GROUPING SETS ((a), ())",
    "SELECT id FROM t TABLESAMPLE (10 PERCENT) REPEATABLE (1)",
    "SELECT id FROM t TABLESAMPLE (BUCKET 1 OUT OF 4 ON id)",
    "SELECT id FROM t TABLESAMPLE (5 ROWS) x",
    "SELECT * FROM (SELECT * FROM t) PIVOT (sum(a) AS s FOR (id, b) IN ((1, 2) AS x))",
    "SELECT * FROM t UNPIVOT INCLUDE NULLS (v FOR k IN (id AS x, a)) AS z",
    "SELECT * FROM t UNPIVOT ((v, w) FOR k IN ((id, a) AS x)) AS z",
    "SELECT INTERVAL '1-2' YEAR TO MONTH",
    "WITH RECURSIVE w(n) AS (SELECT 1) SELECT n FROM w",
    "SELECT f(a => 1)",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a DESC) FROM t",
    "SELECT id FROM t FETCH FIRST 2 ROWS ONLY",
    "SELECT CAST(s AS STRING COLLATE UNICODE)",
    "(SELECT 1) ORDER BY 1 LIMIT 1 OFFSET 1",
    "SELECT * FROM t VERSION AS OF 1",
    "SELECT 1 UNION SELECT 2 SORT BY 1",
    "SELECT lag(a) RESPECT NULLS OVER (ORDER BY id) FROM t",
    "SELECT overlay(a PLACING 'x' FROM 1 FOR 2)",
    "SELECT position('a', s, 2)",
    "SELECT r'raw\\n', 'two' 'parts', 1 << 3",
]
"""Clauses of Spark SQL that the statements of the conformance suite do not have."""

NO_CLAUSES = {
    ("Concat", "coalesce"),
    ("Concat", "safe"),
    ("DPipe", "safe"),
    ("Div", "safe"),
    ("Div", "typed"),
    ("Fetch", "direction"),
    ("Fetch", "limit_options"),
    ("LimitOptions", "percent"),
    ("LimitOptions", "rows"),
    ("LimitOptions", "with_ties"),
    ("Pivot", "columns"),
    ("Pivot", "default_on_null"),
    ("Pivot", "identify_pivot_strings"),
    ("Pivot", "pivot_column_naming"),
    ("Pivot", "prefixed_pivot_columns"),
    ("Pivot", "value_columns_first"),
    ("Window", "over"),
    *((operation, "distinct") for operation in ("Except", "Intersect", "Union")),
}
"""Parts that the grammar sets itself, or that say nothing (FETCH FIRST or NEXT, ROW or ROWS, DISTINCT)."""


def query(text: str) -> exp.Expr:
    statement = parse(text)
    assert isinstance(statement, Query)
    return statement.tree


def written(tree: exp.Expr) -> str:
    """The text that Spark gets."""
    refuse_unknown_clauses(tree)
    return exact_text(tree)


@pytest.fixture(scope="module")
def trees() -> list[exp.Expr]:
    every = [text for texts in QUERIES.values() for text in texts]
    return few_trees([*MORE, *every, *STATEMENTS])


@pytest.mark.parametrize("text", REFUSED, ids=list(REFUSED))
def test_clause_that_spark_sql_does_not_have_is_refused_by_name(text: str) -> None:
    with pytest.raises(Unsupported) as caught:
        parse(text)
    assert REFUSED[text] in caught.value.message
    assert "Spark SQL has no" in caught.value.message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "INSERT INTO t PARTITION (day = 1) SELECT 1",
            "PARTITION after the name of a table is not supported",
        ),
        ("ALTER TABLE t ADD COLUMN a INT AFTER b", "FIRST and AFTER are not supported"),
    ],
)
def test_clause_that_spark_sql_has_is_not_said_to_be_missing_there(text: str, words: str) -> None:
    with pytest.raises(Unsupported, match=words):
        parse(text)


def test_clause_is_refused_in_an_expression() -> None:
    with pytest.raises(Unsupported, match="FOR UPDATE"):
        parse_expression("a IN (SELECT b FROM u FOR UPDATE)")


def test_no_part_of_a_tree_is_left_out_of_the_text_for_spark(trees: list[exp.Expr]) -> None:
    assert overlooked_parts(trees, written) - NO_CLAUSES == set()


def test_every_other_part_that_the_grammar_knows_is_refused(trees: list[exp.Expr]) -> None:
    assert accepted_parts(trees, written) - NO_CLAUSES == set()


def test_text_for_spark_leaves_with_in_its_subquery() -> None:
    text = (
        "SELECT a.v, b.v FROM (WITH t AS (SELECT 1 AS v) SELECT v FROM t) AS a "
        "CROSS JOIN (WITH t AS (SELECT 2 AS v) SELECT v FROM t) AS b"
    )
    assert exact_text(query(text)) == text
