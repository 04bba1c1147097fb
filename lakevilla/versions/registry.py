"""Which tables a lake has, decided over HEAD without I/O.

A table is known by its name in HEAD. A table that already lies at `LAKE/<name>` needs no registration: it
is found there, unless HEAD says that this folder was dropped. Names keep their case and are found in any
case, as Spark SQL finds them; so two names that differ in case only cannot both exist.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from lakevilla.errors import InvalidInput
from lakevilla.model import TableRef
from lakevilla.versions.batches import with_batch
from lakevilla.versions.commits import Adopt, Commit, Drop, Settled, Void
from lakevilla.versions.records import (
    CreateTable,
    DropTable,
    Entry,
    Head,
    RegisterTable,
    RegistryChange,
    RenameTable,
)
from lakevilla.versions.tags import Expire, Tag, TagChange, Untag
from lakevilla.versions.views import View, find_view, with_changes

_MADE_UP = re.compile(r"-lv[0-9a-f]{8}$")


def find(head: Head | None, name: str) -> TableRef | None:
    """The registered table of this name: exactly, else in any case."""
    if head is None:
        return None
    exact = head.tables.get(name)
    if exact is not None:
        return exact
    folded = name.casefold()
    return next((ref for known, ref in head.tables.items() if known.casefold() == folded), None)


def is_made_up(location: str) -> bool:
    """Whether `folder_for` made this folder's name up: such a name is used once."""
    return _MADE_UP.search(location) is not None


def may_lie_at(head: Head | None, location: str) -> bool:
    """Whether an unregistered table may be found in this folder below the root.

    Not in a folder that `folder_for` made up: between the publishing of such a table and the replacing
    of HEAD it would be found under a name that it was never given.
    """
    if head is None:
        return True
    if is_made_up(location) or location in head.dropped or location in head.views:
        return False
    return all(ref.location != location for ref in head.tables.values())


def folder_for(
    head: Head | None, name: str, fresh: str, is_free: Callable[[str], bool] = lambda _: True
) -> str:
    """Where a new table of this name lives: the name itself, or a new folder if that one was used.

    `fresh` is 8 hexadecimal digits. `is_free` may know of more folders that are in use.
    """
    return name if may_lie_at(head, name) and is_free(name) else f"{name}-lv{fresh}"


def check(
    head: Head,
    change: RegistryChange | Commit | TagChange,
    place_of: Callable[[str], str] = lambda location: location,
) -> None:
    """Raise InvalidInput if this change makes no sense on this HEAD.

    `place_of` resolves a location: registries of earlier releases hold several spellings of one place.
    """
    match change:
        case Commit(writes=writes, reads=reads, drops=drops):
            for drop in drops:
                check(head, DropTable(drop.table, drop.base), place_of)
            # A name that the commit itself gives up is free.
            left = replace(head, tables=_without(head, drops), views=_left(head, change))
            for write in writes:
                if write.creates:
                    check(left, CreateTable(write.table, ""), place_of)
                else:
                    _refuse_dropped(head, write.table)
            for read in reads:
                _refuse_dropped(head, read.table)
            made = [write.table.name for write in writes if write.creates]
            for view in (one.view for one in change.views):
                if view is not None:
                    _refuse_table(left, view.name, made)
        case CreateTable(table=ref) | RegisterTable(table=ref):
            _refuse_taken(head, ref.name)
            refuse_doomed(head, ref.location)
            place = place_of(ref.location)
            user = next((r for r in head.tables.values() if place_of(r.location) == place), None)
            if user is not None:
                raise InvalidInput(
                    f"location {ref.location!r} is already used by table {user.name!r} of this lake"
                    + ("" if user.location == ref.location else f", as {user.location!r}"),
                    table=user.name,
                )
        case RenameTable(table=ref, to=to):
            if to.casefold() != ref.name.casefold():
                _refuse_taken(head, to)
            _refuse_moved(head, ref)
        case DropTable(table=ref):
            _refuse_moved(head, ref)
        case Tag(name=name, seq=seq):
            if name in head.tags:
                raise InvalidInput(
                    f"tag {name!r} already exists, at entry {head.tags[name]}: call lake.untag({name!r}) "
                    "first, or choose another name",
                    entry=head.tags[name],
                )
            refuse_expired(head, seq)
        case Untag(name=name):
            if name not in head.tags:
                known = ", ".join(map(repr, sorted(head.tags))) or "none"
                raise InvalidInput(f"unknown tag {name!r}; available: {known}")


