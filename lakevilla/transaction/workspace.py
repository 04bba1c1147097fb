"""What a statement works with: the lake's tables pinned for it, and where its new files go.

One workspace serves one transaction. What a statement reads is noted, because a commit may only be rebased
past commits that did not change it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from threading import Lock

from lakevilla.engines.port import Engine, Source, Target
from lakevilla.environment import Environment
from lakevilla.errors import InvalidInput, Unsupported
from lakevilla.formats.port import Snapshot
from lakevilla.model import Change, ReadSet
from lakevilla.predicates import Predicate
from lakevilla.settle.row_facts import RowReader
from lakevilla.sql.parser import parse_expression
from lakevilla.sql.statements import TableName
from lakevilla.store import keys
from lakevilla.store.metered import Meter
from lakevilla.store.names import check_table_name, may_be_table
from lakevilla.sublogs.reads import Reads
from lakevilla.tables.catalog import Catalog
from lakevilla.tables.pinned import Pinned
from lakevilla.tables.table_errors import not_there, same_table, torn
from lakevilla.tables.time_travel import is_earlier, pin_earlier
from lakevilla.transaction.guarantees import Guarantees
from lakevilla.transaction.instants.instant import PinnedInstant
from lakevilla.transaction.lifecycle.uploads import Uploads
from lakevilla.transaction.statements.own_tables import OwnTables
from lakevilla.transaction.statements.sources import table_source
from lakevilla.transaction.views.information_schema import information, is_own_schema
from lakevilla.transaction.views.stored import StoredViews

BeforeChange = Callable[[str, bool], None]
"""Called with a table's name before a statement changes it, and whether it reads nothing."""


