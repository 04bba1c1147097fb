"""What must succeed in the suite `world` when the faults are over, and what is asked then.

A new client recovers, reads and changes every table, alone and together with others, vacuums, and finds every
tagged instant as it was and every final outcome unchanged.
"""

from collections.abc import Callable
from functools import partial

from lakevilla.errors import LakeVillaError
from sim.checkers.history import History
from sim.outside import acts, upkeep
from sim.outside.acts import ALL, R
from sim.outside.session import LAKE, OTHER, Notes, Obedient
from sim.world.client import World
from sim.world.lakes import EngineOf, open_lake

ASKED = 4


def audit(world: World, history: History, engine: EngineOf, notes: Notes, *, second: bool) -> list[str]:
    """What is wrong in the end."""
    wrong: list[str] = []
    roots = (LAKE, OTHER) if second else (LAKE,)
    for root in roots:
        client = world.client("b-auditor" if root == OTHER else "c-auditor")
        session = Obedient(client, open_lake(client, engine, root, ALL), history, notes, root)
        world.start(client, partial(_look, session, world, wrong))
        world.run()
    return wrong


def _look(session: Obedient, world: World, wrong: list[str]) -> None:
    lake, root = session.lake, session.root
    nap: Callable[[], None] = lambda: None  # noqa: E731

    def must(what: str, run: Callable[[], object]) -> bool:
        try:
            run()
        except LakeVillaError as error:
            if not session.notes.wrecks:
                wrong.append(f"in the end {what} in {root}: {type(error).__name__}: {error}")
            return False
        return True

    must("recover", lake.recover)
    must("sync", partial(lake.sync, accept_torn=True))
    readable = [name for name in lake.tables() if must(f"a look at {name}", partial(_read, lake.read, name))]
    before = len(session.history.operations)
    for name in readable:
        acts.transact(session, acts.draw_work(session, world.random, [name]), R, nap, again=True)
    if root == LAKE and len(readable) > 1:
        acts.transact(session, acts.draw_work(session, world.random, readable[:2]), ALL, nap, again=True)
    for op in session.history.operations[before:]:
        if op.outcome != "ok" and not session.notes.wrecks:
            wrong.append(f"without faults {op.action} on {list(op.value)} {op.outcome}: {op.error}")
    must("vacuum", partial(lake.vacuum, dry_run=False))
    for name in readable:
        must(f"a look at {name} after vacuum", partial(_read, lake.read, name))
    for tagged, name in sorted(session.notes.tags):
        if tagged == root:
            upkeep.check_tag(session, name)
    _ask(session, world)


def _read(read: Callable[[str], object], name: str) -> object:
    return acts.read_rows(read(name))


def _ask(session: Obedient, world: World) -> None:
    """Some transactions, and all that were asked for before."""
    known = upkeep.transactions(session)
    final = [txn for _, txn, state, _ in session.notes.answers if state in ("committed", "aborted")]
    for txn in dict.fromkeys([*world.random.sample(known, min(ASKED, len(known))), *final[:6]]):
        if txn in known:
            try:
                session.ask(txn)
            except LakeVillaError as error:
                if not session.notes.wrecks:
                    session.notes.problems.append(f"the outcome of {txn}: {type(error).__name__}: {error}")
