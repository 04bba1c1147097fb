"""Does this store keep its promises? A lake needs conditional writes, so they are tried before it is created.

Some S3-compatible stores accept the conditions and ignore them, or check one kind and not the other.
Such a store would silently lose commits, so it is refused (docs/protocol.md, section 1).
"""

from lakevilla.environment import Environment
from lakevilla.errors import Unsupported
from lakevilla.store import keys
from lakevilla.store.port import Changed, Created, Exists, Replaced, Store

_TRIES = 3


def probe(store: Store, environment: Environment) -> None:
    """Return if creates and replaces hold what they promise; otherwise raise `Unsupported`.

    About a dozen requests on a key of its own, which is removed again. A request that a proxy on the
    way repeats late can make an honest store look false, so one that seems so is tried anew.
    """
    for left in range(_TRIES - 1, -1, -1):
        try:
            _probe_once(store, environment)
            return
        except Unsupported:
            if not left:
                raise


def _probe_once(store: Store, environment: Environment) -> None:
    key = keys.probe(environment.new_id())
    first, second, third = (f'{{"putId":"{environment.new_id()}"}}'.encode() for _ in range(3))
    try:
        created = store.create(key, first)
        _demand(isinstance(created, Created), store, "a create of a new key did not succeed")
        _demand(isinstance(store.create(key, second), Exists), store, "a second create did not fail")
        found = store.get(key)
        if found is None or found.data != first:
            raise _refusal(store, "a created object cannot be read back")

        replaced = store.replace(key, second, found.etag)
        if not isinstance(replaced, Replaced):
            raise _refusal(store, "a replace with the right tag did not succeed")
        stale = store.replace(key, third, found.etag)
        _demand(isinstance(stale, Changed), store, "a replace with a stale tag did not fail")
        # With the content that the stale tag stands for: a store may compare it with what is sent.
        same = store.replace(key, first, found.etag)
        _demand(isinstance(same, Changed), store, "a stale replace with its old content did not fail")
        kept = store.get(key)
        if kept is None or kept.data != second:
            raise _refusal(store, "an object was changed by a write that failed")
        again = store.replace(key, third, replaced.etag)
        _demand(isinstance(again, Replaced), store, "the tag of a replace did not serve the next one")

        store.delete(key)
        _demand(store.get(key) is None, store, "a deleted object can still be read")
        lost = store.replace(key, first, kept.etag)
        _demand(isinstance(lost, Changed), store, "a replace of a missing object did not fail")
    finally:
        store.delete(key)


def _demand(holds: bool, store: Store, complaint: str) -> None:
    if not holds:
        raise _refusal(store, complaint)


def _refusal(store: Store, complaint: str) -> Unsupported:
    return Unsupported(
        f"{store.url}: {complaint}. LakeVilla needs a store with conditional writes "
        "(S3, GCS, Azure, MinIO, SeaweedFS, a local directory)"
    )
