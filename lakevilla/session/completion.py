"""What can stand next in a statement: keywords, tables, columns, functions, shortcuts."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from lakevilla.errors import LakeVillaError
from lakevilla.session.shortcuts import SHORTCUTS
from lakevilla.sql.script.lexer import Lexeme, Unclosed, lex
from lakevilla.sql.script.splitter import is_complete
from lakevilla.sql.tables import sql_name
from lakevilla.sql.words.function_names import FUNCTIONS

__all__ = ["Completions", "is_complete"]

STARTS = (
    *("SELECT", "INSERT INTO", "UPDATE", "DELETE FROM", "MERGE INTO", "WITH", "CREATE TABLE", "DROP TABLE"),
    *(
        "CREATE OR REPLACE TABLE",
        "CREATE VIEW",
        "CREATE OR REPLACE VIEW",
        "CREATE TEMPORARY VIEW",
        "DROP VIEW",
    ),
    *("ALTER TABLE", "TRUNCATE TABLE", "SHOW", "DESCRIBE", "DESCRIBE EXTENDED", "DESCRIBE DETAIL"),
    *("BEGIN", "BEGIN ATOMIC", "COMMIT", "ROLLBACK", "ROLLBACK TO", "SAVEPOINT", "SET"),
    *("TAG", "UNTAG", "VACUUM", "OPTIMIZE", "RESTORE TABLE", "RESTORE LAKE TO", "EXPLAIN CONFLICT"),
)
KEYWORDS = (
    *(
        "AND",
        "AS",
        "ASC",
        "AT",
        "BETWEEN",
        "BY",
        "CASE",
        "CAST",
        "CROSS JOIN",
        "DESC",
        "DISTINCT",
        "ELSE",
        "END",
    ),
    *("EXCEPT", "EXISTS", "FROM", "FULL JOIN", "GROUP BY", "HAVING", "IN", "INNER JOIN", "INTERSECT", "INTO"),
    *("IS NOT NULL", "IS NULL", "JOIN", "LEFT JOIN", "LIKE", "LIMIT", "NOT", "NULL", "ON", "OR", "ORDER BY"),
    *("OVER", "PARTITIONED BY", "RIGHT JOIN", "SET", "TBLPROPERTIES", "THEN", "TIMESTAMP AS OF", "UNION ALL"),
    *("USING", "VALUES", "VERSION AS OF", "WHEN", "WHEN MATCHED THEN", "WHEN NOT MATCHED THEN", "WHERE"),
)
SHOWN = (
    "TABLES",
    "VIEWS",
    "COLUMNS IN",
    "CREATE TABLE",
    "TBLPROPERTIES",
    "HISTORY",
    "TRANSACTIONS",
    "TAGS",
    "SETTINGS",
)

_TABLE_FOLLOWS = (
    "FROM",
    "JOIN",
    "INTO",
    "UPDATE",
    "TABLE",
    "DESCRIBE",
    "DESC",
    "EXTENDED",
    "DETAIL",
    "IN",
    "VACUUM",
    "OPTIMIZE",
    "VIEW",
)
_WORD = re.compile(r"[\w.`]*$")


@dataclass
class Completions:
    """What to suggest behind a text. `tables` and `columns` ask the lake; what they gave is kept until
    `forget`, and a lake that does not answer suggests nothing."""

    tables: Callable[[], Sequence[str]]
    columns: Callable[[str], Sequence[str]]
    _tables: list[str] | None = None
    _columns: dict[str, list[str]] = field(default_factory=dict)

    def forget(self) -> None:
        """After a statement that may have changed tables."""
        self._tables = None
        self._columns.clear()

    def after(self, text: str) -> tuple[str, list[str]]:
        """The word that a text ends with, and all that may replace it."""
        if text.lstrip().startswith("\\"):
            return self._of_shortcut(text.lstrip())
        found = _WORD.search(text)
        word = found[0] if found is not None else ""
        before = text[: len(text) - len(word)]
        lexemes = _statement(before)
        if lexemes is None or "--" in before.rpartition("\n")[2]:
            return word, []
        return word, _starting(word, self._candidates(lexemes, word))

    def _of_shortcut(self, text: str) -> tuple[str, list[str]]:
        name, blank, rest = text.partition(" ")
        if not blank:
            return name, _starting(name, [shortcut.name for shortcut in SHORTCUTS])
        return rest, _starting(rest, map(sql_name, self._known_tables()))

    def _candidates(self, lexemes: list[Lexeme], word: str) -> list[str]:
        if not lexemes:
            return list(STARTS)
        last = lexemes[-1].word
        if last == "SHOW":
            return list(SHOWN)
        tables = [sql_name(name) for name in self._known_tables()]
        if last in _TABLE_FOLLOWS:
            return tables
        named = {lexeme.value.casefold() for lexeme in lexemes}
        mentioned = [name for name in self._known_tables() if name.rpartition(".")[2].casefold() in named]
        columns = [sql_name(column) for name in mentioned for column in self._known_columns(name)]
        before, dot, _ = word.rpartition(".")
        if dot:
            return [f"{before}.{column}" for column in columns] + tables
        functions = [f"{name}(" for name in sorted(FUNCTIONS)] if len(word) > 1 else []
        return [*columns, *KEYWORDS, *tables, *functions]

    def _known_tables(self) -> list[str]:
        if self._tables is None:
            self._tables = _asked(self.tables)
        return self._tables

    def _known_columns(self, table: str) -> list[str]:
        if table not in self._columns:
            self._columns[table] = _asked(lambda: self.columns(table))
        return self._columns[table]


def _asked(ask: Callable[[], Sequence[str]]) -> list[str]:
    try:
        return list(ask())
    except LakeVillaError:
        # A suggestion raises no error: the statement itself will say what is wrong.
        return []


def _statement(text: str) -> list[Lexeme] | None:
    """The lexemes of the last statement of a text; None inside of a string or a comment."""
    try:
        lexemes = lex(text)
    except Unclosed:
        return None
    ends = [i for i, lexeme in enumerate(lexemes) if lexeme.text == ";"]
    return lexemes[ends[-1] + 1 :] if ends else lexemes


def _starting(word: str, candidates: Iterable[str]) -> list[str]:
    plain = word.casefold().replace("`", "")
    return list(dict.fromkeys(c for c in candidates if c.casefold().replace("`", "").startswith(plain)))
