"""What a published entry did to its table, for the conflict rules and for people."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from lakevilla.formats.authorship import in_words
from lakevilla.formats.delta.files.deletion_vectors import deletes_of
from lakevilla.formats.delta.log.actions import Commit
from lakevilla.formats.delta.log.encode import attempt_of, notice_of, txn_of
from lakevilla.formats.delta.log.entry import VECTOR_MARK, identity_of
from lakevilla.formats.delta.log.replay import State
from lakevilla.formats.delta.snapshot import DeltaSnapshot
from lakevilla.model import DataFile, Footprint, Shrunk
from lakevilla.predicates import ANYTHING, Predicate


@dataclass(frozen=True)
class AddedFiles:
    """The files that an entry added: a table that holds only them, so that pruning is the snapshot's. Answers
    are kept: one decision asks more than once."""

    alone: DeltaSnapshot
    _known: dict[Predicate, list[DataFile]] = field(default_factory=dict, compare=False, repr=False)

    def matching(self, predicate: Predicate) -> Sequence[str]:
        return [file.identity for file in self.files(predicate)]

    def files(self, predicate: Predicate) -> Sequence[DataFile]:
        if predicate not in self._known:
            self._known[predicate] = self.alone.files(predicate)
        return self._known[predicate]


def footprint_of(commit: Commit, before: DeltaSnapshot) -> Footprint:
    """The footprint of an entry; `before` is the version that it was built on."""
    added = {identity_of(add): add for add in commit.adds}
    notice = notice_of(commit.info)
    alone = State(commit.version, before.protocol, before.metadata, commit.info, added=added)
    files = AddedFiles(replace(before, state=alone))
    return Footprint(
        version=commit.version,
        txn=txn_of(commit.info),
        attempt=attempt_of(commit.info),
        summary=_summary(commit),
        removed=frozenset(identity_of(remove) for remove in commit.removes),
        added=files,
        metadata_changed=commit.metadata is not None,
        protocol_changed=commit.protocol is not None,
        dropped=notice is not None and notice.dropped,
        shrunk={
            path: partial(_shrunk, files, remove, identity_of(add))
            for path, (remove, add) in pairs_of(commit.removes, commit.adds).items()
        },
        file_of=file_of,
        keeps_rows=_keeps_rows(commit),
    )


def file_of(identity: str) -> str:
    """The name of a file, whichever of its rows are deleted: its path."""
    return identity.partition(VECTOR_MARK)[0]


Pair = tuple[Mapping[str, Any], Mapping[str, Any]]


def pairs_of(removes: Sequence[Mapping[str, Any]], adds: Sequence[Mapping[str, Any]]) -> dict[str, Pair]:
    """The files that go and come again, with other deleted rows, as these actions say; by their paths."""
    gone, come = _by_path(removes), _by_path(adds)
    return {path: (gone[path], come[path]) for path in gone if path in come}


def _by_path(files: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Files by path; not those that are there more than once."""
    counts = Counter(file["path"] for file in files)
    return {file["path"]: file for file in files if counts[file["path"]] == 1}


def _shrunk(added: AddedFiles, remove: Mapping[str, Any], identity: str) -> Shrunk:
    after = next(file for file in added.files(ANYTHING) if file.identity == identity)
    vector, table = remove.get("deletionVector"), added.alone
    deletes = None if vector is None else deletes_of(vector, table.store.url, table.locate)
    return Shrunk(replace(after, identity=identity_of(remove), deletes=deletes), after)


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
