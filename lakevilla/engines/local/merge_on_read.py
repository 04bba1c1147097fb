"""UPDATE, DELETE and overwrite of tables that may delete rows of files that stay: merge on read.

Of a file that stays, only the rows found are read whole, and only new rows are written. A file of which most
rows go is rewritten, see `is_worth_keeping`.
"""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from lakevilla.engines.arrow_writer import write
from lakevilla.engines.local import copy_on_write
from lakevilla.engines.local.change import Change, Hits, computed, found, whole_rows
from lakevilla.engines.port import Rewritten
from lakevilla.model import Counts


def update(change: Change, assigned: Mapping[str, exp.Expr], where: exp.Expr) -> Rewritten:
    """UPDATE: rows that match are deleted where they are, and written with their new values."""
    change.condition(where)
    rows, names = copy_on_write.updated(change, assigned), copy_on_write.named(change, assigned)

    def pieces() -> Iterator[pa.Table]:
        for hits in found(change, copy_on_write.candidates(change, where), where):
            kept, mostly_gone = _divided(change, hits)
            if kept:
                yield computed(change, rows, whole_rows(change, kept))
            yield from copy_on_write.replaced(change, mostly_gone, rows, names)

    added = write(change.target, pieces())
    counts, feed = Counts(updated=change.touched), change.feed.finish()
    return Rewritten(added, tuple(change.removed), counts, tuple(change.masked), feed)


def surviving(change: Change, where: exp.Expr | None) -> Iterator[pa.Table]:
    """The rows that stay of files that are rewritten, because most of their rows go; `removed`, `masked` and
    `touched` have the rest afterwards."""
    change.condition(where)
    files = copy_on_write.partly_matching(change, where)
    for hits in found(change, files, where) if where is not None else ():
        gone = [hit for hit in hits if len(hit.rows) + hit.opened.deleted == hit.opened.rows]
        change.removed += [hit.file for hit in gone]
        change.touched += sum(len(hit.rows) for hit in gone)
        kept, mostly_gone = _divided(change, [hit for hit in hits if hit not in gone])
        if change.feed.is_wanted and (gone or kept):
            change.feed.deleted(whole_rows(change, [*gone, *kept]))
        yield from copy_on_write.left(change, mostly_gone)


def _divided(change: Change, hits: Sequence[Hits]) -> tuple[list[Hits], list[Hits]]:
    """The files that stay, whose rows are deleted now, and those that are to be rewritten."""
    kept = [hit for hit in hits if hit.keep_file]
    change.masked += [hit.deleted_rows for hit in kept]
    change.touched += sum(len(hit.rows) for hit in kept)
    return kept, [hit for hit in hits if not hit.keep_file]
