"""Errors of SQL: they show the place in the user's text, suggest, and name nothing of ours."""

import re

import pytest

import lakevilla as lv
from tests.lake.sql.misspelt import COLUMNS, KEYWORDS, SETUP, check_column, refuse_half_rows

INTERNAL = re.compile(
    r"\b[ctinx]\d+\b|Whens|sqlglot|duckdb|WatchedCounts|TokenType|<class|SQLSTATE", re.IGNORECASE
)


@pytest.fixture(scope="module")
def lake() -> lv.Lake:
    lake = lv.Lake("memory://", engine="local")
    lake.sql("CREATE TABLE accounts (id BIGINT NOT NULL, balance INT, name STRING, more STRUCT<x: INT>)")
    lake.sql("INSERT INTO accounts VALUES (1, 10, 'a', NULL), (2, 20, 'b', NULL)")
    return lake


def test_source_without_a_column_of_the_star_names_both(lake: lv.Lake) -> None:
    refuse_half_rows(lake)


MISTAKES = [
    ("SELCT 1", "SELCT", "unknown statement SELCT; did you mean SELECT?"),
    ("INSRT INTO t VALUES (1)", "INSRT", "did you mean INSERT?"),
    ("SELECT * FORM accounts", "FORM", "did you mean FROM?"),
    ("SELECT * FROM WHERE", "WHERE", "expected table name"),
    ("SELECT a b c FROM accounts", "c", "unexpected 'c'"),
    ("SELECT 'open", "'", "the string that starts here is not closed"),
    ("DELETE FROM accounts WHERE", "WHERE", "WHERE is not complete"),
    ("SELECT lenght(name) FROM accounts", "lenght", "unknown function 'lenght'; did you mean 'length'?"),
    ("SELECT\n  blance FROM accounts", "blance", "unknown column 'blance'; did you mean 'balance'?"),
    ("SELECT id FROM accounts x ORDER BY x.nmae", "x.nmae", "did you mean 'name'?"),
    ("SELECT 1 FROM acounts", "acounts", "did you mean 'accounts'?"),
    ("SELECT id FROM acounts WHERE id IN (SELECT id FROM accounts)", "acounts", "did you mean 'accounts'?"),
    ("UPDATE accounts SET blance = 1", "blance", "did you mean 'balance'?"),
    ("INSERT INTO accounts (idd) VALUES (1)", "idd", "did you mean 'id'?"),
    ("SELECT upper(id + array(1)) FROM accounts", "id + array(1", "cannot be applied"),
    ("SELECT id FROM accounts WHERE name", "name", "a condition must be boolean"),
    ("SELECT name, sum(balance) FROM accounts", "name", "column 'name' must be in GROUP BY"),
    ("SELECT id FROM accounts JOIN accounts b ON accounts.id = b.id", "id", "ambiguous"),
    ("SHOW TABELS", "TABELS", "did you mean 'TABLES'?"),
    ("OPTIMIZE accounts ORDER BY id", "ORDER", "ZORDER BY"),
    ("REGISTER t '/data/t'", "REGISTER", "lake.register(name, location)"),
    ("CALL system.register_table('t', '/data/t')", "CALL", "lake.register(name, location)"),
    ("SELECT * FROM delta.`/data/t`", "delta.`/data/t", "lake.register('t', '/data/t')"),
    ("SELECT * FROM '/data/x.y/t'", "/data/x.y/t", "lake.register('t', '/data/x.y/t')"),
    ("SELECT 1 +", "+", "something is missing near"),
    ("MERGE INTO accounts USING accounts s ON 1 = 1", "1", "MERGE needs WHEN MATCHED"),
    ("SELECT id, FROM accounts", ",", "nothing follows the comma before FROM"),
    ("CREATE TABLE t (id BIGIT)", "BIGIT", "unknown type 'BIGIT'; did you mean BIGINT?"),
    ("ALTER TABLE accounts ADD COLUMN x STRNG", "STRNG", "did you mean STRING?"),
    ("SELECT CAST(id AS INTT) FROM accounts", "INTT", "unknown type 'INTT'; did you mean INT?"),
    ("SELECT * FROM accounts WHERE id = ?", "?", "parameters need names"),
    ("SELECT * FROM accounts WHERE id = :x", ":x", "missing value for parameter :x"),
    ("SELECT * FROM accounts AT (SEK => 1)", "SEK", "expected SEQ, TAG or TIMESTAMP"),
    ("SELECT * FROM accounts AT (TIMESTAMP => 'today')", "'today'", "is not a time"),
    ("SELECT * FROM accounts AT (TIMESTAMP => '3')", "'3'", "is not a time"),
    ("RESTORE LAKE TO TIMESTAMP AS OF 'eom'", "'eom'", "is not a time"),
    ("SHOW SCHEMAS", "SCHEMAS", "information_schema.schemata"),
]


