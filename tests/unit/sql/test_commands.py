"""Statements of a session and of the lake, from text to values."""

from datetime import datetime
from typing import Any

import pytest

from lakevilla.errors import InvalidInput, Unsupported
from lakevilla.model import Features
from lakevilla.sql.script import commands as c
from lakevilla.sql.script.command_parser import command

NEW_YEAR = c.Instant(time=datetime(2026, 1, 1))
ALL = Features.R | Features.CT | Features.I


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BEGIN", c.Begin()),
        ("begin transaction;", c.Begin()),
        ("START TRANSACTION", c.Begin()),
        ("BEGIN ISOLATION LEVEL SNAPSHOT", c.Begin({"isolation": "snapshot"})),
        (
            "BEGIN TRANSACTION ISOLATION LEVEL SERIALIZABLE WITH (features = 'R,CT', slack = 2)",
            c.Begin({"isolation": "serializable", "features": Features.R | Features.CT, "slack": 2}),
        ),
        ("BEGIN WITH (features = 'NONE')", c.Begin({"features": Features.NONE})),
        ("COMMIT WORK", c.Commit()),
        ("ROLLBACK", c.Rollback()),
        ("ABORT", c.Rollback()),
        ("ROLLBACK TO a", c.RollbackTo("a")),
        ("ROLLBACK TO SAVEPOINT `a b`", c.RollbackTo("a b")),
        ("SAVEPOINT a", c.Savepoint("a")),
        ("SET", c.ShowSettings()),
        ("SHOW SETTINGS", c.ShowSettings()),
        ("SET features = 'r, ct, i'", c.SetOption("features", ALL)),
        ("SET Isolation TO snapshot", c.SetOption("isolation", "snapshot")),
        ("SET slack = 3", c.SetOption("slack", 3)),
        ("SHOW TAGS", c.ShowTags()),
        ("SHOW TRANSACTIONS", c.ShowTransactions()),
        ("SHOW HISTORY", c.ShowLakeHistory()),
        ("SHOW HISTORY LIMIT 3", c.ShowLakeHistory(3)),
        ("EXPLAIN CONFLICT", c.ExplainConflict()),
        ("EXPLAIN CONFLICT 01a1ef465d09", c.ExplainConflict("01a1ef465d09")),
        ("EXPLAIN CONFLICT db.t", c.ExplainConflict("db.t")),
        ("TAG month-end", c.TagInstant("month-end")),
        ("TAG 'a b' AT (SEQ => 3)", c.TagInstant("a b", c.Instant(seq=3))),
        ("UNTAG month-end", c.UntagInstant("month-end")),
        ("VACUUM", c.Vacuum()),
        ("VACUUM db.t RETAIN 200 HOURS DRY RUN", c.Vacuum("db.t", 200.0, True)),
        ("VACUUM DRY RUN", c.Vacuum(dry_run=True)),
        ("RESTORE TABLE db.t TO VERSION AS OF 3", c.Restore("db.t", 3)),
        ("RESTORE TABLE t TO TAG month-end", c.Restore("t", at=c.Instant(tag="month-end"))),
        ("RESTORE LAKE TO SEQ 4", c.Restore(None, at=c.Instant(seq=4))),
        (
            "RESTORE LAKE TO TIMESTAMP AS OF '2026-01-01'",
            c.Restore(None, at=NEW_YEAR),
        ),
        ("SELECT * FROM t AT (SEQ => 5);", c.AtQuery("SELECT * FROM t", c.Instant(seq=5))),
        ("SHOW TABLES AT (TAG => 'x')", c.AtQuery("SHOW TABLES", c.Instant(tag="x"))),
        (
            "SELECT 1 at (timestamp => '2026-01-01')",
            c.AtQuery("SELECT 1", NEW_YEAR),
        ),
        ("SELECT 1", None),
        ("SHOW TABLES", None),
        ("SHOW HISTORY FOR t", None),
        ("SELECT 'AT (SEQ => 5)'", None),
    ],
)
def test_command_is_read(text: str, expected: c.Command | None) -> None:
    assert command(text) == expected


def test_value_of_at_may_be_a_parameter() -> None:
    parameters: dict[str, Any] = {"n": 4}
    assert command("SELECT 1 AT (SEQ => :n)", parameters) == c.AtQuery("SELECT 1", c.Instant(seq=4))


@pytest.mark.parametrize(
    ("text", "words", "place"),
    [
        ("BEGIN ISOLATION LEVEL DIRTY", "expected SERIALIZABLE or SNAPSHOT", "DIRTY"),
        ("BEGIN WITH (features = 'R,X')", "unknown feature 'X'", "'R,X'"),
        ("BEGIN WITH (slack = -1)", "slack cannot be", "-"),
        ("BEGIN WITH (slak = 1)", "did you mean 'slack'", "slak"),
        ("BEGIN again", "expected the end", "again"),
        ("COMMIT a", "expected the end", "a"),
        ("SAVEPOINT", "expected the name", ""),
        ("SET color = red", "unknown setting 'color'", "color"),
        ("SET isolation = dirty", "serializable or snapshot", "dirty"),
        ("TAG", "expected the name", ""),
        ("VACUUM t RETAIN many HOURS", "expected a number of hours", "many"),
        ("SELECT * FROM t AT (SEQ => 1) WHERE a", "at the end of a query", "AT"),
        ("RESTORE LAKE TO VERSION AS OF 1", "expected one of TAG", "VERSION"),
        ("RESTORE t TO TAG x", "expected TABLE", "t"),
        ("DELETE FROM t AT (SEQ => 1)", "at the end of a query", "AT"),
    ],
)
def test_wrong_command_is_refused_at_its_place(text: str, words: str, place: str) -> None:
    with pytest.raises(InvalidInput, match=words) as error:
        command(text)
    found = error.value.position
    assert found is not None
    assert text[found.start : found.end] == place


def test_plan_is_not_shown() -> None:
    with pytest.raises(Unsupported, match="EXPLAIN CONFLICT"):
        command("EXPLAIN SELECT 1")
