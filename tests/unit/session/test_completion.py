"""What is suggested behind a text."""

import pytest

from lakevilla.errors import InvalidInput, Unavailable
from lakevilla.session.completion import Completions
from lakevilla.session.shortcuts import SHORTCUTS, expand, help_text

COLUMNS = {"accounts": ["id", "balance"], "odd name": ["a b"], "db.users": ["login"]}


@pytest.fixture
def completions() -> Completions:
    return Completions(lambda: list(COLUMNS), lambda table: COLUMNS[table])


@pytest.mark.parametrize(
    ("text", "word", "first"),
    [
        ("SEL", "SEL", "SELECT"),
        ("  beg", "beg", "BEGIN"),
        ("SELECT 1; upd", "upd", "UPDATE"),
        ("SELECT * FROM acc", "acc", "accounts"),
        ("INSERT INTO db", "db", "db.users"),
        ("UPDATE ", "", "accounts"),
        ("SELECT * FROM accounts WHERE bal", "bal", "balance"),
        ("SELECT * FROM accounts a WHERE a.bal", "a.bal", "a.balance"),
        ("SELECT * FROM `odd name` WHERE a", "a", "`a b`"),
        ("SELECT * FROM db.users WHERE lo", "lo", "login"),
        ("SELECT * FROM accounts whe", "whe", "WHEN"),
        ("SELECT leng", "leng", "length("),
        ("SHOW ta", "ta", "TABLES"),
        ("\\d", "\\d", "\\d"),
        ("\\d acc", "acc", "accounts"),
    ],
)
def test_best_suggestion_comes_first(completions: Completions, text: str, word: str, first: str) -> None:
    found, candidates = completions.after(text)
    assert found == word
    assert candidates[0] == first


@pytest.mark.parametrize("text", ["SELECT 'acc", "SELECT /* acc", "SELECT -- acc"])
def test_nothing_is_suggested_inside_of_quotes_and_comments(completions: Completions, text: str) -> None:
    assert completions.after(text)[1] == []


def test_names_are_asked_for_once_until_they_may_have_changed() -> None:
    asked: list[str] = []

    def tables() -> list[str]:
        asked.append("tables")
        return ["t"]

    completions = Completions(tables, lambda _: [])
    completions.after("SELECT * FROM ")
    completions.after("SELECT * FROM t")
    assert asked == ["tables"]
    completions.forget()
    completions.after("SELECT * FROM ")
    assert len(asked) == 2


def test_lake_that_does_not_answer_suggests_nothing() -> None:
    def fail() -> list[str]:
        raise Unavailable("no answer")

    assert Completions(fail, lambda _: []).after("SELECT * FROM ") == ("", [])


def test_shortcuts_stand_for_statements() -> None:
    assert expand("\\d") == ("\\d", "SHOW TABLES")
    assert expand(" \\d accounts; ") == ("\\d", "DESCRIBE accounts")
    assert expand("\\d+ t") == ("\\d+", "DESCRIBE EXTENDED t")
    assert expand("\\q") == ("\\q", "")
    with pytest.raises(InvalidInput, match="needs the name of a table"):
        expand("\\d+")
    with pytest.raises(InvalidInput, match="unknown shortcut"):
        expand("\\nothing")
    assert all(shortcut.name in help_text() for shortcut in SHORTCUTS)
