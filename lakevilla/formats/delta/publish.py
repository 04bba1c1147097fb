"""Publishing a change: one create of the next log entry, and what its answer means.

The create decides: if the entry that is there in the end names our attempt, the change is published, whoever
wrote it; if it names somebody else's, the version is taken.
"""

from dataclasses import replace

from lakevilla.environment import Environment
from lakevilla.formats.creating import create_version, held
from lakevilla.formats.delta.actions import Commit
from lakevilla.formats.delta.encode import Action, attempt_of, commit_info, encode_entry, is_pending
from lakevilla.formats.delta.entry import commit_of, parse_entry
from lakevilla.formats.delta.footprint import footprint_of
from lakevilla.formats.delta.landing import ground_of, land
from lakevilla.formats.delta.log import list_log
from lakevilla.formats.delta.opening import read_entry
from lakevilla.formats.delta.paths import entry_key
from lakevilla.formats.delta.snapshot import DeltaSnapshot
from lakevilla.formats.port import Published, Taken
from lakevilla.model import Author, Change, Notice
from lakevilla.store.port import Store


def publish(
    store: Store, environment: Environment, base: DeltaSnapshot, change: Change, author: Author
) -> Published | Taken:
    """Create version `base.version + 1` of the table at the store's root."""
    base.refuse_writes()
    version = base.version + 1
    actions = land(change, author, ground_of(base), environment.now_ms())
    in_the_way = _create(store, version, encode_entry(actions), author.txn)
    if in_the_way is None:
        return Published(base.advance([commit_of(version, actions)]))
    if is_pending(in_the_way.info):
        raise held(store, version)
    after = base.advance([in_the_way])
    if attempt_of(in_the_way.info) == author.attempt:
        return Published(after)
    return Taken(footprint_of(in_the_way, base), after)


def encode_first(change: Change, author: Author) -> bytes:
    """The entry of version 0: metadata and protocol, and files if there are rows.

    Its time is the one at which the change was made, so that whoever publishes it writes the same bytes.
    """
    return encode_entry(land(change, author, None, change.metadata.created_ms))


def publish_first(store: Store, data: bytes, attempt: str) -> bool:
    """Create version 0. True if version 0 is this attempt's, whoever wrote it."""
    in_the_way = _create(store, 0, data, attempt)
    return in_the_way is None or attempt_of(in_the_way.info) == attempt


def publish_notice(store: Store, environment: Environment, base: int, notice: Notice, author: Author) -> None:
    """Tell of a new name, or of none any more, by an empty entry at the first free version above `base`.

    Every version on the way is read; one that names this attempt ends the walk. Whatever else happened to
    the table since does not matter: what became of its name is decided already.
    """
    commits = list_log(store, base).commits
    version = max([base, *commits])
    for number in sorted(found for found in commits if found > base):
        commit = read_entry(store, number)
        if commit is not None and attempt_of(commit.info) == author.attempt:
            return
    in_the_way: Commit | None = read_entry(store, version)
    while True:
        version += 1
        author = replace(author, put=environment.new_id())
        told = _told(notice, author, version, in_the_way, environment.now_ms())
        in_the_way = _create(store, version, encode_entry([told]), author.txn)
        if in_the_way is None or attempt_of(in_the_way.info) == author.attempt:
            return


def _told(notice: Notice, author: Author, version: int, before: Commit | None, now_ms: int) -> Action:
    """The only action of such an entry, with a time of its own where the one before has."""
    previous = None if before is None else (before.info or {}).get("inCommitTimestamp")
    return commit_info(
        Change("DROP TABLE" if notice.dropped else "RENAME TABLE", notice=notice),
        author,
        now_ms=now_ms,
        read_version=version - 1,
        in_commit_ms=max(now_ms, previous + 1) if isinstance(previous, int) else None,
    )


def _create(store: Store, version: int, data: bytes, txn: str) -> Commit | None:
    """None if we created the entry of this version, else the entry that is there: perhaps our own."""
    found = create_version(store, entry_key(version), data, version, txn)
    return None if found is None else parse_entry(version, found)
