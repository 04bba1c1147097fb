"""Conflicts of rows: two commits that delete or update different rows of one file do not conflict. Pure.

Whether rows differ is not known from a log: vectors and files have to be read. So the rules say what has to
be known (`questions_of`), `settle.row_facts` reads that, and the rules decide by the facts. What is not known
counts as a conflict.
"""

from dataclasses import dataclass

from lakevilla.model import Change, Footprint


@dataclass(frozen=True, slots=True)
class RowFacts:
    """What is known of the rows of two changes, ours and that of a commit that came first.

    `shrunk` are names of files from which the commit only took rows away. Of these, `apart` are those from
    which it took none of the rows that we take, and `unread` those from which it took no row that our
    predicates may have matched. `unmatched` are identities of files that it added, which hold no row that
    they may match.
    """

    shrunk: frozenset[str] = frozenset()
    apart: frozenset[str] = frozenset()
    unread: frozenset[str] = frozenset()
    unmatched: frozenset[str] = frozenset()


NO_FACTS = RowFacts()
"""Nothing was read: conflicts are decided by whole files."""


@dataclass(frozen=True, slots=True)
class Questions:
    """What has to be known to decide by rows: the candidates for each of the facts."""

    shrunk: frozenset[str]
    apart: frozenset[str]
    unread: frozenset[str]
    added: frozenset[str]


def masked_files(change: Change) -> frozenset[str]:
    """The files that stay while the change deletes rows of them, by the identities that they had."""
    again = {file.key for file in change.added}
    return frozenset(file.identity for file in change.removed if file.key in again)


def questions_of(change: Change, theirs: Footprint) -> Questions:
    """What the rules ask about this commit. An inverse is decided by whole files: it brings back what one
    version had, and nothing may have been built on its change."""
    if change.inverse or theirs.metadata_changed or theirs.protocol_changed or theirs.dropped:
        return Questions(frozenset(), frozenset(), frozenset(), frozenset())
    shrunk = frozenset(theirs.shrunk)
    ours = frozenset(map(theirs.file_of, masked_files(change)))
    read = frozenset(map(theirs.file_of, change.read.files))
    added = frozenset(
        identity for predicate in change.read.predicates for identity in theirs.added.matching(predicate)
    )
    touched = ours | read | frozenset(map(theirs.file_of, added))
    return Questions(shrunk & touched, shrunk & ours, shrunk & read, added)
