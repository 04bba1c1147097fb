"""Tables on which a commit could not be rolled back, because another client had built on it.

That is right only where a client that knows nothing of LakeVilla did it: then this part of the commit stays,
all other parts are rolled back, and HEAD flags the table. A commit is rolled back by an entry whose attempt
is the commit's with `-inverse` appended; a client that removed its files, may have deleted rows of them, or
changed the table's definition before that entry prevents this.
"""

import json
from collections.abc import Iterable, Mapping, Sequence

from sim.checkers.history import Operation
from sim.checkers.lake.heads import Heads
from sim.checkers.lake.published import HEAD, AppliedWrite
from sim.checkers.tables.commits import Commit
from sim.checkers.tables.logs import read_log, table_roots

INVERSE = "-inverse"


class Torn:
    """What the writes of a run show about torn tables."""

    def __init__(self, writes: Sequence[AppliedWrite] = ()) -> None:
        self._writes = writes
        self._known: tuple[dict[str, bytes], set[str]] | None = None
        self._whole: set[str] | None = None

    @property
    def flagged(self) -> set[str]:
        """The tables that some HEAD called torn: readers with isolation see them as they were before."""
        return self._look()[1]

    def parts(self, txn: str | None) -> set[str]:
        """The tables that HEAD called torn, and on which somebody built on an entry of this transaction.

        None if HEAD says that the transaction is published: somebody else's may have torn the table.
        """
        objects, flagged = self._look()
        if self._whole is None:
            self._whole = _published(self._writes)
        if txn in self._whole:
            return set()
        return flagged & torn_parts(objects, txn).keys() if flagged and txn else set()

    def check(self, ended: Iterable[Operation]) -> list[str]:
        """What is wrong with operations that ended as `torn`: each tore a table, or met one that was torn."""
        violations = []
        for op in ended:
            objects, flagged = self._look()
            parts = torn_parts(objects, op.txn) if op.txn else {}
            if missing := parts.keys() - flagged:
                violations.append(f"operation {op.number} tore {sorted(missing)}, and HEAD never said so")
            if not parts and not flagged:
                violations.append(f"operation {op.number} ended with {op.error}, and no table is torn")
        return violations

    def _look(self) -> tuple[dict[str, bytes], set[str]]:
        if self._known is None:
            objects = {write.key: write.data for write in self._writes if write.data is not None}
            self._known = objects, _flagged(self._writes)
        return self._known


def torn_parts(objects: Mapping[str, bytes], txn: str) -> dict[str, int]:
    """The tables on which an outside client built on an entry of this transaction, and that entry."""
    found = {}
    for root in table_roots(objects):
        commits = read_log(objects, root).commits
        for number, commit in enumerate(commits):
            if _is_of(commit, txn) and is_built_on(commit, commits[number + 1 :]):
                found[root] = commit.version
    return found


def _published(writes: Iterable[AppliedWrite]) -> set[str]:
    """The transactions of which some HEAD said that they are published."""
    heads = [json.loads(write.data) for write in writes if write.key == HEAD and write.data is not None]
    steps = (step for head in heads for step in head.get("steps", ()))
    return {step["txn"] for step in steps if step["published"]}


def _flagged(writes: Iterable[AppliedWrite]) -> set[str]:
    """The tables that some HEAD called torn."""
    heads, flagged = Heads(), set[str]()
    for write in writes:
        if write.data is None or heads.see(write.key, write.data):
            continue
        if write.key == HEAD:
            flagged |= set(heads.unpack(write.data).get("torn", ()))
    return flagged


def _is_of(commit: Commit, txn: str) -> bool:
    """Whether the entry does what the transaction does, and not what takes that back."""
    return commit.ours.get("txn") == txn and not str(commit.ours.get("attempt")).endswith(INVERSE)


def is_built_on(commit: Commit, later: Iterable[Commit]) -> bool:
    """Whether an outside client built on this version before it was rolled back."""
    rolled_back = f"{commit.ours.get('attempt')}{INVERSE}"
    for other in later:
        if other.ours.get("attempt") == rolled_back:
            return False
        touched = {*other.removes, *other.shadows}
        if not other.ours and (commit.adds.keys() & touched or other.redefines):
            return True
    return False
