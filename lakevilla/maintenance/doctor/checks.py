"""The doctor: everything that can be wrong with a lake, its store and this machine, looked at in one go.

Changes nothing. To learn whether conditional writes work and what time it is by the store, it writes objects
under a key of its own and deletes them again, unless that is not wished for. A check that fails says so and
does not stop the others; only a store that cannot be read does.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version

from lakevilla.errors import LakeVillaError, Unavailable, Unsupported
from lakevilla.maintenance.doctor.diagnosis import Check, Diagnosis
from lakevilla.maintenance.doctor.layout import look_at_layout
from lakevilla.maintenance.queue_survey import (
    LakeView,
    Queues,
    read_folders,
    survey_queues,
    unsettled_entries,
)
from lakevilla.maintenance.reports import count_text
from lakevilla.maintenance.vacuum import VacuumOptions, vacuum
from lakevilla.markers.survey import find_stale
from lakevilla.store import keys
from lakevilla.store.probe import probe
from lakevilla.tables.pinned import Pinned
from lakevilla.versions.records import Head

LIBRARIES = ("pyarrow", "duckdb", "sqlglot", "obstore", "pyspark", "pyiceberg")
CLOCK_SKEW_MS = 60_000
"""A clock that is further away from the store's is worth a warning."""
_AGAIN = "repair what the error names, and run the doctor again"
HISTORY = 20
"""So many of the newest versions of each table are looked at for legacy writers."""


def diagnose(
    view: LakeView, *, probe_store: bool, look_at_files: bool, java: Callable[[], str | None]
) -> Diagnosis:
    """Look at everything. `java` says what is wrong with this machine's Java, None if nothing is."""
    machine = list(_machine(java))
    try:
        head = view.catalog.head(view.meter, fresh=True)
    except Unavailable as error:
        advice = "check the URL, the credentials and the network; without an answer nothing else can be said"
        return Diagnosis((Check("store", "problem", str(error), advice), *machine))
    except LakeVillaError as error:
        advice = "restore the record from a backup, or install the release that it asks for"
        return Diagnosis((Check("store", "problem", str(error), advice), *machine))
    checks = [_reachable(view, head)]
    if probe_store:
        checks += _probed(view)
    checks += machine
    checks += _guarded("unsettled entries", partial(_entries, view))
    checks += _torn(head)
    try:
        queues = survey_queues(view)
    except LakeVillaError as error:
        return Diagnosis((*checks, Check("tables", "problem", str(error), _AGAIN)))
    checks += _unreadable(queues)
    checks += _contradictions(head, queues.tables)
    checks += _guarded("dead clients", partial(_dead_clients, view, queues))
    checks += _legacy_writers(view, queues.tables)
    if look_at_files:
        checks += _guarded("files", partial(_files, view))
        checks += look_at_layout(queues.tables)
    return Diagnosis(tuple(checks))


def _guarded(subject: str, look: Callable[[], Iterator[Check]]) -> list[Check]:
    """What a look finds; an error of it is a finding too."""
    try:
        return list(look())
    except LakeVillaError as error:
        return [Check(subject, "problem", f"could not be looked at: {error}", _AGAIN)]


def _reachable(view: LakeView, head: Head | None) -> Check:
    if head is None:
        return Check("store", "ok", f"{view.store.url} answers; no transaction has written a global log yet")
    return Check("store", "ok", f"{view.store.url} answers; the lake is at entry {head.seq}")


