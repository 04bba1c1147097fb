"""The reports of vacuum, recover, status and explain: small frozen values that print as text for people."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from lakevilla.display import Report, aligned, html_lines, html_table
from lakevilla.timestamps import UNKNOWN, utc_text

_FILES_TOLD = 5
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True, slots=True)
class Files:
    """How many files, and how large they are together."""

    count: int = 0
    bytes: int = 0

    def __str__(self) -> str:
        return f"{self.count:,} {_plural(self.count, 'file')}, {size_text(self.bytes)}"

    def __add__(self, other: "Files") -> "Files":
        return Files(self.count + other.count, self.bytes + other.bytes)


@dataclass(frozen=True, slots=True)
class TableVacuum:
    """What vacuum deleted (or would delete) of one table.

    `expired` are files that the log removed longer ago than the retention, `orphans` files of LakeVilla
    transactions that have ended without them, `foreign` files of unknown origin, `log` old entries and
    checkpoints of the table's log. `tickets` are released tickets whose tombstones were deleted.
    `kept_undecided` files belong to a transaction that may still commit, `kept_foreign` files are old and of
    unknown origin. `keys` names every file.
    """

    table: str
    version: int
    retention_hours: float
    expired: Files = Files()
    orphans: Files = Files()
    foreign: Files = Files()
    log: Files = Files()
    tickets: tuple[int, ...] = ()
    kept_undecided: Files = Files()
    kept_foreign: Files = Files()
    keys: tuple[str, ...] = field(default=(), repr=False)

    @property
    def files(self) -> Files:
        """All files that were deleted, or would be."""
        return self.expired + self.orphans + self.foreign + self.log


@dataclass(frozen=True, slots=True)
class DroppedVacuum:
    """The folder of a dropped table that was deleted, or would be; `kept` says why not."""

    location: str
    files: Files
    kept: str = ""


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What of the global log no client needs any more: entries and earlier states of the lake, by number."""

    entries: tuple[int, ...] = ()
    states: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class VacuumReport(Report):
    """What vacuum did, or with `dry_run` what it would do.

    `transactions` are those whose records (lease and sublogs) were deleted. `failed` says why a table was
    left alone. `horizon` is the first entry of the lake whose instant is kept without a tag, `leftovers` what
    was deleted of the global log.
    """

    dry_run: bool
    tables: tuple[TableVacuum, ...] = ()
    dropped: tuple[DroppedVacuum, ...] = ()
    transactions: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    horizon: int = 0
    leftovers: Leftovers = Leftovers()

    @property
    def files(self) -> Files:
        """All files that were deleted, or would be."""
        total = sum((table.files for table in self.tables), Files())
        return sum((folder.files for folder in self.dropped if not folder.kept), total)

    def _lines(self) -> Iterator[str]:
        verb = "would delete" if self.dry_run else "deleted"
        for table in self.tables:
            yield from _table_lines(table, verb)
        for folder in self.dropped:
            shown = f"kept: {folder.kept}" if folder.kept else f"{verb} {folder.files}"
            yield f"dropped table in {folder.location}: {shown}"
        if self.transactions:
            yield f"{verb} the records of {count_text(len(self.transactions), 'transaction')} that ended"
        if self.leftovers != Leftovers():
            entries = count_text(len(self.leftovers.entries), "entry of the lake", "entries of the lake")
            yield f"{verb} {entries} and {count_text(len(self.leftovers.states), 'earlier state')}"
        if self.horizon:
            yield f"instants of the lake are kept from entry {self.horizon} on, and older ones that have tags"
        for name, reason in self.failed.items():
            yield f"{name}: skipped: {reason}"
        yield f"in all: {verb} {self.files}"
        if self.dry_run:
            yield "nothing was deleted: this was a dry run"


@dataclass(frozen=True, slots=True, repr=False)
class RegisterReport(Report):
    """What `lake.register_all` did: `registered` are the locations of the tables that got names, by these
    names, and `skipped` says why others did not, by their locations."""

    registered: Mapping[str, str] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)

    def _lines(self) -> Iterator[str]:
        yield f"registered {count_text(len(self.registered), 'table')}, skipped {len(self.skipped):,}"
        for name, location in self.registered.items():
            yield f"{name}: {location}"
        for location, reason in self.skipped.items():
            yield f"skipped {location}: {reason}"