def refuse_doomed(head: Head | None, location: str) -> None:
    """Raise InvalidInput if vacuum is deleting the contents of this folder."""
    if head is not None and location in head.doomed:
        raise InvalidInput(
            f"cannot use location {location!r}: vacuum has deleted, or is deleting, the files of the dropped "
            "table there. Restore them elsewhere from a backup, or choose another location"
        )


def refuse_expired(head: Head, seq: int) -> None:
    """Raise InvalidInput if the instant after this entry is not there yet, or not kept any more."""
    if not 0 <= seq <= head.seq:
        raise InvalidInput(f"unknown entry {seq} of the lake; the newest is {head.seq}", entry=seq)
    if seq < head.horizon and seq not in head.tags.values():
        kept = ", ".join(f"{name!r} (entry {at})" for name, at in sorted(head.tags.items()))
        raise InvalidInput(
            f"entry {seq} of the lake has expired, and its data may be deleted: what is kept begins with "
            "entry "
            f"{head.horizon}" + (f"; of older ones there are the tags {kept}" if kept else ""),
            entry=seq,
        )


def apply(head: Head, entry: Entry, settled: Settled, put: str) -> Head:
    """HEAD after this entry was settled.

    A pure function of what the log fixed, so that every helper writes the same HEAD but for its
    put-id. An entry whose table could not be published moves HEAD on and changes nothing else.
    """
    versions = {**head.versions, **settled.versions}
    moved = replace(
        head,
        seq=entry.seq,
        put=put,
        versions=versions,
        torn=head.torn | settled.torn,
        dropped=head.dropped | settled.dropped,
        owned=head.owned | settled.owned,
        time_ms=max(head.time_ms, entry.time_ms),
        given_up=frozenset(),
    )
    if isinstance(entry.change, Commit):
        moved = replace(moved, ticket=max(head.ticket, entry.change.ticket or 0))
        return _after_commit(moved, entry.change, settled.published)
    if not settled.published:
        return moved
    tables = dict(head.tables)
    match entry.change:
        case Adopt(tables=adopted, repaired=repaired):
            refs = _unnamed(head, [found.table for found in adopted])
            ids = _ids(head, {found.table.location: found.table_id for found in adopted})
            return replace(moved, tables={**tables, **refs}, torn=moved.torn - repaired, ids=ids)
        case CreateTable(table=ref, id=table_id):
            tables[ref.name] = ref
            ids = _ids(head, {ref.location: table_id})
            return replace(moved, tables=tables, dropped=head.dropped - {ref.location}, ids=ids)
        case RegisterTable(table=ref):
            tables[ref.name] = ref
            return replace(moved, tables=tables, dropped=head.dropped - {ref.location})
        case RenameTable(table=ref, to=to):
            tables.pop(ref.name, None)
            tables[to] = TableRef(to, ref.location, ref.format)
            return replace(moved, tables=tables)
        case Tag(name=name, seq=seq):
            return replace(moved, tags={**head.tags, name: seq})
        case Untag(name=name):
            return replace(moved, tags={tag: seq for tag, seq in head.tags.items() if tag != name})
        case Expire(before=before, doomed=doomed, forgotten=forgotten):
            return replace(
                moved,
                horizon=max(head.horizon, before),
                dropped=head.dropped - forgotten,
                doomed=(head.doomed | doomed) - forgotten,
            )
        case DropTable(table=ref, base=base):
            tables.pop(ref.name, None)
            return _forget(replace(moved, tables=tables), [Drop(ref, base)])
        case Void():
            return moved


def _after_commit(head: Head, commit: Commit, published: bool) -> Head:
    """HEAD after a commit on several tables; `head` has their new versions already.

    A client that wrote a table made sure before that it belongs to this lake.
    """
    changed = [write.table for write in commit.writes if not write.creates]
    ids = _ids(head, {w.table.location: w.table_id for w in commit.writes if published or not w.creates})
    owned = replace(head, owned=head.owned | {ref.location for ref in changed}, ids=ids)
    if not published:
        # What it left or met has versions now: without a name no client would find them.
        known = [ref for ref in changed if ref.location in head.versions]
        return replace(owned, tables={**head.tables, **_unnamed(head, known)})
    # What it has read is part of this instant too, or a reader would see the effect without the cause.
    left_out = head.torn | {drop.table.location for drop in commit.drops}
    read = [r for r in commit.reads if r.table.location not in left_out]
    later = [r for r in read if r.base > head.versions.get(r.table.location, -1)]
    found = _unnamed(head, [*changed, *(r.table for r in later)])
    owned = replace(
        owned,
        versions={**owned.versions, **{r.table.location: r.base for r in later}},
        ids=_ids(owned, {r.table.location: r.table_id for r in later}),
    )
    if commit.views:
        owned = replace(owned, views=with_changes(head.views, commit.views))
    if commit.once is not None:
        owned = replace(owned, batches=with_batch(head.batches, head.horizon, commit.once, head.seq))
    made = {write.table.name: write.table for write in commit.writes if write.creates}
    left = _forget(owned, commit.drops)
    tables = {**_without(head, commit.drops), **found, **made}
    return replace(left, tables=tables, dropped=left.dropped - {ref.location for ref in made.values()})


