"""The table properties that LakeVilla defines, and those that mean the same for each format.

To add one: its name and values here; a field of `Coordination`, which the snapshots of both formats fill, if
the code outside of `formats` has to act on it.
"""

from collections.abc import Mapping
from difflib import get_close_matches

from lakevilla.errors import InvalidInput, Unsupported

MARKERS = "lakevilla.markers"
"""Where the markers of the table's writers are: `side` (outside of the log) or `log` (in it)."""
EXCLUSIVE = "lakevilla.exclusive"
"""Whether only transactions that the global log decides change the table."""

CONSTRAINT = "delta.constraints."
"""CHECK constraints are given as properties `delta.constraints.<name>`, as Delta stores them."""

_OWN = "lakevilla."
_VALUES = {MARKERS: ("side", "log"), EXCLUSIVE: ("true", "false")}


def is_true(properties: Mapping[str, str], name: str, otherwise: bool = False) -> bool:
    """A boolean property."""
    return properties.get(name, str(otherwise)).lower() == "true"


def markers_in_log(properties: Mapping[str, str]) -> bool:
    """Whether the table's writers hold versions by markers in the log."""
    return properties.get(MARKERS) == "log"


def check_own(properties: Mapping[str, str]) -> None:
    """InvalidInput if one of our properties is misspelt or has a value that it cannot have."""
    for name, value in properties.items():
        if name.lower().startswith(_OWN) and name.lower() not in _VALUES:
            close = get_close_matches(name.lower(), _VALUES, 1, cutoff=0.8)
            hint = f"did you mean {close[0]!r}?" if close else f"available: {', '.join(map(repr, _VALUES))}"
            raise InvalidInput(f"unknown property {name!r}; {hint}")
        for own, values in _VALUES.items():
            if name.lower() == own and (name != own or value not in values):
                choice = " or ".join(map(repr, values))
                raise InvalidInput(f"invalid value {value!r} of property {name!r}; write {own} = {choice}")


def check_together(properties: Mapping[str, str]) -> None:
    """Markers in the log do not go with a table that only the global log's transactions change: those hold
    no versions."""
    if markers_in_log(properties) and is_true(properties, EXCLUSIVE):
        raise Unsupported(f"{MARKERS} = 'log' cannot be combined with {EXCLUSIVE}: use 'side'")


def check_markers_stay(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """InvalidInput if markers would leave the log: transactions may hold versions there."""
    if markers_in_log(before) and not markers_in_log(after):
        raise InvalidInput(
            f"{MARKERS} cannot be changed from 'log': transactions may hold versions by markers there; copy "
            "the table into a new one"
        )