class Workspace:
    """The transaction's view of the lake.

    Each table is pinned when it is first touched, or with isolation all at one `instant`, and stays at that
    version; what the transaction wrote since is added. `reads` is where a statement notes what it reads.
    `begun_ms` is when the transaction began, if another client began it; `meter` counts its requests.
    """

    def __init__(
        self,
        catalog: Catalog,
        engine: Engine,
        environment: Environment,
        txn: str,
        guarantees: Guarantees,
        *,
        begun_ms: int | None = None,
        meter: Meter | None = None,
    ) -> None:
        self.catalog = catalog
        self.engine = engine
        self.environment = environment
        self.txn = txn
        self.meter = meter or Meter()
        self.now_ms = environment.now_ms() if begun_ms is None else begun_ms  # What now() means.
        self.reads = Reads()
        self._before_change: BeforeChange = _nothing
        self._guarantees = guarantees
        self.uploads = Uploads(environment)
        self.rows = RowReader()  # For decisions about commits that came first.
        self.instant = PinnedInstant(catalog, environment, self.meter) if guarantees.isolates else None
        self._lock = Lock()
        self._places: dict[str, str] = {}
        self._bases: dict[str, Pinned] = {}
        self._views: dict[str, Snapshot] = {}
        self._unseen: dict[str, list[Change]] = {}  # Changes that no statement has looked for yet.
        self._rewritten, self._targets = set[str](), set[str]()  # Where statements change tables.
        self._guessed: str | None = None
        self.own = OwnTables()
        self.views: Mapping[str, Source] = {}  # Data that the statement reads, by names in lower case.
        self.stored_views = StoredViews(self)

    @property
    def reads_count(self) -> bool:
        """Whether what it only read must be true when it commits."""
        return self._guarantees.isolation != "snapshot"

    @property
    def by_slots(self) -> bool:
        """Whether the global log can decide the commit: on several tables, also new and dropped ones."""
        return self._guarantees.by_slots

    @property
    def overlaps(self) -> bool:
        """Whether statements need not wait for their uploads, nor blind ones for the newest version."""
        return bool(self._guarantees.features)

    @contextmanager
    def statement(self, before_change: BeforeChange) -> Iterator[Reads]:
        """While a statement runs: where it notes what it reads, and what it calls before it changes a table.
        That may lead to a redo of earlier statements, each of which has its own reads."""
        outer = self.reads, self._before_change
        self.reads, self._before_change = Reads(), before_change
        try:
            yield self.reads
        finally:
            self.reads, self._before_change = outer

    def pin_instant(self, names: Iterable[str], blind: bool = False) -> None:
        """The one place that pins the instant, with these tables. A statement names its tables before it
        runs; only DROP and CREATE come to theirs later. `blind` if it only appends to them."""
        if self.instant is not None:
            named = [check_table_name(name) for name in names if not self.reads_outside(name)]
            new = [n for n in named if not self.own.concerns(n) and self.pinned(n) is None]
            self.instant.pin_instant(list(dict.fromkeys(new)), self._found, blind)

    def pin(self, table: TableName) -> Pinned:
        """The table as this statement sees it."""
        check_table_name(table.name)
        past = is_earlier(table)
        if self.own.concerns(table.name) and (past or self.own.find(table.name) is None):
            raise InvalidInput(not_there(table.name, past))
        known = self.pinned(table.name)
        found = known or self._pin(table.name)
        earlier = pin_earlier(found, table) if past else None
        if earlier is not None:
            return earlier
        if known is None:
            self._refuse_twin(found, self._targets)
        pinned = known or self.keep(table.name, found)
        self.reads.touch(pinned.ref.location)
        # Without our own writes, which have no time yet.
        return pinned if past else replace(pinned, snapshot=self.view(pinned.ref.location))

    def _pin(self, name: str) -> Pinned:
        if self.instant is None:
            return self.catalog.pin(name, self.meter)
        self.pin_instant([name])
        return self.instant.pin(name)

    @property
    def _found(self) -> list[Pinned]:
        """The lake's tables that are pinned. A query pins its tables side by side."""
        with self._lock:
            return [pinned for at, pinned in self._bases.items() if not self.own.was_made(at)]

    def pin_target(self, name: str, *, blind: bool = False) -> Pinned:
        """The table that this statement changes; `blind` if it only appends and reads nothing for that."""
        check_table_name(name)
        self._before_change(name, blind)
        self._guessed = None
        self.stored_views.refuse(name)
        known = self.own.concerns(name) or self.pinned(name) is not None
        if blind and self.overlaps and self._bases and not known and self.instant is None:
            recent = self.catalog.recent(name, self.meter)
            if recent is not None:
                self._guessed = self.keep(name, recent).ref.location
        pinned = self.pin(TableName(name))
        self._refuse_twin(pinned, self._bases)
        self._targets.add(pinned.ref.location)
        if pinned.snapshot.coordination.markers_in_log and not self._guarantees.is_alone:
            raise Unsupported(
                f"cannot change table {name!r}: its markers are in its log (lakevilla.markers = 'log'), so "
                "only transactions with lakevilla.R and no other feature can change it",
                table=name,
            )
        if pinned.snapshot.coordination.exclusive and not self.by_slots:
            raise Unsupported(
                f"cannot change table {name!r}: it is exclusive (lakevilla.exclusive = 'true'), so only "
                "transactions with lakevilla.I or lakevilla.CT can change it",
                table=name,
            )
        if self.instant is not None and pinned.ref.location in self.instant.head.torn:
            raise torn(name)
        self.catalog.settle_up_to(pinned.snapshot.coordination.slot, self.meter)
        return pinned

    def refresh(self, pinned: Pinned) -> Pinned | None:
        """The table anew, if this statement pinned it without a look at its log and it has moved since; None
        if there is nothing newer, or if statements before this one have seen it as it is pinned."""
        base = self._bases[pinned.ref.location]
        if self._guessed != pinned.ref.location:
            return None
        newest = pinned.table.latest(base.snapshot)
        if newest is None or newest.version == base.snapshot.version or pinned.snapshot is not base.snapshot:
            return None
        self.move(pinned.ref.location, newest)
        return replace(pinned, snapshot=newest)

    def find(self, name: str) -> Pinned | None:
        """The table of this name, or None if there is none for this transaction."""
        check_table_name(name)
        if self.own.concerns(name):
            return self.own.find(name)
        if self.instant is None:
            return self.catalog.find(name, self.meter)
        self.pin_instant([name])
        return self.instant.find(name)

    def names(self) -> list[str]:
        """Every table that there is for this transaction."""
        at = None if self.instant is None else self.instant.head
        return self.own.names(self.catalog.names(self.meter, at))

    @property
    def touched(self) -> list[Pinned]:
        """Every table that is pinned, without our own writes; not those that we made and dropped again."""
        made = self.own.made
        return [p for at, p in self._bases.items() if at in made or not self.own.was_made(at)]

    @property
    def changeable(self) -> list[Pinned]:
        """The lake's tables that are pinned and that we have not dropped."""
        left = {*self.own.made, *self.own.dropped}
        return [pinned for pinned in self.touched if pinned.ref.location not in left]

    def is_free(self, location: str) -> bool:
        """Whether nothing of this transaction is there: no table of the lake, and none that we made."""
        places = [location, *self._same_place(location, self._bases)]
        return not any(
            self.own.uses(at) or (at in self._bases and not self.own.was_made(at)) for at in places
        )

    def _same_place(self, location: str, among: Iterable[str]) -> list[str]:
        """Those of these locations that are other spellings of this one."""
        others = [at for at in list(among) if at != location and "://" in f"{at} {location}"]
        place = self.catalog.real_place(location) if others else location
        return [at for at in others if self.catalog.real_place(at) == place]

    def _refuse_twin(self, pinned: Pinned, among: Iterable[str]) -> None:
        """Two names for one place would be two tables to a commit, and a write of one of them would be lost.
        Registries of earlier releases have such names."""
        for twin in self._same_place(pinned.ref.location, among):
            raise same_table(pinned.ref, self._bases[twin].ref)

    def make(self, pinned: Pinned) -> None:
        """The next statements see a new table, without rows yet."""
        location = pinned.ref.location
        with self._lock:
            self._bases[location], self._views[location] = pinned, pinned.snapshot
            self._unseen.pop(location, None)
            self._rewritten.discard(location)
        self.own.make(pinned)

    def pinned(self, name: str) -> Pinned | None:
        """The table as it was pinned, without our own writes; None if it was not touched yet."""
        if self.own.concerns(name):
            return self.own.find(name)
        with self._lock:
            location = self._places.get(name.casefold())
            return None if location is None else self._bases[location]

    def keep(self, name: str, pinned: Pinned) -> Pinned:
        """From here on the name means this table at this version."""
        location = pinned.ref.location
        undone = self.own.was_made(location) and not self.own.uses(location)
        with self._lock:
            if undone:
                self.own.unmake(location)
                del self._bases[location], self._views[location]
                self._unseen.pop(location, None)
            self._places[name.casefold()] = location
            self._views.setdefault(location, pinned.snapshot)
            return self._bases.setdefault(location, pinned)

    def is_touched(self, location: str) -> bool:
        """Whether a table at this location is pinned."""
        return location in self._bases

    def base(self, location: str) -> Pinned:
        """A touched table as it was pinned, without our own writes."""
        return self._bases[location]

    def view(self, location: str) -> Snapshot:
        """A touched table as the next statement sees it, with our own writes."""
        with self._lock:
            for change in self._unseen.pop(location, ()):
                self._lay(location, change)
            return self._views[location]

    def move(self, location: str, base: Snapshot) -> None:
        """Move to a newer version of a table, without our own writes. The pin is as old as before: to follow
        the log up to there does not show which entries were deleted."""
        with self._lock:
            self._bases[location] = replace(self._bases[location], snapshot=base)
            self._views[location] = base
            self._unseen.pop(location, None)
            self._rewritten.discard(location)

    def write(self, location: str, change: Change, *, again: bool = False) -> None:
        """Add a change to what the next statements see of the table; `again` if they have seen it before, on
        an older version."""
        if change.added or change.removed:
            self._rewritten.add(location)
        # Values of partitions are checked where files become entries of the log: that must not come later.
        # What is shown again was checked, and may not be looked at before the commit.
        if again or (change.blind and not self._bases[location].snapshot.partitioning.fields):
            self._unseen.setdefault(location, []).append(change)
        else:
            self.view(location)
            self._lay(location, change)

    def _lay(self, location: str, change: Change) -> None:
        self._views[location] = self._bases[location].table.preview(self._views[location], change)

    def rewrote(self, pinned: Pinned) -> bool:
        """Whether the transaction has changed rows of this table."""
        return pinned.ref.location in self._rewritten

    def forget(self) -> None:
        """Pin everything again: the transaction starts from the beginning."""
        self.own = OwnTables()
        self.stored_views.seen.clear()
        if self.instant is not None:
            self.instant.forget()
        with self._lock:
            self._places.clear()
            self._bases.clear()
            self._views.clear()
            self._unseen.clear()
            self._rewritten.clear()
            self._targets.clear()

    def pin_all(self, tables: Iterable[TableName]) -> None:
        """Pin these tables at one instant, those of views too, which no statement names."""
        self.pin_instant([table.name for table in tables if not is_own_schema(table.name)])

    def reads_outside(self, name: str) -> bool:
        """Whether the name means something that the engine can read outside of the lake. Tables of the lake
        come first; one that this client has seen before costs no look."""
        if not isinstance(name, str):
            return False
        if self.own.concerns(name) or self.pinned(name) is not None or self.catalog.known(name) is not None:
            return False
        if not self.engine.knows(name):
            return False
        if not may_be_table(name):
            return True
        instant = self.instant if self.instant is not None and self.instant.is_pinned else None
        here = None if instant is None else instant.find(name)
        return here is None and self.catalog.find(name, self.meter) is None

    def sources(self, tables: Iterable[TableName]) -> Mapping[str, Source]:
        """The tables and views that a query reads, by the names under which it calls them. What the engine
        reads outside of the lake is not among them."""
        given = {**self.views, **information(self, tables)}
        named = {t: None if t.in_view else given.get(t.name.casefold()) for t in tables}
        views = {table.key: source for table, source in named.items() if source is not None}
        rest = [table for table, source in named.items() if source is None]
        wanted = [table for table in rest if not self.reads_outside(table.name)]
        if len(wanted) < len(rest):
            self.reads.outside = True
        pins = self.environment.fan_out([partial(self.pin, table) for table in wanted])
        found = zip(wanted, pins, strict=True)
        return views | {table.key: self.source(pinned, keeps_files=True) for table, pinned in found}

    def source(self, pinned: Pinned, keeps_files: bool) -> Source:
        """A pinned table for an engine, which notes what is read of it.

        Files are noted only for tables whose values flow into the result. In the table that an UPDATE,
        DELETE or MERGE rewrites, a file in which nothing matched does not count as a dependency: if it goes,
        nothing would have matched either, and whatever comes in its place is caught by the predicate.
        """
        reads, location = self.reads, pinned.ref.location
        past = pinned.fixed or location not in self._bases

        def note(predicate: Predicate, files: frozenset[str], size: int) -> None:
            if not past:
                reads.note(location, predicate, files, size, keeps_files)

        return table_source(pinned, note, self.uploads.wait_for)

    def target(self, pinned: Pinned, operation: str = "") -> Target:
        """Where a statement on this table writes; refuses tables that we must not write. `operation` is what
        changes rows that are there, as `FormatTable.masks` has it."""
        snapshot, store = pinned.snapshot, self.catalog.store_of(pinned.ref.location, self.meter)
        snapshot.refuse_writes()
        return Target(
            name=pinned.ref.name,
            schema=snapshot.schema,
            partitioning=snapshot.partitioning,
            store=self.uploads.through(store) if self.overlaps else store,
            new_key=self.new_key(pinned.table.data_folder),
            now_ms=self.environment.now_ms,
            checks={name: parse_expression(text) for name, text in snapshot.checks.items()},
            merge_on_read=bool(operation) and pinned.table.masks(snapshot, operation) is not None,
        )

    def new_key(self, folder: str) -> Callable[[], str]:
        """Keys for data files in this folder, with the transaction's id: vacuum must know whose they are."""
        return lambda: folder + keys.data_file(self.txn, self.environment.new_id())

    def read_of(self, pinned: Pinned) -> ReadSet:
        """What the statement has read of this table so far."""
        return self.reads.of(pinned.ref.location) or ReadSet()


def _nothing(_name: str, _blind: bool) -> None:
    """What comes before a change where nothing has to."""
