"""From a store to the state of a table, and from one state to the next.

A cold open asks for the hint, then for the checkpoint and the first entries after it in one round; without
a usable hint it lists the log once. Going on from a known version is one GET that normally misses. A
client that slept while the entries after its version were cleaned away sees that version until it opens
the table anew.
"""

from collections.abc import Callable
from typing import Any

from lakevilla.environment import Environment
from lakevilla.errors import Corrupt, InvalidInput
from lakevilla.formats.delta.actions import Commit
from lakevilla.formats.delta.checkpoint_reading import checkpoint_removes, gather, part_readers
from lakevilla.formats.delta.entry import parse_entry
from lakevilla.formats.delta.log import Checkpoint, Piece, Segment, list_log, read_hint
from lakevilla.formats.delta.paths import entry_key
from lakevilla.formats.delta.replay import State, file_key
from lakevilla.store.port import Store

_AHEAD_MAX = 8
_LIST_AFTER = 40
"""A hint that is this many entries old is checked against a LIST: there may be a newer checkpoint."""


def open_state(store: Store, environment: Environment, version: int | None = None) -> State | None:
    """The state at this version (the newest if None), or None if there is no table here."""
    hint = read_hint(store)
    if hint is not None and (version is None or hint.version <= version):
        state = _open_by_hint(store, environment, hint, version)
        if state is not None:
            return state
    segment = list_log(store).segment(version)
    if segment is None:
        if version is not None:
            raise InvalidInput(f"there is no Delta table in {store.url}")
        return None
    return load(store, environment, segment)


def load(store: Store, environment: Environment, segment: Segment) -> State:
    """The state that these files of the log make."""
    checkpoint = segment.checkpoint
    parts = [] if checkpoint is None else part_readers(store, checkpoint)
    tasks: list[Callable[[], Any]] = [*parts, *(_piece_reader(store, piece) for piece in segment.tail)]
    results = environment.fan_out(tasks)
    state = State.empty()
    if checkpoint is not None:
        state = State.of_checkpoint(checkpoint.version, gather(store, environment, results[: len(parts)]))
    return state.after(results[len(parts) :])


def read_entry(store: Store, version: int) -> Commit | None:
    """The log entry of this version, or None if there is none."""
    found = store.get(entry_key(version))
    return None if found is None else parse_entry(version, found.data)


def follow(
    store: Store,
    environment: Environment,
    start: int,
    until: int | None = None,
    ahead: int = 1,
    limit: int | None = None,
) -> list[Commit]:
    """The entries from `start` on, up to the first that does not exist.

    `ahead` are asked for at once, then twice as many in each round. At most about `limit` are read.
    """
    commits: list[Commit] = []
    while limit is None or len(commits) < limit:
        end = start + ahead if until is None else min(start + ahead, until + 1)
        found = environment.fan_out([_entry_reader(store, version) for version in range(start, end)])
        for commit in found:
            if commit is None:
                return commits
            commits.append(commit)
        if until is not None and end > until:
            return commits
        start, ahead = end, min(2 * ahead, _AHEAD_MAX)
    return commits


def tombstones(store: Store, environment: Environment, state: State) -> list[dict[str, Any]]:
    """The `remove` actions that the log holds for this version, newest of each file, live files left out.

    Read anew: a snapshot has no use for them, and only checkpoints and cleaning up need them.
    """
    hint = read_hint(store)
    start = hint.version if hint is not None and hint.version <= state.version else 0
    segment = list_log(store, start).segment(state.version)
    if segment is None:
        raise Corrupt(f"the Delta log of {store.url} has vanished")
    removes: dict[str, dict[str, Any]] = {}
    if segment.checkpoint is not None:
        parts = environment.fan_out(part_readers(store, segment.checkpoint))
        for remove in checkpoint_removes(gather(store, environment, parts)):
            removes[file_key(remove)] = dict(remove)
    for commit in environment.fan_out([_piece_reader(store, piece) for piece in segment.tail]):
        removes |= {file_key(remove): dict(remove) for remove in commit.removes}
        for add in commit.adds:
            removes.pop(file_key(add), None)
    return list(removes.values())


def _open_by_hint(
    store: Store, environment: Environment, hint: Checkpoint, version: int | None
) -> State | None:
    """The state by way of the hint, or None if the hint is of no use."""
    parts = part_readers(store, hint)
    first = hint.version + 1
    last = first + 3 if version is None else min(first + 3, version)
    entries = [_entry_reader(store, number) for number in range(first, last + 1)]
    tasks: list[Callable[[], Any]] = [*parts, *entries]
    try:
        results = environment.fan_out(tasks)
        content = gather(store, environment, results[: len(parts)])
    except Corrupt:
        # The hint may point to nothing. What the log itself holds decides, and raises if it is broken.
        return None
    commits: list[Commit] = []
    for commit in results[len(parts) :]:
        if commit is None:
            break
        commits.append(commit)
    reached = hint.version + len(commits)
    if len(commits) == len(entries) and reached != version:
        commits += follow(store, environment, reached + 1, version, _AHEAD_MAX, _LIST_AFTER)
        reached = hint.version + len(commits)
    if len(commits) >= _LIST_AFTER:
        segment = list_log(store, hint.version).segment(version)
        return None if segment is None else load(store, environment, segment)
    if version is not None and reached < version:
        return None
    return State.of_checkpoint(hint.version, content).after(commits)


def _entry_reader(store: Store, version: int) -> Callable[[], Commit | None]:
    return lambda: read_entry(store, version)


def _piece_reader(store: Store, piece: Piece) -> Callable[[], Commit]:
    def read() -> Commit:
        found = store.get(piece.key)
        if found is None:
            raise Corrupt(f"{store.url}/{piece.key} vanished while the log was read; open the table again")
        return parse_entry(piece.end, found.data)

    return read
