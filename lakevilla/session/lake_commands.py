"""Statements about the lake as a whole, each by one call of the lake."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lakevilla.engines.local.result import Result
from lakevilla.session.answer import Answer
from lakevilla.session.port import SessionLake
from lakevilla.sql.dialect import spark_text
from lakevilla.sql.parser import parse
from lakevilla.sql.script import commands as c
from lakevilla.sql.statements import Delete
from lakevilla.transaction.views.stored import TemporaryView

_TIME = pa.timestamp("us", "UTC")
_TEXT = pa.string()


def run_lake_command(
    lake: SessionLake,
    command: c.LakeCommand,
    statement: str,
    parameters: dict[str, Any],
    temporary: Mapping[str, TemporaryView],
) -> Answer:
    """Run a statement that is about the lake. Rows of reports are in this process on every engine."""
    match command:
        case c.AtQuery(text=text, at=at):
            return Answer(statement, _past(lake, at)._sql(text, parameters, temporary=temporary))
        case c.TagInstant(name=name, at=at):
            seq = lake.tag(name, None if at is None else _past(lake, at))
            return Answer(statement, None, f"tag {name!r} names entry {seq}")
        case c.UntagInstant(name=name):
            lake.untag(name)
            return Answer(statement, None, f"tag {name!r} was removed")
        case c.Vacuum(table=table, retention_hours=hours, dry_run=dry_run):
            done = lake.vacuum(table, dry_run=dry_run, retention_hours=hours)
            return Answer(statement, _lines("report", str(done)))
        case c.Optimize(table=table, order=order, full=full):
            rewritten = lake.optimize(table, _condition(command), order, full=full)
            return Answer(statement, _lines("report", str(rewritten)))
        case c.Restore(table=table, version=version, at=at):
            tables = None if table is None else [table]
            report = lake.restore(seq=at.seq, tag=at.tag, at=at.time, version=version, tables=tables)
            return Answer(statement, _lines("report", str(report)))
        case c.ExplainConflict(what=what):
            return Answer(statement, _lines("explanation", str(lake.explain(what))))
        case c.ShowTags():
            tags = lake.tags()
            return Answer(
                statement, _rows({"tag": (_TEXT, list(tags)), "seq": (pa.int64(), list(tags.values()))})
            )
        case c.ShowLakeHistory(limit=limit):
            return Answer(statement, _history(lake, limit))
        case c.ShowTransactions():
            return Answer(statement, _transactions(lake))


def setting_rows(settings: Mapping[str, str]) -> Result:
    """The settings of a session as rows."""
    return _rows({"name": (_TEXT, list(settings)), "value": (_TEXT, list(settings.values()))})


def _condition(command: c.Optimize) -> str | None:
    """The condition with literals in the place of its parameters, as that of another statement."""
    if command.where is None:
        return None
    parsed = parse(f"DELETE FROM t WHERE {command.where}", command.parameters)
    assert isinstance(parsed, Delete)
    assert parsed.where is not None
    return spark_text(parsed.where)


def _past(lake: SessionLake, at: c.Instant) -> Any:
    return lake.at(at.time, seq=at.seq, tag=at.tag)


def _history(lake: SessionLake, limit: int | None) -> Result:
    entries = lake.history(limit=limit)
    tables = [
        ", ".join(f"{name} {'' if v is None else v}".rstrip() for name, v in sorted(e.tables.items()))
        for e in entries
    ]
    tags = [", ".join(e.tags) for e in entries]
    return _rows(
        {
            "seq": (pa.int64(), [e.seq for e in entries]),
            "timestamp": (_TIME, [e.time_ms * 1000 for e in entries]),
            "kind": (_TEXT, [e.kind for e in entries]),
            "published": (pa.bool_(), [e.published for e in entries]),
            "tables": (_TEXT, tables),
            "tags": (_TEXT, tags),
            "txn": (_TEXT, [e.txn for e in entries]),
        }
    )


def _transactions(lake: SessionLake) -> Result:
    """Open transactions that left records, and those that wait in a writer queue."""
    status = lake.status()
    known = {found.transaction for found in status.transactions}
    waiting = {t.transaction: t for t in status.tickets if t.transaction not in known}
    waits = {ticket.transaction: ", ".join(ticket.waits_for) for ticket in status.tickets}
    queued: dict[str, list[str]] = {}
    for ticket in status.tickets:
        queued.setdefault(ticket.transaction, []).append(ticket.table)
    rows = [
        (t.transaction, list(t.tables), t.statements, t.silent_seconds, t.alive) for t in status.transactions
    ]
    rows += [(txn, queued[txn], None, ticket.age_seconds, None) for txn, ticket in waiting.items()]  # type: ignore[misc]
    return _rows(
        {
            "txn": (_TEXT, [row[0] for row in rows]),
            "tables": (_TEXT, [", ".join(row[1]) for row in rows]),
            "statements": (pa.int64(), [row[2] for row in rows]),
            "silent_seconds": (pa.float64(), [round(row[3], 1) for row in rows]),
            "alive": (pa.bool_(), [row[4] for row in rows]),
            "waits_for": (_TEXT, [waits.get(row[0], "") for row in rows]),
        }
    )


def _lines(name: str, text: str) -> Result:
    return _rows({name: (_TEXT, text.splitlines())})


def _rows(columns: dict[str, tuple[pa.DataType, list[Any]]]) -> Result:
    arrays = {name: pa.array(values, data_type) for name, (data_type, values) in columns.items()}
    return Result.of(pa.table(arrays))
