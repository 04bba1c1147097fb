"""Running a piece of work as a transaction until it commits."""

import logging
from collections.abc import Callable
from typing import Any

from lakevilla.errors import Aborted, InvalidInput
from lakevilla.model import Receipt
from lakevilla.transaction.transaction import Transaction

logger = logging.getLogger("lakevilla.transaction")


def run(begin: Callable[[], Transaction], work: Callable[[Transaction], Any], retries: int) -> Receipt:
    """Call `work` in a new transaction and commit it; after `Aborted` call it again, `retries` times.

    Only `Aborted` is retried: then nothing of the last try is visible. An unknown outcome never is.
    """
    if retries < 0:
        raise InvalidInput(f"retries is {retries}: it cannot be negative")
    for left in range(retries, -1, -1):
        try:
            with begin() as tx:
                work(tx)
            assert tx.receipt is not None, "leaving the block commits"
            return tx.receipt
        except Aborted as error:
            if not left:
                raise
            logger.info("running the transaction again, %d tries left: %s", left, error)
    raise AssertionError("unreachable")
