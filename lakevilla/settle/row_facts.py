"""What the rules of rows ask (`conflicts.rows`), read from vectors and data files; and the decision by it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lakevilla.conflicts.files import Hit, decide_conflict
from lakevilla.conflicts.rows import NO_FACTS, RowFacts, questions_of
from lakevilla.errors import Corrupt, Unsupported
from lakevilla.files.bitmaps import Positions
from lakevilla.formats.port import Snapshot, Table
from lakevilla.model import Change, DataFile, Deletes, Footprint, Shrunk
from lakevilla.predicates import ANYTHING, Predicate

EXACT_BYTES = 16 * 1024 * 1024
"""So many bytes of data files are read at most to decide about one commit. Larger files that bounds do not
exclude are a conflict, as without this test: to run the statement again costs no more than to read them."""
EXACT_FILES = 32
"""And so many files, each of which costs a request or two."""


@dataclass
class RowReader:
    """Reads rows for decisions, and keeps what it has read. For one thread at a time.

    `tests_files` says whether data files are read, too. A client that settles an entry reads only what the
    logs name as long as the version is needed: so all clients decide alike (docs/protocol.md, section 6).
    """

    tests_files: bool = True
    _vectors: dict[tuple[str, str], Positions] = field(default_factory=dict)
    _tests: dict[tuple[Any, ...], bool] = field(default_factory=dict)

    def decide(self, table: Table, base: Snapshot, change: Change, theirs: Footprint) -> Hit | None:
        """The first rule that the two break, or None. `base` is a version of the table near theirs."""
        (known,) = self.known(table, base, change, [theirs])
        return decide_conflict(change, *known)

    def known(
        self, table: Table, base: Snapshot, change: Change, commits: Iterable[Footprint]
    ) -> Iterator[tuple[Footprint, RowFacts]]:
        """These commits with what has to be known of rows to decide about them."""
        for theirs in commits:
            is_clear = decide_conflict(change, theirs) is None
            yield theirs, NO_FACTS if is_clear else self.facts(table, base, change, theirs)

    def facts(self, table: Table, base: Snapshot, change: Change, theirs: Footprint) -> RowFacts:
        """What can be known of the rows that both concern."""
        asked = questions_of(change, theirs)
        if not (asked.shrunk or asked.added):
            return NO_FACTS
        taken: dict[str, Positions] = {}
        files: dict[str, DataFile] = {}
        for name in sorted(asked.shrunk):
            pair = theirs.shrunk[name]()
            rows = self._taken(pair)
            if rows is not None:
                taken[name], files[name] = rows, pair.before
        ours = table.shrunk(base, change)
        apart = frozenset(
            name for name in asked.apart if name in taken and self._is_apart(ours, name, taken[name])
        )
        known = frozenset(taken)
        added = {i for i in asked.added if theirs.file_of(i) not in known}
        if not self.tests_files or decide_conflict(
            change, theirs, RowFacts(known, apart, known, asked.added)
        ):
            # No file can change the answer.
            return RowFacts(known, apart)
        reading = _Reading(self, table, base, change.read.predicates)
        found = {f.identity: f for f in theirs.added.files(ANYTHING) if f.identity in added} if added else {}
        unread = reading.without_hits({name: (files[name], taken[name]) for name in asked.unread & known})
        unmatched = reading.without_hits({identity: (file, None) for identity, file in found.items()})
        return RowFacts(known, apart, unread, unmatched)

    def _taken(self, pair: Shrunk) -> Positions | None:
        """The rows that a commit took from a file; None if it brought some back."""
        before, after = self._deleted(pair.before), self._deleted(pair.after)
        if len(np.setdiff1d(before, after)):
            return None
        return np.setdiff1d(after, before)

    def _is_apart(self, ours: Mapping[str, Callable[[], Shrunk]], name: str, taken: Positions) -> bool:
        """Whether we take other rows of the file."""
        mine = self._taken(ours[name]()) if name in ours else None
        return mine is not None and not len(np.intersect1d(mine, taken))

    def _deleted(self, file: DataFile) -> Positions:
        """The deleted rows of a file."""
        if file.deletes is None:
            return np.empty(0, dtype=np.int64)
        key = (file.key, file.deletes.identity)
        if key not in self._vectors:
            self._vectors[key] = _positions(file.deletes)
        return self._vectors[key]


def decide(
    rows: RowReader | None, table: Table, base: Snapshot, change: Change, theirs: Footprint
) -> Hit | None:
    """The first rule that the two break: by rows, or by whole files if there is no reader.

    For decided changes. There a commit that keeps all rows is one like any other: clients of releases that do
    not know the difference may settle the same entry, and all must decide alike. It costs a redo only where
    another client compacts a table between the slot and the publish.
    """
    theirs = replace(theirs, keeps_rows=False)
    return decide_conflict(change, theirs) if rows is None else rows.decide(table, base, change, theirs)


@dataclass
class _Reading:
    """Tests of rows for one decision, as long as bytes are left for it."""

    reader: RowReader
    table: Table
    base: Snapshot
    read: Sequence[Predicate]
    bytes_left: int = EXACT_BYTES
    files_left: int = EXACT_FILES

    def without_hits(self, rows: Mapping[str, tuple[DataFile, Positions | None]]) -> frozenset[str]:
        """Of these rows of files, or all living ones, those of which none may satisfy what was read. One that
        may is a conflict: then the others do not matter."""
        found: list[str] = []
        for name, (file, positions) in sorted(rows.items(), key=lambda item: item[0]):
            if self._holds(file, positions):
                break
            found.append(name)
        return frozenset(found)

    def _holds(self, file: DataFile, positions: Positions | None) -> bool:
        rows = None if positions is None else positions.tobytes()
        key = (self.base.table_id, file.key, file.identity, rows, tuple(self.read))
        known = self.reader._tests.get(key)
        if known is not None:
            return known
        self.bytes_left, self.files_left = self.bytes_left - file.size, self.files_left - 1
        if self.bytes_left < 0 or self.files_left < 0:
            return True
        columns = self.base.partition_columns
        try:
            # What reads data files comes when it is first needed.
            from lakevilla.settle import row_test

            found = row_test.may_hold(self.table.open, file, self.base.schema, columns, self.read, positions)
        except (Corrupt, Unsupported):
            # Deleted meanwhile, or of a format that we do not read.
            found = True
        self.reader._tests[key] = found
        return found


def _positions(deletes: Deletes) -> Positions:
    rows: Positions = deletes.rows().to_numpy(zero_copy_only=False)
    return rows
