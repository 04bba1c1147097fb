"""Which commit conflicted with a decided change: the walk of `publish_walk`, without writing."""

from lakevilla.formats.port import Snapshot, Table
from lakevilla.model import Change
from lakevilla.settle.publish_walk import Refused
from lakevilla.settle.row_facts import RowReader, decide


def refused_by(
    table: Table, base: Snapshot, change: Change, attempt: str, rows: RowReader | None = None
) -> Refused | None:
    """The commit that stopped this attempt's change on its way from `base`; None if nothing did."""
    for taken in table.since(base):
        if taken.footprint.attempt == attempt:
            return None
        hit = decide(rows, table, base, change, taken.footprint)
        if hit is not None:
            return Refused(taken.footprint, hit)
    return None
