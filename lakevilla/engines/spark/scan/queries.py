"""Spark SQL over pinned tables: the text as the user wrote it, its tables replaced by views of DataFrames.

Views have unique names and live only while the text is analysed; the plan that comes of it holds the
relations themselves (for Spark Connect see `connect`). now() and its kin mean the transaction's begin.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from sqlglot import exp

from lakevilla.engines.port import Source
from lakevilla.engines.spark.data import frame_of
from lakevilla.engines.spark.failures import explained
from lakevilla.engines.spark.scan.relation import Reader
from lakevilla.engines.spark.session import connect
from lakevilla.engines.spark.session.frames import in_session
from lakevilla.engines.spark.session.own_names import is_file, is_view
from lakevilla.environment import Environment
from lakevilla.errors import InvalidInput
from lakevilla.sql.dialect import DIALECT, exact_text
from lakevilla.sql.tables import read_table, table_nodes
from lakevilla.sql.words.suggestions import unknown_column

_MOMENTS = {
    "now": "timestamp_millis({ms})",
    "current_timestamp": "timestamp_millis({ms})",
    "current_date": "CAST(timestamp_millis({ms}) AS DATE)",
    "curdate": "CAST(timestamp_millis({ms}) AS DATE)",
    "localtimestamp": "CAST(timestamp_millis({ms}) AS TIMESTAMP_NTZ)",
    "unix_timestamp": "CAST({ms} DIV 1000 AS BIGINT)",
}
_NODES: dict[type[exp.Expr], str] = {
    exp.CurrentTimestamp: "current_timestamp",
    exp.CurrentDate: "current_date",
    exp.Localtimestamp: "localtimestamp",
}


@dataclass
class Statement:
    """One statement's texts: where its tables are, and what time it is."""

    reader: Reader
    environment: Environment
    sources: Mapping[str, Source]
    now_ms: int
    views: dict[str, Any] = field(default_factory=dict)

    def view(self, frame: Any) -> str:
        """A name by which texts of this statement read the frame."""
        name = f"lakevilla_{self.environment.new_id()}"
        self.views[name] = frame
        if not connect.is_connect(self.reader.session):
            frame.createOrReplaceTempView(name)
        return name

    def text(self, tree: exp.Expr) -> str:
        """The tree as Spark SQL over views."""
        # Below a node of our own, so that the root can be replaced too.
        holder = exp.Paren(this=tree.copy())
        names = self._tables(holder)
        for column in holder.find_all(exp.Column):
            if column.args.get("db") and f"{column.args['db'].name}.{column.table}".casefold() in names:
                column.set("db", None)
                column.set("catalog", None)
        for node in list(holder.find_all(exp.Anonymous, *_NODES)):
            _stop_the_clock(node, self.now_ms)
        odd = [node for node in holder.find_all(exp.Literal, exp.RawString) if _needs_escapes(node)]
        if odd and self._has("spark.sql.parser.escapedStringLiterals"):
            for node in odd:
                node.replace(_as_bytes(node.name))
        return exact_text(holder.this)

    @property
    def is_ansi(self) -> bool:
        """Whether casts in this session fail on what does not fit."""
        return self._has("spark.sql.ansi.enabled")

    def _has(self, setting: str) -> bool:
        return str(self.reader.session.conf.get(setting)).lower() == "true"

    def run(self, sql: str) -> Any:
        """The text as a DataFrame, analysed."""
        try:
            return self._analysed(sql)
        except InvalidInput as error:
            raise _suggesting(error, self.sources) from error.__cause__

    def _analysed(self, sql: str) -> Any:
        session = self.reader.session
        with explained():
            if connect.is_connect(session):
                return connect.sql(session, sql, self.views)
            try:
                return session.sql(sql)
            except AnalysisException as error:
                # Files of the lake's tables are in views, whose paths were found when these were made.
                if error.getCondition() == "PATH_NOT_FOUND":
                    path = (error.getMessageParameters() or {}).get("path")
                    raise InvalidInput(f"the path {path!r} of the statement does not exist") from error
                raise

    def close(self) -> None:
        """Remove the views. What the user has cached stays cached.

        `Catalog.dropTempView` and `DROP VIEW` also drop the cache of the view's plan, which is the plan of a
        DataFrame that the user handed in; the session's own catalog removes the name alone.
        """
        session = self.reader.session
        if self.views and not connect.is_connect(session):
            names = session._jsparkSession.sessionState().catalog()
            for name in self.views:
                names.dropTempView(name)
        self.views.clear()

    def _frame(self, source: Source) -> Any:
        if source.rows is None:
            return self.reader.table(source)
        session, is_arrow = self.reader.session, isinstance(source.rows, pa.Table)
        return frame_of(session, source.rows) if is_arrow else in_session(session, source.rows)

    def _tables(self, tree: exp.Expr) -> set[str]:
        """Put a view in the place of each table; the names of those that are `db.table`."""
        by_key: dict[str, str] = {}
        found: set[str] = set()
        for node in list(table_nodes(tree)):
            table = read_table(node)
            if table.key not in self.sources:
                if is_file(table.name) or is_view(self.reader.session, table.name):
                    continue
                raise InvalidInput(f"unknown table {table.name!r}", table=table.name)
            if table.key not in by_key:
                by_key[table.key] = self.view(self._frame(self.sources[table.key]))
            found.add(table.name.casefold())
            called = node.name
            node.set("this", exp.to_identifier(by_key[table.key]))
            for part in ("db", "catalog", "version"):
                node.set(part, None)
            if not node.alias:
                node.set("alias", exp.TableAlias(this=exp.to_identifier(called, quoted=True)))
        return found


@contextmanager
def statement(
    reader: Reader, environment: Environment, sources: Mapping[str, Source], now_ms: int
) -> Iterator[Statement]:
    """A statement; its views are dropped afterwards."""
    opened = Statement(reader, environment, sources, now_ms)
    try:
        yield opened
    finally:
        opened.close()


def _suggesting(error: InvalidInput, sources: Mapping[str, Source]) -> InvalidInput:
    """The error for an unknown column, with a suggestion from the tables where Spark has none: in ORDER BY
    and HAVING it looks at the result alone."""
    if not error.unknown or error.unknown != error.column or "did you mean" in error.message:
        return error
    names = dict.fromkeys(name for source in sources.values() for name in source.schema.names)
    better = unknown_column(error.unknown, list(names))
    return better if "did you mean" in better.message else error


def _needs_escapes(node: exp.Expr) -> bool:
    """Whether the text of the literal has a backslash, which a session may take as it is."""
    special = isinstance(node, exp.RawString) or node.is_string
    return special and any(letter in "\\'" or letter < " " for letter in node.name)


def _as_bytes(text: str) -> exp.Expr:
    """A string that is written the same whatever a backslash means."""
    return exp.cast(exp.HexString(this=text.encode().hex()), exp.DType.TEXT)


def _stop_the_clock(node: exp.Expr, now_ms: int) -> None:
    name = _NODES.get(type(node)) or str(node.this).lower()
    if name not in _MOMENTS or (isinstance(node, exp.Anonymous) and node.expressions):
        return
    moment: exp.Expr = exp.maybe_parse(_MOMENTS[name].format(ms=f"{now_ms}L"), dialect=DIALECT)
    parent = node.parent
    listed = isinstance(parent, exp.Select) and node.arg_key == "expressions"
    node.replace(exp.alias_(moment, f"{name}()", quoted=True) if listed else moment)
