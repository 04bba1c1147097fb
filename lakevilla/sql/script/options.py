"""The options of a transaction as texts: features, isolation and slack."""

from difflib import get_close_matches
from typing import Any

from lakevilla.errors import InvalidInput
from lakevilla.model import Features

NAMES = ("features", "isolation", "slack")

_ISOLATIONS = ("serializable", "snapshot")


def option(name: str, text: str) -> Any:
    """The value of an option that is given as text; InvalidInput says what it can be."""
    match name.lower():
        case "features":
            return features(text)
        case "isolation":
            return isolation(text)
        case "slack":
            if not text.isdecimal():
                raise InvalidInput(f"slack cannot be {text!r}: it is a number of versions, 0 or more")
            return int(text)
    close = get_close_matches(name.lower(), NAMES, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(NAMES)}"
    raise InvalidInput(f"unknown setting {name!r}: {hint}")


def features(text: str) -> Features:
    """Features from their names, separated by commas, blanks or |; NONE is none of them."""
    names = [part.strip().upper() for part in text.replace("|", ",").replace(" ", ",").split(",")]
    chosen = Features.NONE
    for name in filter(None, names):
        if name not in ("NONE", *Features.__members__):
            raise InvalidInput(f"unknown feature {name!r} in {text!r}: write some of R, CT and I, or NONE")
        chosen |= Features[name]
    if not any(names):
        raise InvalidInput("features are empty: write some of R, CT and I, or NONE")
    return chosen


def features_text(chosen: Features) -> str:
    """Features as `features` reads them."""
    names = [name for name in ("R", "CT", "I") if chosen & Features[name]]
    return ",".join(names) or "NONE"


def isolation(text: str) -> str:
    """The isolation level of this name."""
    name = text.strip().lower().replace("_", "-")
    if name not in _ISOLATIONS:
        raise InvalidInput(f"isolation cannot be {text!r}: it is serializable or snapshot")
    return name
