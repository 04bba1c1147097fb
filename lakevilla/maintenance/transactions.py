"""Which transactions may still commit, and how vacuum fences one that is dead.

A transaction leaves its id in the names of its data files, and while it is open perhaps a marker, a lease,
and sublogs. Vacuum counts it as dead if none of its markers is live, no entry of the global log that is yet
to be settled is its own, none of its records is younger than the retention, and its lease does not move while
we watch. Then vacuum **takes hold** of it (fences it), because another client could resume it, or its own
client wake up and commit it, at that very moment:

1. It writes the lease, on the condition that it is still the one that was watched, and so fences the owner.
2. It deletes the sublogs.
3. It looks whether the lease is still its own. Only then are the data files deleted, and last the lease.

A client that resumes takes the lease over before it reads the sublogs. If that was before 3, vacuum stops,
and every data file is still there; if it was after, there are no sublogs left to resume from. A client that
commits files older than an hour writes its lease first and then looks for the files
(`transaction.commit.premises`): if its lease came before 1, vacuum stops; if it came after, the client finds
the lease of vacuum, or no files.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from lakevilla.environment import Environment
from lakevilla.errors import Corrupt
from lakevilla.markers.lease import Leases
from lakevilla.markers.records import VACUUM, Lease
from lakevilla.markers.survey import find_stale
from lakevilla.store import keys
from lakevilla.store.port import Created, Meta, Object, Replaced, Store

logger = logging.getLogger("lakevilla.maintenance")


@dataclass(frozen=True, slots=True)
class Folder:
    """The records that a transaction left. `lease_etag` is None if there is no lease.

    `modified_ms` is the store's time of the youngest, without a lease that an earlier vacuum left.
    """

    txn: str
    sublogs: tuple[Meta, ...]
    modified_ms: int
    lease_etag: str | None

    @property
    def empty(self) -> bool:
        return not self.sublogs and self.lease_etag is None


@dataclass(frozen=True, slots=True)
class Dead:
    """A transaction that will not commit any more; with its folder as it was watched."""

    txn: str
    folder: Folder


class Transactions:
    """The transactions of a lake, as vacuum sees them. `busy` are those that hold live tickets or are being
    settled: they are never dead."""

    def __init__(self, store: Store, environment: Environment, leases: Leases, busy: frozenset[str]) -> None:
        self._store = store
        self._environment = environment
        self._leases = leases
        self._busy = busy
        self._held: dict[str, str] = {}
        """The tags of the leases that we have written, by transaction."""

    def all(self) -> list[str]:
        """Every transaction that left records."""
        found = (keys.txn_of(meta.key) for meta in self._store.list(keys.TXNS))
        return list(dict.fromkeys(txn for txn in found if txn is not None))

    def dead(self, txns: Iterable[str], since_ms: int) -> list[Dead]:
        """Those that will not commit any more; `since_ms` as a time of the lake's store.

        Takes a lease time if some of them left records that are old enough.
        """
        wanted = sorted(set(txns) - self._busy)
        folders = self._environment.fan_out([partial(read_folder, self._store, txn) for txn in wanted])
        old = [Dead(f.txn, f) for f in folders if not f.empty and f.modified_ms < since_ms]
        stale = find_stale([(dead.txn, "") for dead in old], self._leases, self._environment)
        gone = [dead for dead, is_stale in zip(old, stale, strict=True) if is_stale]
        return [Dead(folder.txn, folder) for folder in folders if folder.empty] + gone

    def take_hold(self, dead: Dead) -> bool:
        """Make sure that no client continues the transaction; see above. False if one does."""
        etag = self._fence(dead)
        if etag is None:
            logger.info("transaction %s is alive again: its files are kept", dead.txn)
            return False
        self._environment.fan_out([partial(self._store.delete, meta.key) for meta in dead.folder.sublogs])
        self._held[dead.txn] = etag
        return self._holds(dead)

    def let_go(self, dead: Dead) -> None:
        """The last step: the lease goes too, and with it every trace of the transaction. If we were suspended
        another vacuum may have let go before: a lease that is there now is a client's that is alive."""
        if self._holds(dead):
            self._store.delete(keys.lease(dead.txn))

    def _holds(self, dead: Dead) -> bool:
        found = self._store.get(keys.lease(dead.txn))
        return found is not None and found.etag == self._held.get(dead.txn)

    def _fence(self, dead: Dead) -> str | None:
        key, watched = keys.lease(dead.txn), dead.folder.lease_etag
        now_ms = self._environment.now_ms()
        data = Lease(dead.txn, VACUUM, self._environment.new_id(), 1, now_ms).encode()
        answer = self._store.create(key, data) if watched is None else self._store.replace(key, data, watched)
        return answer.etag if isinstance(answer, Created | Replaced) else None


def read_folder(store: Store, txn: str) -> Folder:
    """The records of one transaction: the lease first, so that a change of it is noticed later."""
    key = keys.lease(txn)
    lease = store.get(key)
    metas = list(store.list(keys.txn_folder(txn)))
    counted = [meta for meta in metas if meta.key != key or not _is_vacuums(lease, txn)]
    return Folder(
        txn,
        tuple(meta for meta in metas if meta.key != key),
        max((meta.modified_ms for meta in counted), default=0),
        None if lease is None else lease.etag,
    )


def _is_vacuums(lease: Object | None, txn: str) -> bool:
    if lease is None:
        return False
    try:
        return Lease.decode(lease.data, f"the lease of {txn}").attempt == VACUUM
    except Corrupt as damage:
        logger.warning("a damaged lease is not taken for one of vacuum: %s", damage)
        return False
