"""Statements of a session and of the lake, as values. They are not part of a transaction's work."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Instant:
    """AT (SEQ => n | TAG => 'x' | TIMESTAMP => '...'): one of them is given."""

    seq: int | None = None
    tag: str | None = None
    time: datetime | None = None


@dataclass(frozen=True, slots=True)
class Begin:
    """BEGIN; what is None comes from the settings of the session."""

    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Atomic:
    """BEGIN ATOMIC ... END; its statements are the body of its piece."""


@dataclass(frozen=True, slots=True)
class Commit:
    pass


@dataclass(frozen=True, slots=True)
class Rollback:
    pass


@dataclass(frozen=True, slots=True)
class Savepoint:
    name: str


@dataclass(frozen=True, slots=True)
class RollbackTo:
    name: str


@dataclass(frozen=True, slots=True)
class SetOption:
    """SET name = value, already checked."""

    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class ShowSettings:
    pass


@dataclass(frozen=True, slots=True)
class ShowTransactions:
    pass


@dataclass(frozen=True, slots=True)
class ShowTags:
    pass


@dataclass(frozen=True, slots=True)
class ShowLakeHistory:
    """SHOW HISTORY without a table: the entries of the global log."""

    limit: int | None = None


@dataclass(frozen=True, slots=True)
class ExplainConflict:
    what: str | None = None


@dataclass(frozen=True, slots=True)
class TagInstant:
    name: str
    at: Instant | None = None


@dataclass(frozen=True, slots=True)
class UntagInstant:
    name: str


@dataclass(frozen=True, slots=True)
class Vacuum:
    """VACUUM [t] [RETAIN n HOURS] [DRY RUN]; it deletes unless it is a dry run, as Delta's does."""

    table: str | None = None
    retention_hours: float | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Optimize:
    """OPTIMIZE t [FULL] [WHERE condition] [ZORDER BY (columns)]; `parameters` are those of the condition."""

    table: str
    where: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    full: bool = False


@dataclass(frozen=True, slots=True)
class Restore:
    """RESTORE TABLE t TO ..., RESTORE LAKE TO ...: an instant, or a version of one table."""

    table: str | None
    version: int | None = None
    at: Instant = Instant()


@dataclass(frozen=True, slots=True)
class AtQuery:
    """A statement that reads, with AT (...) behind it: `text` is the statement without that."""

    text: str
    at: Instant


SessionCommand = Begin | Atomic | Commit | Rollback | Savepoint | RollbackTo | SetOption | ShowSettings
"""What only a session can do."""

LakeCommand = (
    ShowTransactions
    | ShowTags
    | ShowLakeHistory
    | ExplainConflict
    | TagInstant
    | UntagInstant
    | Vacuum
    | Optimize
    | Restore
    | AtQuery
)
"""What is about the lake as a whole, in no transaction."""

Command = SessionCommand | LakeCommand
