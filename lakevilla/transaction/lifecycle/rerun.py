"""Running a piece of work as a transaction until it commits."""

import logging
from collections.abc import Callable
from typing import Any

from lakevilla.answers import Receipt
from lakevilla.errors import Aborted, Fenced, InvalidInput
from lakevilla.transaction.transaction import Transaction

logger = logging.getLogger("lakevilla.transaction")


def run(tx: Transaction, work: Callable[[Transaction], Any], retries: int) -> Receipt:
    """Call `work(tx)` and commit; when what it read has changed call it again, `retries` times.

    Each call is a new attempt of the same transaction, which keeps its tickets: one that has to run again is
    not overtaken forever. Only `Aborted` is retried: then nothing of the last attempt is visible. An unknown
    outcome is never retried, and neither is a transaction that another client resumed.
    """
    if retries < 0:
        raise InvalidInput(f"retries cannot be negative; found {retries}")
    for left in range(retries, -1, -1):
        try:
            return tx.attempt(work)
        except Fenced:
            tx.step_back()
            raise
        except Aborted as error:
            if not left:
                tx.abort()
                raise
            logger.info("running transaction %s again, %d tries left: %s", tx.id, left, error)
            tx.rewind()
    raise AssertionError("unreachable")
