"""How a transaction moves past the commits of others: rebase what is still valid, redo the rest (module 2).

Every version on the way is read: one that names our own transaction was written by a client that resumed it,
and we are fenced.
"""

from collections.abc import Mapping, Sequence

from lakevilla.errors import Fenced
from lakevilla.formats.port import Snapshot, Taken
from lakevilla.model import Footprint
from lakevilla.settle.lost_parts import INVERSE
from lakevilla.tables.pinned import Pinned
from lakevilla.transaction.redo.operations import Operations
from lakevilla.transaction.redo.replay import Foreign, Replay, conflict, conflict_of
from lakevilla.transaction.workspace import BeforeChange, Workspace


class Redo:
    """Brings the operations of one transaction onto newer versions, and counts what was redone and what was
    saved. Statements that are redone call `before_change` like those that run first.

    `attempt` is the one that runs: each time that `lake.run` starts from the beginning it is another.
    """

    def __init__(
        self, workspace: Workspace, operations: Operations, attempt: str, before_change: BeforeChange
    ) -> None:
        self._attempts: set[str] = set()
        self._workspace = workspace
        self._operations = operations
        self._before_change = before_change
        self.redone = 0
        self.saved_bytes = 0
        self.moves = 0
        """How often the transaction moved to newer versions."""
        self._checked: dict[str, list[Footprint]] | None = None
        """Commits that concern no operation, as was just found."""
        self.halfway = False
        """Whether a move failed: then the operations are redone only in part, and nothing may build on
        them."""
        self.begin(attempt)

    def begin(self, attempt: str) -> None:
        """From here on the transaction runs under this attempt; what earlier ones left is ours too."""
        self.attempt, self.halfway = attempt, False
        self._attempts |= {attempt, attempt + INVERSE}

    def catch_up(self, between: Mapping[str, Sequence[Taken]]) -> None:
        """Move to the versions after these commits, by the table's location; redo what they concern.

        Raises Conflict if something that the client was given has changed.
        """
        foreign = _footprints(between)
        for place, footprints in foreign.items():
            self._refuse_fenced(footprints, self._workspace.base(place))
        if not foreign:
            return
        self.moves += 1
        self.halfway = True
        # Vectors of our own are read to be compared and merged.
        self._workspace.uploads.finish()
        is_valid = self._checked is not None and _are_same(self._checked, foreign)
        is_valid = is_valid or conflict_of(self._workspace, self._operations, foreign) is None
        self._checked = None
        for operation in self._operations:
            for place, footprints in foreign.items():
                operation.follow(place, footprints)
        self._move_to({place: between[place][-1].snapshot for place in foreign})
        replay = Replay(self._workspace, {} if is_valid else foreign, self._before_change)
        replay.run(self._operations)
        if not is_valid:
            self.redone += replay.redone
            self.saved_bytes += replay.saved_bytes
        self.halfway = False

    def conflicts(self, between: Mapping[str, Sequence[Taken]]) -> bool:
        """Whether one of these commits concerns an operation."""
        foreign = _footprints(between)
        if foreign:
            self._workspace.uploads.finish()
        found = conflict_of(self._workspace, self._operations, foreign) is not None
        self._checked = None if found else foreign
        return found

    def refuse_conflicts(self, between: Mapping[str, Sequence[Taken]]) -> None:
        """Without recovery: Conflict if one of these commits concerns an operation."""
        foreign = _footprints(between)
        if foreign:
            self._workspace.uploads.finish()
        found = conflict_of(self._workspace, self._operations, foreign)
        if found is not None:
            operation, place, hit = found
            name = self._workspace.base(place).ref.name
            raise conflict(operation.name, name, hit, "the transaction is without recovery (R)")

    def _move_to(self, newest: Mapping[str, Snapshot]) -> None:
        """Move to newer versions of some tables, without our own writes on any, nor our own tables."""
        for pinned in self._workspace.touched:
            self._workspace.move(pinned.ref.location, newest.get(pinned.ref.location, pinned.snapshot))
        self._workspace.own.restart()

    def _refuse_fenced(self, foreign: Sequence[Footprint], pinned: Pinned) -> None:
        for footprint in foreign:
            if footprint.txn == self._workspace.txn and footprint.attempt not in self._attempts:
                raise Fenced(
                    f"transaction {self._workspace.txn} is committed already, as version {footprint.version} "
                    f"of {pinned.ref.name!r}, by another client that resumed it: do not run it again",
                    transaction=self._workspace.txn,
                    table=pinned.ref.name,
                    version=footprint.version,
                )


def _are_same(some: Foreign, others: Foreign) -> bool:
    """Whether these are the same commits."""
    return some.keys() == others.keys() and all(
        len(found) == len(others[place]) and all(a is b for a, b in zip(found, others[place], strict=True))
        for place, found in some.items()
    )


def _footprints(between: Mapping[str, Sequence[Taken]]) -> dict[str, list[Footprint]]:
    """What these commits did, for the tables on which there are any."""
    return {
        place: _without_undone([taken.footprint for taken in found])
        for place, found in between.items()
        if found
    }


def _without_undone(found: Sequence[Footprint]) -> list[Footprint]:
    """Without commits that were rolled back, and without their inverse commits: together they did nothing.

    A table that was created and dropped again is different: its location is used up.
    """
    attempts = {footprint.attempt for footprint in found if footprint.attempt is not None}
    inverses = {footprint.attempt for footprint in found if not footprint.dropped}
    undone = {attempt for attempt in attempts if attempt + INVERSE in inverses}
    undone |= {attempt + INVERSE for attempt in undone}
    return [footprint for footprint in found if footprint.attempt not in undone]
