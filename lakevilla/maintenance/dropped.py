"""The folders of dropped tables, which vacuum deletes if it is asked to.

A dropped table can be registered again as long as its files are there. So vacuum first says in the global log
which folders it deletes (`Expire.doomed`), and then deletes them: a client that would register or make a
table there before that entry keeps the folder from it, and one that comes after it is refused. HEAD's list of
dropped folders shrinks by those that are empty then, but for folders that have the name of a table: that one
stays on the list, because a suspended client could take a new table there for the one that it knew.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.errors import Corrupt, InvalidInput, Unsupported
from lakevilla.formats.port import Snapshot
from lakevilla.formats.registry import FORMATS
from lakevilla.maintenance.file_listing import list_files, tables_below, without
from lakevilla.maintenance.instants import Kept
from lakevilla.maintenance.queue_survey import LakeView
from lakevilla.maintenance.reports import DroppedVacuum, Files
from lakevilla.maintenance.retention import DEFAULT_MS, FLOOR_MS
from lakevilla.model import Author, TableRef
from lakevilla.settle.places import owner_of
from lakevilla.store import keys
from lakevilla.store.port import Store
from lakevilla.versions import registry
from lakevilla.versions.records import Head
from lakevilla.versions.tags import Expire

logger = logging.getLogger("lakevilla.maintenance")

Delete = Callable[[str, Store, Sequence[str]], object]
"""Deletes these keys of a folder, in order."""


@dataclass(frozen=True)
class DroppedFolders:
    """The folders of dropped tables. `since_ms` gives the begin of the retention for one of them, by the
    store's clock; `below` gives the folders below it that belong to other tables."""

    view: LakeView
    kept: Kept
    since_ms: Callable[[str], int]
    below: Callable[[str], set[str]]

    def vacuum(self, delete: Delete, dry_run: bool) -> Iterable[DroppedVacuum]:
        """Delete the folders in which nothing is younger than the retention; the log of each last."""
        head = self.view.catalog.head(self.view.meter, fresh=True)
        locations = sorted(head.dropped) if head is not None else []
        found = [self._look(location) for location in locations]
        if head is None or dry_run:
            return [folder for folder, _ in found if folder.files.count]
        after = self._doom(head, [folder.location for folder, _ in found if not folder.kept])
        done: list[DroppedVacuum] = []
        for folder, names in found:
            if folder.kept or folder.location in after.doomed:
                done.append(folder)
            else:
                done.append(DroppedVacuum(folder.location, folder.files, "it was registered again"))
            if not done[-1].kept:
                log = tuple(FORMATS.values())
                delete(
                    folder.location,
                    self._store(folder.location),
                    sorted(names, key=lambda name: name.startswith(log)),
                )
        self._forget([folder.location for folder in done if not folder.kept])
        return [folder for folder in done if folder.files.count]

    def _look(self, location: str) -> tuple[DroppedVacuum, list[str]]:
        """The files of one folder, and why it is kept, if it is."""
        store = self._store(location)
        files = self._files(location, store)
        found: list[str] = files.column("key").to_pylist()
        size = Files(files.num_rows, pc.sum(files.column("size")).as_py() or 0)
        return DroppedVacuum(location, size, self._reason(location, store, files)), found

    def _reason(self, location: str, store: Store, files: pa.Table) -> str:
        if location in self.kept.tagged:
            return f"the tags {', '.join(map(repr, self.kept.tagged[location]))} need it"
        owner, head = owner_of(store), self.view.catalog.head(self.view.meter)
        if owner is not None and head is not None and owner.lake != head.lake:
            return f"it belongs to the lake at {owner.url}"
        if pc.any(pc.match_substring_regex(files.column("key"), rf"(^|/){keys.GLOBAL_LOG}")).as_py():
            return "another lake is in it"
        if files.num_rows and pc.max(files.column("modified_ms")).as_py() >= self.since_ms(location):
            return "it was changed within the retention"
        if location in self.kept.versions:
            return "instants of the lake that are kept need it"
        newest = _newest(self.view, location) if files.num_rows else None
        if newest is not None and head is not None and not _was_dropped(newest, head):
            return "another table is in it, which this lake has not dropped"
        return ""

    def _doom(self, head: Head, locations: Sequence[str]) -> Head:
        """HEAD after an entry that says which of these folders go."""
        new = frozenset(locations) - head.doomed
        return self._decide(lambda now: Expire(now.horizon, doomed=new & now.dropped)) if new else head

    def _forget(self, locations: Iterable[str]) -> None:
        """Take folders that are empty now off HEAD's list of dropped ones."""
        unique = [at for at in locations if registry.is_made_up(at)]
        empty = frozenset(at for at in unique if not self._files(at, self._store(at)).num_rows)
        if empty:
            self._decide(lambda now: Expire(now.horizon, forgotten=empty & now.doomed))

    def _decide(self, change: Callable[[Head], Expire]) -> Head:
        txn = self.view.environment.new_id()
        author = Author(txn, txn, self.view.environment.new_id())
        return self.view.catalog.decide(change, author, self.view.meter).read.head

    def _files(self, location: str, store: Store) -> pa.Table:
        everything = list_files(store)
        return without(everything, tables_below(everything, FORMATS.values()) | self.below(location))

    def _store(self, location: str) -> Store:
        return self.view.catalog.store_of(location, self.view.meter)


def own_retention_ms(view: LakeView, location: str) -> int:
    """The retention of a dropped table, by what is left of it."""
    newest = _newest(view, location)
    return DEFAULT_MS if newest is None else max(newest.retention_ms, FLOOR_MS)


def _newest(view: LakeView, location: str) -> Snapshot | None:
    """The newest version of the table that is in a dropped folder; None if none can be read."""
    found = view.catalog.format_at(location, view.meter)
    if found is None:
        return None
    try:
        return view.catalog.open(TableRef("", location, found), view.meter).latest()
    except (Unsupported, Corrupt, InvalidInput) as error:
        # An earlier run may have been interrupted in the middle of the log.
        logger.info("the table that was in %s cannot be read any more: %s", location, error)
        return None


def _was_dropped(newest: Snapshot, head: Head) -> bool:
    """Whether the log says that this lake has dropped the table. Another client may have made a table in the
    folder since, or have deleted the log before the drop."""
    notice = newest.coordination.notice
    return notice is not None and notice.dropped and notice.lake == head.lake
