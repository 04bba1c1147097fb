"""Explain: why a transaction waits or was refused, and what happens next, in sentences for people.

Reads the writer queues, the leases of the ticket holders, the global log and the logs of the tables. Changes
nothing. Which client is dead is only known after a lease time, so it takes that long where another client
holds a ticket.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from lakevilla.maintenance import transaction_findings
from lakevilla.maintenance.queue_survey import LakeView, Queued, survey_queues
from lakevilla.maintenance.reports import Explanation, Finding, age_text
from lakevilla.markers.survey import find_stale
from lakevilla.transaction.outcomes.outcome import is_id


def explain(view: LakeView, what: str | None = None) -> Explanation:
    """What this transaction waits for or did, or what happens on this table or in the whole lake."""
    if what is not None and is_id(what):
        return _of_transaction(view, what)
    if what is not None:
        return _of_table(view, view.catalog.pin(what, view.meter).ref.name)
    waits = _look(view)
    found = [
        *_rings(waits),
        *_places(waits),
        *transaction_findings.unsettled(view),
        *transaction_findings.torn(view),
    ]
    return Explanation(view.store.url, tuple(found), waits.failed)


def _of_transaction(view: LakeView, txn: str) -> Explanation:
    waits = _look(view)
    near = waits.behind([txn])
    found = [*transaction_findings.of_transaction(view, txn), *_rings(waits, near), *_places(waits, near)]
    return Explanation(f"transaction {txn}", tuple(found), waits.failed)


def _of_table(view: LakeView, name: str) -> Explanation:
    waits = _look(view)
    near = waits.behind(place.txn for place in waits.queues.get(name, ()))
    found = [*_rings(waits, near), *_places(waits, near)]
    found += [finding for finding in transaction_findings.unsettled(view) if name in finding.tables]
    found += [finding for finding in transaction_findings.torn(view) if name in finding.tables]
    found += transaction_findings.newest_versions(view, name)
    return Explanation(f"table {name!r}", tuple(found), waits.failed)


@dataclass(frozen=True, slots=True)
class _Place:
    """A ticket in the writer queue of a table. `silent` says that its owner's lease has expired."""

    table: str
    ticket: int
    txn: str
    seconds: float
    silent: bool


@dataclass(frozen=True, slots=True)
class _Waits:
    """The tickets of each writer queue, the first one first, by the table's name."""

    lease_seconds: float
    queues: Mapping[str, Sequence[_Place]]
    failed: Mapping[str, str] = field(default_factory=dict)

    def edges(self) -> dict[str, dict[str, str]]:
        """For which one each transaction waits, and on which table: the one before it in a queue."""
        found: dict[str, dict[str, str]] = {}
        for places in self.queues.values():
            for before, after in pairwise(places):
                if before.txn != after.txn:
                    found.setdefault(after.txn, {})[before.txn] = after.table
        return found

    def behind(self, txns: Iterable[str]) -> set[str]:
        """These transactions, and all that they wait for, directly or not."""
        edges, found, left = self.edges(), set[str](), list(txns)
        while left:
            txn = left.pop()
            if txn not in found:
                found.add(txn)
                left += edges.get(txn, {})
        return found


def _look(view: LakeView) -> _Waits:
    """The queues of all tables, after their owners were watched for a lease time, if there are any."""
    found = survey_queues(view)
    seen = [queued.seen.marker for queued in found.live if not queued.dead]
    signs = list(dict.fromkeys((marker.txn, marker.put) for marker in seen))
    stale = find_stale(signs, view.leases, view.environment)
    silent = {sign for sign, is_stale in zip(signs, stale, strict=True) if is_stale}
    now_ms = view.environment.now_ms()
    if signs:
        found = survey_queues(view)
    queues: dict[str, list[_Place]] = {}
    for queued in sorted((q for q in found.live if not q.dead), key=lambda q: (q.table, q.seen.ticket)):
        queues.setdefault(queued.table, []).append(_place(queued, now_ms, silent))
    return _Waits(view.leases.seconds, queues, found.failed)


def _place(queued: Queued, now_ms: int, silent: set[tuple[str, str]]) -> _Place:
    ticket, marker = queued.ticket(now_ms), queued.seen.marker
    return _Place(
        queued.table, ticket.ticket, marker.txn, ticket.age_seconds, (marker.txn, marker.put) in silent
    )


def _places(waits: _Waits, only: set[str] | None = None) -> Iterator[Finding]:
    """A finding for every ticket, or for those of these transactions."""
    for places in waits.queues.values():
        for number, place in enumerate(places):
            if only is None or place.txn in only:
                yield _explain_place(waits, place, places[:number], len(places) - number - 1)


def _explain_place(waits: _Waits, place: _Place, before: Sequence[_Place], behind: int) -> Finding:
    since = f"ticket {place.ticket}, for about {age_text(place.seconds)}"
    seconds = f"{waits.lease_seconds:g} seconds"
    life = f"is dead: its lease did not change for {seconds}" if place.silent else "is alive"
    if not before:
        text = (
            f"Transaction {place.txn} is the first in the writer queue of {place.table!r} ({since}); its "
            f"client {life}."
        )
        kind, coming = "first", _coming_first(place, behind)
    else:
        last = before[-1]
        others = f" and {len(before) - 1} before that" if len(before) > 1 else ""
        text = (
            f"Transaction {place.txn} waits to write {place.table!r} ({since}), for transaction "
            f"{last.txn}{others}; its client {life}."
        )
        coming = (
            "the transactions behind it do not wait for it"
            if place.silent
            else f"it continues as soon as {last.txn} has committed or aborted, or its lease has expired"
        )
        kind = "waits"
    txns = (place.txn, *dict.fromkeys(other.txn for other in reversed(before)))
    return Finding(kind, text, coming, (place.table,), txns, since_seconds=place.seconds)


def _coming_first(place: _Place, behind: int) -> str:
    if not place.silent:
        waiting = f"; {behind} behind it {'waits' if behind == 1 else 'wait'} until then" if behind else ""
        return f"it writes the table, or releases its ticket when it ends{waiting}"
    if behind:
        return "the next client in the queue releases this ticket and continues"
    return "the next writer releases its ticket; `lakevilla recover` releases it now"


def _rings(waits: _Waits, only: set[str] | None = None) -> Iterator[Finding]:
    """Transactions that wait for each other."""
    edges = waits.edges()
    reported: set[frozenset[str]] = set()
    for start in sorted(edges):
        ring = _ring(edges, start)
        if ring is None or frozenset(ring) in reported or (only is not None and not only & set(ring)):
            continue
        reported.add(frozenset(ring))
        steps = [(txn, ring[(number + 1) % len(ring)]) for number, txn in enumerate(ring)]
        waiting = "; ".join(f"{a} waits for {b} on {edges[a][b]!r}" for a, b in steps)
        tables = tuple(sorted({edges[a][b] for a, b in steps}))
        yield Finding(
            "ring",
            f"Transactions wait for each other in a ring: {waiting}.",
            "if one of their clients is dead, the others continue when its lease has expired; otherwise end "
            "one of them. Clients of this version claim tickets in one order and cannot cause this",
            tables,
            tuple(ring),
        )


def _ring(edges: Mapping[str, Mapping[str, str]], start: str) -> list[str] | None:
    """A shortest cycle through this transaction."""
    ways = [[start]]
    seen = {start}
    for way in ways:
        for after in edges.get(way[-1], ()):
            if after == start:
                return way
            if after not in seen:
                seen.add(after)
                ways.append([*way, after])
    return None
