"""A table at an earlier version, asked for by number or by time (`VERSION AS OF`, `TIMESTAMP AS OF`).

A transaction never sees past the version of a table on which it stands: a later version could show the effect
of a transaction without its cause, or an entry that is not settled. What lies below that version does not
change any more, whatever others commit, so nothing of it is validated.
"""

from dataclasses import replace

from lakevilla.errors import InvalidInput
from lakevilla.sql.statements import TableName
from lakevilla.tables.pinned import Pinned


def is_earlier(table: TableName) -> bool:
    """Whether a statement asks for this table at a version or at a time."""
    return table.version is not None or table.timestamp_ms is not None


def pin_earlier(newest: Pinned, wanted: TableName) -> Pinned | None:
    """The version that is wanted, if it is fixed; `newest` is the latest that the transaction sees.

    None if a time leads to `newest` or past it: then the answer depends on what others commit, and counts as
    a read of `newest`.
    """
    last = newest.snapshot.version
    if wanted.version is not None:
        if wanted.version > last:
            raise InvalidInput(
                f"unknown version {wanted.version} of table {wanted.name!r}: the newest that the transaction "
                f"sees is {last}; versions that were committed since need a new transaction",
                table=wanted.name,
                version=wanted.version,
            )
        known = wanted.version == last
        snapshot = newest.snapshot if known else newest.table.at_version(wanted.version)
        return replace(newest, snapshot=snapshot, fixed=True)
    assert wanted.timestamp_ms is not None
    try:
        snapshot = newest.table.at_time(wanted.timestamp_ms)
    except InvalidInput as error:
        raise InvalidInput(f"table {wanted.name!r}: {error}", table=wanted.name) from error
    return None if snapshot.version >= last else replace(newest, snapshot=snapshot, fixed=True)
