"""The life of a transaction as one explicit state machine.

OPEN ---> COMMITTING ---> COMMITTED
  |            |--------> ABORTED      a conflict, or the store refused before anything was decided
  |            |--------> UNKNOWN      the commit was sent and its outcome could not be read
  |            '--------> OPEN         what it read has changed: lake.run calls its function again
  '-----> ABORTED
"""

import enum


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


def may_follow(before: State, after: State) -> bool:
    """Whether the machine has this arrow."""
    return after in _NEXT[before]
