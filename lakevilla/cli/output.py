"""Rows as people and programs want them: a table, CSV, JSON, Markdown or a Parquet file."""

import base64
import contextlib
import csv
import json
import math
import os
import sys
from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import lakevilla as lv

if TYPE_CHECKING:
    from lakevilla.session.answer import Answer

FORMATS = ("table", "csv", "json", "jsonl", "markdown", "parquet")


class Output:
    """Writes the answers of a script. Rows go to the file, or to standard output; sentences about changes go
    there too if people read them, and else to standard error."""

    def __init__(self, format: str, path: str | None, rows: int, truncate: bool) -> None:
        if format == "parquet" and path is None:
            raise lv.InvalidInput("--format parquet writes a file: give --output FILE")
        if path is not None:
            _refuse_unwritable(Path(path))
        self._format, self._path, self._rows, self._truncate = format, path, rows, truncate
        self._written = 0

    def write(self, answer: "Answer") -> None:
        """One answer."""
        if answer.has_rows:
            self._refuse_second()
            self._written += 1
            with self._stream() as stream:
                self._write_rows(answer.result, stream)
        elif answer.message:
            plain = self._format == "table" and self._path is None
            print(answer.message, file=sys.stdout if plain else sys.stderr)

    def _refuse_second(self) -> None:
        if self._format == "parquet" and self._written:
            raise lv.InvalidInput("a Parquet file holds the rows of one query, and the script has several")

    @contextlib.contextmanager
    def _stream(self) -> Iterator[TextIO]:
        if self._path is None or self._format == "parquet":
            yield sys.stdout
            return
        with open(self._path, "a" if self._written > 1 else "w", encoding="utf-8", newline="") as stream:
            yield stream

    def _write_rows(self, result: Any, stream: TextIO) -> None:
        if self._format in ("json", "jsonl") and len(set(result.columns)) < len(result.columns):
            raise lv.InvalidInput("two columns have one name, and JSON needs different ones: write AS")
        match self._format:
            case "table":
                with contextlib.redirect_stdout(stream):
                    result.show(self._rows, truncate=self._truncate)
            case "parquet":
                import pyarrow.parquet as pq

                pq.write_table(result.toArrow(), str(Path(str(self._path))))
            case "csv":
                writer = csv.writer(stream, lineterminator="\n")
                writer.writerow(result.columns)
                for row in _rows(result):
                    writer.writerow(["" if value is None else _cell(value) for value in row])
            case "json":
                json.dump([dict(zip(result.columns, row, strict=True)) for row in _rows(result)], stream)
                stream.write("\n")
            case "jsonl":
                for row in _rows(result):
                    stream.write(json.dumps(dict(zip(result.columns, row, strict=True))) + "\n")
            case "markdown":
                stream.write(_markdown(result.columns, list(_rows(result))))


def _refuse_unwritable(path: Path) -> None:
    """Find out before a statement has changed something."""
    if path.is_dir():
        raise lv.InvalidInput(f"cannot write rows to {str(path)!r}: it is a directory; name a file")
    if not path.parent.is_dir():
        raise lv.InvalidInput(
            f"cannot write rows to {str(path)!r}: there is no directory {str(path.parent)!r}"
        )
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise lv.InvalidInput(f"cannot write rows to {str(path)!r}: permission denied")


def _rows(result: Any) -> Iterator[list[Any]]:
    """The rows as values that JSON has: decimals, times and bytes are texts."""
    table = result.toArrow()
    for batch in table.to_batches():
        columns = [[_plain(value) for value in column.to_pylist()] for column in batch.columns]
        yield from (list(row) for row in zip(*columns, strict=True))


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Decimal():
            return f"{value:f}"
        case datetime() | date() | time():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
        case list() | tuple():
            return [_plain(item) for item in value]
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
    return str(value)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, list | dict) else str(value)


def _markdown(names: list[str], rows: list[list[Any]]) -> str:
    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", "<br>") for cell in cells) + " |\n"

    body = [line(["NULL" if value is None else _cell(value) for value in row]) for row in rows]
    return line(names) + "|" + "---|" * len(names) + "\n" + "".join(body)
