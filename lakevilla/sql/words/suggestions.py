"""What a user may have meant by a name that does not exist."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from lakevilla.errors import InvalidInput
from lakevilla.sql.words.function_names import FUNCTIONS

_LISTED = 20


def did_you_mean(
    name: str, names: Iterable[str], otherwise: str = "", most: int = 1, cutoff: float = 0.7
) -> str:
    """A question that names what is closest, in any case, at most so many; `otherwise` if nothing is."""
    known: dict[str, str] = {}
    for one in names:
        known.setdefault(one.casefold(), one)
    close = get_close_matches(name.casefold(), known, n=most, cutoff=cutoff)
    return f"did you mean {' or '.join(repr(known[one]) for one in close)}?" if close else otherwise


def unknown_column(name: str, names: Sequence[str], table: str = "", kind: str = "column") -> InvalidInput:
    """The error for a column that does not exist; `names` are those that do."""
    listed = ", ".join(map(repr, names[:_LISTED])) + (", ..." if len(names) > _LISTED else "")
    qualifier, _, last = name.rpartition(".")
    hint = did_you_mean(last, names, f"available: {listed}" if names else "")
    if qualifier and last.casefold() in map(str.casefold, names):
        # Another table of the statement has it.
        hint = f"{qualifier!r} has no column {last!r}"
    where = f" in table {table!r}" if table else ""
    error = InvalidInput(f"unknown {kind} {name!r}{where}" + (f"; {hint}" if hint else ""), column=name)
    error.unknown = name
    return error


def missing_in_source(name: str, names: Sequence[str]) -> InvalidInput:
    """The error for a column that the star of a MERGE would take from the source; `names` are what it has."""
    listed = ", ".join(map(repr, names[:_LISTED])) + (", ..." if len(names) > _LISTED else "")
    return InvalidInput(
        f"the source of the MERGE has no column {name!r}, and a clause takes whole rows from it (SET *, "
        f"INSERT *, matched='update', not_matched='insert'): name the columns to set; available: {listed}",
        column=name,
    )


def unknown_function(name: str) -> InvalidInput:
    """The error for a function that Spark does not have."""
    hint = did_you_mean(name, FUNCTIONS)
    error = InvalidInput(f"unknown function {name!r}" + (f"; {hint}" if hint else ""))
    error.unknown = name
    return error
