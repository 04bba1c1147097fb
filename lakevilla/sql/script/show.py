"""SHOW and DESCRIBE of tables, which need no tree."""

from collections.abc import Callable

from lakevilla.errors import Unsupported
from lakevilla.sql.script.places import point_at
from lakevilla.sql.script.reader import Reader
from lakevilla.sql.script.splitter import Piece, only_piece
from lakevilla.sql.statements import (
    Describe,
    DescribeDetail,
    DescribeHistory,
    ShowColumns,
    ShowCreateTable,
    ShowProperties,
    ShowTables,
    ShowViews,
    Statement,
)
from lakevilla.sql.words.suggestions import did_you_mean

WORDS = frozenset({"SHOW", "DESCRIBE", "DESC"})
"""The words that these statements start with."""

_SCHEMAS = ("SCHEMAS", "DATABASES", "NAMESPACES")
_STYLES = ("EXTENDED", "FORMATTED", "DETAIL", "HISTORY")
_KINDS = (
    *("TABLES", "VIEWS", "COLUMNS", "CREATE TABLE", "TBLPROPERTIES", "HISTORY", "TRANSACTIONS", "TAGS"),
    "SETTINGS",
)


def shown(text: str) -> Statement:
    """The statement of a text that starts with SHOW or DESCRIBE."""
    piece = only_piece(text)
    return _show(piece) if piece.words[0] == "SHOW" else _describe(piece)


def _describe(piece: Piece) -> Statement:
    reader = Reader(piece, "DESCRIBE [EXTENDED | DETAIL | HISTORY] table")
    reader.take_one("DESCRIBE", "DESC")
    # A table may have the name of a style: then nothing follows, or a dot.
    named = [lexeme.kind in ("word", "name", "string") for lexeme in piece.lexemes]
    style = reader.take_one(*_STYLES) if named[2:3] == [True] else ""
    if named[2 + bool(style) :][:1] == [True]:
        reader.take("TABLE")
    table = reader.table()
    limit = reader.number("a number of versions") if style == "HISTORY" and reader.take("LIMIT") else None
    reader.end()
    if style == "HISTORY":
        return DescribeHistory(table, limit)
    return DescribeDetail(table) if style == "DETAIL" else Describe(table, extended=bool(style))


def _show(piece: Piece) -> Statement:
    kind = piece.words[1] if len(piece.words) > 1 else ""
    rule = _RULES.get(kind)
    if rule is not None:
        return rule(piece)
    others = f"there are {', '.join(f'SHOW {one}' for one in _KINDS)}"
    schemas = "SELECT schema_name FROM information_schema.schemata lists the schemas"
    hint = schemas if kind in _SCHEMAS else did_you_mean(kind, _KINDS, others)
    error = Unsupported(f"{' '.join(['SHOW', kind]).strip()} is not supported: {hint}")
    last = piece.lexemes[1] if len(piece.lexemes) > 1 else piece.lexemes[0]
    raise point_at(error, piece.text, last.start - piece.start, last.end - piece.start)


def _tables(piece: Piece) -> ShowTables | ShowViews:
    kind = piece.words[1]
    reader = Reader(piece, f"SHOW {kind} [IN schema] [LIKE 'pattern']")
    reader.expect("SHOW", kind)
    schema = reader.name("the name of a schema") if reader.take_one("IN", "FROM") else None
    reader.take("LIKE")
    pattern = None if reader.at_end else reader.name("a pattern")
    reader.end()
    return ShowTables(schema, pattern) if kind == "TABLES" else ShowViews(schema, pattern)


def _columns(piece: Piece) -> ShowColumns:
    reader = Reader(piece, "SHOW COLUMNS IN table")
    reader.expect("SHOW", "COLUMNS")
    if not reader.take_one("IN", "FROM"):
        reader.fail("expected IN")
    table = reader.table()
    reader.end()
    return ShowColumns(table)


def _create(piece: Piece) -> ShowCreateTable:
    reader = Reader(piece, "SHOW CREATE TABLE table")
    reader.expect("SHOW", "CREATE")
    if not reader.take_one("TABLE", "VIEW"):
        reader.fail("expected TABLE")
    table = reader.table()
    reader.end()
    return ShowCreateTable(table)


def _properties(piece: Piece) -> ShowProperties:
    reader = Reader(piece, "SHOW TBLPROPERTIES table [('key')]")
    reader.expect("SHOW", "TBLPROPERTIES")
    table, key = reader.table(), None
    if reader.take("("):
        key = reader.name("the name of a property")
        while reader.take("."):
            key += "." + reader.name("the name of a property")
        reader.expect(")")
    reader.end()
    return ShowProperties(table, key)


def _history(piece: Piece) -> DescribeHistory:
    reader = Reader(piece, "SHOW HISTORY FOR table [LIMIT n]")
    reader.expect("SHOW", "HISTORY")
    reader.take_one("FOR", "FROM", "IN", "OF")
    table = reader.table()
    limit = reader.number("a number of versions") if reader.take("LIMIT") else None
    reader.end()
    return DescribeHistory(table, limit)


_RULES: dict[str, Callable[[Piece], Statement]] = {
    "TABLES": _tables,
    "VIEWS": _tables,
    "COLUMNS": _columns,
    "CREATE": _create,
    "TBLPROPERTIES": _properties,
    "HISTORY": _history,
}
