"""Values as people see them: tables as aligned text and as HTML, and short reprs. All HTML is escaped."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import MISSING, fields
from html import escape
from typing import Any, TypeVar

T = TypeVar("T")

STYLE = "border-collapse: collapse; text-align: left"


class Records(list[T]):
    """A list that shows itself as a table; in every other respect it is a list.

    `cells()` of each member gives its texts by the titles of their columns.
    """

    def __repr__(self) -> str:
        if not self:
            return "[]"
        return "\n".join(aligned(self._rows()))

    def _repr_html_(self) -> str:
        return html_table(*self._rows()) if self else "<pre>[]</pre>"

    def _rows(self) -> list[Sequence[str]]:
        members: list[Any] = list(self)
        cells = [member.cells() for member in members]
        return [list(cells[0]), *(list(row.values()) for row in cells)]


class Report(ABC):
    """A value that shows itself as lines of text, in notebooks too."""

    __slots__ = ()

    @abstractmethod
    def _lines(self) -> Iterator[str]: ...

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_lines(self._lines())


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table as lines of text, columns two blanks apart."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def html_table(titles: Iterable[str], *rows: Iterable[str]) -> str:
    """A table in HTML."""
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<table style="{STYLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def html_lines(lines: Iterable[str]) -> str:
    """Lines of text in HTML, as they are."""
    return f"<pre>{escape(chr(10).join(lines))}</pre>"


def cells_text(value: Any) -> str:
    """The repr of a value by its `cells()`, without the empty ones."""
    cells = ", ".join(f"{title}={text!r}" for title, text in value.cells().items() if text)
    return f"{type(value).__qualname__}({cells})"


def brief(value: Any) -> str:
    """The repr of a dataclass without the fields that have their default values: `Receipt(id='a', seq=3)`."""
    shown = [
        f"{field.name}={getattr(value, field.name)!r}"
        for field in fields(value)
        if field.repr and getattr(value, field.name) != _default(field)
    ]
    return f"{type(value).__qualname__}({', '.join(shown)})"


def _default(field: Any) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()
