"""The table properties that LakeVilla defines, the same for each format."""

from collections.abc import Mapping

from lakevilla.errors import InvalidInput, Unsupported

MARKERS = "lakevilla.markers"
"""Where the markers of the table's writers are: `side` (outside of the log) or `log` (in it)."""
EXCLUSIVE = "lakevilla.exclusive"
"""Whether only transactions that the global log decides change the table."""

CONSTRAINT = "delta.constraints."
"""CHECK constraints are given as properties `delta.constraints.<name>`, as Delta stores them."""

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
