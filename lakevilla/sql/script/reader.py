"""Reads the lexemes of one statement in order, for statements that need no tree."""

from collections.abc import Sequence
from typing import NoReturn

from lakevilla.errors import InvalidInput
from lakevilla.sql.script.lexer import Lexeme
from lakevilla.sql.script.places import point_at
from lakevilla.sql.script.splitter import Piece


class Reader:
    """The lexemes of a statement. `usage` says how the statement is written, for its errors."""

    def __init__(self, piece: Piece, usage: str) -> None:
        self._text, self._start = piece.text, piece.start
        self._lexemes: Sequence[Lexeme] = piece.lexemes
        self._usage = usage
        self._at = 0

    @property
    def at_end(self) -> bool:
        return self._at >= len(self._lexemes)

    @property
    def place(self) -> int:
        """Where the lexeme that comes next starts in the text of the statement, or where that ends."""
        if self.at_end:
            return len(self._text)
        return self._lexemes[self._at].start - self._start

    def take(self, *words: str) -> bool:
        """Take these words, if they come next."""
        coming = self._lexemes[self._at : self._at + len(words)]
        if [lexeme.word or lexeme.text for lexeme in coming] != list(words):
            return False
        self._at += len(words)
        return True

    def sees(self, *words: str) -> bool:
        """Whether these words come next."""
        taken = self.take(*words)
        self._at -= len(words) if taken else 0
        return taken

    def take_one(self, *words: str) -> str:
        """The next lexeme, taken, if it is one of these words; else empty."""
        return next((word for word in words if self.take(word)), "")

    def expect(self, *words: str) -> None:
        if not self.take(*words):
            self.fail(f"expected {' '.join(words)}")

    def end(self) -> None:
        """Nothing may follow."""
        if not self.at_end:
            self.fail("expected the end of the statement")

    def next(self, what: str) -> Lexeme:
        """The next lexeme, whatever it is."""
        if self.at_end:
            self.fail(f"expected {what}")
        self._at += 1
        return self._lexemes[self._at - 1]

    def name(self, what: str) -> str:
        """One name: a word, or anything in quotes."""
        lexeme = self.next(what)
        if lexeme.kind not in ("word", "name", "string"):
            self._at -= 1
            self.fail(f"expected {what}")
        return lexeme.value

    def table(self) -> str:
        """The name of a table; its parts are separated by dots."""
        parts = [self.name("the name of a table")]
        while self.take("."):
            parts.append(self.name("the name of a table"))
        return ".".join(parts)

    def joined(self, what: str) -> str:
        """A name that may have signs in it without quotes, such as `month-end`: up to the next blank."""
        first = self.next(what)
        if first.kind != "word":
            self._at -= 1
            return self.name(what)
        end = first.end
        while not self.at_end and self._lexemes[self._at].start == end:
            end = self.next(what).end
        return self._text[first.start - self._start : end - self._start]

    def number(self, what: str) -> int:
        lexeme = self.next(what)
        if lexeme.kind != "number" or not lexeme.text.isdecimal():
            self._at -= 1
            self.fail(f"expected {what}")
        return int(lexeme.text)

    def fail(self, why: str) -> NoReturn:
        """InvalidInput about the lexeme that comes next."""
        if self.at_end:
            start = end = self._lexemes[-1].end - self._start
            end += 1
        else:
            start, end = (
                self._lexemes[self._at].start - self._start,
                self._lexemes[self._at].end - self._start,
            )
        found = self._text[start:end] or "the end of the text"
        error = InvalidInput(f"SQL syntax error: {why}, found {found!r}; write {self._usage}")
        raise point_at(error, self._text, start, end)
