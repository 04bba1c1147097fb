"""A transaction that commits a batch of a pipeline once: what it finds when it begins, and how it may end."""

from lakevilla.errors import CommitUnknown
from lakevilla.model import Batch
from lakevilla.settle.entries import help_next
from lakevilla.tables.catalog import CatalogPlaces
from lakevilla.transaction.workspace import Workspace
from lakevilla.versions.batches import Done, find_done


def look_for(workspace: Workspace, once: Batch | None) -> Done | None:
    """What says that this batch is committed; None if nothing does. Two GETs.

    A client that died right after its slot was created has committed the batch, and HEAD does not say so yet:
    that entry is settled first. Entries that come later are met at the commit.
    """
    if once is None:
        return None
    log = workspace.catalog.log(workspace.meter)
    read = log.read_head()
    if read is not None and find_done(read.head.batches, once) is None:
        if log.read_slot(read.head.seq + 1) is not None:
            places = CatalogPlaces(workspace.catalog, workspace.meter)
            read = help_next(log, workspace.environment, read, places)
        workspace.catalog.learn(read.head)
    return None if read is None else find_done(read.head.batches, once)


def unknown_batch(once: Batch, error: CommitUnknown) -> CommitUnknown:
    """The error of a batch whose commit is unknown: other than without `once`, running it again is safe."""
    return CommitUnknown(
        f"{error}. This transaction commits {once}: running that batch again with the same once is safe, and "
        "changes nothing if it is committed",
        transaction=error.transaction,
        entry=error.entry,
        table=error.table,
    )
