"""The tail of the log, read: entries, and compacted files that stand for several of them (PROTOCOL.md, "Log
Compaction Files").

A compacted file must be reconciled: one action for each file, one metadata, one protocol. There are writers
that only put the entries one after the other, newest first; such a file cannot be replayed as one entry. A
compacted file is a shortcut, so one that is not reconciled or not readable is replaced by its entries as long
as they exist.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lakevilla.errors import Corrupt
from lakevilla.formats.delta.log.actions import Commit
from lakevilla.formats.delta.log.entry import commit_of, identity_of, parse_entry, parse_lines
from lakevilla.formats.delta.log.listing import Piece
from lakevilla.formats.delta.log.paths import entry_key
from lakevilla.store.port import Store

# The member that identifies actions of a kind; of the other kinds there may be one.
_KEYS = {"txn": "appId", "domainMetadata": "domain"}
_SINGLE = ("metaData", "protocol")


def piece_readers(store: Store, pieces: Sequence[Piece]) -> list[Callable[[], list[Commit]]]:
    """A task for each piece, to be run side by side: its commits, in their order."""
    return [_reader(store, piece) for piece in pieces]


def is_reconciled(lines: Sequence[Mapping[str, Any]]) -> bool:
    """Whether no two of these actions are about the same thing, so that their order says nothing."""
    seen: set[tuple[str, str]] = set()
    for line in lines:
        for about in _subjects(line):
            if about in seen:
                return False
            seen.add(about)
    return True


def _subjects(line: Mapping[str, Any]) -> list[tuple[str, str]]:
    found = [(name, str(line[name].get(key))) for name, key in _KEYS.items() if line.get(name)]
    found += [(name, "") for name in _SINGLE if line.get(name)]
    # An addition and a removal of one file contradict each other, and so do two of either.
    return found + [("file", identity_of(line[name])) for name in ("add", "remove") if line.get(name)]


def _reader(store: Store, piece: Piece) -> Callable[[], list[Commit]]:
    return lambda: [_entry(store, piece.end)] if piece.start == piece.end else _compacted(store, piece)


def _compacted(store: Store, piece: Piece) -> list[Commit]:
    try:
        lines = parse_lines(piece.end, _content(store, piece.key))
        commit = commit_of(piece.end, lines)
        if is_reconciled(lines):
            return [commit]
        reason = Corrupt(f"{store.url}/{piece.key} holds several actions for one file")
    except Corrupt as error:
        reason = error
    try:
        return [_entry(store, version) for version in range(piece.start, piece.end + 1)]
    except Corrupt as error:
        raise reason from error


def _entry(store: Store, version: int) -> Commit:
    return parse_entry(version, _content(store, entry_key(version)))


def _content(store: Store, key: str) -> bytes:
    found = store.get(key)
    if found is None:
        raise Corrupt(f"{store.url}/{key} disappeared while the log was read; open the table again")
    return found.data
