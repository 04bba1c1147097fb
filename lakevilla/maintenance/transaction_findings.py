"""What transactions did, and their outcomes, from the global log and the logs of the tables."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise

from lakevilla.answers import HistoryEntry
from lakevilla.errors import LakeVillaError
from lakevilla.formats.registry import FORMATS
from lakevilla.maintenance.queue_survey import LakeView, open_transactions, unsettled_entries
from lakevilla.maintenance.reports import Finding, count_text
from lakevilla.maintenance.transactions import read_folder
from lakevilla.model import TableRef
from lakevilla.settle.lost_parts import INVERSE
from lakevilla.settle.publish_walk import Refused
from lakevilla.settle.refusals import refused_by
from lakevilla.settle.row_facts import RowReader
from lakevilla.timestamps import utc_text
from lakevilla.transaction.outcomes.evidence import Evidence, find_evidence
from lakevilla.transaction.outcomes.outcome import outcome_of
from lakevilla.versions.commits import Commit, Void, Write
from lakevilla.versions.records import Entry

logger = logging.getLogger("lakevilla.maintenance")

_VERSIONS_TOLD = 3
_VERSIONS_SEARCHED = 200


def of_transaction(view: LakeView, txn: str) -> list[Finding]:
    """What a transaction did, entry by entry and version by version, or how far it is."""
    evidence = find_evidence(view.catalog, view.environment, txn)
    found = [_of_entry(view, evidence, entry) for entry in reversed(evidence.entries)]
    done = any(finding.kind in ("committed", "unsettled") for finding in found)
    if not evidence.entries:
        for seen in evidence.tables.values():
            found += [_of_version(seen.ref, version, txn) for version in reversed(seen.versions)]
        done = bool(found)
    return found if done else [*found, _still_open(view, evidence, txn)]


def unsettled(view: LakeView) -> list[Finding]:
    """The entries of the global log that are decided and not visible yet."""
    return [_not_settled(view, entry) for entry in unsettled_entries(view)]


def torn(view: LakeView) -> Iterator[Finding]:
    """Tables on which another client built on a commit before it was rolled back."""
    head = view.catalog.head(view.meter, fresh=True)
    if head is None:
        return
    known = {ref.location: ref for ref in head.tables.values()}
    for location in sorted(head.torn):
        yield _torn(view, known.get(location) or _in_folder(view, location))


def _in_folder(view: LakeView, location: str) -> TableRef:
    """A table in the lake's root: it has the name of its folder."""
    found = view.catalog.format_at(location, view.meter)
    return TableRef(location, location, found or next(iter(FORMATS)))


def newest_versions(view: LakeView, name: str) -> list[Finding]:
    """The last few commits of a table, newest first, no matter which client wrote them."""
    pinned = view.catalog.pin(name, view.meter)
    return [
        Finding(
            "version",
            f"At {utc_text(version.timestamp_ms)} {name!r} got {_summary(version)}: {_files(version)}.",
            tables=(name,),
            transactions=() if version.txn is None else (version.txn,),
            files=_named(version),
            since_seconds=_since(view, version.timestamp_ms),
        )
        for version in pinned.table.history(_VERSIONS_TOLD)
    ]


def _of_entry(view: LakeView, evidence: Evidence, entry: Entry) -> Finding:
    """The outcome of one entry of the global log."""
    match entry.change:
        case Void():
            return Finding(
                "void",
                f"The store did not answer when transaction {entry.txn} tried to decide its commit as entry "
                f"{entry.seq} of the global log ({utc_text(entry.time_ms)}). The entry is void.",
                "nothing: it decides nothing and can be ignored",
                transactions=(entry.txn,),
            )
        case Commit() as commit if evidence.is_settled(entry):
            if evidence.is_whole(entry) is False:
                return _rolled_back(view, evidence, entry, commit)
            return _committed(view, evidence, entry, commit)
        case _ if evidence.is_settled(entry):
            return Finding(
                "committed",
                f"Transaction {entry.txn} is committed since {utc_text(entry.time_ms)}, as entry {entry.seq} "
                f"of the global log: {_names(entry)}.",
                "nothing, it is done",
                _tables(entry),
                (entry.txn,),
                since_seconds=_since(view, entry.time_ms),
            )
    return _not_settled(view, entry)


