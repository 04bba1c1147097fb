"""A client that follows every sentence of what it is told.

Contract: a commit whose outcome is unknown is asked for when the store answers again and some minutes have
passed. `committed` counts as acknowledged, `aborted` and the advice to run it again as failed. What has left
records is resumed: the statements that follow those of the records run, and then it commits. Everything else
stays unknown. Every answer of `lake.outcome` is kept, because a final one must never change.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakevilla.errors import (
    Aborted,
    CommitUnknown,
    Corrupt,
    Fenced,
    InvalidInput,
    LakeVillaError,
    Torn,
    Unavailable,
    Unsupported,
)
from lakevilla.lake import Lake
from lakevilla.transaction.transaction import Transaction
from sim.actors.session import Session
from sim.checkers.history import History, Operation
from sim.world.client import Client

LAKE, OTHER, FAR = "lake", "other", "far"
"""The folders of the first lake, of the second, and of a table outside of both."""


def home_of(client: str) -> str:
    """The folder of the lake that a client of this name works in."""
    return OTHER if client.startswith("b") else LAKE


MINUTES = 600.0
ASKS = 4
AGAIN = "may be run again"

Step = Callable[[Transaction], None]
"""One statement."""


@dataclass
class Notes:
    """What a seed's clients have been told, for the judges. `tags` are the rows of tagged instants, by lake
    and tag; `answers` what `lake.outcome` said, in order; `wrecks` when which folder was deleted by people
    who knew of no lake, and `renewals` when by one who had dropped the table."""

    tags: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    tagged_at: dict[tuple[str, str], float] = field(default_factory=dict)
    answers: list[tuple[float, str, str, str]] = field(default_factory=list)
    wrecks: list[tuple[float, str]] = field(default_factory=list)
    renewals: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    properties: Mapping[str, str] = field(default_factory=dict)
    """Those with which Delta tables are made."""
    cleaned: set[str] = field(default_factory=set)
    """Folders of tables whose logs were cleaned up by strangers."""

    def was_deleted(self, table: str, since: float) -> bool:
        """Whether the folder of a table was deleted since then, by anybody."""
        wrecks = [folder for at, folder in self.wrecks if at >= since]
        renewed = table == FAR and any(at >= since for at in self.renewals)
        return renewed or any(folder in (LAKE, *folders_of(table)) for folder in wrecks)

    def was_cleaned(self, table: str) -> bool:
        """Whether the log of a table was cleaned up, so that earlier versions may be gone."""
        return any(folder in self.cleaned for folder in folders_of(table))


def folders_of(table: str) -> tuple[str, ...]:
    """Where a table may lie that is called so now: `up` and `down` are names of one."""
    if table == FAR:
        return (FAR,)
    return (f"{LAKE}/up", f"{LAKE}/down") if table in ("up", "down") else (f"{LAKE}/{table}",)


class Obedient(Session):
    """See above. `root` is the lake's."""

    def __init__(self, client: Client, lake: Lake, history: History, notes: Notes, root: str) -> None:
        super().__init__(client, lake, history)
        self.notes = notes
        self.root = root

    def perform(
        self,
        table: str,
        action: str,
        key: Any,
        value: Any,
        run: Callable[[Operation], None],
        steps: Sequence[Step] | None = None,
    ) -> Operation:
        """`steps` are the statements of the transaction in order; None if they have no order."""
        op = self.begin(table, action, key, value)
        try:
            run(op)
            self.end(op, "ok")
        except LakeVillaError as failure:
            op.failure, op.named = type(failure).__name__, (failure.transaction, failure.version)
            match failure:
                case CommitUnknown() | Fenced():
                    self._ask(op, failure, steps)
                case Torn():
                    self.end(op, "torn", _told(failure))
                case Corrupt():
                    self.end(op, "unknown", _told(failure))
                case _:
                    self.end(op, "failed", _told(failure))
        return op

    def ask(self, txn: str) -> tuple[str, str]:
        """The state of a transaction, and the advice."""
        found = self.lake.outcome(txn)
        self.notes.answers.append((self.now, txn, found.state, found.advice))
        return found.state, found.advice

    def _ask(self, op: Operation, failure: LakeVillaError, steps: Sequence[Step] | None) -> None:
        told = _told(failure)
        for _ in range(ASKS if op.txn is not None else 0):
            self.client.environment.sleep(MINUTES)
            assert op.txn is not None
            try:
                state, advice = self.ask(op.txn)
            except Unavailable:
                continue
            op.answer = state
            if state == "committed":
                self.end(op, "ok", f"{told}; told committed")
                return
            if state == "aborted" or (state == "undecided" and AGAIN in advice):
                self.end(op, "failed", f"{told}; told {state}: {advice}")
                return
            if "lake.resume" not in advice or steps is None:
                continue
            try:
                if self._resume(op, told, steps):
                    return
            except Torn as failure:
                # It may be that of a table that a statement would read.
                if failure.transaction == op.txn:
                    self.end(op, "torn", f"{told}; resumed: {failure}")
                    return
        self.end(op, "unknown", told)

    def _resume(self, op: Operation, told: str, steps: Sequence[Step]) -> bool:
        """Whether the transaction is committed by this."""
        assert op.txn is not None
        try:
            with self.lake.resume(op.txn) as tx:
                for step in steps[tx.statements :]:
                    step(tx)
        except (CommitUnknown, Aborted, Unavailable, InvalidInput, Unsupported):
            return False
        self.end(op, "ok", f"{told}; resumed")
        return True


def _told(failure: LakeVillaError) -> str:
    return f"{type(failure).__name__}: {failure}"
