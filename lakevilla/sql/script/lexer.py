"""A text of Spark SQL as words, names, strings and symbols, each with its place; comments are left out.

It knows no grammar. It finds where statements end, and reads statements for which the parser has no tree.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from lakevilla.errors import InvalidInput
from lakevilla.sql.script.places import point_at

Kind = Literal["word", "name", "string", "number", "parameter", "symbol"]

_LEXEME = re.compile(
    r"""(?P<blank>\s+|--[^\n]*)
    |(?P<comment>/\*)
    |(?P<raw>[rR](?:'[^']*'|"[^"]*"))
    |(?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<name>`(?:[^`]|``)*`)
    |(?P<open>[rR]['"]|['"`])
    |(?P<number>\d[\w.]*)
    |(?P<word>[^\W\d]\w*)
    |(?P<parameter>(?<!:):[^\W\d]\w*)
    |(?P<symbol>=>|<=>|<=|>=|<>|!=|==|->|::|\|\||.)""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT_PART = re.compile(r"/\*|\*/")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Lexeme:
    """One piece of a text, from `start` to before `end`."""

    kind: Kind
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """The word in capital letters; empty for everything else, also for names in back quotes."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def value(self) -> str:
        """What it means: names and strings without their quotes, parameters without the colon."""
        match self.kind:
            case "name":
                return self.text[1:-1].replace("``", "`")
            case "string":
                return _ESCAPED.sub(r"\1", self.text[1:-1])
            case "parameter":
                return self.text[1:]
        return self.text


class Unclosed(InvalidInput):
    """A string, a quoted name, a comment or a block that the text does not close: more may follow."""


def lex(text: str) -> list[Lexeme]:
    """The lexemes of a text; Unclosed if a quote or a comment is left open."""
    return list(_lexemes(text))


def first_word(text: str) -> str:
    """The first word of a text in capital letters, without reading more; empty if it starts otherwise."""
    return next((lexeme.word for lexeme in _lexemes(text)), "")


def _lexemes(text: str) -> Iterator[Lexeme]:
    at = 0
    while at < len(text):
        found = _LEXEME.match(text, at)
        assert found is not None, "any character is at least a symbol"
        start, at = at, found.end()
        match found.lastgroup:
            case "blank":
                continue
            case "comment":
                at = _comment_end(text, start)
            case "open":
                what = "the quoted name" if found[0] == "`" else "the string"
                raise point_at(Unclosed(f"{what} that starts here is not closed"), text, start, start + 1)
            case "raw":
                yield Lexeme("string", found[0][1:], start, at)
            case "string" | "name" | "number" | "word" | "parameter" | "symbol" as kind:
                yield Lexeme(kind, found[0], start, at)


def _comment_end(text: str, start: int) -> int:
    """Where a comment ends; comments may hold others."""
    depth, at = 0, start
    while part := _COMMENT_PART.search(text, at):
        depth += 1 if part[0] == "/*" else -1
        at = part.end()
        if not depth:
            return at
    raise point_at(Unclosed("the comment that starts here is not closed"), text, start, start + 2)
