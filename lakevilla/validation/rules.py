"""May a transaction that saw the lake at one instant be decided at a later one? (module 4.2). Pure.

Three rules over the versions of one table: the one that was *read*, the *hidden* one (the newest that is
known now), the one that the transaction means to *write*, and the *log* version (HEAD's). As the paper prints
it R3 is unbalanced; here it says what it is meant to: the number that is written follows HEAD's.

- R1 `read < hidden - slack`: outdated read
- R2 `write <= hidden`: number taken
- R3 `log + written != write`: lost update

Serializable checks R1 on what was read and R2, R3 on what is written; snapshot checks R2 and R3 only. A
transaction that only reads is not validated: what it saw was one instant. That makes the paper's
write-serializable the same as serializable. Slack above 0 lets reads be so many versions old: bounded
staleness, which is not serializable.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Isolation = Literal["serializable", "snapshot"]

ISOLATIONS: dict[str, Isolation] = {
    "serializable": "serializable",
    "write-serializable": "serializable",
    "snapshot": "snapshot",
}
"""What users may ask for, and what it is here."""


@dataclass(frozen=True, slots=True)
class TableVersions:
    """The versions of one table that the rules compare. `write` is None for a table that is only read,
    `written` is how many versions the commit adds to it."""

    table: str
    read: int
    write: int | None
    hidden: int
    log: int
    written: int = 1


@dataclass(frozen=True, slots=True)
class Failure:
    """The rule that a table breaks, in words with its numbers."""

    table: str
    rule: Literal["R1", "R2", "R3"]
    reason: str


def is_outdated(read: int, hidden: int, slack: int = 0) -> bool:
    """R1: what was read is more versions old than allowed."""
    return read < hidden - slack


def is_taken(write: int, hidden: int) -> bool:
    """R2: another client has written the number already."""
    return write <= hidden


def is_lost(log: int, written: int, write: int) -> bool:
    """R3: what is written does not follow HEAD's version, so a version between would be lost."""
    return log + written != write


def validate(compared: Iterable[TableVersions], isolation: Isolation, slack: int = 0) -> Failure | None:
    """The first rule that is broken, or None: then the transaction may be decided now."""
    return next((failure for versions in compared if (failure := _check(versions, isolation, slack))), None)


def _check(versions: TableVersions, isolation: Isolation, slack: int) -> Failure | None:
    if versions.write is not None and is_taken(versions.write, versions.hidden):
        return Failure(
            versions.table, "R2", f"version {versions.write} is taken, the newest is {versions.hidden}"
        )
    if versions.write is not None and is_lost(versions.log, versions.written, versions.write):
        return Failure(
            versions.table, "R3", f"version {versions.write} does not follow HEAD's {versions.log}"
        )
    if isolation == "serializable" and is_outdated(versions.read, versions.hidden, slack):
        allowed = f", and {slack} versions between are allowed" if slack else ""
        return Failure(
            versions.table,
            "R1",
            f"version {versions.read} was read, the newest is {versions.hidden}{allowed}",
        )
    return None
