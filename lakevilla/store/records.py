"""What all our records on the store have in common: JSON in UTF-8, with the number of its format.

A client that meets a newer format number refuses, and says so. Readers check what they take with `text`
and its kin, which raise TypeError; each record turns that into a `Corrupt` that names it.
"""

import json
from collections.abc import Mapping
from typing import Any

from lakevilla.errors import Corrupt, Unsupported

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

FORMAT = 1
"""The format of records that never had another."""


def encode(record: Mapping[str, Any], own: int = FORMAT) -> bytes:
    """The record's bytes: compact, in the order given, the number of its format first."""
    return _ENCODER.encode({"format": own, **record}).encode()


def decode(data: bytes, where: str, newest: int = FORMAT) -> dict[str, Any]:
    """The record in these bytes, not checked beyond its format number. `where` names it in errors; `newest`
    is the newest format of such records that this client reads."""
    try:
        record = json.loads(data)
    except ValueError as error:
        raise Corrupt(f"{where} is not JSON: {error}") from error
    number = record.get("format") if isinstance(record, dict) else None
    if not isinstance(number, int):
        raise Corrupt(f"{where} is not a LakeVilla record: it has no format number")
    if number > newest:
        raise Unsupported(
            f"{where} has record format {number}, and this LakeVilla reads up to {newest}: "
            "install the release that the lake's other clients use"
        )
    assert isinstance(record, dict)
    return record


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, found {value!r}")
    return value


def number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"expected a number, found {value!r}")
    return value


def optional_number(value: Any) -> int | None:
    return None if value is None else number(value)


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"expected true or false, found {value!r}")
    return value