def _probed(view: LakeView) -> Iterator[Check]:
    """Conditional writes, rights and the clock, by objects that are deleted again."""
    try:
        probe(view.store, view.environment)
        skew = _skew_ms(view)
    except Unsupported as error:
        advice = "do not write to this lake: use a store, or a release of it, that has conditional writes"
        yield Check("conditional writes", "problem", str(error), advice)
        return
    except Unavailable as error:
        advice = "grant the right to create, replace and delete objects below the lake's root, or only read"
        yield Check("rights", "warning", f"this client cannot write: {error}", advice)
        return
    yield Check("conditional writes", "ok", "create and replace hold what they promise")
    yield Check("rights", "ok", "objects can be read, listed, written and deleted")
    text = f"this machine is {abs(skew) / 1000:.1f} s {'ahead of' if skew > 0 else 'behind'} the store"
    if abs(skew) < CLOCK_SKEW_MS:
        yield Check("clock", "ok", text)
    else:
        advice = "set the clock by NTP: times in histories and TIMESTAMP AS OF go by the clocks of clients"
        yield Check("clock", "warning", text, advice)


def _skew_ms(view: LakeView) -> int:
    key = keys.probe(view.environment.new_id())
    before = view.environment.now_ms()
    try:
        view.store.put(key, b"{}")
        after, meta = view.environment.now_ms(), view.store.head(key)
    finally:
        view.store.delete(key)
    if meta is None:
        return 0
    # The store took its time somewhere between the two, and some stores count seconds.
    earliest, latest = before - meta.modified_ms - 1000, after - meta.modified_ms
    return 0 if earliest <= 0 <= latest else min((earliest, latest), key=abs)


def _machine(java: Callable[[], str | None]) -> Iterator[Check]:
    found = {name: _version(name) for name in ("lakevilla", *LIBRARIES)}
    text = ", ".join(f"{name} {number}" for name, number in found.items() if number)
    python = ".".join(map(str, sys.version_info[:3]))
    yield Check("versions", "ok", f"Python {python}, {text}")
    if found["pyspark"]:
        trouble = java()
        if trouble is None:
            yield Check("Java", "ok", "found, and Spark runs on it")
        else:
            yield Check("Java", "warning", trouble, "without it only engine='local' works")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _entries(view: LakeView) -> Iterator[Check]:
    waiting = unsettled_entries(view)
    if not waiting:
        yield Check("unsettled entries", "ok", "every decided transaction is completed")
    for entry in waiting:
        tables = tuple(ref.name for ref in entry.tables)
        named = ", ".join(map(repr, tables)) or "no table"
        yield Check(
            "unsettled entries",
            "warning",
            f"entry {entry.seq} (transaction {entry.txn}, {entry.kind} on {named}) is decided and not "
            "completed: its client is at work or died",
            "the next client that writes completes it; lake.recover() does so now, or says what prevents it",
            tables,
        )


def _torn(head: Head | None) -> Iterator[Check]:
    torn = frozenset() if head is None else head.torn
    names = [ref.name for ref in ([] if head is None else head.tables.values()) if ref.location in torn]
    if not torn:
        yield Check("torn tables", "ok", "there are none")
    for name in sorted(names):
        yield Check(
            "torn tables",
            "problem",
            f"{name!r} holds a part of a transaction that was rolled back elsewhere, and cannot be changed",
            f"lake.explain({name!r}) shows the versions; repair the rows, then "
            f"lake.sync({name!r}, accept_torn=True)",
            (name,),
        )


def _unreadable(queues: Queues) -> Iterator[Check]:
    for name, reason in sorted(queues.failed.items()):
        advice = "restore its log, use a client that knows its features, or drop its name"
        yield Check("tables", "problem", f"{name!r} cannot be read: {reason}", advice, (name,))
    if not queues.failed:
        yield Check("tables", "ok", f"{count_text(len(queues.tables), 'table')} can be read")


def _contradictions(head: Head | None, tables: Sequence[Pinned]) -> Iterator[Check]:
    """Tables that are not what the global log says of them."""
    found = []
    for pinned in tables if head is not None else ():
        name, at, newest = pinned.ref.name, pinned.ref.location, pinned.snapshot
        known = 0 if head is None else head.versions.get(at, 0)
        named = "" if head is None else head.ids.get(at, "")
        if named and newest.table_id and named != newest.table_id:
            found.append((name, f"another table is in its place: the lake knows the id {named}"))
        elif newest.version < known:
            found.append((name, f"its newest version is {newest.version}, and the lake knows {known}"))
    if not found:
        yield Check("contradictions", "ok", "the tables are those that the global log knows")
    for name, text in found:
        advice = "restore the table's log from a backup, or drop the name and register the table again"
        yield Check("contradictions", "problem", f"{name!r}: {text}", advice, (name,))


