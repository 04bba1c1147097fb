"""Text that UTF-8 can hold: Python allows lone surrogates in a text, and no store and no engine does."""

from collections.abc import Iterable

from lakevilla.errors import InvalidInput

_NEAR = 10


def refuse_surrogates(text: str, what: str) -> str:
    """The text as it is; InvalidInput if it has a lone surrogate, such as `'\\ud800'`."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        near = text[max(0, error.start - _NEAR) : error.start + _NEAR]
        raise InvalidInput(
            f"{what} has the lone surrogate U+{ord(text[error.start]):04X}, near {near!r}, which UTF-8 "
            "cannot hold: remove it, or decode the text with another codec"
        ) from error
    return text


def refuse_surrogates_in(texts: Iterable[object], what: str) -> None:
    """InvalidInput if one of these has a lone surrogate; what is not text is left to others."""
    for text in texts:
        if isinstance(text, str):
            refuse_surrogates(text, what)
