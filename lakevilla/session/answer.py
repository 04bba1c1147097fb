"""What one statement of a session gave."""

from dataclasses import dataclass
from typing import Any

from lakevilla.answers import Receipt
from lakevilla.model import Counts


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one statement: `statement` is its text, `result` what it gave.

    The result of a query is rows, that of a change `Counts`, that of COMMIT and of BEGIN ATOMIC a `Receipt`;
    others give None. `text` is what `message` says of results that do not say it.
    """

    statement: str
    result: Any
    text: str = ""

    @property
    def message(self) -> str:
        """What happened, in a sentence; empty for rows.

        For a change in an open transaction this looks at its counts, as the client would: from then on a redo
        that changes them is a Conflict.
        """
        return counts_text(self.result) if isinstance(self.result, Counts) else self.text

    @property
    def has_rows(self) -> bool:
        """Whether the result is rows."""
        return self.result is not None and not isinstance(self.result, Counts | Receipt)


def counts_text(counts: Counts) -> str:
    """The counts of a change for people."""
    return f"{counts.inserted} inserted, {counts.updated} updated, {counts.deleted} deleted"


def receipt_text(receipt: Receipt) -> str:
    """A commit for people."""
    entry = "" if receipt.seq is None else f" as entry {receipt.seq}"
    if not receipt.versions:
        return f"committed{entry}" if entry else "committed: nothing was changed"
    versions = ", ".join(f"{name} version {version}" for name, version in sorted(receipt.versions.items()))
    again = f" ({receipt.redone} redone)" if receipt.redone else ""
    return f"committed{entry}: {versions}{again}"
