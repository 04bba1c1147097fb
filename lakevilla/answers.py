"""What users are told about versions, entries and transactions, as values that rooms share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from lakevilla.display import brief, cells_text, html_lines, html_table
from lakevilla.timestamps import utc_text


@dataclass(frozen=True, slots=True, repr=False)
class HistoryEntry:
    """One version of a table, for people.

    `txn` and `attempt` are the LakeVilla transaction and attempt that wrote it, None for any other client's;
    `slot` is the entry of the global log that decided it, 0 if none did. `added` and `removed` are files.
    """

    version: int
    timestamp_ms: int
    operation: str
    parameters: Mapping[str, str]
    metrics: Mapping[str, str]
    engine: str
    txn: str | None
    attempt: str | None = None
    slot: int = 0
    added: tuple[str, ...] = field(default=(), repr=False)
    removed: tuple[str, ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        return cells_text(self)

    def cells(self) -> dict[str, str]:
        """The entry as a row of a table for people, by titles."""
        when, txn = utc_text(self.timestamp_ms), self.txn or ""
        row = {"version": str(self.version), "time": when, "operation": self.operation}
        return row | {"engine": self.engine, "transaction": txn}


@dataclass(frozen=True, slots=True, repr=False)
class LakeEntry:
    """One entry of the lake's global log, for people: `lake.at(seq=...)` shows the lake as it was after it.

    `kind` is `commit`, `adopt` (versions that other clients wrote became part of the lake's instant),
    `create`, `register`, `rename`, `drop`, `tag`, `untag`, `expire` or `void`; `published` is False if it was
    rolled back. `tables` are the versions of tables that it changed, by name; None if not known, dropped, or
    a view. `tags` are the entries of tags that it set; None for deleted ones.
    """

    seq: int
    time_ms: int
    txn: str
    kind: str
    published: bool
    tables: Mapping[str, int | None]
    tags: Mapping[str, int | None] = field(default_factory=dict)

    def __repr__(self) -> str:
        return cells_text(self)

    def cells(self) -> dict[str, str]:
        """The entry as a row of a table for people, by titles."""
        kind = self.kind if self.published else f"{self.kind} (rolled back)"
        tables = ", ".join(name if v is None else f"{name} v{v}" for name, v in self.tables.items())
        tags = ", ".join(name if seq is None else f"{name} = {seq}" for name, seq in self.tags.items())
        row = {"seq": str(self.seq), "time": utc_text(self.time_ms), "kind": kind, "tables": tables}
        return row | {"tags": tags, "transaction": self.txn}


@dataclass(frozen=True, slots=True, repr=False)
class Receipt:
    """What a committed transaction did.

    `versions` maps each written table to its new version; `requests` counts store requests by kind, without
    those of background tasks (leases and sublogs). `seq` is None where the global log was not involved.
    `redone` counts statements that ran again because another commit came first, `saved_bytes` what was
    uploaded before that and did not have to be written again, `attempts` how often `lake.run` called its
    function, `shifts` how often the transaction released tickets to claim them again in the order of the
    tables. `replayed` says that the batch of `once=` was committed before: this transaction changed nothing,
    and `seq` is the entry that committed that batch, None if a later batch of the same app came since.
    """

    id: str
    seq: int | None = None
    versions: Mapping[str, int] = field(default_factory=dict)
    redone: int = 0
    saved_bytes: int = 0
    requests: Mapping[str, int] = field(default_factory=dict)
    attempts: int = 1
    shifts: int = 0
    replayed: bool = False

    def __repr__(self) -> str:
        return brief(self)

    def _repr_html_(self) -> str:
        rows = [(name, str(version)) for name, version in self.versions.items()]
        return html_lines([brief(self)]) + html_table(("table", "version"), *rows)


@dataclass(frozen=True, slots=True, repr=False)
class Outcome:
    """The outcome of a transaction, as far as its lake shows it.

    `state` is `committed`, `aborted` or `torn` (part of it is visible and could not be rolled back), which
    are final; `live`, if its client is alive; `undecided`: no log says that it is committed, and
    nothing shows that its client is alive; or `unknown`: logs that would tell have expired. `undecided` never
    becomes `aborted` by age: a client that slept reads again what its commit builds on, and may then publish
    it.
    `table` and `version` say where it was committed, `seq` as which entry of the global log, where there is
    one. `advice` says what to do.
    """

    txn: str
    state: Literal["committed", "aborted", "torn", "live", "undecided", "unknown"]
    advice: str
    table: str | None = None
    version: int | None = None
    seq: int | None = None

    def __repr__(self) -> str:
        return brief(self)