def _committed(view: LakeView, evidence: Evidence, entry: Entry, commit: Commit) -> Finding:
    parts, files = [], list[str]()
    for write in commit.writes:
        seen = evidence.tables.get(write.table.location)
        version = None if seen is None else seen.of(entry.attempt)
        name = write.table.name
        if version is None:
            parts.append(f"{name!r}, whose log entry was cleaned up")
        else:
            parts.append(f"version {version.version} of {name!r} ({version.operation}, {_files(version)})")
            files += [f"{name}: {file}" for file in _named(version)]
    parts += [f"{drop.table.name!r} is dropped" for drop in commit.drops]
    return Finding(
        "committed",
        f"Transaction {entry.txn} is committed since {utc_text(entry.time_ms)}, as entry {entry.seq} of the "
        f"global log: {', '.join(parts)}.",
        "nothing, it is done; transactions that read the changed data are re-executed, or fail with Conflict",
        _tables(entry),
        (entry.txn,),
        tuple(files),
        _since(view, entry.time_ms),
    )


def _rolled_back(view: LakeView, evidence: Evidence, entry: Entry, commit: Commit) -> Finding:
    """Finds the conflicting commit by the same walk as settling."""
    tasks = [partial(_in_the_way, view, write, entry.attempt) for write in commit.writes]
    reasons, winners, files = [], list[str](), list[str]()
    for write, refused in zip(commit.writes, view.environment.fan_out(tasks), strict=True):
        if isinstance(refused, Refused):
            about = f" ({refused.hit.file})" if refused.hit.file else ""
            winner = refused.winner.summary
            reasons.append(f"{winner} of {write.table.name!r} was in its way: {refused.hit.reason}{about}")
            winners += [refused.winner.txn] if refused.winner.txn else []
            files += [f"{write.table.name}: {refused.hit.file}"] if refused.hit.file else []
    undone = [
        f"version {done.version} of {seen.ref.name!r} by version {back.version}"
        for seen in evidence.tables.values()
        if (done := seen.of(entry.attempt)) and (back := seen.of(entry.attempt + INVERSE))
    ]
    causes = "; ".join(reasons) or "the log entries that show the conflicting commit were cleaned up"
    text = (
        f"Transaction {entry.txn} was refused at {utc_text(entry.time_ms)}, as entry {entry.seq} of the "
        f"global log: {causes}."
    )
    text += f" Already published parts were rolled back: {', '.join(undone)}." if undone else ""
    advice = (
        "nothing of this attempt is visible; with recovery (R) the transaction is redone as another "
        "attempt, without it the client got a Conflict and can run it again"
    )
    torn_tables = evidence.torn(entry)
    if torn_tables:
        names = ", ".join(map(repr, torn_tables))
        text += f" It could not be rolled back on {names}: these tables are torn."
        advice = (
            f"its changes may be visible in {names}, and nowhere else: compare the rows with the other "
            "tables and repair them before you run it again; then lake.sync(accept_torn=True) lets clients "
            "change them"
        )
    return Finding(
        "torn" if torn_tables else "rolled back",
        text,
        advice,
        _tables(entry),
        (entry.txn, *dict.fromkeys(winners)),
        tuple(files),
        _since(view, entry.time_ms),
    )


def _in_the_way(view: LakeView, write: Write, attempt: str) -> Refused | None:
    """None if there was none, or if the log entries that show it were cleaned up."""
    try:
        table = view.catalog.open(write.table, view.meter)
        change = replace(table.decode_change(write.change), read=write.read)
        rows = RowReader(tests_files=False) if write.by_rows else None
        return refused_by(table, table.at_version(write.base), change, attempt, rows)
    except LakeVillaError as error:
        logger.info(
            "which client was in the way of %s on %s is unknown: %s", attempt, write.table.name, error
        )
        return None


def _not_settled(view: LakeView, entry: Entry) -> Finding:
    """Decided, and not visible yet."""
    where = f"entry {entry.seq} of the global log, {utc_text(entry.time_ms)}"
    if not isinstance(entry.change, Commit):
        done = "is void" if isinstance(entry.change, Void) else f"is decided ({_names(entry)})"
        text = f"The change of transaction {entry.txn} ({where}) {done}, and not complete yet."
        files: tuple[str, ...] = ()
    else:
        writes = entry.change.writes
        parts = view.environment.fan_out([partial(_part, view, entry, write) for write in writes])
        text = (
            f"Transaction {entry.txn} has decided its commit ({where}), and it is not complete yet: "
            f"{', '.join(parts)}."
        )
        files = tuple(file for write in writes for file in _planned(view, write))
    return Finding(
        "unsettled",
        text,
        "its client completes it; if that client died, the next writer does. It cannot get lost. `lakevilla "
        "recover` completes it now, or says what prevents it",
        _tables(entry),
        (entry.txn,),
        files,
        _since(view, entry.time_ms),
    )


