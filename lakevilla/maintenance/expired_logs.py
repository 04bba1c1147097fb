"""Clean a table's log: delete what `FormatTable.expired_log` names (`formats.port`).

Vacuum does this, and no commit: only vacuum has settled the lake's entries, moved the horizon, and read every
tag that counts, so only it knows which versions the lake's instants need. It deletes the data files that the
log removed first: an entry that has gone cannot say any more that they were removed.

A client that dies between two deletes leaves a log that is read as before: what remains below the base is of
no use, and the next run deletes it.
"""

from collections.abc import Sequence
from functools import partial

from lakevilla.environment import Environment
from lakevilla.errors import Corrupt
from lakevilla.formats.port import Snapshot, Table
from lakevilla.store.port import Meta, Store

BATCH = 100


def delete_log_files(
    table: Table, newest: Snapshot, store: Store, environment: Environment, groups: Sequence[Sequence[Meta]]
) -> None:
    """Delete these files, each group after the one before. Corrupt if the table is not there any more: the
    log of another table in the same place has the same names."""
    for group in groups:
        for start in range(0, len(group), BATCH):
            if not table.has(newest):
                raise Corrupt(
                    f"the table in {store.url} was deleted or recreated while vacuum cleaned its log; the "
                    "clean-up stopped",
                    version=newest.version,
                )
            some = group[start : start + BATCH]
            environment.fan_out([partial(store.delete, meta.key) for meta in some])