def _ids(head: Head, named: Mapping[str, str]) -> Mapping[str, str]:
    """The ids of HEAD's tables where these entries name theirs. An entry of an earlier release does not."""
    if all(head.ids.get(place) == table_id for place, table_id in named.items()):
        return head.ids
    return {place: table_id for place, table_id in {**head.ids, **named}.items() if table_id}


def _unnamed(head: Head, refs: Sequence[TableRef]) -> dict[str, TableRef]:
    """Those of these tables that were found in their folders, by name.

    Not under a name that one lost since: the rename came first. A table elsewhere has only the name that an
    entry gave it.
    """
    inside = [ref for ref in refs if ref.is_inside]
    return {
        ref.name: ref
        for ref in inside
        if find(head, ref.name) is None
        and find_view(head.views, ref.name) is None
        and may_lie_at(head, ref.location)
    }


def _forget(head: Head, drops: Sequence[Drop]) -> Head:
    """HEAD without what it knows of dropped tables, but that their folders are not tables any more."""
    gone = {drop.table.location for drop in drops}
    return replace(
        head,
        dropped=head.dropped | {drop.table.location for drop in drops if drop.base is not None},
        versions={place: version for place, version in head.versions.items() if place not in gone},
        ids={place: table_id for place, table_id in head.ids.items() if place not in gone},
        owned=head.owned - gone,
        torn=head.torn - gone,
    )


def _without(head: Head, drops: Sequence[Drop]) -> dict[str, TableRef]:
    """HEAD's tables but for these."""
    gone = {drop.table.name for drop in drops}
    return {name: ref for name, ref in head.tables.items() if name not in gone}


def _left(head: Head, commit: Commit) -> Mapping[str, View]:
    """HEAD's views but for those that the commit drops."""
    return with_changes(head.views, [change for change in commit.views if change.view is None])


def _refuse_table(head: Head, name: str, made: Sequence[str]) -> None:
    """InvalidInput if a view's name is that of a table."""
    known = [*head.tables, *made]
    taken = next((table for table in known if table.casefold() == name.casefold()), None)
    if taken is not None:
        raise InvalidInput(f"table {taken!r} already exists: choose another name for the view", table=taken)


def refuse_view(views: Mapping[str, View], name: str) -> None:
    """InvalidInput if a table's name is that of a view."""
    taken = find_view(views, name)
    if taken is not None:
        raise InvalidInput(
            f"view {taken.name!r} already exists: DROP VIEW it first, or choose another name",
            table=taken.name,
        )


def _refuse_taken(head: Head, name: str) -> None:
    refuse_view(head.views, name)
    taken = find(head, name)
    if taken is not None:
        raise InvalidInput(
            f"table {taken.name!r} already exists: drop it first, or choose another name",
            table=taken.name,
        )


def _refuse_dropped(head: Head, ref: TableRef) -> None:
    """A table below the root is there unless HEAD says that it was dropped; one elsewhere only if HEAD has
    it, perhaps under another name."""
    known = any(other.location == ref.location for other in head.tables.values())
    if ref.location in head.dropped or not (known or ref.is_inside):
        raise InvalidInput(f"table {ref.name!r} was dropped by another client", table=ref.name)


def _refuse_moved(head: Head, ref: TableRef) -> None:
    """A found table is not in HEAD; a registered one must still be the one that was resolved."""
    current = find(head, ref.name)
    if current is None and may_lie_at(head, ref.location):
        return
    if current is None or current.location != ref.location:
        raise InvalidInput(
            f"table {ref.name!r} was renamed or dropped by another client",
            table=ref.name,
        )