def _part(view: LakeView, entry: Entry, write: Write) -> str:
    try:
        history = view.catalog.open(write.table, view.meter).history(_VERSIONS_SEARCHED)
    except LakeVillaError as error:
        return f"{write.table.name!r} cannot be read ({error})"
    mine = next((version for version in history if version.attempt == entry.attempt), None)
    if mine is None:
        return f"{write.table.name!r} does not have it yet"
    return f"{write.table.name!r} has it as version {mine.version}"


def _planned(view: LakeView, write: Write) -> list[str]:
    try:
        change = view.catalog.open(write.table, view.meter).decode_change(write.change)
    except LakeVillaError as error:
        logger.info("the files of the commit on %s are unknown: %s", write.table.name, error)
        return []
    added = [f"{write.table.name}: + {file.key}" for file in change.added]
    return added + [f"{write.table.name}: - {file.identity}" for file in change.removed]


def _torn(view: LakeView, ref: TableRef) -> Finding:
    """Which commit could not be rolled back, and which client built on it."""
    history = list(view.catalog.open(ref, view.meter).history(_VERSIONS_SEARCHED))
    inverses = {version.attempt for version in history}
    for newer, version in pairwise(history):
        attempt, txn = version.attempt, version.txn
        if not version.slot or txn is None or attempt is None or f"{attempt}{INVERSE}" in inverses:
            continue
        entry = view.log.read_slot(version.slot)
        evidence = find_evidence(view.catalog, view.environment, txn)
        if entry is not None and entry.attempt == attempt and evidence.is_whole(entry) is False:
            text = (
                f"Table {ref.name!r} is torn: {_summary(version)} belongs to a refused commit, "
                f"and {_summary(newer)} built on it before it could be rolled back."
            )
            return _torn_finding(ref, text, (txn,))
    return _torn_finding(
        ref, f"Table {ref.name!r} is torn: another client built on a commit that had to be rolled back.", ()
    )


def _torn_finding(ref: TableRef, text: str, txns: tuple[str, ...]) -> Finding:
    return Finding(
        "torn",
        text,
        "nothing happens automatically: compare its rows with the other tables of that transaction and "
        "repair them; the table stays marked as torn until lake.sync(accept_torn=True)",
        (ref.name,),
        txns,
    )


def _of_version(ref: TableRef, version: HistoryEntry, txn: str) -> Finding:
    """A commit that no entry of the global log decided."""
    return Finding(
        "committed",
        f"Transaction {txn} is committed since {utc_text(version.timestamp_ms)}, as version "
        f"{version.version} of {ref.name!r} ({version.operation}, {_files(version)}).",
        "nothing, it is done; transactions that read the changed data are re-executed, or fail with Conflict",
        (ref.name,),
        (txn,),
        _named(version),
    )


def _still_open(view: LakeView, evidence: Evidence, txn: str) -> Finding:
    """A transaction that no log names: how far it is, and whether its client is alive."""
    folder = read_folder(view.store, txn)
    outcome = outcome_of(evidence, view.catalog, view.environment, view.leases, txn)
    text, tables, since = f"Transaction {txn} is not committed.", tuple[str, ...](), None
    if folder.sublogs:
        (opened,) = open_transactions(view, [folder], [None])
        tables, since = opened.tables, opened.silent_seconds
        done = count_text(opened.statements, "statement")
        text += f" It has finished {done} on {', '.join(map(repr, tables))}."
    return Finding("open", text, outcome.advice, tables, (txn,), since_seconds=since)


def _tables(entry: Entry) -> tuple[str, ...]:
    return tuple(ref.name for ref in entry.tables)


def _names(entry: Entry) -> str:
    """A change of the lake's tables or tags, in words."""
    tables = ", ".join(map(repr, _tables(entry)))
    return f"{entry.kind} of {tables}" if tables else entry.kind


def _summary(version: HistoryEntry) -> str:
    by = f" by {version.engine}" if version.engine else ""
    txn = f", transaction {version.txn}" if version.txn else ""
    return f"version {version.version} ({version.operation or 'a commit'}{by}{txn})"


def _files(version: HistoryEntry) -> str:
    return f"{count_text(len(version.added), 'file')} added, {len(version.removed)} removed"


def _named(version: HistoryEntry) -> tuple[str, ...]:
    return (*(f"+ {file}" for file in version.added), *(f"- {file}" for file in version.removed))


def _since(view: LakeView, time_ms: int) -> float:
    return max(0.0, (view.environment.now_ms() - time_ms) / 1000)
