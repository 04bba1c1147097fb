"""What a client with recovery may be doing when it dies: several statements, lost races, queues, leases."""

from sim.actors.journal import FORGOTTEN, Journal, give_up, resume, run_again, transact, walk_away
from sim.actors.session import Session
from sim.suites.crash import Scenario
from sim.world.lakes import LEASE_SECONDS

LONG_SECONDS = 1.1
"""So long after its first change a transaction takes a place in the queue of writers."""


def append_item(journal: Journal, key: int) -> None:
    value = journal.fresh()
    assigned = {"items": f"concat(items, ',{value}')"}
    journal.change("list-append", key, value, lambda tx: tx.update("lists", set=assigned, where=f"k = {key}"))


def one_statement(journal: Journal) -> None:
    append_item(journal, 1)


def other_statement(journal: Journal) -> None:
    append_item(journal, 3)


def several_statements(journal: Journal) -> None:
    append_item(journal, 1)
    journal.read(("k", 1))
    journal.savepoint()
    append_item(journal, 2)
    journal.roll_back()
    append_item(journal, 3)
    append_item(journal, 1)


def long_statements(journal: Journal) -> None:
    """Holds a ticket, and its lease beats."""
    append_item(journal, 1)
    journal.pause(LONG_SECONDS)
    append_item(journal, 3)
    journal.pause(LEASE_SECONDS)


def read_and_write(journal: Journal) -> None:
    journal.read(("k", 1))
    append_item(journal, 3)


def transacting(work):
    return lambda session: transact(session, "lists", work)


def rewound(session: Session) -> None:
    run_again(session, "lists", read_and_write)


def aborted(session: Session) -> None:
    give_up(session, "lists", long_statements)


def forgotten(session: Session) -> None:
    """Leaves a live ticket, whose lease runs out."""
    walk_away(session, "lists", long_statements)


def two_forgotten(session: Session) -> None:
    forgotten(session)
    walk_away(session, "lists", lambda journal: long_statements(journal))


def recover(session: Session) -> None:
    session.lake.recover()


def resumed(session: Session) -> None:
    left = next(op for op in session.history.operations if op.error == FORGOTTEN)
    resume(session, left, one_statement)


def begun(session: Session) -> None:
    """Leaves sublogs, and no ticket."""
    walk_away(session, "lists", several_changes)


def several_changes(journal: Journal) -> None:
    append_item(journal, 1)
    append_item(journal, 3)


def ask_outcome(session: Session) -> None:
    left = next(op for op in session.history.operations if op.error == FORGOTTEN)
    assert left.txn is not None
    assert session.lake.outcome(left.txn).state == "undecided"


RECOVERING: list[Scenario] = [
    Scenario("one-statement-with-recovery", transacting(one_statement)),
    Scenario("several-statements", transacting(several_statements)),
    Scenario("long-statements-with-a-ticket", transacting(long_statements)),
    Scenario("abort-with-a-ticket", aborted),
    Scenario("forgotten-with-a-ticket", forgotten),
    Scenario("rebased-with-recovery", transacting(one_statement), rival=transacting(other_statement)),
    Scenario("redone-after-a-lost-race", transacting(one_statement), rival=transacting(one_statement)),
    Scenario("several-redone", transacting(several_statements), rival=transacting(several_statements)),
    Scenario("run-again-after-a-lost-race", rewound, rival=transacting(one_statement)),
    Scenario("conflict-of-a-plain-block", transacting(read_and_write), rival=transacting(one_statement)),
    Scenario("take-over-of-a-stale-ticket", transacting(one_statement), prepare=forgotten),
    Scenario("take-over-of-two-stale-tickets", transacting(one_statement), prepare=two_forgotten),
    Scenario("redone-behind-a-ticket", transacting(one_statement), rival=transacting(long_statements)),
    Scenario("recover", recover, prepare=two_forgotten),
    Scenario("resume", resumed, prepare=begun),
    Scenario("resume-with-a-ticket", resumed, prepare=forgotten),
    Scenario("resume-and-redo", resumed, prepare=begun, rival=transacting(one_statement)),
    Scenario("ask-for-an-outcome", ask_outcome, prepare=forgotten),
]
