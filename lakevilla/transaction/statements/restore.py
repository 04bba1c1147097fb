"""Bringing a table back to an earlier version, as a statement: files come back, others go.

The files must still be there, which is looked at before anything is written. Whether vacuum may delete them
after that look depends on what the version belongs to. An instant of the lake is kept until the lake's
horizon passes it, which is an entry of the global log: the commit is decided by an entry of the same log, and
refuses an instant that has expired by then (`TableChange.instant`). After that the files are those of the
newest version. For a version that is not part of a kept instant, the files are looked for again right before
the commit.
"""

from dataclasses import replace

from lakevilla.errors import Corrupt, InvalidInput, Unsupported
from lakevilla.formats.port import Snapshot
from lakevilla.model import Change, Counts, DataFile
from lakevilla.predicates import ANYTHING
from lakevilla.tables.pinned import Pinned
from lakevilla.transaction.statements.dml import refuse_rewritten
from lakevilla.transaction.statements.effect import Effect, TableChange
from lakevilla.transaction.workspace import Workspace


def restore(workspace: Workspace, name: str, version: int, instant: int | None = None) -> Effect:
    """The table as it was at a version, which was part of the lake's instant after an entry, if one is given.

    The counts are of rows in files that came back and went; rows that are in both count twice.
    """
    pinned = workspace.pin_target(name)
    pinned.snapshot.refuse_writes()
    then = _earlier(pinned, version)
    # Everything of now goes, also what another client appends meanwhile: that is a conflict, not a leftover.
    workspace.source(pinned, keeps_files=False).files(ANYTHING)
    change = _change(pinned, then)
    if not (change.added or change.removed or change.metadata):
        return Effect(Counts())
    if change.metadata:
        refuse_rewritten(workspace, pinned)
    _refuse_missing(pinned, then, change)
    counts = Counts(
        inserted=sum(file.rows for file in change.added),
        deleted=sum(file.living_rows or 0 for file in change.removed),
    )
    change = replace(change, read=workspace.read_of(pinned))
    return Effect(counts, TableChange(pinned, change, restores=True, instant=instant))


def _earlier(pinned: Pinned, version: int) -> Snapshot:
    name, newest = pinned.ref.name, pinned.snapshot.version
    if version > newest:
        raise InvalidInput(
            f"table {name!r} cannot be restored to version {version}: its newest is {newest}",
            table=name,
            version=version,
        )
    try:
        then = pinned.table.at_version(version)
    except InvalidInput as error:
        raise _gone(pinned, version, str(error)) from error
    if then.table_id != pinned.snapshot.table_id:
        raise InvalidInput(
            f"table {name!r} cannot be restored to version {version}: the table was deleted since, and "
            "another one was created in its location",
            table=name,
            version=version,
        )
    return then


def _change(pinned: Pinned, then: Snapshot) -> Change:
    try:
        return pinned.table.restore(pinned.snapshot, then)
    except Corrupt as error:
        raise _gone(pinned, then.version, str(error)) from error
    except Unsupported as error:
        name, version = pinned.ref.name, then.version
        text = f"table {name!r} cannot be restored to version {version}: {error}"
        raise Unsupported(text, table=name, version=version) from error


def _refuse_missing(pinned: Pinned, then: Snapshot, change: Change) -> None:
    """InvalidInput if a file that comes back was deleted, or the deletes that belong to it."""
    missing = pinned.table.missing(change.added)
    if missing:
        raise _gone(pinned, then.version, f"{len(missing)} of its files were deleted, such as {missing[0]}")
    back = {file.key for file in change.added}
    for file in then.files(ANYTHING):
        if file.key in back and file.deletes is not None:
            _read_deletes(pinned, then.version, file)


def _read_deletes(pinned: Pinned, version: int, file: DataFile) -> None:
    assert file.deletes is not None
    try:
        file.deletes.rows()
    except Corrupt as error:
        raise _gone(pinned, version, str(error)) from error


def _gone(pinned: Pinned, version: int, why: str) -> InvalidInput:
    name = pinned.ref.name
    return InvalidInput(
        f"table {name!r} cannot be restored to version {version}: {why}. Nothing was changed; choose a later "
        "version, and tag instants that have to last",
        table=name,
        version=version,
    )
