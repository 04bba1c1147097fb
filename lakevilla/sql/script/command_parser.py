"""From a statement's text to a command of the session or of the lake."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from lakevilla.errors import InvalidInput, Unsupported
from lakevilla.sql.script import commands as c
from lakevilla.sql.script.lexer import Lexeme, first_word
from lakevilla.sql.script.optimize import optimize
from lakevilla.sql.script.options import option
from lakevilla.sql.script.places import point_at
from lakevilla.sql.script.reader import Reader
from lakevilla.sql.script.splitter import Piece, only_piece

_BEGIN = (
    "BEGIN [TRANSACTION] [ISOLATION LEVEL SERIALIZABLE | SNAPSHOT] [WITH (features = 'R,CT,I', slack = 0)]"
)
_AT = "AT (SEQ => 12), AT (TAG => 'x') or AT (TIMESTAMP => '2026-01-31 12:00')"
_AT_CLAUSE = re.compile(r"\bAT\s*\(\s*(?:(?:SEQ|TAG|TIMESTAMP)\s*=|\w+\s*=>)", re.IGNORECASE)
_KINDS = ("SEQ", "TAG", "TIMESTAMP")
_READ = ("SELECT", "WITH", "VALUES", "FROM", "SHOW", "DESCRIBE", "DESC", "TABLE", "(", "")


def command(text: str, parameters: Mapping[str, Any] | None = None) -> c.Command | None:
    """The command of a text that is one; None for an ordinary statement, quickly."""
    if first_word(text) not in WORDS and not _AT_CLAUSE.search(text):
        return None
    return command_of(only_piece(text), parameters or {})


def command_of(piece: Piece, parameters: Mapping[str, Any]) -> c.Command | None:
    """The command that a piece of a script is; None for an ordinary statement."""
    if piece.atomic:
        return c.Atomic()
    rule = _RULES.get(piece.words[0])
    found = None if rule is None else rule(piece, parameters)
    if found is None and _AT_CLAUSE.search(piece.text):
        return _at_query(piece, parameters)
    return found


def _begin(piece: Piece, parameters: Mapping[str, Any]) -> c.Begin:  # noqa: ARG001
    reader, options = Reader(piece, _BEGIN), dict[str, Any]()
    if reader.take_one("BEGIN", "START") == "START":
        reader.expect("TRANSACTION")
    else:
        reader.take_one("TRANSACTION", "WORK")
    if reader.take("ISOLATION", "LEVEL"):
        level = reader.take_one("SERIALIZABLE", "SNAPSHOT")
        if not level:
            reader.fail("expected SERIALIZABLE or SNAPSHOT")
        options["isolation"] = level.lower()
    if reader.take("WITH"):
        reader.expect("(")
        while not reader.take(")"):
            name, value = _assignment(reader, piece)
            if name in options:
                raise InvalidInput(f"BEGIN gives {name} twice")
            options[name] = value
            if not reader.take(","):
                reader.expect(")")
                break
    reader.end()
    return c.Begin(options)


def _assignment(reader: Reader, piece: Piece) -> tuple[str, Any]:
    named = reader.next("the name of a setting")
    if not reader.take("="):
        reader.expect("TO")
    value = reader.next("a value")
    try:
        return named.value.lower(), option(named.value, value.value)
    except InvalidInput as error:
        wrong = named if error.message.startswith("unknown setting") else value
        raise point_at(error, piece.text, wrong.start - piece.start, wrong.end - piece.start) from None


def _commit(piece: Piece, parameters: Mapping[str, Any]) -> c.Commit:  # noqa: ARG001
    reader = Reader(piece, "COMMIT")
    reader.expect("COMMIT")
    reader.take_one("TRANSACTION", "WORK")
    reader.end()
    return c.Commit()


def _rollback(piece: Piece, parameters: Mapping[str, Any]) -> c.Rollback | c.RollbackTo:  # noqa: ARG001
    reader = Reader(piece, "ROLLBACK, or ROLLBACK TO name")
    reader.take_one("ROLLBACK", "ABORT")
    reader.take_one("TRANSACTION", "WORK")
    if reader.take("TO"):
        reader.take("SAVEPOINT")
        name = reader.name("the name of a savepoint")
        reader.end()
        return c.RollbackTo(name)
    reader.end()
    return c.Rollback()


def _savepoint(piece: Piece, parameters: Mapping[str, Any]) -> c.Savepoint:  # noqa: ARG001
    reader = Reader(piece, "SAVEPOINT name")
    reader.expect("SAVEPOINT")
    name = reader.name("the name of a savepoint")
    reader.end()
    return c.Savepoint(name)


def _set(piece: Piece, parameters: Mapping[str, Any]) -> c.SetOption | c.ShowSettings:  # noqa: ARG001
    reader = Reader(piece, "SET name = value, with one of the settings features, isolation and slack")
    reader.expect("SET")
    if reader.at_end:
        return c.ShowSettings()
    name, value = _assignment(reader, piece)
    reader.end()
    return c.SetOption(name, value)


def _show(piece: Piece, parameters: Mapping[str, Any]) -> c.Command | None:  # noqa: ARG001
    reader = Reader(piece, "SHOW HISTORY [LIMIT n], SHOW TRANSACTIONS, SHOW TAGS or SHOW SETTINGS")
    reader.expect("SHOW")
    what = reader.take_one("TRANSACTIONS", "TAGS", "SETTINGS", "HISTORY")
    if not what or (what == "HISTORY" and reader.take_one("FOR", "FROM", "IN", "OF")):
        return None
    if what == "HISTORY":
        limit = reader.number("a number of entries") if reader.take("LIMIT") else None
        reader.end()
        return c.ShowLakeHistory(limit)
    reader.end()
    simple: dict[str, c.Command] = {
        "TRANSACTIONS": c.ShowTransactions(),
        "TAGS": c.ShowTags(),
        "SETTINGS": c.ShowSettings(),
    }
    return simple[what]


def _explain(piece: Piece, parameters: Mapping[str, Any]) -> c.ExplainConflict:  # noqa: ARG001
    reader = Reader(piece, "EXPLAIN CONFLICT [transaction or table]")
    reader.expect("EXPLAIN")
    if not reader.take("CONFLICT"):
        raise Unsupported(
            "plans are not shown: EXPLAIN CONFLICT [transaction or table] explains waits and conflicts"
        )
    what = None if reader.at_end else _identity(reader)
    reader.end()
    return c.ExplainConflict(what)


def _identity(reader: Reader) -> str:
    """The id of a transaction, which may begin with a digit, or the name of a table."""
    lexeme = reader.next("a transaction or a table")
    value = lexeme.value
    while reader.take("."):
        value += "." + reader.name("the name of a table")
    return value


def _tag(piece: Piece, parameters: Mapping[str, Any]) -> c.TagInstant:
    reader = Reader(piece, f"TAG name, or TAG name {_AT}")
    reader.expect("TAG")
    name = reader.joined("the name of a tag")
    at = None if reader.at_end else _instant(reader, piece, parameters)
    reader.end()
    return c.TagInstant(name, at)


def _untag(piece: Piece, parameters: Mapping[str, Any]) -> c.UntagInstant:  # noqa: ARG001
    reader = Reader(piece, "UNTAG name")
    reader.expect("UNTAG")
    name = reader.joined("the name of a tag")
    reader.end()
    return c.UntagInstant(name)


def _vacuum(piece: Piece, parameters: Mapping[str, Any]) -> c.Vacuum:  # noqa: ARG001
    reader = Reader(piece, "VACUUM [table] [RETAIN n HOURS] [DRY RUN]")
    reader.expect("VACUUM")
    starts = piece.words[1:2]
    table = None if reader.at_end or starts in (["RETAIN"], ["DRY"]) else reader.table()
    hours = None
    if reader.take("RETAIN"):
        hours = float(reader.number("a number of hours"))
        reader.expect("HOURS")
    dry_run = reader.take("DRY", "RUN")
    reader.end()
    return c.Vacuum(table, hours, dry_run)


def _restore(piece: Piece, parameters: Mapping[str, Any]) -> c.Restore:  # noqa: ARG001
    reader = Reader(
        piece,
        "RESTORE TABLE name TO VERSION AS OF 3, or RESTORE TABLE name | LAKE TO TAG 'x' | SEQ 12 | "
        "TIMESTAMP AS OF '2026-01-31 12:00'",
    )
    reader.expect("RESTORE")
    table = None
    if not reader.take("LAKE"):
        reader.expect("TABLE")
        table = reader.table()
    reader.expect("TO")
    kinds = ("TAG", "SEQ", "TIMESTAMP") if table is None else ("VERSION", "TAG", "SEQ", "TIMESTAMP")
    kind = reader.take_one(*kinds)
    if not kind:
        reader.fail(f"expected one of {', '.join(kinds)}")
    if kind in ("VERSION", "TIMESTAMP"):
        reader.take("AS", "OF")
    match kind:
        case "VERSION":
            found = c.Restore(table, version=reader.number("the number of a version"))
        case "SEQ":
            found = c.Restore(table, at=c.Instant(seq=reader.number("the number of an entry")))
        case "TAG":
            found = c.Restore(table, at=c.Instant(tag=reader.joined("the name of a tag")))
        case _:
            moment = reader.next("a time in quotes")
            found = c.Restore(table, at=c.Instant(time=_time(piece, moment, moment.value)))
    reader.end()
    return found


def _at_query(piece: Piece, parameters: Mapping[str, Any]) -> c.AtQuery | None:
    """A query that ends with AT (...); None if what looks like that stands in a string or a comment."""
    lexemes = piece.lexemes
    places = [
        i
        for i, lexeme in enumerate(lexemes[:-3])
        if lexeme.word == "AT"
        and lexemes[i + 1].text == "("
        and (lexemes[i + 2].word in _KINDS or lexemes[i + 3].text == "=>")
    ]
    if not places:
        return None
    at = lexemes[places[0]]
    if places[0] + 6 != len(lexemes) or piece.words[0] not in _READ:
        error = InvalidInput(
            "AT (...) stands once, at the end of a query, and is for all tables in it; for one table write "
            "VERSION AS OF or TIMESTAMP AS OF behind its name"
        )
        raise point_at(error, piece.text, at.start - piece.start, at.end - piece.start)
    clause = Piece(piece.text, piece.start, lexemes[places[0] :])
    instant = _instant(Reader(clause, _AT), clause, parameters)
    return c.AtQuery(piece.text[: at.start - piece.start].rstrip(), instant)


def _instant(reader: Reader, piece: Piece, parameters: Mapping[str, Any]) -> c.Instant:
    """AT (SEQ => n | TAG => 'x' | TIMESTAMP => '...'); the value may be a parameter."""
    reader.expect("AT")
    reader.expect("(")
    kind = reader.take_one(*_KINDS)
    if not kind:
        reader.fail("expected SEQ, TAG or TIMESTAMP")
    reader.expect("=>")
    lexeme = reader.next("a value")
    value = lexeme.value
    if lexeme.kind == "parameter":
        if value not in parameters:
            raise InvalidInput(f"no value is given for parameter :{value}")
        value = str(parameters[value])
    reader.expect(")")
    if kind == "SEQ":
        if not value.isdecimal():
            raise InvalidInput(f"SEQ is the number of an entry (see SHOW HISTORY), found {value!r}")
        return c.Instant(seq=int(value))
    return c.Instant(tag=value) if kind == "TAG" else c.Instant(time=_time(piece, lexeme, value))


def _time(piece: Piece, lexeme: Lexeme, value: str) -> datetime:
    """A time; what else a text may name, such as a tag, is not one."""
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        error = InvalidInput(f"{value!r} is not a time: write '2026-01-31 12:00'")
        raise point_at(error, piece.text, lexeme.start - piece.start, lexeme.end - piece.start) from None


_RULES: dict[str, Callable[[Piece, Mapping[str, Any]], c.Command | None]] = {
    "BEGIN": _begin,
    "START": _begin,
    "COMMIT": _commit,
    "ROLLBACK": _rollback,
    "ABORT": _rollback,
    "SAVEPOINT": _savepoint,
    "SET": _set,
    "SHOW": _show,
    "EXPLAIN": _explain,
    "TAG": _tag,
    "UNTAG": _untag,
    "VACUUM": _vacuum,
    "OPTIMIZE": optimize,
    "RESTORE": _restore,
}
WORDS = frozenset(_RULES)
"""The words that commands start with."""