def _dead_clients(view: LakeView, queues: Queues) -> Iterator[Check]:
    """Tickets and records of dead clients. Takes a lease time where there are any."""
    folders = [folder for folder in read_folders(view) if folder.sublogs]
    tickets = [queued for queued in queues.live if not queued.dead]
    suspects = [(queued.seen.marker.txn, queued.seen.marker.put) for queued in tickets]
    stale = find_stale([*suspects, *((folder.txn, "") for folder in folders)], view.leases, view.environment)
    held = [queued for queued, is_stale in zip(tickets, stale, strict=False) if is_stale]
    left = [folder for folder, is_stale in zip(folders, stale[len(tickets) :], strict=True) if is_stale]
    if not held and not left:
        yield Check("dead clients", "ok", "none holds a ticket or has left records")
    for queued in held:
        yield Check(
            "dead clients",
            "warning",
            f"transaction {queued.seen.marker.txn} holds ticket {queued.seen.ticket} of {queued.table!r}, "
            "and its client is dead",
            "the next writer that waits behind it releases it; lake.recover() does so now",
            (queued.table,),
        )
    for folder in left:
        yield Check(
            "dead clients",
            "note",
            f"transaction {folder.txn} was left by its client",
            f"lake.outcome({folder.txn!r}) and lake.resume({folder.txn!r}); vacuum removes its records after "
            "the retention",
        )


def _legacy_writers(view: LakeView, tables: Sequence[Pinned]) -> Iterator[Check]:
    found = view.environment.fan_out([partial(_writers, pinned) for pinned in tables])
    seen = False
    for pinned, writers in zip(tables, found, strict=True):
        name = pinned.ref.name
        if isinstance(writers, LakeVillaError):
            text = f"the history of {name!r} cannot be read: {writers}"
            yield Check("legacy writers", "warning", text, _AGAIN, (name,))
            seen = True
            continue
        if not writers:
            continue
        seen = True
        text = f"{name!r} was written by {', '.join(writers)} within its newest {HISTORY} versions"
        if pinned.snapshot.coordination.exclusive:
            advice = (
                "stop these clients, or unset lakevilla.exclusive, and then run "
                f"lake.sync({name!r}): until then transactions may not see what they wrote"
            )
            yield Check("legacy writers", "problem", f"{text}, although it is exclusive", advice, (name,))
        else:
            yield Check("legacy writers", "note", text, tables=(name,))
    if not seen:
        yield Check("legacy writers", "ok", "no other client wrote the newest versions of the tables")


def _writers(pinned: Pinned) -> list[str] | LakeVillaError:
    """The clients without LakeVilla that wrote the newest versions. The version that made a table does not
    count: tables are often made by another client and then given to the lake."""
    try:
        entries = list(pinned.table.history(HISTORY))
    except LakeVillaError as error:
        return error
    first = pinned.table.first_version
    others = [one for one in entries if not one.txn and one.version > first]
    return sorted({one.engine or "an unknown client" for one in others})


def _files(view: LakeView) -> Iterator[Check]:
    """Files that no reader and no transaction needs, by a dry run of vacuum."""
    report = vacuum(view, None, VacuumOptions(), lambda _: None)
    due = [table for table in report.tables if table.files.count]
    if not due:
        yield Check("files", "ok", "nothing is left for vacuum to delete")
    for table in due:
        orphans = f", {table.orphans} of them left by transactions" if table.orphans.count else ""
        yield Check(
            "files",
            "note",
            f"vacuum would delete {table.files} of {table.table!r}{orphans}",
            f"lake.vacuum({table.table!r}, dry_run=False)",
            (table.table,),
        )
