"""The lake at one instant, as one transaction with isolation sees it (module 4.1).

HEAD is read once, in the same round as the tables that the first statement names are asked for versions that
HEAD does not know. Such versions were written without the global log, by other clients or with fewer
features; they become part of the lake's instant by an entry that *adopts* them, before the instant is
pinned. From then on every table is read at the version that the pinned HEAD has of it, never past it: to read
past it could show the effect of a transaction without its cause.

A table that is touched later is asked too, and what HEAD does not know of it is adopted. The transaction goes
on to that later HEAD only if all that it has touched so far has the same version there; else it stays where
it is, and ends with a Conflict if there is no such table for it there.

A client that cannot write that entry, for lack of rights or because another one cannot be settled, is served
too: it sees HEAD's versions, and of tables that HEAD does not know the newest.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from lakevilla.environment import Environment
from lakevilla.errors import Conflict, InvalidInput, LakeVillaError, Unavailable
from lakevilla.formats.catalogs import NotConfigured
from lakevilla.model import TableRef
from lakevilla.settle.completion import complete
from lakevilla.settle.entries import entry_after, help_next, hold_slot, settle
from lakevilla.settle.premise import GuardedPlaces, Premise
from lakevilla.store.metered import Meter
from lakevilla.store.port import Unanswered
from lakevilla.tables.catalog import Catalog, CatalogPlaces
from lakevilla.tables.pinned import Pinned
from lakevilla.tables.table_errors import another_table, torn
from lakevilla.versions import registry
from lakevilla.versions.commits import Adopt, Adopted
from lakevilla.versions.log import ReadHead
from lakevilla.versions.records import Head

logger = logging.getLogger("lakevilla.transaction")

Probed = tuple[ReadHead | None, list[Pinned]]

NO_LAKE = Head(lake="", seq=0, put="")
"""Where no client has written to the lake yet."""


class PinnedInstant:
    """One pinned instant. For one thread at a time, but for `pin` of tables that were included."""

    def __init__(self, catalog: Catalog, environment: Environment, meter: Meter) -> None:
        self._catalog = catalog
        self._environment = environment
        self._meter = meter
        self._log = catalog.log(meter)
        self._head: Head | None = None
        self._read: ReadHead | None = None
        self._read_at = 0.0
        self._included: set[str] = set()
        self.allows: Callable[[Head], bool] = lambda _: True
        """Whether what the transaction has seen of the lake besides tables is the same in a later HEAD."""
        self.stayed: Unavailable | None = None
        """Why the instant lacks versions that are newer than HEAD, if it does: enough for a reader, but a
        writer must not conclude from it that there is nothing to change."""

    @property
    def is_pinned(self) -> bool:
        """Whether a statement has chosen the instant."""
        return self._head is not None

    @property
    def head(self) -> Head:
        """The pinned HEAD."""
        assert self._head is not None, "a statement includes its tables first"
        return self._head

    @property
    def read(self) -> ReadHead | None:
        """The pinned HEAD with the tag that its replace wants; None if there is none, or we may only read."""
        return self._read

    @property
    def read_at(self) -> float:
        """When it was read, on the environment's clock."""
        return self._read_at

    def pin_instant(self, names: Sequence[str], touched: Sequence[Pinned], blind: bool = False) -> None:
        """The next statement names these tables; `blind` if it only appends to them.

        `touched` are the tables that the transaction has used. Conflict if one of the new ones is not known
        at the pinned instant, and what was touched has moved since.
        """
        new = [name for name in names if name.casefold() not in self._included]
        self._included |= {name.casefold() for name in new}
        try:
            self._include(new, touched, blind)
        except BaseException:
            # The next statement that names them asks again.
            self._included -= {name.casefold() for name in new}
            raise

    def _include(self, new: Sequence[str], touched: Sequence[Pinned], blind: bool) -> None:
        if self._head is None:
            self._open(new)
            return
        unknown = [name for name in new if self._version(name) is None]
        found = [self._catalog.find(name, self._meter) for name in unknown]
        known = [] if blind else [name for name in new if name not in unknown]
        beyond = [pinned for pinned in found if pinned is not None] + self._beyond(known)
        if beyond:
            self._add(beyond, touched)

    def pin(self, name: str) -> Pinned:
        """A table that was included, at the pinned instant; InvalidInput if there is none of this name."""
        found = self._version(name)
        if found is None:
            raise self._missing(name)
        ref, version = found
        try:
            pinned = self._catalog.at(ref, version, self._meter)
        except InvalidInput as error:
            newest = self._catalog.newest(ref, self._meter)
            if newest is None:
                raise self._missing(name) from error
            if newest.snapshot.version < version:
                raise another_table(name, version, newest.snapshot.version) from error
            if ref.location in self.head.torn:
                raise torn(name) from error
            raise Conflict(
                f"cannot read version {version} of {name!r}, which the lake's instant has: it was cleaned up "
                f"({error}). Call lake.sync() to adopt the newest version, then run the transaction again",
                table=name,
                version=version,
            ) from error
        # HEAD has the newest version of a table without outside writers.
        return replace(pinned, pinned_at=self._read_at) if pinned.snapshot.coordination.exclusive else pinned

    def _missing(self, name: str) -> LakeVillaError:
        ref = registry.find(self.head, name)
        gone = ref is not None and self._catalog.newest(ref, self._meter) is None
        return self._catalog.missing(name, self._meter, ref if gone else None)

    def find(self, name: str) -> Pinned | None:
        """Like `pin`, with None for a table that is not there."""
        return None if self._version(name) is None else self.pin(name)

    def move(self, read: ReadHead) -> None:
        """Pin a later instant: the caller has brought all that the transaction did up to it."""
        self.stayed = None
        self._head, self._read, self._read_at = read.head, read, read.read_at
        # What was not there before may be there now.
        self._included = {name for name in self._included if self._version(name) is not None}
        self._catalog.learn(read.head)

    def adopt_newest(self, read: ReadHead, refs: Sequence[TableRef]) -> ReadHead:
        """This HEAD, or a later one, which knows the newest versions of these tables. It is not pinned."""
        while True:
            asked = self._environment.fan_out(
                [partial(self._catalog.newest, ref, self._meter) for ref in refs]
            )
            beyond = [pinned for pinned in asked if pinned is not None and is_beyond(read.head, pinned)]
            if not self._are_there(beyond):
                continue
            if not beyond:
                return read
            read = self._adopt(read, beyond) or self._log.read_head_of(read.head.lake)

    def restore(self, head: Head, touched: Mapping[TableRef, int]) -> None:
        """Pin the instant that another client had pinned, with the tables that it had touched by then: of
        those that this HEAD does not know it saw these versions."""
        unknown = {ref: version for ref, version in touched.items() if ref.location not in head.versions}
        self._head = _with(head, unknown)
        self._read, self._read_at = None, self._environment.elapsed()
        self._included = {ref.name.casefold() for ref in touched}

    def forget(self) -> None:
        """Pin again with the next statement."""
        self._head, self._read, self.stayed = None, None, None
        self._included.clear()

    def _version(self, name: str) -> tuple[TableRef, int] | None:
        ref = registry.find(self.head, name)
        version = None if ref is None else self.head.versions.get(ref.location)
        return None if ref is None or version is None else (ref, version)

    def _open(self, names: Sequence[str]) -> None:
        while self._head is None:
            now = self._environment.elapsed()
            read, newest = self._look(names)
            head = _of(read)
            beyond = [pinned for pinned in newest if is_beyond(head, pinned)]
            if not self._are_there(beyond):
                continue
            if beyond:
                try:
                    read = self._adopt(read, beyond)
                except Unavailable as error:
                    self._stay(read, head, beyond, error)
                    return
            if read is not None:
                self.move(read)
            elif not beyond:
                self._head, self._read_at = NO_LAKE, now

    def _look(self, names: Sequence[str]) -> Probed:
        """HEAD and the newest versions of these tables, in one round if we know them from before."""
        known = dict(found for name in names if (found := self._catalog.known(name)) is not None)
        heads: list[ReadHead | None] = []
        pins: dict[TableRef, Pinned | None] = {}
        tasks = [lambda: heads.append(self._log.read_head())]
        tasks += [
            partial(self._probe, ref, pins)
            for ref, newest in known.items()
            if not newest.coordination.exclusive
        ]
        self._environment.fan_out(tasks)
        read = heads[0]
        head = _of(read)
        if read is not None:
            self._catalog.learn(head)
        refs = [self._catalog.resolve(name, self._meter, head) for name in names]
        # A table without outside writers is not asked, once HEAD knows it.
        asked = {ref for ref in known if ref in pins or ref.location in head.versions}
        left = [ref for ref in refs if ref is not None and ref not in asked]
        self._environment.fan_out([partial(self._probe, ref, pins) for ref in dict.fromkeys(left)])
        return read, [pinned for ref in refs if ref is not None and (pinned := pins.get(ref)) is not None]

    def _probe(self, ref: TableRef, pins: dict[TableRef, Pinned | None]) -> None:
        """None also for a table that this client cannot open, as for one that is not there."""
        try:
            pins[ref] = self._catalog.newest(ref, self._meter)
        except NotConfigured:
            pins[ref] = None

    def _beyond(self, names: Sequence[str]) -> list[Pinned]:
        """Those of these tables, which HEAD knows, that have versions past the pinned instant."""
        refs = {found[0] for name in names if (found := self._version(name)) is not None}
        newest = [self._catalog.known(ref.name) for ref in refs]
        closed = {known[0] for known in newest if known is not None and known[1].coordination.exclusive}
        pins: dict[TableRef, Pinned | None] = {}
        self._environment.fan_out([partial(self._probe, ref, pins) for ref in refs if ref not in closed])
        return [pinned for pinned in pins.values() if pinned is not None and is_beyond(self.head, pinned)]

    def _add(self, tables: Sequence[Pinned], touched: Sequence[Pinned]) -> None:
        """Pin a later HEAD that knows these versions, if nothing that was touched has moved there."""
        while True:
            read = self._log.read_head()
            beyond = [pinned for pinned in tables if is_beyond(_of(read), pinned)]
            if not self._are_there(beyond):
                tables = [found for p in tables if (found := self._catalog.newest(p.ref, self._meter))]
                continue
            if beyond:
                try:
                    read = self._adopt(read, beyond)
                except Unavailable as error:
                    self._stay(self._read, self.head, beyond, error)
                    return
            if read is not None:
                break
        moved = [p for p in touched if read.head.versions.get(p.ref.location) != p.snapshot.version]
        if not moved and self.allows(read.head):
            self.move(read)
            return
        unknown = [p.ref.name for p in tables if p.ref.location not in self.head.versions]
        if unknown:
            changed = moved[0].ref.name if moved else ""
            what = f"{changed!r} has changed" if moved else "a view has changed"
            raise Conflict(
                f"table {unknown[0]!r} is not part of the transaction's instant, and a later instant cannot "
                f"be used, because {what} since it was read. Run the transaction again, or name both in its "
                "first statement",
                table=changed,
            )

    def _are_there(self, tables: Sequence[Pinned]) -> bool:
        """Whether these tables are still what they were: a version of a table that was deleted meanwhile must
        never become part of the lake's instant."""
        tasks = [partial(self._catalog.still_has, pinned) for pinned in tables]
        return all(self._environment.fan_out(tasks))

    def _adopt(self, read: ReadHead | None, tables: Sequence[Pinned]) -> ReadHead | None:
        """HEAD after an entry that makes these versions part of the lake's instant; None if another entry
        came first, which is settled then."""
        if read is None:
            # The client that makes the log first may know later versions of these tables: read them again.
            self._catalog.first_head(self._meter)
            return None
        newest = {pinned.ref: pinned.snapshot for pinned in tables}
        adopted = (Adopted(ref, found.version, found.table_id) for ref, found in newest.items())
        change = Adopt(tuple(adopted))
        return adopt(self._catalog, self._environment, self._meter, read, change)

    def _stay(self, read: ReadHead | None, head: Head, beyond: Sequence[Pinned], error: Unavailable) -> None:
        """An instant for a client that may write no entry, or cannot settle what another client left: HEAD's,
        and what HEAD does not know as it is. Not if that is part of an entry after HEAD, whose other parts
        are not seen, and not if the store did not answer: that does not show that we may not write."""
        if _went_unanswered(error):
            raise error
        unknown = [pinned for pinned in beyond if pinned.ref.location not in head.versions]
        decided_later = any(pinned.snapshot.coordination.slot > head.seq for pinned in unknown)
        if decided_later and self._log.read_slot(head.seq + 1) is not None:
            raise error
        logger.warning("reading the lake at its HEAD, without newer versions of other clients: %s", error)
        self._head = _with(head, {pinned.ref: pinned.snapshot.version for pinned in unknown})
        self._read, self._read_at = read, self._read_at if read is None else read.read_at
        self.stayed = error


