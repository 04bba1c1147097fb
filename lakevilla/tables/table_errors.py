"""Errors about a table that a statement names: it does not exist, its log was deleted, or it is torn."""

from collections.abc import Sequence
from difflib import get_close_matches

from lakevilla.errors import Corrupt, InvalidInput, Torn
from lakevilla.model import TableRef
from lakevilla.sql.tables import sql_name


def no_such_table(name: str, names: Sequence[str]) -> InvalidInput:
    """The error for a name that the lake does not have; `names` are those that it has."""
    close = get_close_matches(name, names, n=3)
    if name in names:
        hint = "its folder has a log without any version: restore the log, or delete the folder"
    elif close:
        hint = f"did you mean {' or '.join(repr(found) for found in close)}?"
    else:
        available = ", ".join(map(repr, names)) or "none"
        hint = (
            f"available: {available}; a table elsewhere gets a name by lake.register({name!r}, location), "
            "or by lakevilla register"
        )
    error = InvalidInput(f"unknown table {name!r}; {hint}", table=name)
    error.unknown = name
    return error


def log_gone(name: str, url: str) -> Corrupt:
    """The error for a registered table whose folder was deleted."""
    return Corrupt(
        f"table {name!r} cannot be read: it is registered, but its log in {url} was deleted. Restore it, or "
        f"DROP TABLE {sql_name(name)}",
        table=name,
    )


def another_table(name: str, known: int, newest: int) -> Corrupt:
    """The error for a table whose versions went back: another one was created in its place."""
    return Corrupt(
        f"table {name!r} was replaced by another table: its newest version is {newest}, but the lake's "
        f"instant has version {known} of the old one. DROP TABLE {sql_name(name)}, then register "
        "the new table",
        table=name,
        version=known,
    )


def torn(name: str) -> Torn:
    """The error for a write to a torn table, or for a read if its last clean version was deleted."""
    return Torn(
        f"table {name!r} is torn: a refused commit on several tables could not be rolled back here, because "
        "another client had built on it, or because the table's log could not be read. lakevilla explain "
        f"{name} shows the versions. Repair the table, then lake.sync({name!r}, accept_torn=True) accepts it "
        "as it is",
        tables=(name,),
        table=name,
    )


def same_table(ref: TableRef, other: TableRef) -> InvalidInput:
    """The error for a transaction that changes one table under two names."""
    return InvalidInput(
        f"{ref.name!r} ({ref.location}) and {other.name!r} ({other.location}) are the same table: a "
        "transaction that changes it can use one of these names only; drop the other name, which leaves the "
        "files in place",
        table=ref.name,
    )


def not_there(name: str, past: bool) -> str:
    """Why the transaction cannot use a table that it has created or dropped."""
    if past:
        return f"table {name!r} has no earlier versions: this transaction has created or dropped it"
    return f"unknown table {name!r}: this transaction has dropped it"
