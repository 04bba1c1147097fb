"""May a change still be published after another commit came first? Decided by files, and by rows of files.

Pure decisions over values. A change was computed on some base version; each commit that was published
since is asked in turn. No conflict means that the change can be rebased: the result is the same as if the
statement had run after that commit. The files that it added are published as they are, and the rows that it
deletes are deleted besides those that are deleted then.
"""

from dataclasses import dataclass, field, replace

from lakevilla.conflicts.rows import NO_FACTS, RowFacts, masked_files
from lakevilla.model import Change, Footprint, ReadSet
from lakevilla.predicates import ANYTHING


@dataclass(frozen=True, slots=True)
class Hit:
    """Why the change cannot be rebased. `file` is empty where the whole table is concerned.

    `final` says that to run the statement again would not help either. `winner` is the commit that came
    first, where it is one commit.
    """

    reason: str
    file: str = ""
    final: bool = False
    winner: Footprint | None = field(default=None, compare=False, repr=False)


def decide_conflict(change: Change, theirs: Footprint, facts: RowFacts = NO_FACTS) -> Hit | None:
    """The first rule that the two break, or None. `facts` are what was read of rows; without them whole files
    are compared.

    Schema, partitioning and protocol changes conflict with every change, blind appends too: the files were
    written for another schema. Otherwise a blind append never conflicts. A commit that keeps all rows
    conflicts only with changes of the files that it removed: what was read is still true, see `follow`.
    """
    if theirs.keeps_rows:
        change = replace(change, read=ReadSet())
    hit = _decide(change, theirs, facts)
    return None if hit is None else replace(hit, winner=theirs)


def follow(read: ReadSet, theirs: Footprint) -> ReadSet:
    """What was read, in the files as they are after a commit that did not conflict with it.

    A commit that keeps all rows moves them to other files: from then on a change of those files concerns what
    was read. They are added to the read set, whichever of its files they come from.
    """
    if not theirs.keeps_rows or not read.files:
        return read
    return read.union(ReadSet((), frozenset(theirs.added.matching(ANYTHING))))


def _decide(change: Change, theirs: Footprint, facts: RowFacts) -> Hit | None:
    if theirs.unreadable:
        return Hit(f"a version that came first cannot be read ({theirs.unreadable})", final=True)
    if theirs.dropped:
        return Hit("the table was dropped", final=True)
    if theirs.protocol_changed or theirs.metadata_changed:
        return Hit("the table's schema or properties were changed")
    return _lost(change, theirs, facts) or _appeared(change, theirs, facts)


def _lost(change: Change, theirs: Footprint, facts: RowFacts) -> Hit | None:
    """A file that the change touched went, or rows of it that matter to the change.

    Files go by the name that does not change with their deleted rows: a later commit finds the file under
    another identity than the change did, as others have deleted rows of it since.
    """
    touched = change.read.files | {file.identity for file in change.removed}
    gone = {theirs.file_of(identity): identity for identity in theirs.removed}
    names = {name for name in map(theirs.file_of, touched) if name in gone}
    if not names:
        return None
    masked = {theirs.file_of(identity) for identity in masked_files(change)}
    rewritten = {theirs.file_of(file.identity) for file in change.removed} - masked
    read = {theirs.file_of(identity) for identity in change.read.files}
    whole = names - facts.shrunk | names & rewritten
    if whole:
        return Hit("a file that this statement read was removed", min(gone[name] for name in whole))
    shared = names & masked - facts.apart
    if shared:
        return Hit("a row that this statement changed was changed", min(gone[name] for name in shared))
    unsure = names & read - facts.unread
    if unsure:
        return Hit("a row that this statement read may have been changed", min(gone[name] for name in unsure))
    return None


def _appeared(change: Change, theirs: Footprint, facts: RowFacts) -> Hit | None:
    """Rows came that the change would have read."""
    for predicate in change.read.predicates:
        appeared = [
            identity
            for identity in theirs.added.matching(predicate)
            if identity not in facts.unmatched and theirs.file_of(identity) not in facts.shrunk
        ]
        if appeared:
            return Hit("a file was added that may hold rows this statement would have read", appeared[0])
    return None
