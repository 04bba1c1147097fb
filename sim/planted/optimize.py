"""Known bugs of commits that only rewrite files, to be planted one by one, as in `planted.commits`.

That rows are still read after they moved to another file shows only where a row is deleted whose file has no
other row: tests/lake/maintenance/test_optimize.py plays that.
"""

from collections.abc import Sequence
from dataclasses import replace

from lakevilla.conflicts.files import Hit, decide_conflict
from lakevilla.conflicts.rows import RowFacts
from lakevilla.formats.authorship import OPTIMIZE
from lakevilla.model import Change, DataFile, Footprint
from lakevilla.predicates import ANYTHING
from lakevilla.tables.pinned import Pinned
from lakevilla.transaction.statements.compaction import Compaction, Rewrite, _group_of
from lakevilla.transaction.statements.effect import Effect, TableChange
from lakevilla.transaction.workspace import Workspace
from sim.planted.commits import Plant, planter

BUGS: dict[str, Plant] = {}
"""Every bug by its name."""

_STATEMENT = "lakevilla.transaction.statements.compaction"
_DECIDING = (
    "lakevilla.conflicts.replays.decide_conflict",
    "lakevilla.settle.row_facts.decide_conflict",
)

_bug = planter(BUGS)
_run = Compaction.run
_write = Compaction._write


@_bug(*_DECIDING)
def compaction_passes_an_update_of_its_files(
    change: Change, theirs: Footprint, *facts: RowFacts
) -> Hit | None:
    """It keeps all rows, so it seems that no commit concerns it."""
    return None if change.operation == OPTIMIZE else decide_conflict(change, theirs, *facts)


@_bug(*_DECIDING)
def update_passes_a_compaction_of_its_files(
    change: Change, theirs: Footprint, *facts: RowFacts
) -> Hit | None:
    """A commit that keeps all rows seems to concern no other."""
    return None if theirs.keeps_rows else decide_conflict(change, theirs, *facts)


@_bug(f"{_STATEMENT}.Compaction._write")
def redo_publishes_rows_of_files_that_are_gone(
    self: Compaction, workspace: Workspace, pinned: Pinned, groups: Sequence[tuple[DataFile, ...]]
) -> None:
    """What was written for a group is taken for what is left of it, with rows that others changed since."""
    for files in groups:
        left = {file.identity for file in files}
        known = [rewrite for group, rewrite in self._written.items() if left & set(group)]
        self._written |= {_group_of(files): Rewrite(files, rewrite.added) for rewrite in known[:1]}
    _write(self, workspace, pinned, groups)


@_bug(f"{_STATEMENT}.Compaction.run")
def compaction_removes_what_it_has_not_rewritten(self: Compaction, workspace: Workspace) -> Effect:
    """All files that are there when it commits go, also those that came after its plan."""
    effect = _run(self, workspace)
    if not isinstance(effect.pending, TableChange):
        return effect
    pending = effect.pending
    everything = tuple(pending.pinned.snapshot.files(ANYTHING))
    return replace(effect, pending=replace(pending, change=replace(pending.change, removed=everything)))
