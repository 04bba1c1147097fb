"""From a store to the state of a table, and from one state to the next.

A cold open asks for the hint, then in one round for the checkpoint and for a LIST of what came after it, then
for the entries. The LIST sees what GETs of the next versions cannot: a gap, and a checkpoint beyond
it. Going on from a known version is one GET that normally misses. A client that slept while the entries after
its version were cleaned away sees that version until it opens the table anew.

Both ways end before the first pending marker (placement `log`): its entry is still to be filled, and a
client that went past it would never see with what.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, takewhile
from typing import Any

from lakevilla.environment import Environment
from lakevilla.errors import Corrupt, InvalidInput
from lakevilla.formats.delta.checkpoints.reader import gather, part_readers
from lakevilla.formats.delta.log.actions import Commit
from lakevilla.formats.delta.log.encode import is_pending
from lakevilla.formats.delta.log.entry import parse_entry
from lakevilla.formats.delta.log.listing import Checkpoint, Segment, list_log, read_hint
from lakevilla.formats.delta.log.paths import entry_key
from lakevilla.formats.delta.log.replay import State
from lakevilla.formats.delta.log.tail import piece_readers
from lakevilla.store.port import Store

_AHEAD_MAX = 8


def open_state(store: Store, environment: Environment, version: int | None = None) -> State | None:
    """The state at this version (the newest if None), or None if there is no table here.

    Another client may write a checkpoint and clean the log below it between our LIST and our GETs. So a log
    counts as damaged only if a fresh LIST leads to damage too.
    """
    try:
        return _open(store, environment, version)
    except Corrupt:
        return _open_by_list(store, environment, version)


def _open(store: Store, environment: Environment, version: int | None) -> State | None:
    hint = read_hint(store)
    if hint is not None and (version is None or hint.version <= version):
        state = _open_by_hint(store, environment, hint, version)
        if state is not None:
            return state
    return _open_by_list(store, environment, version)


def _open_by_list(store: Store, environment: Environment, version: int | None) -> State | None:
    segment = list_log(store).segment(version)
    if segment is None:
        if version is not None:
            raise InvalidInput(f"no Delta table found in {store.url}")
        return None
    return _exactly(version, load(store, environment, segment))


def load(store: Store, environment: Environment, segment: Segment) -> State:
    """The state that these files of the log make, up to the first pending marker."""
    checkpoint = segment.checkpoint
    parts = [] if checkpoint is None else part_readers(store, checkpoint)
    tasks: list[Callable[[], Any]] = [*parts, *piece_readers(store, segment.tail)]
    results = environment.fan_out(tasks)
    state = State.empty()
    if checkpoint is not None:
        state = State.of_checkpoint(checkpoint.version, gather(store, environment, results[: len(parts)]))
    return state.after(_readable(results[len(parts) :]))


def read_entry(store: Store, version: int) -> Commit | None:
    """The log entry of this version, or None if there is none."""
    found = store.get(entry_key(version))
    return None if found is None else parse_entry(version, found.data)


def follow(store: Store, environment: Environment, start: int) -> list[Commit]:
    """The entries from `start` on, up to the first that does not exist or is a pending marker.

    One is asked for, and as long as there are more, twice as many in each round.
    """
    commits: list[Commit] = []
    ahead = 1
    while True:
        end = start + ahead
        for commit in environment.fan_out([_entry_reader(store, version) for version in range(start, end)]):
            if commit is None or is_pending(commit.info):
                return commits
            commits.append(commit)
        start, ahead = end, min(2 * ahead, _AHEAD_MAX)


def is_same(store: Store, environment: Environment, known: State, *, rewritten: bool) -> bool:
    """Whether the table here is the one of this state, and has this version. One GET if its entry is as it
    was.

    `rewritten` says that entries of the table may be rewritten, because its markers are in its log.
    """
    commit = read_entry(store, known.version) if known.info is not None else None
    unchanged = commit is not None and _is_stored(known.info, commit.info)
    if commit is not None and (unchanged or not rewritten):
        return unchanged
    there = open_state(store, environment)
    if there is None or there.version < known.version:
        return False
    return there.definition[1].id == known.definition[1].id


def is_displaced(store: Store, known: State) -> bool:
    """Whether a checkpoint of this version, which was just written, lies in a log that never had the version:
    the log was deleted meanwhile, or is another table's. A clean-up deletes entries from below, and keeps the
    one of the newest checkpoint."""
    commit = read_entry(store, known.version)
    if commit is not None:
        return not _is_stored(known.info, commit.info)
    commits = list_log(store).commits
    return min(commits, default=-1) < known.version


def _is_stored(info: Mapping[str, Any] | None, found: Mapping[str, Any] | None) -> bool:
    """Whether this `commitInfo`, which may hold values that JSON has no form for, is read back as `found`."""
    return found == info or bool(found == json.loads(json.dumps(info)))


def _open_by_hint(
    store: Store, environment: Environment, hint: Checkpoint, version: int | None
) -> State | None:
    """The state by way of the hint, or None if the hint is of no use."""
    parts = part_readers(store, hint)
    tasks: list[Callable[[], Any]] = [*parts, lambda: list_log(store, hint.version)]
    try:
        *found, listing = environment.fan_out(tasks)
        content = gather(store, environment, found)
    except Corrupt:
        # The hint may point to nothing. What the log itself holds decides, and raises if it is broken.
        return None
    segment = listing.segment(version)
    if segment is None or segment.checkpoint is None or segment.checkpoint.version != hint.version:
        # There is a newer checkpoint, or the log has no trace of this one.
        return None if segment is None else _exactly(version, load(store, environment, segment))
    tail = environment.fan_out(piece_readers(store, segment.tail))
    return _exactly(version, State.of_checkpoint(hint.version, content).after(_readable(tail)))


def _readable(tail: Iterable[Sequence[Commit]]) -> list[Commit]:
    return list(takewhile(lambda commit: not is_pending(commit.info), chain.from_iterable(tail)))


def _exactly(version: int | None, state: State) -> State:
    if version is not None and state.version != version:
        raise InvalidInput(
            f"version {version} is not available: transactions hold the versions after {state.version}",
            version=version,
        )
    return state


def _entry_reader(store: Store, version: int) -> Callable[[], Commit | None]:
    return lambda: read_entry(store, version)
