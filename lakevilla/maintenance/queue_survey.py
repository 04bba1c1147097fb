"""Which clients work on a lake: the markers of its tables, and the records that transactions left."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from lakevilla.environment import Environment
from lakevilla.errors import Corrupt, InvalidInput, LakeVillaError, Unavailable, Unsupported
from lakevilla.maintenance.reports import OpenTransaction, Ticket
from lakevilla.maintenance.transactions import Folder
from lakevilla.markers.lease import Leases
from lakevilla.markers.survey import Seen, survey, survey_log
from lakevilla.store import keys
from lakevilla.store.metered import Meter
from lakevilla.store.port import Meta, Store
from lakevilla.sublogs.finder import read_sublogs
from lakevilla.sublogs.records import Ran
from lakevilla.tables.catalog import Catalog
from lakevilla.tables.pinned import Pinned
from lakevilla.transaction.outcomes.outcome import is_id
from lakevilla.transaction.redo.restoration import current_records
from lakevilla.transaction.redo.resume import why_not
from lakevilla.versions.log import GlobalLog
from lakevilla.versions.records import Entry

logger = logging.getLogger("lakevilla.maintenance")

THE_LAKE = "(the lake)"
"""What the queue for the lake's slots is called among those of tables: no table can have this name."""


@dataclass(frozen=True, slots=True)
class LakeView:
    """What maintenance works with. `store` is the lake's root."""

    catalog: Catalog
    store: Store
    environment: Environment
    leases: Leases
    meter: Meter

    @property
    def log(self) -> GlobalLog:
        return self.catalog.log(self.meter)


@dataclass(frozen=True, slots=True)
class Queued:
    """A marker of a table. `dead` says that a published version has used up its ticket or a later one."""

    table: str
    store: Store
    seen: Seen
    dead: bool

    @property
    def place(self) -> tuple[str, int]:
        """Which ticket of which table this is."""
        return self.store.url, self.seen.ticket

    def ticket(self, now_ms: int) -> Ticket:
        """The marker for people."""
        marker = self.seen.marker
        age = (now_ms - marker.claimed_ms) / 1000
        return Ticket(self.table, self.seen.ticket, marker.txn, max(0.0, age), marker.predecessors)


@dataclass(slots=True)
class Queues:
    """The live markers of some tables; `tables` are those that were looked at, `errors` has why others could
    not be, by their names."""

    live: list[Queued] = field(default_factory=list)
    tables: list[Pinned] = field(default_factory=list)
    errors: dict[str, LakeVillaError] = field(default_factory=dict)

    @property
    def failed(self) -> dict[str, str]:
        """Why tables could not be looked at, for people."""
        return {name: str(error) for name, error in self.errors.items()}


@dataclass(frozen=True, slots=True)
class _Done:
    """The tables that a transaction used, how many statements it finished, and why it cannot be resumed."""

    tables: tuple[str, ...] = ()
    statements: int = 0
    obstacle: str = ""


def survey_queues(view: LakeView, name: str | None = None) -> Queues:
    """The live markers of this table, or of all. One table that cannot be read does not stop the others."""
    names = view.catalog.names(view.meter) if name is None else [name]
    found = Queues()
    tasks = [partial(_survey_table, view, table) for table in names]
    for table, answer in zip(names, view.environment.fan_out(tasks), strict=True):
        if isinstance(answer, LakeVillaError):
            if name is not None:
                raise answer
            found.errors[table] = answer
        else:
            pinned, live = answer
            found.live += live
            found.tables.append(pinned)
    if name is None:
        found.live += _survey_the_lake(view)
    return found


def _survey_the_lake(view: LakeView) -> list[Queued]:
    """The live markers of the queue for the lake's slots."""
    head = view.catalog.head(view.meter)
    dead = 0 if head is None else head.ticket
    seen = survey(view.store, view.environment)
    return [Queued(THE_LAKE, view.store, one, one.ticket <= dead) for one in seen if one.marker.live]


