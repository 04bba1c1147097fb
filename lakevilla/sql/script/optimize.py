"""OPTIMIZE from its text to a command: its condition is SQL, what stands around that is words."""

from collections.abc import Mapping
from typing import Any

from lakevilla.sql.script.commands import Optimize
from lakevilla.sql.script.reader import Reader
from lakevilla.sql.script.splitter import Piece

_USAGE = "OPTIMIZE table [FULL] [WHERE condition] [ZORDER BY (column, ...)]"


def optimize(piece: Piece, parameters: Mapping[str, Any]) -> Optimize:
    """The command of such a text."""
    reader = Reader(piece, _USAGE)
    reader.expect("OPTIMIZE")
    table = reader.table()
    full = reader.take("FULL")
    where = _condition(reader, piece) if reader.take("WHERE") else None
    order: list[str] = []
    if reader.take("ZORDER", "BY"):
        in_brackets = reader.take("(")
        order.append(reader.name("the name of a column"))
        while reader.take(","):
            order.append(reader.name("the name of a column"))
        if in_brackets:
            reader.expect(")")
    reader.end()
    used = {name: value for name, value in parameters.items() if name in piece.parameters}
    return Optimize(table, where, used, tuple(order), full)


def _condition(reader: Reader, piece: Piece) -> str:
    """The condition up to ZORDER or the end, which the reader has passed then."""
    start = reader.place
    while not reader.at_end and not reader.sees("ZORDER", "BY"):
        reader.next("a condition")
    text = piece.text[start : reader.place].strip()
    if not text:
        reader.fail("expected a condition")
    return text
