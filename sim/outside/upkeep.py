"""What operators do in the suite `world`: vacuum, tags, looks back, outcomes; and tables made anew."""

from collections.abc import Callable
from random import Random

from lakevilla.errors import CommitUnknown, Conflict, LakeVillaError, Unavailable
from sim.checkers.history import Operation
from sim.outside import acts
from sim.outside.acts import INSIDE, read_rows
from sim.outside.session import FAR, LAKE, Obedient
from sim.outside.strangers import delete_folder
from sim.world.client import World

EVERYBODY_KNOWS = 30.0
"""After so long every client knows of a drop that it asks about."""
CALM_ERRORS = (Unavailable, Conflict, CommitUnknown)
"""What an operator may be told in a storm."""


def vacuum(session: Obedient, random: Random) -> None:
    """Vacuum the whole lake, or one table."""
    name = random.choice((None, None, random.choice(INSIDE)))
    hours, dropped = random.choice((None, 24, 48)), random.random() < 0.3

    def run(op: Operation) -> None:
        report = session.lake.vacuum(
            name, dry_run=False, retention_hours=hours, dropped=dropped and name is None
        )
        op.result = str(report)

    session.perform(name or "", "vacuum", hours, None, run)


def vacuum_all(session: Obedient, hours: int) -> None:
    """Vacuum the whole lake with this retention."""

    def run(op: Operation) -> None:
        op.result = str(session.lake.vacuum(dry_run=False, retention_hours=hours))

    session.perform("", "vacuum", hours, None, run)


def tag(session: Obedient, random: Random) -> None:
    """Give this instant a name, and keep what it shows."""
    name = f"t{len(session.history.operations)}"

    def run(op: Operation) -> None:
        session.lake.tag(name)
        op.result = {}
        past = session.lake.at(tag=name)
        for table in random.sample(past.tables(), len(past.tables())):
            op.result[table] = read_rows(past.read(table))
        session.notes.tags[session.root, name] = op.result
        session.notes.tagged_at[session.root, name] = op.invoked

    session.perform("", "tag", name, None, run)


def look_back(session: Obedient, random: Random) -> None:
    """A tagged instant shows what it showed."""
    known = [(root, name) for root, name in session.notes.tags if root == session.root]
    if known:
        check_tag(session, random.choice(known)[1])


def check_tag(session: Obedient, name: str) -> None:
    notes, expected = session.notes, session.notes.tags[session.root, name]
    for table, rows in expected.items():
        try:
            found = read_rows(session.lake.at(tag=name).read(table))
        except CALM_ERRORS as error:
            session.client.environment.sleep(1.0)
            if session.client.name == "c-auditor":
                notes.problems.append(f"the tag {name} of {table} cannot be read: {error}")
            continue
        except LakeVillaError as error:
            # A folder may have been deleted while it was read. A lake that does not own the table keeps
            # nothing of it from its owner's vacuum.
            deleted = notes.was_deleted(table, notes.tagged_at[session.root, name])
            if not deleted and not notes.was_cleaned(table) and session.root == LAKE:
                what = f"{type(error).__name__}: {error}"
                notes.problems.append(f"the tag {name} of {session.root} does not show {table}: {what}")
            continue
        if found != rows:
            notes.problems.append(f"the tag {name} shows {found} in {table}, and showed {rows}")


def transactions(session: Obedient) -> list[str]:
    """Those of this lake's clients, whose names begin alike."""
    initial = session.client.name[0]
    return [op.txn for op in session.history.operations if op.txn is not None and op.client[0] == initial]


def ask(session: Obedient, random: Random) -> None:
    """The outcome of some transaction of this lake."""
    known = transactions(session)
    if known:
        try:
            session.ask(random.choice(known))
        except CALM_ERRORS:
            return


def recover(session: Obedient, random: Random) -> None:  # noqa: ARG001
    def run(op: Operation) -> None:
        op.result = str(session.lake.recover())

    session.perform("", "recover", None, None, run)


def sync(session: Obedient, random: Random) -> None:
    accept = random.random() < 0.5

    def run(op: Operation) -> None:
        op.result = session.lake.sync(accept_torn=accept)

    session.perform("", "sync", accept, None, run)


def renew_far(session: Obedient, world: World) -> None:
    """Drop the table outside the root, delete its folder when everybody knows, and make it anew."""
    if acts.drop(session, FAR).outcome != "ok":
        return
    if world.random.random() < 0.7:
        session.client.environment.sleep(EVERYBODY_KNOWS)
        session.notes.renewals.append(world.scheduler.now)
        delete_folder(world, FAR)
        acts.make(session, FAR, FAR)
    else:
        text = f"sim://bucket/{FAR}"
        session.perform(FAR, "register", None, None, lambda _: session.lake.register(FAR, text))


def renew_near(session: Obedient, random: Random) -> None:
    """Drop a table inside the root, and make it anew: in another folder."""
    table = random.choice(("up", "down"))
    acts.drop(session, table)
    if random.random() < 0.7:
        acts.make(session, "up", None)


UPKEEP: tuple[Callable[[Obedient, Random], None], ...] = (
    *(vacuum, vacuum, vacuum, tag, tag, look_back, ask, ask, recover, sync),
)
