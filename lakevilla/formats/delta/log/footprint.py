"""What a published entry did to its table, for the conflict rules and for people."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakevilla.formats.authorship import in_words
from lakevilla.formats.delta.log.actions import Commit
from lakevilla.formats.delta.log.encode import attempt_of, notice_of, txn_of
from lakevilla.formats.delta.log.entry import identity_of
from lakevilla.formats.delta.log.replay import State
from lakevilla.formats.delta.snapshot import DeltaSnapshot
from lakevilla.model import Footprint
from lakevilla.predicates import Predicate


@dataclass(frozen=True)
class AddedFiles:
    """The files that an entry added: a table that holds only them, so that pruning is the snapshot's."""

    alone: DeltaSnapshot

    def matching(self, predicate: Predicate) -> Sequence[str]:
        return [file.identity for file in self.alone.files(predicate)]


def footprint_of(commit: Commit, before: DeltaSnapshot) -> Footprint:
    """The footprint of an entry; `before` is the version that it was built on."""
    added = {identity_of(add): add for add in commit.adds}
    notice = notice_of(commit.info)
    alone = State(commit.version, before.protocol, before.metadata, commit.info, added=added)
    return Footprint(
        version=commit.version,
        txn=txn_of(commit.info),
        attempt=attempt_of(commit.info),
        summary=_summary(commit),
        removed=frozenset(identity_of(remove) for remove in commit.removes),
        added=AddedFiles(replace(before, state=alone)),
        metadata_changed=commit.metadata is not None,
        protocol_changed=commit.protocol is not None,
        dropped=notice is not None and notice.dropped,
        keeps_rows=_keeps_rows(commit),
    )


def _keeps_rows(commit: Commit) -> bool:
    """Whether the entry only rewrites files, as its actions say (PROTOCOL.md, "Add File and Remove File")."""
    files = (*commit.adds, *commit.removes)
    if not files or commit.metadata is not None or commit.protocol is not None:
        return False
    return all(action.get("dataChange") is False for action in files)


def _summary(commit: Commit) -> str:
    info = commit.info or {}
    operation, engine = str(info.get("operation") or ""), str(info.get("engineInfo") or "")
    return in_words(commit.version, operation, engine, info.get("timestamp"), txn_of(info))
