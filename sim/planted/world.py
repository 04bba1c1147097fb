"""Known bugs that only the suite `world` can show, to be planted one by one, as in `planted.commits`.

Each is planted where its parts of the world are: see `PARTS`; those without are shown by `outside.steered`.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lakevilla.formats.delta.log.expiry import LogFile, decide_expired, decide_oldest_kept
from lakevilla.formats.delta.log.paths import entry_key
from lakevilla.model import Counts
from lakevilla.store.port import Meta
from lakevilla.transaction.statements.effect import Effect, TableChange
from lakevilla.transaction.workspace import Workspace
from sim.outside.play import RESTORES
from sim.planted.commits import Plant, planter

BUGS: dict[str, Plant] = {}
"""Every bug by its name."""

_bug = planter(BUGS)

_PREMISES = "lakevilla.transaction.commit.premises"
_PREMISE = "lakevilla.settle.premise"
_QUEUED = "lakevilla.transaction.commit.queued_commit"

PARTS: dict[str, tuple[str, frozenset[str]]] = {
    "old-uploads-are-not-looked-for": ("", frozenset(("sleeps", "upkeep"))),
    "table-made-anew-is-taken-for-the-old-one": ("", frozenset(("renewal", "wrecks"))),
    "threads-share-a-transaction": ("", frozenset(("threads",))),
    "restore-leaves-what-came-meanwhile": ("", frozenset((RESTORES, "upkeep"))),
    "log-is-cleaned-one-entry-too-far": ("", frozenset(("upkeep", "short logs"))),
    "log-is-cleaned-without-looking-at-tags": ("", frozenset(("upkeep", "short logs"))),
}
"""The kind of request at which clients sleep, and the parts of the world, in which a bug shows."""


@_bug(f"{_PREMISES}.refuse_missing", f"{_PREMISES}.Premises._write_lease", f"{_PREMISES}.Premises.confirm")
def old_uploads_are_not_looked_for(*given: Any) -> Any:
    """A commit takes it that files which it uploaded days ago are still there."""
    return given[2].snapshot if len(given) == 4 else None


@_bug("lakevilla.transaction.commit.writer_queues.WriterQueues.write_lease")
def lease_of_vacuum_is_not_looked_at(self: object) -> None:
    """A commit that was sent late takes it that vacuum leaves what is there."""


@_bug("lakevilla.versions.log.GlobalLog.passed")
def slot_that_was_cleaned_away_is_decided_again(self: object, seq: int) -> None:
    """That HEAD has come past an entry is not looked for."""


@_bug(f"{_PREMISE}.Premise.check", f"{_PREMISE}._Guarded._confirm")
def stale_client_goes_on_settling(*_: object, **__: object) -> None:
    """A client that slept does not ask whether others have settled its entry, nor whether its numbers were
    used."""


@_bug(
    f"{_QUEUED}.QueuedCommit._settled",
    f"{_QUEUED}.settle_base",
    "lakevilla.transaction.commit.commit_strategy.settle_base",
)
def version_of_an_open_entry_is_built_on(*given: Any, **_: Any) -> Any:
    """A commit without a slot builds on a version that it met on its way, and that may yet be rolled back."""
    return given[-1]


@_bug("lakevilla.settle.lost_parts.versions_since")
def log_is_not_asked_what_came_since_the_slot(*_: object) -> tuple[list[int], bool]:
    """A table whose log was cleaned up before a late slot counts as torn."""
    return [], False


@_bug("lakevilla.formats.delta.table.is_same")
def table_made_anew_is_taken_for_the_old_one(*_: object, **__: object) -> bool:
    """A state that is known is advanced by entries of whatever table lies there now."""
    return True


@_bug("lakevilla.formats.delta.log.expired_files.decide_expired")
def log_is_cleaned_one_entry_too_far(files: list[LogFile], base: int, since_ms: int) -> list[LogFile]:
    """With the entries below a checkpoint the first above it goes too."""
    more = [file for file in files if file.meta.key == entry_key(base + 1)]
    return [*decide_expired(files, base, since_ms), *more]


@_bug("lakevilla.formats.delta.log.expired_files.decide_oldest_kept")
def log_is_cleaned_without_looking_at_tags(
    commits: Mapping[int, Meta],
    newest: int,
    since_ms: int,
    needed: Collection[int],  # noqa: ARG001
) -> int:
    """The versions of instants are forgotten."""
    return decide_oldest_kept(commits, newest, since_ms, ())


@_bug("lakevilla.transaction.lifecycle.call_guard.CallGuard.running")
@contextmanager
def threads_share_a_transaction(self: object, what: str, abort: Callable[[], None]) -> Iterator[None]:  # noqa: ARG001
    """No client is refused."""
    yield


@_bug("lakevilla.travel.restore.restore")
def restore_leaves_what_came_meanwhile(
    workspace: Workspace, name: str, version: int, instant: int | None = None
) -> Effect:
    """A restore takes away the files that it saw, and not those that others add before it is committed."""
    pinned = workspace.pin_target(name)
    change = pinned.table.restore(pinned.snapshot, pinned.table.at_version(version))
    if not (change.added or change.removed or change.metadata):
        return Effect(Counts())
    return Effect(Counts(), TableChange(pinned, change, restores=True, instant=instant))
