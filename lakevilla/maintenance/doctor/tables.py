"""The tables of a lake: can they be read, which lake owns them, and which other clients write them."""

from collections.abc import Iterator, Sequence
from functools import partial

from lakevilla.errors import LakeVillaError
from lakevilla.maintenance.doctor.diagnosis import AGAIN, Check, advice_for
from lakevilla.maintenance.queue_survey import LakeView, Queues
from lakevilla.maintenance.reports import count_text
from lakevilla.settle.places import owner_of
from lakevilla.store import keys
from lakevilla.tables.pinned import Pinned
from lakevilla.versions.owner import Owner
from lakevilla.versions.records import Head

HISTORY = 20
"""So many of the newest versions of each table are looked at for legacy writers."""


def look_at_tables(view: LakeView, head: Head | None, queues: Queues) -> Iterator[Check]:
    """Everything about the tables that takes no look at their files."""
    yield from _unreadable(queues)
    yield from _contradictions(head, queues.tables)
    yield from _owners(view, head, queues.tables)
    yield from _legacy_writers(view, queues.tables)


def torn(head: Head | None) -> Iterator[Check]:
    """Tables that HEAD says are torn."""
    torn = frozenset() if head is None else head.torn
    names = [ref.name for ref in ([] if head is None else head.tables.values()) if ref.location in torn]
    if not torn:
        yield Check("torn tables", "ok", "there are none")
    for name in sorted(names):
        yield Check(
            "torn tables",
            "problem",
            f"{name!r} holds a part of a transaction that was rolled back elsewhere, and cannot be changed",
            f"lake.explain({name!r}) shows the versions; repair the rows by another client of the format, "
            f"then lake.sync({name!r}, accept_torn=True)",
            (name,),
        )


def _unreadable(queues: Queues) -> Iterator[Check]:
    for name, error in sorted(queues.errors.items()):
        reason = str(error).removeprefix(f"table {name!r} cannot be read: ")
        text = f"{name!r} cannot be read: {reason}"
        yield Check("tables", "problem", text, advice_for(error, name), (name,))
    if not queues.errors:
        yield Check("tables", "ok", f"{count_text(len(queues.tables), 'table')} can be read")


def _contradictions(head: Head | None, tables: Sequence[Pinned]) -> Iterator[Check]:
    """Tables that are not what the global log says of them."""
    found = []
    for pinned in tables if head is not None else ():
        name, at, newest = pinned.ref.name, pinned.ref.location, pinned.snapshot
        known = 0 if head is None else head.versions.get(at, 0)
        named = "" if head is None else head.ids.get(at, "")
        if named and newest.table_id and named != newest.table_id:
            found.append((name, f"another table is in its place: the lake knows the id {named}"))
        elif newest.version < known:
            found.append((name, f"its newest version is {newest.version}, and the lake knows {known}"))
    if not found:
        yield Check("contradictions", "ok", "the tables are those that the global log knows")
    for name, text in found:
        advice = "restore the table's log from a backup, or drop the name and register the table again"
        yield Check("contradictions", "problem", f"{name!r}: {text}", advice, (name,))


def _owners(view: LakeView, head: Head | None, tables: Sequence[Pinned]) -> Iterator[Check]:
    """Tables that another lake owns: transactions that our global log decides are refused on them."""
    found = view.environment.fan_out([partial(_owner, view, pinned) for pinned in tables])
    ours = True
    for pinned, owner in zip(tables, found, strict=True):
        name = pinned.ref.name
        if isinstance(owner, LakeVillaError):
            ours = False
            text = f"it cannot be read which lake {name!r} belongs to: {owner}"
            yield Check("owners", "warning", text, advice_for(owner), (name,))
        elif owner is not None and (head is None or owner.lake != head.lake):
            ours = False
            yield Check("owners", "warning", *_of_another(view, name, owner), (name,))
    if ours:
        yield Check("owners", "ok", "no table belongs to another lake")


def _of_another(view: LakeView, name: str, owner: Owner) -> tuple[str, str]:
    if owner.url != view.store.url:
        return (
            f"{name!r} belongs to the lake at {owner.url}: transactions that this lake's global log decides "
            "are refused on it, and vacuum leaves it alone",
            f"write to it in that lake; if that lake was deleted, delete {keys.OWNER} below the table while "
            "no client writes",
        )
    return (
        f"{name!r} belongs to an earlier lake at this place, whose global log is lost",
        "restore the lake's folder _lakevilla from a backup; without one, delete "
        f"{keys.OWNER} below the table while no client writes",
    )


def _owner(view: LakeView, pinned: Pinned) -> Owner | LakeVillaError | None:
    try:
        return owner_of(view.catalog.store_of(pinned.ref.location, view.meter))
    except LakeVillaError as error:
        return error


def _legacy_writers(view: LakeView, tables: Sequence[Pinned]) -> Iterator[Check]:
    found = view.environment.fan_out([partial(_writers, pinned) for pinned in tables])
    seen = False
    for pinned, writers in zip(tables, found, strict=True):
        name = pinned.ref.name
        if isinstance(writers, LakeVillaError):
            text = f"the history of {name!r} cannot be read: {writers}"
            yield Check("legacy writers", "warning", text, AGAIN, (name,))
            seen = True
            continue
        if not writers:
            continue
        seen = True
        text = f"{name!r} was written by {', '.join(writers)} within its newest {HISTORY} versions"
        if pinned.snapshot.coordination.exclusive:
            advice = (
                "stop these clients, or unset lakevilla.exclusive, and then run "
                f"lake.sync({name!r}): until then transactions may not see what they wrote"
            )
            yield Check("legacy writers", "problem", f"{text}, although it is exclusive", advice, (name,))
        else:
            yield Check("legacy writers", "note", text, tables=(name,))
    if not seen:
        yield Check("legacy writers", "ok", "no other client wrote the newest versions of the tables")


def _writers(pinned: Pinned) -> list[str] | LakeVillaError:
    """The clients without LakeVilla that wrote the newest versions. The version that made a table does not
    count: tables are often made by another client and then given to the lake."""
    try:
        entries = list(pinned.table.history(HISTORY))
    except LakeVillaError as error:
        return error
    first = pinned.table.first_version
    others = [one for one in entries if not one.txn and one.version > first]
    return sorted({one.engine or "an unknown client" for one in others})
