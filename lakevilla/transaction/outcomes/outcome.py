"""The outcome of a transaction, asked by another client (docs/guarantees.md, "Outcomes").

`committed`, `aborted` and `torn` are final: no later answer differs, except that it may become `unknown`.
Only a log can say that a transaction is committed. That no log names it says less: its client may be paused
and publish later. Age does not rule that out. A client may not build on what it read longer than an hour ago,
but it may read again, find that nothing is in its way, and publish. For the same reason an entry of the
global log that was refused is not the end of a transaction that may be redone under the same id.
"""

import re
from dataclasses import replace

from lakevilla.answers import HistoryEntry, Outcome
from lakevilla.environment import Environment
from lakevilla.errors import InvalidInput, Unavailable
from lakevilla.markers.lease import Leases
from lakevilla.markers.survey import find_stale
from lakevilla.settle.lost_parts import INVERSE
from lakevilla.sql.tables import sql_name
from lakevilla.store.metered import Meter
from lakevilla.sublogs.finder import has_sublogs
from lakevilla.tables.catalog import Catalog
from lakevilla.transaction.outcomes.evidence import Evidence, Seen, find_evidence
from lakevilla.transaction.redo.resume import lease_of
from lakevilla.versions.commits import Commit
from lakevilla.versions.records import Entry

_ID = re.compile(r"[0-9a-f]{32}")
_DECIDES_NOTHING = ("void", "adopt")


def is_id(text: str) -> bool:
    """Whether this can be the id of a transaction."""
    return _ID.fullmatch(text) is not None


def check_id(txn: str) -> str:
    """The id of a transaction itself, if it can be one."""
    if not isinstance(txn, str) or not is_id(txn):
        raise InvalidInput(
            f"{txn!r} is not the id of a transaction; expected 32 hexadecimal digits, as tx.id has"
        )
    return txn


def find_outcome(catalog: Catalog, environment: Environment, leases: Leases, txn: str) -> Outcome:
    """Look for a transaction in the global log, then in the logs of the tables, then for its client."""
    evidence = find_evidence(catalog, environment, txn, stop_early=True)
    decided = _decided(txn, evidence)
    if decided is not None:
        return decided
    if evidence.entries or evidence.steps:
        # All its entries in the global log had no effect: a later attempt may be in a table's log.
        evidence = find_evidence(catalog, environment, txn)
    return outcome_of(evidence, catalog, environment, leases, txn)


def outcome_of(
    evidence: Evidence, catalog: Catalog, environment: Environment, leases: Leases, txn: str
) -> Outcome:
    """What the evidence says of a transaction; of one that no log names, what its client left says."""
    decided = _decided(txn, evidence)
    if decided is not None:
        return decided
    slots = {step.seq for step in evidence.steps}
    for seen in evidence.tables.values():
        for version in seen.versions:
            if not version.slot and not _is_rolled_back(seen, version):
                place = f"version {version.version} of {seen.ref.name!r}"
                return _committed(txn, place, seen.ref.name, version.version)
    for seen in evidence.tables.values():
        told = (version for version in seen.versions if version.slot and version.slot not in slots)
        if not all(_is_rolled_back(seen, version) for version in told):
            return Outcome(txn, "unknown", _EXPIRED_ENTRY.format(name=seen.ref.name), seen.ref.name)
    _refuse_unread(txn, evidence)
    found = _not_found(catalog, environment, leases, txn)
    if found.advice != _LOST:
        return found
    refused = next((step.seq for step in evidence.steps if step.kind not in _DECIDES_NOTHING), None)
    if refused is not None:
        return replace(found, advice=_REFUSED.format(seq=refused), seq=refused)
    if not evidence.is_complete:
        return Outcome(txn, "unknown", _EXPIRED)
    for seen in evidence.tables.values():
        for version in seen.versions:
            return replace(found, advice=_ROLLED_BACK.format(version=version.version, name=seen.ref.name))
    return found


def _refuse_unread(txn: str, evidence: Evidence) -> None:
    """Unavailable if a table cannot be read at the moment: its log may name the transaction."""
    for seen in evidence.tables.values():
        if seen.error is not None:
            raise Unavailable(
                f"the outcome of transaction {txn} is not known: no log that could be read names it, and "
                f"table {seen.ref.name!r} could not be read ({seen.error}). Ask again when it can be read; "
                f"if it is lost for good, DROP TABLE {sql_name(seen.ref.name)} first",
                transaction=txn,
                table=seen.ref.name,
            ) from seen.error


def _is_rolled_back(seen: Seen, version: HistoryEntry) -> bool:
    """Whether this version is an inverse commit, or one that has an inverse commit in the table's log."""
    attempt = version.attempt or ""
    return attempt.endswith(INVERSE) or seen.of(attempt + INVERSE) is not None


