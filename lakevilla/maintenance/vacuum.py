"""Vacuum: delete what no reader and no transaction can need any more (docs/operating.md).

Every delete is safe on its own, so a run that was interrupted is simply repeated. Nothing is deleted
outside of the table's folder, nor files of other tables below it.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.errors import Corrupt, InvalidInput, Unavailable, Unsupported
from lakevilla.formats.catalogs import NotConfigured
from lakevilla.formats.needed_files import References
from lakevilla.formats.port import Published, Snapshot, Table
from lakevilla.formats.registry import FORMATS
from lakevilla.maintenance.dropped import DroppedFolders, own_retention_ms
from lakevilla.maintenance.expired_logs import delete_log_files
from lakevilla.maintenance.file_listing import RunBegin, data_files, list_files, tables_below
from lakevilla.maintenance.instants import Kept, find_leftovers, keep_instants
from lakevilla.maintenance.queue_survey import LakeView, settle_all, survey_queues, unsettled
from lakevilla.maintenance.reports import DroppedVacuum, Files, Leftovers, TableVacuum, VacuumReport
from lakevilla.maintenance.retention import (
    DEFAULT_MS,
    FLOOR_MS,
    HOUR_MS,
    Sorted,
    decide_tickets,
    of_transactions,
    sort_files,
)
from lakevilla.maintenance.transactions import Dead, Transactions
from lakevilla.markers.survey import survey
from lakevilla.model import Author, Change, TableRef
from lakevilla.settle.places import owner_of
from lakevilla.store import keys
from lakevilla.store.port import Store
from lakevilla.tables.pinned import Pinned
from lakevilla.transaction.instants.sync import sync

BATCH = 1000
OCCUPY = "VACUUM"
"""The operation of a version without changes, which takes a number (`Vacuum._occupy_next`)."""
AWAKE_MS = 2 * HOUR_MS
"""A client commits within an hour after it has found the newest version, unless it is suspended; and clocks
differ."""

Progress = Callable[[str], None]

logger = logging.getLogger("lakevilla.maintenance")


@dataclass(frozen=True, slots=True)
class VacuumOptions:
    """What the caller asked for. `retention_ms` is None where each table's own retention counts."""

    dry_run: bool = True
    retention_ms: int | None = None
    foreign: bool = False
    dropped: bool = False


def vacuum(view: LakeView, name: str | None, options: VacuumOptions, progress: Progress) -> VacuumReport:
    """Vacuum one table, or the whole lake."""
    begin = RunBegin.now(view.environment, options.dry_run)
    if not options.dry_run:
        # To roll back a commit that is half published adds the files again that it removed.
        settle_all(view)
        _adopt(view, name)
    # Transactions that hold tickets, or whose commit is being settled, may need what they uploaded.
    waiting = {queued.seen.marker.txn for queued in survey_queues(view).live}
    busy = frozenset(waiting.union(unsettled(view)))
    transactions = Transactions(view.store, view.environment, view.leases, busy)
    now_ms = begin.by(view.store)
    since_ms = now_ms - (options.retention_ms or _shortest_ms(view, name, options.dropped))
    kept = keep_instants(view, since_ms, options.dry_run)
    run = Vacuum(view, transactions, options, progress, begin, now_ms, kept)
    if name is not None:
        return run.run_table(name)
    return replace(run.run(), horizon=kept.horizon, leftovers=_clean_log(view, kept, since_ms, options))


def _adopt(view: LakeView, name: str | None) -> None:
    """Make versions that were written without the global log part of the lake's instant. Otherwise the
    version that HEAD has of a table would keep for ever what these have removed, and the log since."""
    if view.log.read_head() is None:
        return
    try:
        sync(view.catalog, view.environment, name, accept_torn=False)
    except (Unsupported, Corrupt, NotConfigured, Unavailable) as error:
        logger.info("vacuum keeps what HEAD's versions need, which could not be moved on: %s", error)


