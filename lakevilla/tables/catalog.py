"""From a table's name to the table: the registry, open tables, and the newest snapshot that we know.

Shared by all transactions of a lake and safe to use from many threads. Snapshots are kept by location and
only ever move forward, so that a warm transaction asks for the next version and nothing else. Names are
resolved by a HEAD that is at most `REGISTRY_SECONDS` old; a table that was dropped meanwhile ends with an
entry that says so, and then HEAD is read again.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import Lock

from lakevilla.environment import Environment
from lakevilla.errors import Conflict, InvalidInput, LakeVillaError
from lakevilla.formats.catalogs import CatalogPlace, KnownCatalogs
from lakevilla.formats.identity import Expired, Recreated
from lakevilla.formats.port import Snapshot, Table
from lakevilla.formats.registry import FORMATS, MERGE_ON_READ, check_format, open_table
from lakevilla.model import Author, Notice, TableRef
from lakevilla.settle.entries import Decided, decide_entry, entry_after, settle_up_to
from lakevilla.store.locations import canonical_location, real_place, stored_location
from lakevilla.store.metered import Meter, Metered
from lakevilla.store.names import check_table_name
from lakevilla.store.port import Store
from lakevilla.store.prefixed import Prefixed
from lakevilla.store.probe import probe
from lakevilla.tables.names import format_of, table_names
from lakevilla.tables.pinned import Pinned
from lakevilla.tables.snapshot_cache import Seen, SnapshotCache
from lakevilla.tables.table_errors import log_gone, no_such_table
from lakevilla.versions import registry
from lakevilla.versions.commits import Commit
from lakevilla.versions.log import PREMISE_SECONDS, GlobalLog, ReadHead, States
from lakevilla.versions.records import CreateTable, Entry, Head, RegistryChange
from lakevilla.versions.tags import TagChange

REGISTRY_SECONDS = 10.0


@dataclass(frozen=True)
class CatalogPlaces:
    """The tables of a catalog, for settling; one meter counts the requests."""

    catalog: "Catalog"
    meter: Meter

    @property
    def url(self) -> str:
        return self.catalog.root(self.meter).url

    def open(self, ref: TableRef) -> Table:
        return self.catalog.open(ref, self.meter)

    def store(self, ref: TableRef) -> Store:
        return self.catalog.store_of(ref.location, self.meter)


class Catalog:
    """The tables of one lake. `default_format` is that of new tables that name none; `merge_on_read` asks for
    new tables whose files are spared by changes of rows; `catalogs` are options of catalogs that keep
    tables."""

    def __init__(
        self,
        store: Store,
        environment: Environment,
        open_location: Callable[[str], Store],
        default_format: str,
        catalogs: Mapping[str, Mapping[str, str]] | None = None,
        merge_on_read: bool = False,
    ) -> None:
        check_format(default_format)
        self.default_format = default_format
        self._merge_on_read = merge_on_read
        self._store = store
        self._environment = environment
        self._open_location = open_location
        self._catalogs = KnownCatalogs(catalogs or {})
        self._lock = Lock()
        self._head: Head | None = None
        self._head_read_at: float | None = None
        self._states = States()
        self._snapshots = SnapshotCache()

    def properties_of_new(self, format_name: str, properties: Mapping[str, str] | None) -> dict[str, str]:
        """The properties of a new table, from those that were given."""
        return {**(MERGE_ON_READ.get(format_name, {}) if self._merge_on_read else {}), **(properties or {})}

    def head(self, meter: Meter, fresh: bool = False) -> Head | None:
        """The registry, read again if ours is too old or `fresh` is asked for."""
        now = self._environment.elapsed()
        with self._lock:
            read_at = self._head_read_at
            if not fresh and read_at is not None and now - read_at < REGISTRY_SECONDS:
                return self._head
        found = self.log(meter).read_head()
        return self._remember_head(None if found is None else found.head, now)

    def names(self, meter: Meter, at: Head | None = None) -> list[str]:
        """Every table: registered ones, now or in this HEAD, and those found in folders of the root."""
        return table_names(self.root(meter), at or self.head(meter, fresh=True), self._environment)

    def pin(self, name: str, meter: Meter) -> Pinned:
        """The newest version of a table; InvalidInput if the lake has none of this name."""
        check_table_name(name)
        for fresh in (False, True):
            # One HEAD for both: another thread may bring a newer one between resolving and judging.
            head = self.head(meter, fresh)
            ref = self.resolve(name, meter, head, fresh)
            pinned = None if ref is None else self.newest(ref, meter)
            notice = None if pinned is None else _unseen_notice(pinned.snapshot, head, fresh)
            if pinned is not None and (notice is None or (fresh and not notice.dropped)):
                return pinned
        raise self.missing(name, meter, registry.find(head, name) if pinned is None else None)

    def registered(self, name: str, meter: Meter) -> TableRef | None:
        """The table of this name that HEAD has, or whose folder in the root is not empty, without a look at
        its log; None if there is none."""
        head = self.head(meter, fresh=True)
        return self.resolve(name, meter, head)

    def known(self, name: str) -> tuple[TableRef, Snapshot] | None:
        """Where this name led last time, and the newest version that we saw there; no request."""
        found = self._known(name)
        return None if found is None else (found[0], found[1].snapshot)

    def _known(self, name: str) -> tuple[TableRef, Seen] | None:
        with self._lock:
            head = self._head
        ref = registry.find(head, name)
        if ref is None and registry.may_lie_at(head, name):
            ref = self._in_folder(name)
        newest = None if ref is None else self._snapshots.newest(ref)
        return None if ref is None or newest is None else (ref, newest)

    def recent(self, name: str, meter: Meter) -> Pinned | None:
        """The table as this client saw it a moment ago, without asking whether it has moved."""
        known = self._known(name)
        if known is None:
            return None
        ref, newest = known
        is_old = self._environment.elapsed() - newest.at > REGISTRY_SECONDS
        if is_old or _unseen_notice(newest.snapshot, self._head, False):
            return None
        return Pinned(ref, self.open(ref, meter), newest.snapshot, newest.at)

    def find(self, name: str, meter: Meter) -> Pinned | None:
        """Like `pin`, with None for a table that is not there."""
        check_table_name(name)
        head = self.head(meter, fresh=True)
        ref = self.resolve(name, meter, head)
        pinned = None if ref is None else self.newest(ref, meter)
        notice = None if pinned is None else _unseen_notice(pinned.snapshot, head, fresh=True)
        return None if notice is not None and notice.dropped else pinned

    def remember(self, ref: TableRef, snapshot: Snapshot, seen_at: float) -> None:
        """Keep the newest snapshot of a table, and when it was seen to be so, for the next transaction."""
        self._snapshots.remember(ref, snapshot, seen_at)

    def open(self, ref: TableRef, meter: Meter) -> Table:
        """The table of a reference, whose requests this meter counts."""
        opener = lambda url: Metered(self._open_location(url), meter)  # noqa: E731
        store = self.store_of(ref.location, meter)
        return open_table(ref.format, store, self._environment, opener, self._catalogs)

    def root(self, meter: Meter) -> Store:
        """The store of the lake's root, whose requests this meter counts."""
        return Metered(self._store, meter)

    def store_of(self, location: str, meter: Meter) -> Store:
        """The store of a location: below the lake's root, or by a full URL."""
        inside = "://" not in location
        return Metered(Prefixed(self._store, location) if inside else self._open_location(location), meter)

    def place_of(self, location: str) -> str:
        """A location as the registry keeps it, so that one place has one spelling: relative to the lake's
        root for locations below it, else a URL."""
        return stored_location(self._store.url, location)

    def real_place(self, location: str) -> str:
        """What a location of the registry leads to, by which locations are compared."""
        return real_place(self._store.url, location)

    def in_catalog(self, name: str, place: CatalogPlace) -> TableRef:
        """A table of a catalog under this name. It belongs to the catalog, wherever its folder is."""
        url = canonical_location(self._catalogs.location(place))
        if "/" not in self.place_of(url):
            raise InvalidInput(
                f"cannot register table {place.table!r}: it lies at {url}, right below the lake's root, "
                "where every folder is a table of the lake. Move the catalog's tables to another location",
                table=place.table,
            )
        return TableRef(name, url, place.format)

    def detect(self, location: str, meter: Meter) -> str:
        """The format of the table at a location; InvalidInput if there is none."""
        found = self.format_at(location, meter)
        if found is None:
            raise InvalidInput(
                f"no table found at {location!r}: expected a Delta log in the folder _delta_log, or "
                "Iceberg's metadata files in the folder metadata. lake.register_all(folder) registers the "
                "tables below a folder"
            )
        return found

    def decide(
        self, change: Callable[[Head], RegistryChange | TagChange | Commit], author: Author, meter: Meter
    ) -> Decided:
        """Bring a change of names into the global log; `change` makes it for the HEAD that it follows."""
        log = self.log(meter)
        now = self._environment.elapsed()
        if log.read_head() is None:
            probe(Metered(self._store, meter), self._environment)

        def propose(head: Head) -> Entry:
            proposed = change(head)
            registry.check(head, proposed, self.real_place)
            return entry_after(head, self._environment, author.txn, author.attempt, proposed)

        decided = decide_entry(log, self._environment, propose, CatalogPlaces(self, meter))
        self._remember_head(decided.read.head, now)
        if not decided.settled.published:
            made = decided.entry.change
            assert isinstance(made, CreateTable), "only a new table can find its place taken"
            raise Conflict(
                f"another client created a table at {made.table.location!r} first: read it, or choose "
                "another name",
                table=made.table.name,
            )
        return decided

    def resolve(self, name: str, meter: Meter, head: Head | None, fresh: bool = True) -> TableRef | None:
        """What this name stands for: a registered table, else a folder that may hold one."""
        ref = registry.find(head, name)
        if ref is not None or not registry.may_lie_at(head, name):
            return ref
        if not fresh:
            with self._lock:
                return self._in_folder(name)
        for folder in (name, *self._in_another_case(name, meter)):
            format_name = self.format_at(folder, meter)
            if format_name is not None and registry.may_lie_at(head, folder):
                return TableRef(folder, folder, format_name)
        return None

    def _in_folder(self, name: str) -> TableRef:
        """The table in the folder of this name, which HEAD does not know: of the format that was seen there.
        If none was seen, it is a guess, and a reader that finds nothing there asks again."""
        refs = [TableRef(name, name, format_name) for format_name in FORMATS]
        return next((ref for ref in refs if self._snapshots.newest(ref) is not None), refs[0])

    def _in_another_case(self, name: str, meter: Meter) -> list[str]:
        folders = Metered(self._store, meter).list_folders("")
        return [f for f in folders if f != name and f.casefold() == name.casefold()]

    def newest(self, ref: TableRef, meter: Meter) -> Pinned | None:
        """The newest version of a table; None if there is none."""
        table, now = self.open(ref, meter), self._environment.elapsed()
        known = self._snapshots.newest(ref)
        # A miss on the next version proves nothing if that version may have been cleaned away meanwhile.
        fresh = known is not None and now - known.at < PREMISE_SECONDS
        try:
            snapshot = table.latest(known.snapshot if known is not None and fresh else None)
        except Recreated:
            snapshot = table.latest()
            fresh = False
        if not fresh:
            self.forget([ref])
        if snapshot is None:
            return None
        self.remember(ref, snapshot, now)
        return Pinned(ref, table, snapshot, now)

    def still_has(self, pinned: Pinned) -> bool:
        """Whether a table is still the one that was pinned; if not, what we know of it is forgotten."""
        try:
            pinned.table.look(pinned.snapshot)
        except Recreated:
            self.forget([pinned.ref])
            return False
        return True

    def at(self, ref: TableRef, version: int, meter: Meter) -> Pinned:
        """A table at a version. Asks nothing if we have seen it there a short while ago. It is pinned as of
        when it was seen to be the newest; of a version of which that is not known, as of long ago."""
        table, now = self.open(ref, meter), self._environment.elapsed()
        newest, known = self._snapshots.newest(ref), self._snapshots.at(ref, version)
        fresh = newest is not None and now - newest.at < PREMISE_SECONDS
        if known is None and newest is not None and fresh and newest.snapshot.version < version:
            try:
                later = table.since(newest.snapshot)
            except (Recreated, Expired):
                self.forget([ref])
                later = []
            for taken in later:
                # Following the log does not show what was cleaned away: no later than the look before.
                self.remember(ref, taken.snapshot, newest.at)
                known = Seen(taken.snapshot, newest.at) if taken.snapshot.version == version else known
        known = known or Seen(table.at_version(version), -math.inf)
        return Pinned(ref, table, known.snapshot, known.at)

    def format_at(self, location: str, meter: Meter) -> str | None:
        """The format of the table there; None if there is none."""
        return format_of(self.store_of(location, meter))

    def missing(self, name: str, meter: Meter, gone: TableRef | None = None) -> LakeVillaError:
        """The error for a table that is not there: of no such name, or one whose log is `gone`."""
        views = () if self._head is None else sorted(self._head.views)
        if gone is not None:
            return log_gone(name, self.store_of(gone.location, meter).url)
        return no_such_table(name, [*self.names(meter), *views])

    def log(self, meter: Meter) -> GlobalLog:
        """The lake's global log, whose requests this meter counts."""
        return GlobalLog(Metered(self._store, meter), self._environment, self._states)

    def first_head(self, meter: Meter) -> ReadHead:
        """HEAD of a lake without a write so far: made after a probe of the store, or a rival's."""
        probe(self.root(meter), self._environment)
        return self.log(meter).first_head()

    def settle_up_to(self, seq: int, meter: Meter, lost: frozenset[str] = frozenset()) -> bool:
        """Settle up to this entry of the global log, before a client builds on a log entry that it decides:
        until then that one may be rolled back. No request if it is known to be settled: then False. `lost`
        are locations that an operator has declared lost."""
        with self._lock:
            if seq == 0 or (self._head is not None and self._head.seq >= seq):
                return False
        read = settle_up_to(self.log(meter), self._environment, seq, CatalogPlaces(self, meter), lost)
        if read is not None:
            self.learn(read.head)
        return True

    def learn(self, head: Head) -> None:
        """Keep a HEAD that was just read or written."""
        self._remember_head(head, self._environment.elapsed())

    def forget(self, refs: Iterable[TableRef]) -> None:
        """What we know of the tables at these places does not hold any more."""
        self._snapshots.forget(refs)

    def _forget_moved(self, head: Head) -> None:
        """The same for places whose tables were dropped since the HEAD that we know, or recreated: then their
        version went back, or they have another id."""
        if self._head is None:
            return
        before = self._head
        back = [at for at, version in before.versions.items() if head.versions.get(at, -1) < version]
        other = [at for at, known in before.ids.items() if head.ids.get(at, known) != known]
        self._snapshots.forget_locations([*back, *other])

    def _remember_head(self, head: Head | None, read_at: float) -> Head | None:
        """Keep the newest HEAD; a slower thread never brings an older one back.

        If it is another lake's, the directory was deleted and used again: nothing that we know of its
        tables holds any more, and to build on it would leave a gap in their logs.
        """
        with self._lock:
            if self._head is not None and head is not None and head.lake != self._head.lake:
                self._head = head
                self._snapshots.clear()
            elif self._head is None or (head is not None and head.seq >= self._head.seq):
                if head is not None:
                    self._forget_moved(head)
                self._head = head
            self._head_read_at = read_at
            return self._head


def _unseen_notice(snapshot: Snapshot, head: Head | None, fresh: bool) -> Notice | None:
    """A notice in the table's log that is newer than this HEAD.

    A notice of another lake, from where the table was moved here, does not count; but where we know no HEAD
    yet, only a fresh look shows whose it is.
    """
    notice = snapshot.coordination.notice
    if notice is None:
        return None
    if head is None:
        return None if fresh else notice
    return notice if notice.lake == head.lake and notice.seq > head.seq else None
