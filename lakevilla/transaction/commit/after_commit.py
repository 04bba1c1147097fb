"""What comes after a commit: the next transaction starts from its versions, and checkpoints may be due."""

from functools import partial

from lakevilla.transaction.commit.slot_commit import Committed
from lakevilla.transaction.workspace import Workspace


def keep(workspace: Workspace, committed: Committed, begun_at: float) -> dict[str, int]:
    """Remember the new versions, which nothing followed when the commit began, and return them by table."""
    snapshots = committed.snapshots
    versions = {at: snapshot.version for at, snapshot in snapshots.items()} | dict(committed.versions)
    bases = {location: workspace.base(location) for location in versions}
    for location, snapshot in snapshots.items():
        workspace.catalog.remember(bases[location].ref, snapshot, begun_at)
    workspace.environment.fan_out(
        [partial(bases[location].table.maintain, snapshot) for location, snapshot in snapshots.items()]
    )
    return {bases[location].ref.name: version for location, version in versions.items()}
