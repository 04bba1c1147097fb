"""The life of a transaction as one explicit state machine.

OPEN ---> COMMITTING ---> COMMITTED
  |            |--------> ABORTED      a conflict, or the store refused before anything was decided
  |            |--------> UNKNOWN      the commit was sent and its outcome could not be read
  |            '--------> OPEN         what it read has changed: lake.run calls its function again
  '-----> ABORTED
"""

import enum

from lakevilla.errors import InvalidInput


class State(enum.Enum):
    OPEN = "open"
    COMMITTING = "committing"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


_NEXT = {
    State.OPEN: {State.COMMITTING, State.ABORTED},
    State.COMMITTING: {State.COMMITTED, State.ABORTED, State.UNKNOWN, State.OPEN},
    State.COMMITTED: set[State](),
    State.ABORTED: set[State](),
    State.UNKNOWN: set[State](),
}


def ended(txn: str, state: State) -> InvalidInput:
    """The error for a call on a transaction that is not open any more."""
    if state is State.UNKNOWN:
        advice = f"its outcome is unknown. Ask lake.outcome({txn!r}) before you run it again"
    else:
        advice = f"it is {state.value}. Start a new one"
    return InvalidInput(f"transaction {txn} has ended: {advice}", transaction=txn)


def may_follow(before: State, after: State) -> bool:
    """Whether the machine has this arrow."""
    return after in _NEXT[before]
