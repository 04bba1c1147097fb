"""Rows that are read more than once and must be the same each time.

A source of a MERGE may be random, read something that changes, or lose what Spark has cached of it. So
it is computed once and kept. Kept rows that get lost with an executor fail the statement; they are never
computed anew.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lakevilla.engines.spark.failures import explained
from lakevilla.engines.spark.session.connect import is_connect


@contextmanager
def settled(data: Any) -> Iterator[Any]:
    """A frame with the rows of this one, computed once; what it keeps is released afterwards.

    The caller's own caches are left alone.
    """
    if _is_at_hand(data):
        yield data
        return
    with explained():
        kept = data.localCheckpoint(eager=True)
    try:
        yield kept
    finally:
        if not is_connect(data.sparkSession):
            # A server releases what it keeps when this client has forgotten the frame.
            kept._jdf.queryExecution().analyzed().rdd().unpersist(False)


def _is_at_hand(data: Any) -> bool:
    """Whether the plan itself holds the rows."""
    if is_connect(data.sparkSession):
        return False
    execution = data._jdf.queryExecution()
    analyzed = execution.analyzed()
    if not analyzed.deterministic() or not analyzed.maxRows().isDefined():
        return False
    return str(execution.optimizedPlan().getClass().getSimpleName()) == "LocalRelation"