def _shortest_ms(view: LakeView, name: str | None, dropped: bool) -> int:
    """The shortest retention of these tables: an instant cannot be read without the first file of it."""
    names = view.catalog.names(view.meter) if name is None else [name]
    found = [DEFAULT_MS]
    for each in names:
        try:
            found.append(view.catalog.pin(each, view.meter).snapshot.retention_ms)
        except (Unsupported, Corrupt, NotConfigured, Unavailable) as error:
            logger.info("the retention of %s is not known, and nothing of it is deleted: %s", each, error)
    head = view.catalog.head(view.meter)
    if dropped and name is None and head is not None:
        found += [own_retention_ms(view, location) for location in head.dropped]
    return max(min(found), FLOOR_MS)


def _clean_log(view: LakeView, kept: Kept, since_ms: int, options: VacuumOptions) -> Leftovers:
    """Delete what of the global log no client needs any more."""
    found = find_leftovers(view, kept, since_ms)
    doomed = [keys.slot(seq) for seq in found.entries] + [keys.past_head(seq) for seq in found.states]
    for start in range(0, 0 if options.dry_run else len(doomed), BATCH):
        view.environment.fan_out([partial(view.store.delete, key) for key in doomed[start : start + BATCH]])
    return found


class _OutOfReach(Exception):
    """A table that cannot be opened."""