def _decided(txn: str, evidence: Evidence) -> Outcome | None:
    """What the global log says of a transaction: the newest entry that is final, else one that is not settled
    yet; None if it has none, or only entries that had no effect and may be tried again."""
    for step in evidence.steps:
        if step.published and step.kind not in _DECIDES_NOTHING:
            table = next((name for name in step.maps.get("tables", {}) if step.kind != "commit"), None)
            return _committed(txn, f"entry {step.seq} of the global log", table, None, step.seq)
    for step in evidence.steps:
        if torn := step.added.get("torn"):
            place, where = f"entry {step.seq} of the global log", ", ".join(sorted(torn))
            return Outcome(txn, "torn", _TORN.format(place=place, where=where), seq=step.seq)
    for step in evidence.steps:
        if step.final and step.kind not in _DECIDES_NOTHING:
            return _aborted(txn, step.seq)
    judged = [(entry, _of_entry(txn, evidence, entry)) for entry in evidence.entries]
    finals = [outcome for _, outcome in judged if outcome is not None and outcome.state == "committed"]
    return next(iter(finals), None) or next((outcome for _, outcome in judged if outcome is not None), None)


def _of_entry(txn: str, evidence: Evidence, entry: Entry) -> Outcome | None:
    place = f"entry {entry.seq} of the global log"
    if entry.kind in _DECIDES_NOTHING:
        return None
    if not evidence.is_settled(entry):
        advice = (
            f"it is {place}, which the next writer or lake.recover() completes or rolls back: do not run it "
            "again before that, and ask again then"
        )
        return Outcome(txn, "undecided", advice, seq=entry.seq)
    match evidence.is_whole(entry):
        case True:
            table = None if isinstance(entry.change, Commit) else next((r.name for r in entry.tables), None)
            return _committed(txn, place, table, None, entry.seq)
        case None:
            return Outcome(txn, "unknown", _NOT_TOLD.format(place=place), seq=entry.seq)
    if isinstance(entry.change, Commit) and not entry.change.final:
        return None
    return _aborted(txn, entry.seq)


def _aborted(txn: str, seq: int) -> Outcome:
    place = f"entry {seq} of the global log"
    advice = f"it was refused, as {place}: nothing of it is visible, and it may be run again"
    return Outcome(txn, "aborted", advice, seq=seq)


def _committed(
    txn: str, place: str, table: str | None, version: int | None, seq: int | None = None
) -> Outcome:
    return Outcome(txn, "committed", f"it is committed, as {place}: do not run it again", table, version, seq)


def _not_found(catalog: Catalog, environment: Environment, leases: Leases, txn: str) -> Outcome:
    store = catalog.root(Meter())
    lease = lease_of(store, txn)
    if lease is not None and not find_stale([(txn, lease.attempt)], leases, environment)[0]:
        return Outcome(txn, "live", _LIVE)
    advice = _RESUME.format(txn=txn) if has_sublogs(store, txn) else _LOST
    return Outcome(txn, "undecided", advice)


_LIVE = "it is not committed yet, and its client is alive: wait for it"
_RESUME = (
    "no log names it, and its client is dead, but it left records: tx = lake.resume('{txn}') continues it "
    "after its first tx.statements statements. Run the statements that follow, if it had more, before you "
    "commit it"
)
_TORN = (
    "it was refused, as {place}, and could not be rolled back on {where}: another client had built on its "
    "part there, or the table could not be reached any more. Its changes may be visible there, and nowhere "
    "else. Check and repair these tables before you run it again; lakevilla explain shows the versions"
)
_REFUSED = (
    "its newest attempt was entry {seq} of the global log, which was refused and rolled back: nothing of it "
    "is visible. If its client has ended, it was not committed and may be run again; a client that is only "
    "paused may still redo and commit it"
)
_ROLLED_BACK = (
    "it was rolled back, by version {version} of {name!r}: nothing of it is visible. If its client has "
    "ended, it was not committed and may be run again; a client that is only paused may still redo and "
    "commit it"
)
_NOT_TOLD = (
    "it is {place}, and the log entries of its tables that would show its outcome were cleaned up: whether "
    "it was committed is not known any more; look at the data before you run it again"
)
_EXPIRED_ENTRY = (
    "a version of {name!r} names it, and the entry of the global log that decided it has expired: whether it "
    "was committed as a whole is not known any more; look at the data before you run it again"
)
_EXPIRED = (
    "no log names it, and entries of the lake or of its tables from when it ran have expired: whether it was "
    "committed is not known any more; look at the data before you run it again"
)
_LOST = (
    "no log names it. If its client ended some minutes ago, so that none of its requests can still arrive, "
    "it was not committed and may be run again; a client that is only paused may still commit it"
)
