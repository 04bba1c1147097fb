"""The doctor's report: one line for each check, and what to do."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from lakevilla.display import Report
from lakevilla.errors import LakeVillaError, Unavailable, Unsupported

State = Literal["ok", "note", "warning", "problem"]

AGAIN = "repair what the error names, and run the doctor again"

_MARKS: dict[State, str] = {"ok": "ok", "note": "note", "warning": "WARNING", "problem": "PROBLEM"}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    `state` is `ok`; `note`, something to know; `warning`, something to do soon, while the lake works; or
    `problem`: some transactions fail until it is repaired. `subject` is what was looked at, such as `store`,
    `clock` or `torn tables`. `text` says what was found, `advice` what to do.
    """

    subject: str
    state: State
    text: str
    advice: str = ""
    tables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Diagnosis(Report):
    """What `lake.doctor` found. It shows itself as text for people."""

    checks: tuple[Check, ...] = ()

    @property
    def healthy(self) -> bool:
        """Whether no check found a problem. Warnings and notes may be there."""
        return all(check.state != "problem" for check in self.checks)

    def _lines(self) -> Iterator[str]:
        for check in self.checks:
            yield f"{_MARKS[check.state]:<8} {check.subject}: {check.text}"
            if check.advice:
                yield f"         do: {check.advice}"
        counts = {state: sum(check.state == state for check in self.checks) for state in _MARKS}
        if counts["problem"] or counts["warning"]:
            yield f"problems: {counts['problem']}, warnings: {counts['warning']}"
        else:
            yield "the lake is in good health"


def advice_for(error: LakeVillaError, table: str = "") -> str:
    """What to do where something, or this table, cannot be read for this reason."""
    if isinstance(error, Unavailable):
        return "check the credentials and rights of this client, and that the store answers"
    if isinstance(error, Unsupported):
        return "use a release, or a client, that knows what the error names"
    if table:
        return f"restore what the error names from a backup, or remove the table: DROP TABLE {table}"
    return AGAIN