@dataclass(frozen=True, slots=True)
class Ticket:
    """A ticket in a table's writer queue.

    `waits_for` holds the ids of the transactions that precede its owner. `age_seconds` compares the owner's
    clock with ours, so it is approximate.
    """

    table: str
    ticket: int
    transaction: str
    age_seconds: float
    waits_for: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that left records: it is open, or its client died.

    `statements` counts those that it finished. `silent_seconds` is the time since it last wrote one of its
    records, by the store's clock and ours. `alive` is None where its lease was not watched for a lease time.
    `obstacle` says why `lake.resume` cannot continue it; empty if it can.
    """

    transaction: str
    tables: tuple[str, ...]
    statements: int
    silent_seconds: float
    alive: bool | None = None
    obstacle: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class RecoverReport(Report):
    """What recover found and did.

    `freed` are tickets whose owners are dead, `waiting` those of owners that are alive. `transactions` are
    those that left records; `lake.resume(id)` continues one that is not alive and has no `obstacle`.
    `settled` says that a decided commit, which its client left half done, was completed.
    """

    freed: tuple[Ticket, ...] = ()
    waiting: tuple[Ticket, ...] = ()
    transactions: tuple[OpenTransaction, ...] = ()
    settled: bool = False
    failed: Mapping[str, str] = field(default_factory=dict)

    def _lines(self) -> Iterator[str]:
        if self.settled:
            yield "completed a decided commit that another client left half done"
        for ticket in self.freed:
            yield (
                f"freed ticket {ticket.ticket} of {ticket.table}: the client of transaction "
                f"{ticket.transaction} is dead"
            )
        for ticket in self.waiting:
            yield (
                f"left ticket {ticket.ticket} of {ticket.table}: the client of transaction "
                f"{ticket.transaction} is alive"
            )
        for found in self.transactions:
            yield _transaction_line(found)
        for name, reason in self.failed.items():
            yield f"{name}: skipped: {reason}"
        if not (self.settled or self.freed):
            yield "nothing to recover"


@dataclass(frozen=True, slots=True, repr=False)
class Status(Report):
    """Which clients work on the lake right now: live tickets, first in the queue first, and open
    transactions. `unsettled` are transactions that are decided and not completed yet. `slow` says of tables
    that `lake.optimize` would make quicker to read why that is so."""

    tickets: tuple[Ticket, ...] = ()
    transactions: tuple[OpenTransaction, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    unsettled: tuple[str, ...] = ()
    slow: Mapping[str, str] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        return (html_table(*self._rows()) if self.tickets else "") + html_lines(self._others())

    def _lines(self) -> Iterator[str]:
        if self.tickets:
            yield from aligned(self._rows())
        yield from self._others()

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [("table", "ticket", "transaction", "about", "waits for")]
        for ticket in self.tickets:
            waits = ", ".join(ticket.waits_for) or "no client"
            age = age_text(ticket.age_seconds)
            rows.append((ticket.table, str(ticket.ticket), ticket.transaction, age, waits))
        return rows

    def _others(self) -> Iterator[str]:
        for txn in self.unsettled:
            yield (
                f"transaction {txn} is decided and not completed: the next client that writes completes it; "
                "recover does so now, or says what prevents it"
            )
        for found in self.transactions:
            yield _transaction_line(found)
        for name, reason in self.failed.items():
            yield f"{name}: cannot be read: {reason}"
        for name, reason in self.slow.items():
            yield f"{name} has {reason}: lake.optimize({name!r}) makes it quicker to read"
        if not (self.tickets or self.transactions or self.unsettled):
            yield "no client waits to write, and no transaction left records"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that explains what happens, in sentences: `text` what is so, `next` what comes of it.

    `kind` is `first` or `waits` (a ticket in a writer queue), `ring` (transactions that wait for each
    other), `unsettled`, `void`, `committed` or `rolled back` (the outcome of a commit), `open` (none yet),
    `torn` (a table) or `version` (any commit). `transactions` holds the one that it is about, then those
    that it waits for or that were in its way; `since_seconds` compares clocks of machines: approximate.
    """

    kind: str
    text: str
    next: str = ""
    tables: tuple[str, ...] = ()
    transactions: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    since_seconds: float | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Report):
    """Why a transaction waits or was refused, what it did, or what happens on a table or in the lake."""

    about: str
    findings: tuple[Finding, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)

    def _lines(self) -> Iterator[str]:
        for finding in self.findings:
            yield finding.text
            for name in finding.files[:_FILES_TOLD]:
                yield f"    {name}"
            if len(finding.files) > _FILES_TOLD:
                yield f"    and {count_text(len(finding.files) - _FILES_TOLD, 'more file')}"
            if finding.next:
                yield f"  next: {finding.next}"
        for name, reason in self.failed.items():
            yield f"{name}: cannot be read: {reason}"
        if not self.findings:
            yield f"{self.about}: no client waits, and nothing is left half done"


def size_text(size: float) -> str:
    """A size for people."""
    for unit in _UNITS[:-1]:
        if size < 1024:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1024
    return f"{size:,.1f} {_UNITS[-1]}"


def age_text(seconds: float) -> str:
    """A duration for people."""
    return str(timedelta(seconds=round(max(0.0, seconds))))


def begun_text(txn: str) -> str:
    """When a transaction began, by its own clock, which is in its id."""
    try:
        return utc_text(int(txn[:12], 16))
    except ValueError:
        return UNKNOWN


def _table_lines(table: TableVacuum, verb: str) -> Iterator[str]:
    about = f"version {table.version}, retention {table.retention_hours:g} hours"
    yield f"{table.table} ({about}): {verb} {table.files}"
    shown = {
        "removed by the log": table.expired,
        "left by transactions that ended without them": table.orphans,
        "of unknown origin": table.foreign,
        "old entries and checkpoints of the log": table.log,
    }
    for what, files in shown.items():
        if files.count:
            yield f"  {what}: {files}"
    if table.tickets:
        yield f"  tombstones of released tickets: {len(table.tickets):,}"
    if table.kept_undecided.count:
        yield f"  kept, their transaction may still commit: {table.kept_undecided}"
    if table.kept_foreign.count:
        yield f"  kept, of unknown origin: {table.kept_foreign}"


def _advice(found: OpenTransaction) -> str:
    return f"it cannot be resumed ({found.obstacle})" if found.obstacle else "lake.resume continues it"


def _transaction_line(found: OpenTransaction) -> str:
    state = {
        True: "is alive",
        False: f"its client is dead; {_advice(found)}, vacuum removes it after the retention",
        None: f"its last record was written about {age_text(found.silent_seconds)} ago",
    }[found.alive]
    return (
        f"transaction {found.transaction} on {', '.join(found.tables) or 'an unknown table'}, begun "
        f"{begun_text(found.transaction)}, {count_text(found.statements, 'finished statement')}: {state}"
    )


def count_text(count: int, noun: str, plural: str = "") -> str:
    """A number of things for people."""
    return f"{count:,} {plural if plural and count != 1 else _plural(count, noun)}"


def _plural(count: int, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"