def adopt(
    catalog: Catalog, environment: Environment, meter: Meter, read: ReadHead, change: Adopt
) -> ReadHead | None:
    """HEAD after this entry; None if another came first, which is settled then.

    The entry has an id of its own: it belongs to no transaction's outcome.
    """
    log, txn = catalog.log(meter), environment.new_id()
    entry = entry_after(read.head, environment, txn, txn, change)
    places = CatalogPlaces(catalog, meter)
    premise = Premise(log, environment, entry, environment.elapsed())
    publish = partial(settle, read.head.lake, entry, environment, GuardedPlaces(places, premise))
    if not hold_slot(log, environment, entry):
        catalog.learn(help_next(log, environment, read, places).head)
        return None
    return complete(log, environment, read, entry, publish)[0]


def _went_unanswered(error: BaseException | None) -> bool:
    """Whether a request got no answer, in contrast to one that was refused."""
    return error is not None and (isinstance(error, Unanswered) or _went_unanswered(error.__cause__))


def is_beyond(head: Head, pinned: Pinned) -> bool:
    """Whether the table has versions that this HEAD does not know and may take over."""
    location = pinned.ref.location
    if location in head.torn or location in head.dropped:
        return False
    return pinned.snapshot.version > head.versions.get(location, -1)


def _with(head: Head, tables: Mapping[TableRef, int]) -> Head:
    """The same with these tables at these versions."""
    named = {ref.name: ref for ref in tables}
    versions = {ref.location: version for ref, version in tables.items()}
    return replace(head, tables={**head.tables, **named}, versions={**head.versions, **versions})


def _of(read: ReadHead | None) -> Head:
    return NO_LAKE if read is None else read.head
