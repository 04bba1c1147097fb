"""Publishing a change: one create of the next log entry, and what its answer means.

The create decides: if the entry that is there in the end names our attempt, the change is published, no
matter which client wrote it; if it names another client's, the version is taken.
"""

from dataclasses import replace

from lakevilla.environment import Environment
from lakevilla.errors import Corrupt, Unsupported
from lakevilla.formats.conditional_commit import Damaged, create_version, held, was_used
from lakevilla.formats.delta.log.actions import Commit
from lakevilla.formats.delta.log.encode import (
    Action,
    attempt_of,
    commit_info,
    encode_entry,
    is_pending,
    put_of,
)
from lakevilla.formats.delta.log.entry import commit_of, parse_entry
from lakevilla.formats.delta.log.footprint import footprint_of
from lakevilla.formats.delta.log.listing import list_log, log_files
from lakevilla.formats.delta.log.load import read_entry
from lakevilla.formats.delta.log.next_version import actions_of, context_of
from lakevilla.formats.delta.log.paths import entry_key, parse_log_key
from lakevilla.formats.delta.row_changes import onto
from lakevilla.formats.delta.snapshot import DeltaSnapshot
from lakevilla.formats.port import Published, Taken
from lakevilla.model import Author, Change, Footprint, Notice
from lakevilla.store.port import Created, Store


def publish(
    store: Store, environment: Environment, base: DeltaSnapshot, change: Change, author: Author
) -> Published | Taken:
    """Create version `base.version + 1` of the table at the store's root."""
    base.refuse_writes()
    version = base.version + 1
    actions = prepare(store, base, change, author, environment.now_ms())
    try:
        in_the_way = _create(store, version, encode_entry(actions), author.txn)
    except Damaged as error:
        return Taken(Footprint.of_damaged(version, str(error)), error)
    if isinstance(in_the_way, Created):
        return Published(base.advance([commit_of(version, actions)]), doubtful=in_the_way.doubtful)
    if is_pending(in_the_way.info):
        raise held(store, version)
    if attempt_of(in_the_way.info) == author.attempt:
        return Published(base.advance([in_the_way]))
    footprint = footprint_of(in_the_way, base)
    try:
        return Taken(footprint, base.advance([in_the_way]))
    except (Unsupported, Corrupt) as error:
        return Taken(footprint, error)


def prepare(store: Store, base: DeltaSnapshot, change: Change, author: Author, now_ms: int) -> list[Action]:
    """The actions of the version after `base`, with what they name uploaded."""
    rebased = onto(base, change, author)
    if rebased.upload is not None:
        store.put(*rebased.upload)
    return actions_of(rebased.change, author, context_of(base), now_ms)


def encode_first(change: Change, author: Author) -> bytes:
    """The entry of version 0: metadata and protocol, and files if there are rows.

    Its time is the one at which the change was made, so that the client that publishes it writes the same
    bytes.
    """
    return encode_entry(actions_of(change, author, None, change.metadata.created_ms))


def publish_first(store: Store, data: bytes, attempt: str) -> bool:
    """Create version 0. True if version 0 is this attempt's, no matter which client wrote it."""
    try:
        in_the_way = _create(store, 0, data, attempt)
    except Damaged:
        return False
    return isinstance(in_the_way, Created) or attempt_of(in_the_way.info) == attempt


def publish_notice(
    store: Store, environment: Environment, base: int, notice: Notice, author: Author
) -> tuple[int, str] | None:
    """Announce a rename or a drop by an empty entry at the first free version above `base`.

    Every version on the way is read; one that names this attempt ends the walk. Whatever else happened to
    the table since does not matter: its name is decided already. See `Table.publish_notice`.
    """
    listing = list_log(store, base)
    commits = listing.commits
    if listing.newest is None:
        # The log that had this version was deleted: an entry here would be a gap in the log of a new table.
        raise Corrupt(
            f"the Delta log in {store.url} was deleted: it has no version {base} or later", version=base
        )
    version = max([base, *commits])
    for number in sorted(found for found in commits if found > base):
        commit = read_entry(store, number)
        if commit is not None and attempt_of(commit.info) == author.attempt:
            return None
    below: Commit | None = read_entry(store, version)
    while True:
        version += 1
        author = replace(author, put=environment.new_id())
        action = _notice_action(notice, author, version, below, environment.now_ms())
        in_the_way = _create(store, version, encode_entry([action]), author.txn)
        if isinstance(in_the_way, Created) or put_of(in_the_way.info) == author.put:
            return version, author.put
        if attempt_of(in_the_way.info) == author.attempt:
            return None
        below = in_the_way


def retract(store: Store, version: int, put: str | None, orphaned: bool, displaced: bool) -> bool:
    """Delete our entry of this version if its number had been used; see `Table.retract`."""
    commit = read_entry(store, version)
    if commit is None or (put is not None and put_of(commit.info) != put):
        return False
    if not is_stale(store, version, orphaned, displaced):
        return False
    store.delete(entry_key(version))
    return True


def is_stale(store: Store, version: int, orphaned: bool = False, displaced: bool = False) -> bool:
    """Whether the entry of this version took a number that had been used; see `Table.is_stale`."""
    key = entry_key(version)
    found = [(meta, name) for meta in log_files(store, 0) if (name := parse_log_key(meta.key))]
    ours = next((meta for meta, _ in found if meta.key == key), None)
    covering = {name.end: meta for meta, name in found if meta.key != key and name.end >= version}
    has_base = not displaced and (len(found) > 1 or (version == 0 and not orphaned))
    is_lowest = version > 0 and all(name.end != version - 1 for _, name in found)
    return ours is not None and was_used(ours, covering, version, has_base, is_lowest)


def _notice_action(
    notice: Notice, author: Author, version: int, before: Commit | None, now_ms: int
) -> Action:
    """The only action of such an entry, with an in-commit timestamp if the entry before has one."""
    previous = None if before is None else (before.info or {}).get("inCommitTimestamp")
    return commit_info(
        Change("DROP TABLE" if notice.dropped else "RENAME TABLE", notice=notice),
        author,
        now_ms=now_ms,
        read_version=version - 1,
        in_commit_ms=max(now_ms, previous + 1) if isinstance(previous, int) else None,
    )


def _create(store: Store, version: int, data: bytes, txn: str) -> Created | Commit:
    """Created if we created the entry of this version, else the entry that is there: perhaps our own.

    Damaged if that one cannot be parsed.
    """
    found = create_version(store, entry_key(version), data, version, txn)
    if isinstance(found, Created):
        return found
    try:
        return parse_entry(version, found)
    except Corrupt as error:
        raise Damaged(str(error)) from error
