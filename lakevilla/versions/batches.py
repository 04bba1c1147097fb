"""Which batches of which apps are committed, decided over HEAD without I/O (docs/protocol.md, section 7).

An app commits batches in the order of their numbers, so HEAD keeps the newest of each app, and every batch up
to it counts as committed. A client looks at the HEAD before the slot that it is about to create; the create
proves that no entry came since. So of two clients with the same batch one commits, and the other finds it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from lakevilla.errors import InvalidInput
from lakevilla.model import Batch

APPS_KEPT = 1000
"""HEAD keeps the batches of so many apps, and more only as long as they are not older than its horizon."""


@dataclass(frozen=True, slots=True)
class Done:
    """The newest batch that an app has committed, and the entry of the global log that committed it."""

    number: int
    seq: int

    def covers(self, once: Batch) -> bool:
        """Whether this batch of the app is committed."""
        return once.number <= self.number

    def seq_of(self, once: Batch) -> int | None:
        """The entry that committed this batch; None if a later one came since, which is all that is kept."""
        return self.seq if once.number == self.number else None


Batches = Mapping[str, Done]
"""The newest batch of each app."""


def find_done(batches: Batches, once: Batch | None) -> Done | None:
    """What says that this batch is committed; None if nothing does."""
    done = None if once is None else batches.get(once.app)
    return done if done is not None and once is not None and done.covers(once) else None


def check_room(batches: Batches, horizon: int, once: Batch | None) -> None:
    """Raise InvalidInput if HEAD has no room for one more app: none of those that it keeps has expired."""
    if once is None or once.app in batches or len(batches) < APPS_KEPT:
        return
    if all(done.seq >= horizon for done in batches.values()):
        raise InvalidInput(
            f"the lake keeps the batches of {APPS_KEPT} apps, and {once.app!r} would be one more: use one "
            "app name for each pipeline, not for each run. lake.vacuum(dry_run=False) lets apps expire that "
            "have committed nothing within the retention"
        )


def with_batch(batches: Batches, horizon: int, once: Batch, seq: int) -> dict[str, Done]:
    """What is kept after this batch was committed by the entry `seq`. Above `APPS_KEPT` apps, those go whose
    newest batch expired longest ago."""
    kept = {**batches, once.app: Done(once.number, seq)}
    expired = sorted((done.seq, app) for app, done in kept.items() if done.seq < horizon)
    for _, app in expired[: max(0, len(kept) - APPS_KEPT)]:
        del kept[app]
    return kept
