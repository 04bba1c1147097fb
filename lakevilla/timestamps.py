"""Times in texts: one spelling for people, one for programs. Both are UTC.

Times come from logs that other clients wrote too, so a number that no calendar has is an unknown time, not
an error: a text about a version must never fail because of the version's clock.
"""

from datetime import UTC, datetime

UNKNOWN = "an unknown time"


def utc_text(time_ms: int) -> str:
    """A time for people: `2026-01-31 12:00:00Z`."""
    moment = _moment(time_ms)
    return UNKNOWN if moment is None else moment.isoformat(" ", "seconds") + "Z"


def iso_text(time_ms: int) -> str:
    """A time for programs, in ISO 8601 with milliseconds: `2026-01-31T12:00:00.000Z`."""
    moment = _moment(time_ms)
    return UNKNOWN if moment is None else moment.isoformat("T", "milliseconds") + "Z"


def _moment(time_ms: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).replace(tzinfo=None)
    except (ValueError, OverflowError, OSError):
        return None
