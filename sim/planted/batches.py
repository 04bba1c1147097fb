"""Known bugs of batches that are committed once, to be planted one by one, as in `planted.commits`."""

from dataclasses import replace

from lakevilla.versions import registry
from lakevilla.versions.batches import with_batch
from lakevilla.versions.commits import Commit
from lakevilla.versions.records import Head
from sim.planted.commits import Plant, planter

BUGS: dict[str, Plant] = {}
"""Every bug by its name."""

_bug = planter(BUGS)

_after_commit = registry._after_commit


@_bug("lakevilla.transaction.commit.slot_commit.SlotCommit._replay")
def batch_is_looked_for_only_when_it_begins(*_: object) -> None:
    """A client that runs the same batch at the same time is not met at the commit."""


@_bug("lakevilla.versions.registry._after_commit")
def batch_that_was_rolled_back_counts_as_committed(head: Head, commit: Commit, published: bool) -> Head:
    """The batch is kept even if its commit was rolled back."""
    after = _after_commit(head, commit, published)
    if commit.once is None:
        return after
    kept = with_batch(head.batches, head.horizon, commit.once, head.seq)
    return replace(after, batches=kept)