class Vacuum:
    """One run. `lake_now_ms` is its `begin` by the store of the lake's root, `kept` what instants need."""

    def __init__(
        self,
        view: LakeView,
        transactions: Transactions,
        options: VacuumOptions,
        progress: Progress,
        begin: RunBegin,
        lake_now_ms: int,
        kept: Kept,
    ) -> None:
        self._view = view
        self._catalog = view.catalog
        self._environment = view.environment
        self._meter = view.meter
        self._transactions = transactions
        self._options = options
        self._progress = progress
        self._begin = begin
        self._lake_now_ms = lake_now_ms
        self._kept = kept

    def run_table(self, name: str) -> VacuumReport:
        """Vacuum one table."""
        return VacuumReport(self._options.dry_run, (self._table(self._catalog.pin(name, self._meter)),))

    def run(self) -> VacuumReport:
        """Vacuum every table, the records of transactions that ended, and dropped tables if wished for.

        A table that cannot be read or written by us is left alone and named, in a real run also in the log.
        """
        done: list[TableVacuum] = []
        failed: dict[str, str] = {}
        for name in self._catalog.names(self._meter):
            try:
                pinned = self._pin(name)
                done.append(self._table(pinned))
            except (Unsupported, Corrupt, InvalidInput, _OutOfReach) as error:
                if not self._options.dry_run:
                    logger.warning("vacuum leaves %s alone: %s", name, error)
                failed[name] = str(error)
        self._tickets(self._view.store, self._lake_now_ms)
        dropped = tuple(self._dropped()) if self._options.dropped else ()
        return VacuumReport(self._options.dry_run, tuple(done), dropped, tuple(self._records()), failed)

    def _pin(self, name: str) -> Pinned:
        """A table of the lake. One whose store denies even that does not stop the others; a store that goes
        away later, in the middle of the work, does."""
        try:
            return self._catalog.pin(name, self._meter)
        except Unavailable as error:
            raise _OutOfReach(str(error)) from error

    def _table(self, pinned: Pinned) -> TableVacuum:
        ref, store = pinned.ref, self._catalog.store_of(pinned.ref.location, self._meter)
        self._refuse_foreign(ref, store)
        now_ms = self._begin.by(store)
        # In this order, see `retention`.
        everything = list_files(store)
        newest = pinned.table.latest()
        if newest is None:
            raise Corrupt(
                f"table {ref.name!r} disappeared while vacuum ran; nothing of it was deleted", table=ref.name
            )
        newest.refuse_writes()
        retention_ms = self._options.retention_ms or max(newest.retention_ms, FLOOR_MS)
        others = tables_below(everything, FORMATS.values()) | self._registered_below(ref.location)
        files = data_files(everything, [field.name for field in newest.partitioning.fields], others)
        self._progress(f"{ref.name}: {files.num_rows:,} files, version {newest.version}")
        old = files.filter(pc.less(files.column("modified_ms"), now_ms - retention_ms))
        also = self._kept.versions_at(self._catalog.real_place, ref.location)
        newest = self._without_past(pinned.table, newest, now_ms - retention_ms, also)
        occupy = partial(self._occupy_next, pinned.table, newest, now_ms - retention_ms)
        references = pinned.table.references(newest, now_ms - retention_ms, also)
        unneeded = old.filter(pc.invert(references.needed(_keys(old))))
        found = sort_files(unneeded, references.removed(_keys(unneeded)))
        report = TableVacuum(ref.name, newest.version, retention_ms / HOUR_MS)
        report = self._files(report, found, store, references, occupy)
        # Last: the entries say which files were removed.
        log = pinned.table.expired_log(newest, now_ms, retention_ms, also)
        if not self._options.dry_run:
            delete_log_files(pinned.table, newest, store, self._environment, log)
        sizes = [meta.size for group in log for meta in group]
        return replace(
            report,
            log=Files(len(sizes), sum(sizes)),
            keys=(*report.keys, *(meta.key for group in log for meta in group)),
            tickets=self._tickets(store, now_ms),
        )

    def _refuse_foreign(self, ref: TableRef, store: Store) -> None:
        """A table of another lake is vacuumed from there: we do not know which instants that lake keeps, nor
        which of its transactions are running."""
        owner, head = owner_of(store), self._catalog.head(self._meter)
        if owner is not None and (head is None or owner.lake != head.lake):
            raise Unsupported(
                f"the table {ref.name!r} belongs to the lake at {owner.url}, whose tags and earlier instants "
                "may need its files: nothing was deleted; run vacuum on that lake",
                table=ref.name,
            )

    def _without_past(self, table: Table, newest: Snapshot, since_ms: int, also: Collection[int]) -> Snapshot:
        """The newest version without what it holds of versions that are not needed.

        A table that only the global log's transactions change keeps it: vacuum is not such a transaction.
        """
        while not newest.coordination.exclusive:
            change = table.expiry(newest, since_ms, also)
            if change is None:
                return newest
            if self._options.dry_run:
                return table.preview(newest, change)
            newest = self._publish(table, newest, change)
        return newest

    def _publish(self, table: Table, newest: Snapshot, change: Change) -> Snapshot:
        """Try to publish a change of ours as the next version: that version, whichever client made it."""
        # A commit without a slot never builds on one that may still be rolled back.
        self._view.catalog.settle_up_to(newest.coordination.slot, self._view.meter)
        txn = self._environment.new_id()
        done = table.publish(newest, change, Author(txn, txn, self._environment.new_id()))
        if isinstance(done, Published):
            table.maintain(done.snapshot)
        return done.snapshot

    def _occupy_next(self, table: Table, newest: Snapshot, since_ms: int) -> None:
        """Take the number that the client of a transaction whose uploads are deleted may be about to create:
        it fell asleep after it had found the newest version, before the retention. When it wakes up it meets
        another version, and looks for its uploads.

        Nothing is needed where a later version has that number, where a slot has to decide, and where the
        number is held by a marker.
        """
        coordination = newest.coordination
        if coordination.exclusive or coordination.markers_in_log:
            return
        if table.written().get(newest.version, 0) < since_ms + AWAKE_MS:
            self._publish(table, newest, Change(OCCUPY))

    def _files(
        self,
        report: TableVacuum,
        found: Sorted,
        store: Store,
        references: References,
        occupy: Callable[[], None],
    ) -> TableVacuum:
        """Delete the files that may go."""
        txns = pc.unique(found.orphans.column("txn")).to_pylist()
        since_ms = self._lake_now_ms - int(report.retention_hours * HOUR_MS)
        dead = self._take_hold(self._transactions.dead(txns, since_ms))
        ended = of_transactions(found.orphans, (one.txn for one in dead))
        orphans, undecided = found.orphans.filter(ended), found.orphans.filter(pc.invert(ended))
        foreign = found.foreign if self._options.foreign else found.foreign.slice(0, 0)
        if orphans.num_rows and not self._options.dry_run:
            occupy()
        doomed = pa.concat_tables([found.expired, orphans.drop_columns(["txn"]), foreign])
        spared = self._delete(report.table, store, _keys(doomed).to_pylist(), references)
        if not self._options.dry_run:
            self._environment.fan_out([partial(self._transactions.let_go, one) for one in dead])
        return replace(
            report,
            expired=_sum(_without(found.expired, spared)),
            orphans=_sum(_without(orphans, spared)),
            foreign=_sum(_without(foreign, spared)),
            kept_undecided=_sum(undecided),
            kept_foreign=_sum(found.foreign.slice(foreign.num_rows)),
            keys=tuple(_keys(_without(doomed, spared)).to_pylist()),
        )

    def _tickets(self, store: Store, now_ms: int) -> tuple[int, ...]:
        tickets = decide_tickets(survey(store, self._environment), now_ms - FLOOR_MS)
        if not self._options.dry_run:
            self._environment.fan_out([partial(store.delete, keys.marker(ticket)) for ticket in tickets])
        return tuple(tickets)

    def _records(self) -> Iterable[str]:
        """Delete the records of transactions that ended and left no data files."""
        since_ms = self._lake_now_ms - (self._options.retention_ms or DEFAULT_MS)
        dead = self._take_hold(self._transactions.dead(self._transactions.all(), since_ms))
        for one in dead:
            if not self._options.dry_run:
                self._transactions.let_go(one)
            yield one.txn

    def _take_hold(self, dead: Sequence[Dead]) -> list[Dead]:
        if self._options.dry_run:
            return list(dead)
        held = self._environment.fan_out([partial(self._transactions.take_hold, one) for one in dead])
        return [one for one, is_held in zip(dead, held, strict=True) if is_held]

    def _dropped(self) -> Iterable[DroppedVacuum]:
        def since_ms(location: str) -> int:
            return self._lake_now_ms - (self._options.retention_ms or own_retention_ms(self._view, location))

        folders = DroppedFolders(self._view, self._kept, since_ms, self._registered_below)
        return folders.vacuum(self._delete, self._options.dry_run)

    def _delete(
        self, what: str, store: Store, doomed: Sequence[str], references: References | None = None
    ) -> list[str]:
        """Delete all of these, except for what was committed meanwhile, which is returned."""
        spared: list[str] = []
        for start in range(0, 0 if self._options.dry_run else len(doomed), BATCH):
            batch = doomed[start : start + BATCH]
            if references is not None:
                named = references.named_since(pa.array(batch, pa.string())).to_pylist()
                spared += [key for key, keep in zip(batch, named, strict=True) if keep]
                batch = [key for key, keep in zip(batch, named, strict=True) if not keep]
            self._environment.fan_out([partial(store.delete, key) for key in batch])
            self._progress(f"{what}: {min(start + BATCH, len(doomed)):,} of {len(doomed):,} files deleted")
        return spared

    def _registered_below(self, location: str) -> set[str]:
        """Folders below this table's that the registry gives to other tables."""
        head, real_place = self._catalog.head(self._meter), self._catalog.real_place
        places = [] if head is None else [real_place(table.location) for table in head.tables.values()]
        root = f"{real_place(location)}/"
        below = {place.removeprefix(root) for place in places if place.startswith(root)}
        return {f"{unquote(folder) if root.startswith('file:') else folder}/" for folder in below}


def _keys(files: pa.Table) -> pa.Array:
    return files.column("key").combine_chunks()


def _without(files: pa.Table, keys_left: Sequence[str]) -> pa.Table:
    return files.filter(pc.invert(pc.is_in(files.column("key"), value_set=pa.array(keys_left, pa.string()))))


def _sum(files: pa.Table) -> Files:
    return Files(files.num_rows, pc.sum(files.column("size")).as_py() or 0)
