"""Texts of several statements: where one ends and the next starts."""

import pytest

from lakevilla.errors import InvalidInput
from lakevilla.sql.script.lexer import Unclosed, first_word, lex
from lakevilla.sql.script.splitter import is_complete, only_piece, split


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("", []),
        (" ; ;; -- only ; comments\n", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1; SELECT 2 ;", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';', \"a;b\"; SELECT `c;d`", ["SELECT ';', \"a;b\"", "SELECT `c;d`"]),
        (r"SELECT 'it\';s'; SELECT 2", [r"SELECT 'it\';s'", "SELECT 2"]),
        (r"SELECT r'\'; SELECT 2", [r"SELECT r'\'", "SELECT 2"]),
        ("SELECT `a``;`; SELECT 2", ["SELECT `a``;`", "SELECT 2"]),
        ("SELECT 1 -- a ; b\n; SELECT 2", ["SELECT 1", "SELECT 2"]),
        ("SELECT /* ; /* ; */ ; */ 1; SELECT 2", ["SELECT /* ; /* ; */ ; */ 1", "SELECT 2"]),
    ],
)
def test_text_is_cut_at_semicolons_between_statements(text: str, statements: list[str]) -> None:
    assert [piece.text for piece in split(text)] == statements
    assert all(text[p.start : p.start + len(p.text)] == p.text for p in split(text))


def test_block_holds_its_statements_and_ends_where_a_statement_would_start() -> None:
    text = "BEGIN ATOMIC\n UPDATE t SET a = CASE WHEN b THEN 1 END;; DELETE FROM u; END; SELECT 1"
    block, after = split(text)
    assert block.atomic
    assert [piece.text for piece in block.body] == [
        "UPDATE t SET a = CASE WHEN b THEN 1 END",
        "DELETE FROM u",
    ]
    assert all(text[p.start : p.start + len(p.text)] == p.text for p in block.body)
    assert after.text == "SELECT 1"


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("SELECT 'open", 8),
        ("SELECT \"open'", 8),
        ("SELECT `open", 8),
        ("SELECT 1 /* /* */", 10),
        ("SELECT 1; BEGIN ATOMIC SELECT 1;", 11),
    ],
)
def test_open_quote_comment_or_block_is_shown_where_it_starts(text: str, column: int) -> None:
    with pytest.raises(Unclosed, match="not closed") as error:
        split(text)
    assert error.value.position is not None
    assert error.value.position.column == column


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; SELECT 'a;", False),
        ("BEGIN ATOMIC SELECT 1;", False),
        ("BEGIN ATOMIC SELECT 1; END", True),
        ("SELECT 1; -- done", True),
    ],
)
def test_text_is_complete_when_its_last_statement_is_closed(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_second_statement_is_shown_where_one_is_wanted() -> None:
    with pytest.raises(InvalidInput, match=r"2 statements.*lake\.session\(\)") as error:
        only_piece("SELECT 1;\n SELECT 2")
    assert error.value.position is not None
    assert (error.value.position.line, error.value.position.column) == (2, 2)


def test_parameters_are_found_and_casts_are_not() -> None:
    (piece,) = split("SELECT :a, x::int, ':b', y FROM t WHERE z = :c_1")
    assert piece.parameters == {"a", "c_1"}


def test_first_word_is_found_behind_comments() -> None:
    assert first_word("/* a */ -- b\n  select 1 'open") == "SELECT"
    assert first_word("") == first_word("(SELECT 1)") == first_word("`select`") == ""


def test_values_are_without_their_quotes() -> None:
    assert [lexeme.value for lexeme in lex(r"""a `b``c` 'd\'e' "f" 1.5e3 :g""")] == [
        *("a", "b`c", "d'e", "f", "1.5e3", "g")
    ]
