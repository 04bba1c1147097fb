"""CREATE VIEW and DROP VIEW, read without a tree but for the query."""

from collections.abc import Callable, Mapping
from typing import Any

from lakevilla.errors import InvalidInput, LakeVillaError, Unsupported
from lakevilla.sql.dialect import exact_text
from lakevilla.sql.script.places import move, point_at
from lakevilla.sql.script.reader import Reader
from lakevilla.sql.script.splitter import Piece
from lakevilla.sql.statements import CreateView, DropView, Query, Statement

_CREATE = (
    "CREATE [OR REPLACE] [TEMPORARY] VIEW [IF NOT EXISTS] name [(column [COMMENT 'text'], ...)] "
    "[COMMENT 'text'] AS query"
)
_KINDS = ("VIEW", "TEMP", "TEMPORARY", "GLOBAL", "MATERIALIZED")

Parse = Callable[[str, Mapping[str, Any]], Statement]


def is_about_views(piece: Piece) -> bool:
    """Whether a statement makes or drops a view."""
    words = piece.words
    if words[:1] == ["DROP"]:
        return words[1:2] == ["VIEW"] or words[1:3] in (["TEMPORARY", "VIEW"], ["TEMP", "VIEW"])
    rest = words[3:] if words[1:3] == ["OR", "REPLACE"] else words[1:]
    return words[:1] == ["CREATE"] and rest[:1] != [] and rest[0] in _KINDS and "VIEW" in rest[:3]


def view_statement(piece: Piece, parameters: Mapping[str, Any], parse: Parse) -> Statement:
    """The statement; `parse` reads its query."""
    return _drop(piece) if piece.words[0] == "DROP" else _create(piece, parameters, parse)


def _drop(piece: Piece) -> DropView:
    reader = Reader(piece, "DROP VIEW [IF EXISTS] name")
    reader.expect("DROP")
    reader.take_one("TEMPORARY", "TEMP")
    reader.expect("VIEW")
    if_exists = reader.take("IF", "EXISTS")
    name = reader.table()
    reader.end()
    return DropView(name, if_exists)


def _create(piece: Piece, parameters: Mapping[str, Any], parse: Parse) -> CreateView:
    reader = Reader(piece, _CREATE)
    reader.expect("CREATE")
    replace = reader.take("OR", "REPLACE")
    odd = reader.take_one("GLOBAL", "MATERIALIZED")
    if odd:
        raise Unsupported(f"{odd} views are not supported: there are views, and TEMPORARY views of a session")
    temporary = bool(reader.take_one("TEMPORARY", "TEMP"))
    reader.expect("VIEW")
    if_not_exists = reader.take("IF", "NOT", "EXISTS")
    if if_not_exists and replace:
        raise InvalidInput("CREATE OR REPLACE VIEW takes no IF NOT EXISTS: leave out one of them")
    name = reader.table()
    columns = _columns(reader)
    comment = reader.name("a comment in quotes") if reader.take("COMMENT") else ""
    reader.expect("AS")
    start = reader.place
    if reader.at_end:
        reader.fail("expected a query")
    text = piece.text[start:]
    query = _query(piece, text, start, parameters, parse)
    if parameters:
        text = exact_text(query.tree)
    return CreateView(
        name, text, query.tree, query.tables, columns, comment, replace, if_not_exists, temporary
    )


def _columns(reader: Reader) -> tuple[tuple[str, str], ...]:
    if not reader.take("("):
        return ()
    found: list[tuple[str, str]] = []
    while True:
        name = reader.name("the name of a column")
        comment = reader.name("a comment in quotes") if reader.take("COMMENT") else ""
        if name.casefold() in {known.casefold() for known, _ in found}:
            raise InvalidInput(f"the view names column {name!r} twice", column=name)
        found.append((name, comment))
        if not reader.take(","):
            break
    reader.expect(")")
    return tuple(found)


def _query(piece: Piece, text: str, start: int, parameters: Mapping[str, Any], parse: Parse) -> Query:
    try:
        query = parse(text, parameters)
    except LakeVillaError as error:
        move(error, piece.text, start)
        raise
    if not isinstance(query, Query):
        wrong = InvalidInput(f"a view needs a query; write {_CREATE}")
        raise point_at(wrong, piece.text, start, start + len(text.split()[0]))
    for node in query.tree.walk():
        # Places in the whole statement.
        for part in ("start", "end"):
            if part in node.meta:
                node.meta[part] += start
    return query
