"""Where two clients of one transaction meet that a slot decides (docs/protocol.md, section 4).

The client that resumed the transaction, and the one that began it, decide it by an entry of the global log
that names it. Before a client creates a slot it has looked at every entry up to the HEAD before it, from one
on that was settled before the first record was stored, and so before any client could resume the transaction.
The create of the slot proves that no entry came since. So the first entry that is published is the commit,
and every other client meets it: it is `Fenced`.

As long as nothing was stored no client can have resumed the transaction, and nothing is looked at. HEAD holds
the newest entries itself, so that a look costs no request unless the transaction is far behind.
"""

from lakevilla.errors import Conflict, Fenced
from lakevilla.versions.head_steps import Step
from lakevilla.versions.log import GlobalLog, ReadHead
from lakevilla.versions.steps import steps_after


class Fence:
    """What one client has seen of the entries that may name its transaction."""

    def __init__(self, txn: str) -> None:
        self._txn = txn
        self._seen: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether others may have resumed the transaction: then a slot decides it, however many tables it
        has."""
        return self._seen is not None

    def open(self, since: int) -> None:
        """Records are about to be stored; no entry up to this one names the transaction."""
        self._seen = since if self._seen is None else min(self._seen, since)

    def check(self, log: GlobalLog, read: ReadHead) -> None:
        """Look at every entry up to this HEAD that was not looked at before; Fenced if one is the commit."""
        step = self.find(log, read)
        if step is not None:
            raise Fenced(
                f"{decided_as(self._txn, step)}, by another client that resumed it: do not run it again",
                transaction=self._txn,
                entry=step.seq,
            )

    def check_newest(self, log: GlobalLog) -> None:
        """The same up to the newest HEAD."""
        read = log.read_head() if self.is_open else None
        if read is not None:
            self.check(log, read)

    def find(self, log: GlobalLog, read: ReadHead) -> Step | None:
        """The entry that decided the transaction, if one did; it was not rolled back."""
        if self._seen is None or self._seen >= read.head.seq:
            return None
        steps = steps_after(log, self._seen, read)
        if steps is None:
            raise Conflict(
                f"transaction {self._txn} cannot be committed: it is so old that entries of the global log "
                "since it began have expired, and another client may have resumed it. This client changed "
                f"nothing; lake.outcome({self._txn!r}) shows what is known about it"
            )
        found = next((step for step in steps if step.txn == self._txn and _is_visible(step)), None)
        if found is None:
            self._seen = read.head.seq
        return found


def _is_visible(step: Step) -> bool:
    """Whether something of the entry is visible: it is published, or could be rolled back only in part."""
    return step.kind != "void" and (step.published or bool(step.added.get("torn")))


def decided_as(txn: str, step: Step) -> str:
    """The outcome of a transaction, for errors."""
    if step.published:
        return f"transaction {txn} is committed, as entry {step.seq} of the global log"
    return (
        f"transaction {txn} was entry {step.seq} of the global log and could be rolled back only in part "
        f"(lakevilla explain {txn} shows the torn tables)"
    )
