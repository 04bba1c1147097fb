"""A log entry as a version of the table, for people."""

from lakevilla.answers import HistoryEntry
from lakevilla.formats.authorship import texts
from lakevilla.formats.delta.log.actions import Commit
from lakevilla.formats.delta.log.encode import attempt_of, slot_of, txn_of
from lakevilla.formats.delta.log.entry import identity_of


def history_entry(commit: Commit, modified_ms: int) -> HistoryEntry:
    """`modified_ms` is the time of the log entry by the store, for an entry that does not say its own."""
    info = commit.info or {}
    time = info.get("inCommitTimestamp", info.get("timestamp"))
    return HistoryEntry(
        version=commit.version,
        timestamp_ms=time if isinstance(time, int) else modified_ms,
        operation=str(info.get("operation", "")),
        parameters=texts(info.get("operationParameters")),
        metrics=texts(info.get("operationMetrics")),
        engine=str(info.get("engineInfo", "")),
        txn=txn_of(info),
        attempt=attempt_of(info),
        slot=slot_of(info),
        added=tuple(identity_of(file) for file in commit.adds),
        removed=tuple(identity_of(file) for file in commit.removes),
    )