def unsettled_entries(view: LakeView) -> list[Entry]:
    """The entries of the global log that are decided and not settled yet."""
    read = view.log.read_head()
    found: list[Entry] = []
    while read is not None and (entry := view.log.read_slot(read.head.seq + 1 + len(found))) is not None:
        found.append(entry.seen_from(read.head.lake))
    return found


def unsettled(view: LakeView) -> list[str]:
    """The transactions of those entries."""
    return [entry.txn for entry in unsettled_entries(view)]


def settle_all(view: LakeView, lost: frozenset[str] = frozenset()) -> bool:
    """Complete what is decided and not visible yet, as any client that meets it would. False if there was
    nothing. `lost` are locations that an operator has declared lost."""
    read = view.log.read_head() or view.log.lost_head()
    waiting = len(unsettled(view))
    if read is None or not waiting:
        return False
    view.catalog.settle_up_to(read.head.seq + waiting, view.meter, lost)
    return True


def read_folders(view: LakeView) -> list[Folder]:
    """The records of every transaction that left some, by one LIST. Their leases are not read, and folders
    of another kind are ignored."""
    found: dict[str, list[Meta]] = {}
    for meta in view.store.list(keys.TXNS):
        txn = keys.txn_of(meta.key)
        if txn is not None and is_id(txn):
            found.setdefault(txn, []).append(meta)
    return [_folder(txn, metas) for txn, metas in found.items()]


def open_transactions(
    view: LakeView, folders: Sequence[Folder], alive: Sequence[bool | None]
) -> tuple[OpenTransaction, ...]:
    """What these transactions had done when they last wrote a sublog. One GET for each sublog."""
    now_ms = view.environment.now_ms()
    answers = view.environment.fan_out([partial(_done, view, folder.txn) for folder in folders])
    return tuple(
        OpenTransaction(
            folder.txn,
            done.tables,
            done.statements,
            max(0.0, (now_ms - folder.modified_ms) / 1000),
            lives,
            done.obstacle,
        )
        for folder, done, lives in zip(folders, answers, alive, strict=True)
    )


def _survey_table(view: LakeView, name: str) -> tuple[Pinned, list[Queued]] | LakeVillaError:
    try:
        pinned = view.catalog.pin(name, view.meter)
        store = view.catalog.store_of(pinned.ref.location, view.meter)
        seen = survey(store, view.environment)
        markers, version = pinned.table.log_markers(pinned.snapshot), pinned.snapshot.version
        in_log = [] if markers is None else survey_log(store, view.environment, markers.entries, version)
    except (Corrupt, InvalidInput, Unavailable, Unsupported) as error:
        return error
    dead = pinned.snapshot.coordination.ticket
    queued = [Queued(pinned.ref.name, store, one, one.ticket <= dead) for one in seen]
    queued += [Queued(pinned.ref.name, store, one, dead=False) for one in in_log]
    return pinned, [one for one in queued if one.seen.marker.live]


def _folder(txn: str, metas: Sequence[Meta]) -> Folder:
    lease = next((meta.etag for meta in metas if meta.key == keys.lease(txn)), None)
    sublogs = tuple(meta for meta in metas if meta.key != keys.lease(txn))
    return Folder(txn, sublogs, max(meta.modified_ms for meta in metas), lease)


def _done(view: LakeView, txn: str) -> _Done:
    """What a transaction did, by its newest attempt."""
    try:
        left = read_sublogs(view.store, view.environment, txn)
    except (Corrupt, Unsupported) as damage:
        logger.warning("the records of transaction %s cannot be read: %s", txn, damage)
        return _Done(obstacle=str(damage))
    if not left:
        return _Done(obstacle="it has left no records")
    tables: dict[str, None] = {}
    records, statements = current_records(left[-1].records)
    for record in records:
        if isinstance(record, Ran):
            tables |= dict.fromkeys(touched.table.name for touched in record.touched)
    return _Done(tuple(tables), statements, why_not(view.catalog, txn, left))