@pytest.mark.parametrize(("text", "place", "words"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_mistake_is_shown_at_its_place(lake: lv.Lake, text: str, place: str, words: str) -> None:
    with pytest.raises(lv.LakeVillaError) as error:
        lake.sql(text)
    found = error.value.position
    assert words in error.value.message
    assert found is not None
    assert text[found.start : found.end] == place
    assert found.line == text[: found.start].count("\n") + 1
    *_, line, carets = str(error.value).splitlines()
    assert line[carets.index("^") : carets.index("^") + len(carets.strip())] == place
    assert not INTERNAL.search(str(error.value))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM accounts HAVING balance > 1",
        "SELECT (SELECT id FROM accounts) FROM accounts",
        "SELECT substring(name) FROM accounts",
        "SELECT id FROM accounts WHERE row_number() OVER (ORDER BY id) = 1",
        "SELECT 127Y + 1Y",
        "SELECT date '2026-99-01'",
        "SELECT count(DISTINCT) FROM accounts",
        "UPDATE accounts SET id = NULL",
        "SELECT more.y FROM accounts",
    ],
)
def test_mistake_that_the_data_shows_names_nothing_of_ours(lake: lv.Lake, text: str) -> None:
    with pytest.raises(lv.LakeVillaError) as error:
        lake.sql(text)
    assert not INTERNAL.search(str(error.value))
    assert len(error.value.message.splitlines()) == 1


@pytest.fixture(scope="module")
def shop() -> lv.Lake:
    lake = lv.Lake("memory://", engine="local")
    for text in SETUP:
        lake.sql(text)
    return lake


@pytest.mark.parametrize("text", COLUMNS)
def test_misspelt_column_is_shown_in_every_clause(shop: lv.Lake, text: str) -> None:
    check_column(shop, text)


@pytest.mark.parametrize(("text", "place"), KEYWORDS)
def test_misspelt_keyword_is_shown(shop: lv.Lake, text: str, place: str) -> None:
    with pytest.raises(lv.LakeVillaError) as error:
        shop.sql(text)
    found = error.value.position
    assert found is not None
    assert text[found.start : found.end] == place
    assert not INTERNAL.search(str(error.value))


def test_expression_of_a_verb_is_shown_as_it_was_given(lake: lv.Lake) -> None:
    with pytest.raises(lv.InvalidInput) as error:
        lake.delete("accounts", where="id = = 1")
    assert str(error.value).endswith("at line 1, column 6:\n  id = = 1\n       ^")


def test_error_of_a_constraint_does_not_point_into_the_statement(lake: lv.Lake) -> None:
    lake.sql("CREATE TABLE checked (a INT, CONSTRAINT c CHECK (a > 0))")
    with pytest.raises(lv.InvalidInput, match="is violated") as error:
        lake.sql("INSERT INTO checked VALUES (-1)")
    assert error.value.position is None


def test_long_line_is_cut_around_the_place(lake: lv.Lake) -> None:
    text = "SELECT " + ", ".join(["id"] * 100) + ", blance, " + ", ".join(["id"] * 100) + " FROM accounts"
    with pytest.raises(lv.InvalidInput) as error:
        lake.sql(text)
    _, _, line, carets = str(error.value).splitlines()
    assert len(line) < 120
    assert line[carets.index("^") :].startswith("blance")
