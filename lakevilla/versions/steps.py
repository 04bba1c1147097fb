"""The entries of the global log after a number, from HEAD and what it put aside (see `head_encoding`).

HEAD alone holds the newest ones: nothing else is read for a number that is not far behind it.
"""

from collections.abc import Sequence

from lakevilla.versions.head_steps import Step
from lakevilla.versions.log import GlobalLog, ReadHead


def steps_after(log: GlobalLog, seq: int, read: ReadHead) -> Sequence[Step] | None:
    """What every entry after `seq` did, up to this HEAD, in order; None if some are not kept any more."""
    found = [step for step in read.packed.steps if step.seq > seq]
    first = read.packed.base.seq
    if first <= seq:
        return found
    for number in reversed(list(log.past_numbers(seq + 1))):
        # HEAD may have rolled again since it was read.
        if number > first:
            continue
        past = log.read_past(number) if number == first else None
        if past is None:
            return None
        found = [step for step in past.steps if step.seq > seq] + found
        first = past.base.seq
        if first <= seq:
            return found
    return None
