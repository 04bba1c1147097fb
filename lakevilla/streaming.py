"""Spark's streams into the lake: each batch is one transaction on any number of tables, committed once."""

import logging
from collections.abc import Callable
from typing import Any

from lakevilla.answers import Receipt
from lakevilla.errors import InvalidInput
from lakevilla.lake import Lake
from lakevilla.model import Features
from lakevilla.transaction.transaction import Transaction

logger = logging.getLogger("lakevilla.streaming")

_QUERY = "sql.streaming.queryId"
"""Where Spark tells the jobs of a stream which query they belong to."""

Work = Callable[[Transaction, Any, int], Any]
"""What a batch does: called with the transaction, the rows, and the number of the batch."""


def sink(
    lake: Lake,
    work: Work,
    *,
    app: str | None = None,
    features: Features | None = None,
    retries: int = 10,
    persist: bool = True,
) -> Callable[[Any, int], Receipt]:
    """A function for `foreachBatch`: it calls `work(tx, batch, number)` in a transaction and commits it with
    `once`, so that every batch is on all tables of the transaction exactly once, however often the stream is
    stopped, killed and started again.

    The app of `once` is the id of the stream's query, which its checkpoint keeps, behind `app` if that is
    given. A stream that begins anew, without its checkpoint, is another app: its batches are new ones. Where
    Spark does not tell the query's id (Spark Connect, or a call that is not part of a stream), `app` alone is
    the name, and has to be given. `work` is called again, up to `retries` times, if what it read has changed;
    it is not called for a batch that is committed already. With `persist` the rows of a batch are computed
    once, also if several tables get them. `features` are the lake's if None.
    """
    if not callable(work):
        raise InvalidInput(f"work is a function of a transaction, the rows and a number; found {work!r}")

    def write(batch: Any, number: int) -> Receipt:
        once = (_name(batch, app), number)

        def run(tx: Transaction) -> None:
            kept = batch.persist() if persist and hasattr(batch, "persist") else None
            try:
                work(tx, batch, number)
            finally:
                if kept is not None:
                    kept.unpersist()

        receipt = lake.run(run, retries, features, once=once)
        if receipt.replayed:
            logger.info("batch %d of %s is committed already: nothing was changed", number, once[0])
        return receipt

    return write


def _name(batch: Any, app: str | None) -> str:
    """The app of a stream's batches: the same after a restart from the same checkpoint, and no other's."""
    context = getattr(getattr(batch, "sparkSession", None), "_sc", None)
    query = None if context is None else context.getLocalProperty(_QUERY)
    found = [part for part in (app, query) if part]
    if not found:
        raise InvalidInput(
            "the name of the stream is not known: this batch does not come from a stream of a Spark in this "
            "process. Give it as lakevilla.streaming.sink(lake, work, app='...')"
        )
    return "-".join(found)
