"""What is wrong with a text that the parser cannot read, in the user's words and at the user's place."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from lakevilla.errors import InvalidInput, LakeVillaError, Unsupported
from lakevilla.sql.script.lexer import Unclosed, lex
from lakevilla.sql.script.places import point_at
from lakevilla.sql.words.suggestions import did_you_mean

STATEMENTS = (
    *("SELECT", "WITH", "VALUES", "FROM", "INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE"),
    *("CREATE", "DROP", "ALTER", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "TAG", "UNTAG", "VACUUM", "OPTIMIZE"),
    *("RESTORE", "BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "SET"),
)
"""The words that statements start with."""

_REGISTER = (
    "{} is not supported: tables of Delta and Iceberg are taken in as they are, by "
    "lake.register(name, location) or lakevilla register"
)
_LATER = {
    "CONVERT": _REGISTER.format("CONVERT"),
    "REGISTER": _REGISTER.format("REGISTER"),
    "ATTACH": _REGISTER.format("ATTACH"),
    "IMPORT": _REGISTER.format("IMPORT"),
    "CALL": _REGISTER.format("CALL"),
    "RELEASE": "RELEASE SAVEPOINT is not supported, nor needed: the same name again moves a savepoint",
    "USE": "USE is not supported, because a lake has no current schema: write schema.table, and SET for the "
    "settings of a session",
    "END": "END closes BEGIN ATOMIC, and nothing is open here; COMMIT ends a transaction",
}
_KEYWORDS = (
    *(
        "FROM",
        "WHERE",
        "GROUP",
        "ORDER",
        "HAVING",
        "LIMIT",
        "JOIN",
        "INNER",
        "LEFT",
        "RIGHT",
        "FULL",
        "CROSS",
    ),
    *("ON", "USING", "UNION", "EXCEPT", "INTERSECT", "SET", "INTO", "VALUES", "TABLE", "WHEN", "MATCHED"),
    *("THEN", "PARTITIONED", "AND", "OR", "BETWEEN", "DISTINCT", "OVER", "PARTITION"),
)
_NEVER_TWICE = frozenset(("SELECT", "FROM", "WHERE", "GROUP", "ORDER", "HAVING", "JOIN", "INTO", "VALUES"))
_CLAUSES = (TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.HAVING)
_NAME_FOLLOWS = ("TABLE", "COLUMN", "TO", "CONSTRAINT", "EXISTS", "VIEW", ".", "USING")
_DEFINITIONS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "CREATE": (
        (
            *("CREATE", "OR", "REPLACE", "TABLE", "VIEW", "TEMPORARY", "IF", "NOT", "EXISTS", "USING", "AS"),
            *("PARTITIONED", "BY", "COMMENT", "LOCATION", "TBLPROPERTIES"),
        ),
        "CREATE [OR REPLACE] TABLE name (columns) [USING format] [PARTITIONED BY (...)] [COMMENT '...'] "
        "[LOCATION '...'] [TBLPROPERTIES (...)], or ... AS query",
    ),
    "ALTER": (
        (
            *("ALTER", "TABLE", "ADD", "DROP", "RENAME", "SET", "UNSET", "COLUMN", "COLUMNS", "TO", "IF"),
            *("EXISTS", "CONSTRAINT", "CHECK", "TBLPROPERTIES", "FIRST", "AFTER", "ALTER"),
        ),
        "ALTER TABLE name ADD COLUMNS (...) | RENAME COLUMN a TO b | DROP COLUMNS (...) | RENAME TO name | "
        "SET TBLPROPERTIES (...) | UNSET TBLPROPERTIES (...) | ADD CONSTRAINT name CHECK (...) | "
        "DROP CONSTRAINT name",
    ),
    "DROP": (("DROP", "TABLE", "VIEW", "IF", "EXISTS"), "DROP TABLE [IF EXISTS] name, or DROP VIEW name"),
    "TRUNCATE": (("TRUNCATE", "TABLE"), "TRUNCATE TABLE name"),
}
"""The keywords of definitions, and how they are written."""
_OF_OTHERS = frozenset(
    (
        *("ANALYZE", "CACHE", "CLEAR", "COMMENT", "COPY", "DETACH", "EXPORT", "GRANT"),
        *("INSTALL", "LIST", "LOAD", "LOCK", "MSCK", "PRAGMA", "REFRESH", "REPAIR", "REPLACE"),
        *("REVOKE", "SUMMARIZE", "TABLE", "UNCACHE", "UNLOCK", "UPSERT"),
    )
)
"""How statements of Spark and of other databases start that are not understood here."""
TYPES = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT", "LONG", "FLOAT", "REAL", "DOUBLE"),
    *("DECIMAL", "NUMERIC", "STRING", "VARCHAR", "CHAR", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"),
    *("ARRAY", "MAP", "STRUCT"),
)
"""The names of types, for suggestions."""
_TOKEN = re.compile(r"<Token token_type: \S+, text: (?P<text>.*?), line: .*")
_MISSING = re.compile(r"Required keyword: '(?P<key>\w+)' missing for .*\.(?P<node>\w+)'?>")


def unknown_statement(tokens: Sequence[Token], text: str) -> LakeVillaError | None:
    """The error for a text that starts with a word that starts no statement; None if it starts with one, or
    with no word."""
    first = tokens[0]
    word = first.text.upper()
    if word in _LATER:
        return _at(Unsupported(_LATER[word]), first, text)
    if word in STATEMENTS or not word.isidentifier() or text[first.start : first.start + 1] == "`":
        return None
    if word in _OF_OTHERS:
        known = ", ".join(STATEMENTS)
        return _at(
            Unsupported(f"the statement {word} is not supported; statements start with {known}"), first, text
        )
    hint = did_you_mean(word, STATEMENTS, cutoff=0.6).replace(chr(39), "")
    hint = hint or f"statements start with {', '.join(STATEMENTS)}"
    return _at(InvalidInput(f"unknown statement {first.text}; {hint}"), first, text)


def unread_definition(tokens: Sequence[Token], text: str) -> LakeVillaError:
    """The error for a CREATE, ALTER, DROP or TRUNCATE that the grammar does not know."""
    kind = tokens[0].text.upper()
    usage = _DEFINITIONS[kind][1] if kind in _DEFINITIONS else ""
    what = f"SQL syntax error: this {kind} cannot be read"
    error = InvalidInput(f"{what}; write {usage}" if usage else what)
    if (misspelt := misspelt_definition(tokens, text)) is not None:
        return misspelt
    words = _DEFINITIONS.get(kind, ((), ""))[0]
    for index, (before, token) in enumerate(pairwise(tokens), 1):
        # A type stands behind the name of a column.
        if before.text.upper() not in words and (unknown := _unknown_type(tokens, index)) is not None:
            return _at(unknown, token, text)
    return _at(error, tokens[0], text)


def misspelt_definition(tokens: Sequence[Token], text: str) -> LakeVillaError | None:
    """The error for a keyword of such a statement that is misspelt or stands twice; None if none is."""
    words, _ = _DEFINITIONS.get(tokens[0].text.upper(), ((), ""))
    depth = 0
    for before, token in pairwise(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        word = token.text.upper()
        if depth or not word.isidentifier() or token.token_type in (TokenType.IDENTIFIER, TokenType.STRING):
            continue
        if word == before.text.upper():
            return _at(InvalidInput(f"SQL syntax error: {word} stands here twice"), token, text)
        hint = "" if word in words else did_you_mean(word, words).replace(chr(39), "")
        # What stands behind TABLE, COLUMN or TO is a name.
        if hint and before.text.upper() not in _NAME_FOLLOWS:
            error = InvalidInput(f"SQL syntax error: unexpected {token.text!r}; {hint}")
            return _at(error, token, text)
    return None


def refuse_doubled(tokens: Sequence[Token], text: str) -> None:
    """InvalidInput for a keyword that stands twice, and for a comma in front of a clause: the grammar takes
    some of them for names, and passes over the comma."""
    for before, token in pairwise(tokens):
        word = token.text.upper()
        quoted = TokenType.IDENTIFIER in (token.token_type, before.token_type)
        if before.token_type == TokenType.COMMA and token.token_type in _CLAUSES:
            error = InvalidInput(f"SQL syntax error: nothing follows the comma before {word}")
            raise _at(error, before, text)
        if word in _NEVER_TWICE and word == before.text.upper() and not quoted:
            raise _at(InvalidInput(f"SQL syntax error: {word} stands here twice"), token, text)


def syntax_error(error: ParseError, tokens: Sequence[Token], text: str) -> LakeVillaError:
    """The error for a text that the grammar does not allow."""
    first = error.errors[0]
    what = _sentence(str(first.get("description") or ""))
    place = _token_at(tokens, first)
    if place is None:
        return point_at(InvalidInput(f"SQL syntax error: {what}"), text, len(text.rstrip()), len(text) + 1)
    index = tokens.index(place)
    guess = _misspelt(tokens[: index + 1])
    hint = "" if guess is None else f"; {did_you_mean(guess.text.upper(), _KEYWORDS).replace(chr(39), '')}"
    found = guess or place
    if (unknown := _unknown_type(tokens, index)) is not None:
        return _at(unknown, place, text)
    return _at(InvalidInput(f"SQL syntax error: {what} {found.text!r}{hint}"), found, text)


def unclosed(text: str) -> InvalidInput:
    """The error for a text whose tokens cannot be told apart."""
    try:
        lex(text)
    except Unclosed as error:
        return error
    return InvalidInput("SQL syntax error: the text cannot be read; is a quote not closed?")


def _misspelt(tokens: Sequence[Token]) -> Token | None:
    """The last word before the place that the parser stumbled on, if it is nearly a keyword."""
    for token in reversed(tokens[-2:]):
        word = token.text.upper()
        if word.isidentifier() and word not in _KEYWORDS and did_you_mean(word, _KEYWORDS):
            return token
    return None


def _unknown_type(tokens: Sequence[Token], index: int) -> InvalidInput | None:
    """The error for a word that stands where a type does and nearly is one: behind the name of a column, or
    behind AS in a CAST."""
    token, before = tokens[index], tokens[max(index - 1, 0)]
    defines = tokens[0].text.upper() in ("CREATE", "ALTER") and before.text not in ("(", ",")
    casts = before.text.upper() == "AS" and any(one.text.upper().endswith("CAST") for one in tokens[:index])
    word = token.text.upper()
    if not (defines or casts) or not word.isidentifier() or word in TYPES:
        return None
    hint = did_you_mean(word, TYPES).replace(chr(39), "")
    return InvalidInput(f"unknown type {token.text!r}; {hint}") if hint else None


def _sentence(description: str) -> str:
    """The parser's description without its own words."""
    if description.startswith("Expecting "):
        return f"expected {description.removeprefix('Expecting ')} near"
    missing = _MISSING.search(description)
    if missing is not None:
        if missing["node"] == "Whens":
            return "MERGE needs WHEN MATCHED or WHEN NOT MATCHED near"
        # Other nodes are not called as the user calls them.
        word = missing["node"].upper()
        return f"{word} is not complete near" if word in _KEYWORDS else "something is missing near"
    if description.startswith("Expected ") and (found := _TOKEN.search(description)) is not None:
        return f"{description[: found.start()].removesuffix(' but got ').lower()}, found"
    return "unexpected"


def _token_at(tokens: Sequence[Token], first: object) -> Token | None:
    """The token that the parser named by line and column of its end."""
    assert isinstance(first, dict)
    place = (first.get("line"), first.get("col"))
    return next((token for token in tokens if (token.line, token.col) == place), None)


def _at(error: LakeVillaError, token: Token, text: str) -> LakeVillaError:
    return point_at(error, text, token.start, token.end + 1)
