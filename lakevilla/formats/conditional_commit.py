"""The write that decides a version of a table, what its answer means, and what must be there before it.

An answer that got lost is found again by reading what is there. Only where even that cannot be read the
outcome is unknown, and no client may rerun the change blindly.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from lakevilla.environment import Environment
from lakevilla.errors import CommitUnknown, Corrupt, Unavailable, Unsupported
from lakevilla.store.port import Ambiguous, Created, Meta, Object, Replaced, Store


class Damaged(Corrupt):
    """The object that holds a version cannot be parsed: it is another client's, and blocks this number."""


class NoAnswer(CommitUnknown):
    """The write that decides a version went unanswered, and what is there does not show that it applied."""


def create_version(store: Store, key: str, data: bytes, version: int, txn: str) -> Created | bytes:
    """Created if we created the object that makes this version, else the one that is there: perhaps our
    own."""
    try:
        answer = store.create(key, data)
        if isinstance(answer, Created):
            return answer
        if answer.found is not None:
            return answer.found.data
    except Ambiguous as ambiguous:
        found = read_back(store, key, version, txn)
        if found is None:
            # The write may still be on its way: that it is not there yet proves nothing.
            raise unknown(store, version, txn) from ambiguous
        return found.data
    found = read_back(store, key, version, txn)
    if found is None:
        raise gone(store, version)
    return found.data


def fill_version(store: Store, key: str, data: bytes, etag: str, version: int, txn: str) -> bytes | None:
    """None if we replaced our marker, which has this tag, by the object that makes this version; else what is
    there instead, perhaps that very object: no client rewrites what is not a marker."""
    try:
        if isinstance(store.replace(key, data, etag), Replaced):
            return None
        found = read_back(store, key, version, txn)
    except Ambiguous as ambiguous:
        found = read_back(store, key, version, txn)
        if found is not None and found.etag == etag:
            # The marker is still there: the write may still be on its way.
            raise unknown(store, version, txn) from ambiguous
    if found is None:
        raise gone(store, version)
    return found.data


def displaced(version: int, pending: bool) -> str:
    """Why our marker, which is no longer there, cannot be filled."""
    held = "resumed the transaction at" if pending else "freed"
    return f"another client {held} our marker, version {version}, because our lease had expired"


def read_back(store: Store, key: str, version: int, txn: str) -> Object | None:
    """The object that a conditional write of ours met; CommitUnknown if it cannot be read."""
    try:
        return store.get(key)
    except Unavailable as error:
        # Even a create that met an object may have met its own: a proxy can repeat a request.
        raise unknown(store, version, txn) from error


def gone(store: Store, version: int) -> Corrupt:
    """The error for a version that disappeared."""
    return Corrupt(
        f"entry {version} of {store.url} disappeared after it was read; log entries must not be deleted "
        "within the retention",
        version=version,
    )


def held(store: Store, version: int) -> Unsupported:
    """The error for a marker in the log of a table that says that it has none there."""
    return Unsupported(
        f"version {version} of {store.url} is held by a marker in the log, but the table's lakevilla.markers "
        "is not 'log': another client changed it. Run `lakevilla recover` first",
        version=version,
    )


def unknown(store: Store, version: int, txn: str) -> NoAnswer:
    """The error for a commit whose outcome the store did not say."""
    return NoAnswer(
        f"the store did not say whether transaction {txn} was committed as version {version} of {store.url}: "
        f"ask lake.outcome({txn!r}) when the store answers again; do not rerun it blindly",
        transaction=txn,
        version=version,
    )


def missing(
    environment: Environment, keys: Sequence[str], locate: Callable[[str], tuple[Store, str]]
) -> list[str]:
    """Those of these keys that are not in their stores any more; `locate` finds the store of a key."""
    places = [locate(key) for key in keys]
    found = environment.fan_out([partial(store.head, key) for store, key in places])
    return [key for key, meta in zip(keys, found, strict=True) if meta is None]


SKEW_MS = 60_000
"""How far the clocks of a store's own machines may be apart."""


CLEANED_SKEW_MS = 1_000
"""The same where the log ends right above the number: others have just cleaned it up."""


def was_used(
    ours: Meta, covering: Mapping[int, Meta], version: int, has_base: bool, is_lowest: bool = False
) -> bool:
    """Whether the number of our log entry had been used before, and that one was cleaned away.

    `covering` are the other objects of the log that cover this version or a later one, each by the last
    version that it covers. They come after our entry, unless its number had been used: then they are older,
    by the store's times, or the entry right after ours is missing too, and logs are cleaned up from below.
    Without any, the version that ours builds on must still be there (`has_base`). `is_lowest`: what lay right
    below our entry is not there, so the log was cleaned up, perhaps a moment ago.
    """
    if not covering:
        return not has_base
    gap = version + 1 not in covering and max(covering) > version
    skew_ms = CLEANED_SKEW_MS if is_lowest else SKEW_MS
    return gap or min(meta.modified_ms for meta in covering.values()) < ours.modified_ms - skew_ms
