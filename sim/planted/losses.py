"""Known bugs of settling where a table is lost for good, to be planted one by one, as in
`planted.commits`."""

from lakevilla.environment import Environment
from lakevilla.errors import Corrupt
from lakevilla.settle.commits import CommitSettler, Outcome
from lakevilla.settle.completion import Settle, move_head
from lakevilla.settle.publish_walk import OutOfReach
from lakevilla.versions.commits import Commit, Settled
from lakevilla.versions.log import GlobalLog, ReadHead
from lakevilla.versions.records import Entry
from sim.planted.commits import Plant, planter

BUGS: dict[str, Plant] = {}
"""Every bug by its name."""

_bug = planter(BUGS)

_settle = CommitSettler.settle


@_bug("lakevilla.settle.entries.complete", "lakevilla.transaction.commit.slot_commit.complete")
def lost_table_stops_everything(
    log: GlobalLog, environment: Environment, read: ReadHead, entry: Entry, settle: Settle
) -> tuple[ReadHead, Settled]:
    """An error that stays is raised like one that passes."""
    try:
        settled = settle(frozenset())
    except OutOfReach as lost:
        raise Corrupt(str(lost)) from lost
    return move_head(log, environment, read, entry, settled) or log.read_head_of(entry.lake), settled


@_bug("lakevilla.settle.commits.CommitSettler.settle")
def lost_table_does_not_roll_the_others_back(self: CommitSettler, commit: Commit) -> Outcome:
    """What could be published stays, and the commit counts as refused."""
    if not self.given_up:
        return _settle(self, commit)
    reached = tuple(write for write in commit.writes if write.table.location not in self.given_up)
    CommitSettler(
        self.lake, self.seq, self.txn, self.attempt, self.environment, self.places, self.open_at
    ).settle(Commit(reached, commit.reads))
    return Outcome(Settled(False, torn=self.given_up), {}, None, self.given_up)
