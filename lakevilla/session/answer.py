"""What one statement of a session gave."""

from dataclasses import dataclass
from typing import Any

from lakevilla.model import Counts, Receipt


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one statement: `statement` is its text, `result` what it gave.

    The result of a query is rows, that of a change `Counts`, that of COMMIT and of BEGIN ATOMIC a `Receipt`;
    others give None. `message` says in a sentence what happened; it is empty for rows.
    """

    statement: str
    result: Any
    message: str = ""

    @property
    def has_rows(self) -> bool:
        """Whether the result is rows."""
        return self.result is not None and not isinstance(self.result, Counts | Receipt)


def counts_text(counts: Counts) -> str:
    """The counts of a change for people."""
    return f"{counts.inserted} inserted, {counts.updated} updated, {counts.deleted} deleted"


def receipt_text(receipt: Receipt) -> str:
    """A commit for people."""
    if not receipt.versions:
        return "committed: nothing was changed"
    versions = ", ".join(f"{name} version {version}" for name, version in sorted(receipt.versions.items()))
    entry = "" if receipt.seq is None else f" as entry {receipt.seq}"
    again = f" ({receipt.redone} redone)" if receipt.redone else ""
    return f"committed{entry}: {versions}{again}"
