"""Bringing tables back to an earlier instant of the lake: which ones, from what to what, and the report."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lakevilla.answers import Receipt
from lakevilla.display import Report
from lakevilla.errors import InvalidInput
from lakevilla.model import TableRef
from lakevilla.store.metered import Meter
from lakevilla.tables.catalog import Catalog
from lakevilla.transaction.statements.restore import restore
from lakevilla.transaction.statements.statement import Defines, Statement
from lakevilla.transaction.views.definitions import restore_view
from lakevilla.travel.instants import find
from lakevilla.travel.past import PastLake
from lakevilla.versions import registry
from lakevilla.versions.records import Head
from lakevilla.versions.views import View, find_view

DROPPED = "it was dropped since"
RECREATED = "it was deleted since, and another table was created in its location"
UNKNOWN = "no version of it was part of that instant"
TAKEN = "it was a view then, and a table has its name now"
LATER = "it was created or registered later, and is left as it is"


@dataclass(frozen=True)
class RestorePlan:
    """What to restore: the versions by the names that the tables have now, and why others are left alone.

    `seq` is the instant, None where a version was given. `views` are those that were other ones then.
    """

    seq: int | None
    versions: Mapping[str, int]
    skipped: Mapping[str, str] = field(default_factory=dict)
    views: tuple[View, ...] = ()

    def statements(self) -> Iterator[Statement]:
        """One for each table. They belong to one transaction, which pins all of these tables first."""
        for name, version in self.versions.items():
            run = partial(restore, name=name, version=version, instant=self.seq)
            yield Statement(run, tables=tuple(self.versions))
        for view in self.views:
            yield Statement(partial(restore_view, view=view), defines=Defines.TABLES)


@dataclass(frozen=True, slots=True, repr=False)
class RestoreReport(Report):
    """What `lake.restore` did.

    `seq` is the entry of the instant, None where a version was given. `restored` has the versions that tables
    were brought back to, by name, `unchanged` names those that had not changed since, and `skipped` says why
    others were left alone. `views` names the views that have their earlier queries again. `receipt` is that
    of the one commit; None if nothing had to be changed.
    """

    seq: int | None
    restored: Mapping[str, int] = field(default_factory=dict)
    unchanged: tuple[str, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    receipt: Receipt | None = None
    views: tuple[str, ...] = ()

    def _lines(self) -> Iterator[str]:
        at = "" if self.seq is None else f" to the instant of entry {self.seq}"
        yield f"restored {len(self.restored):,} of {len(self.restored) + len(self.unchanged):,} tables{at}"
        new = {} if self.receipt is None else self.receipt.versions
        for name, version in self.restored.items():
            yield f"{name}: version {new.get(name, '?')} has the rows of version {version}"
        for name in self.views:
            yield f"{name}: the view is as it was"
        for name in self.unchanged:
            yield f"{name}: has not changed since"
        for name, reason in self.skipped.items():
            yield f"{name}: skipped: {reason}"

    @staticmethod
    def of(plan: RestorePlan, receipt: Receipt | None) -> "RestoreReport":
        """The result of a plan."""
        written = {} if receipt is None else {name.casefold(): name for name in receipt.versions}
        asked = {written.get(name.casefold(), name): version for name, version in plan.versions.items()}
        restored = {name: version for name, version in asked.items() if name.casefold() in written}
        unchanged = tuple(name for name in asked if name not in restored)
        views = tuple(view.name for view in plan.views)
        kept = receipt if restored or views else None
        return RestoreReport(plan.seq, restored, unchanged, plan.skipped, kept, views)


def plan_restore(
    catalog: Catalog,
    seq: int | None,
    tag: str | None,
    at: Any,
    version: int | None,
    tables: Sequence[str] | None,
) -> RestorePlan:
    """What is meant by the arguments of `lake.restore`."""
    check_names(tables)
    if version is None:
        seq, at = (at.seq, None) if isinstance(at, PastLake) and seq is None else (seq, at)
        return plan_instant(catalog, find(catalog, at, seq, tag), tables)
    if any(value is not None for value in (seq, tag, at)):
        raise InvalidInput("give a version, or an instant, not both")
    return plan_version(version, tables)


def plan_instant(catalog: Catalog, then: Head, names: Sequence[str] | None) -> RestorePlan:
    """All tables of an instant, or those of these names. InvalidInput for a name that cannot be restored."""
    now = catalog.head(Meter(), fresh=True)
    assert now is not None, "a lake with an earlier instant has a HEAD"
    present = {catalog.real_place(ref.location): ref for ref in now.tables.values()}
    versions: dict[str, int] = {}
    skipped: dict[str, str] = {}
    called: dict[str, str] = {}
    for ref in then.tables.values():
        current = present.pop(catalog.real_place(ref.location), None)
        reason = _why_not(then, now, ref, current)
        name = ref.name if current is None else current.name
        called |= {ref.name.casefold(): name, name.casefold(): name}
        if reason:
            skipped[name] = reason
        else:
            versions[name] = then.versions[ref.location]
    for ref in present.values():
        called.setdefault(ref.name.casefold(), ref.name)
        skipped.setdefault(ref.name, LATER)
    views = {view.name: view for view in then.views.values() if find_view(now.views, view.name) != view}
    for name in [name for name in views if registry.find(now, name) is not None]:
        skipped[name] = TAKEN
        del views[name]
    if names is None:
        later = (v.name for v in now.views.values() if find_view(then.views, v.name) is None)
        skipped |= {name: LATER for name in later if name not in skipped}
        return RestorePlan(then.seq, versions, skipped, tuple(views.values()))
    chosen = [find_view(then.views, name) for name in names]
    named = {name for name, view in zip(names, chosen, strict=True) if view is not None}
    tables = _chosen(then.seq, [n for n in names if n not in named], called, versions, skipped)
    return RestorePlan(then.seq, tables, views=tuple(v for v in chosen if v is not None and v.name in views))


def _why_not(then: Head, now: Head, ref: TableRef, current: TableRef | None) -> str:
    """Why a table of the instant cannot be restored; empty if it can."""
    if current is None:
        return DROPPED
    if ref.location not in then.versions:
        return UNKNOWN
    before, after = then.ids.get(ref.location), now.ids.get(current.location)
    return RECREATED if before is not None and after is not None and before != after else ""


def _chosen(
    seq: int,
    names: Sequence[str],
    called: Mapping[str, str],
    versions: Mapping[str, int],
    skipped: Mapping[str, str],
) -> dict[str, int]:
    chosen: dict[str, int] = {}
    for wanted in names:
        name = called.get(wanted.casefold())
        if name is None or name not in versions:
            why = "the lake did not have it then" if name is None else skipped[name]
            error = InvalidInput(
                f"table {wanted!r} cannot be restored to entry {seq}: {why}. Nothing was changed",
                table=wanted,
                entry=seq,
            )
            error.unknown = wanted
            raise error
        chosen[name] = versions[name]
    return chosen


def plan_version(version: object, names: Sequence[str] | None) -> RestorePlan:
    """One table at one of its own versions."""
    if names is None or len(names) != 1:
        raise InvalidInput("versions are those of one table: restore(version=..., tables=['name'])")
    if not isinstance(version, int) or isinstance(version, bool):
        raise InvalidInput(f"a version is a number; found {version!r}")
    return RestorePlan(None, {names[0]: version})


def check_names(names: object) -> None:
    """InvalidInput for what is not a list of names."""
    listed = names is None or (isinstance(names, Sequence) and not isinstance(names, str) and len(names) > 0)
    if not listed:
        raise InvalidInput(f"tables is a list of names, or left out for all tables; found {names!r}")
