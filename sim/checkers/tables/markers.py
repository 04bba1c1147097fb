"""The queues of writers: what may happen to a ticket, judged from the writes alone.

A ticket is made once. Only its own transaction writes over it while it is live; its tombstone is the last
object that is ever written there, and no client deletes it. Another client releases a ticket only after the
lease of its owner has expired. An entry of the table's log names a ticket of its own transaction.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from sim.checkers.tables.commits import Place
from sim.checkers.tables.logs import place_of, told

MARKER = re.compile(r"^(?P<root>.+)/_lakevilla/markers/(?P<ticket>\d{20})\.json$")


class TimedWriteOfClient(Protocol):
    """What this checker wants to know of a write; `data` is None for a delete."""

    @property
    def at(self) -> float: ...
    @property
    def client(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def data(self) -> bytes | None: ...


@dataclass(frozen=True)
class _Ticket:
    txn: str
    live: bool
    client: str
    at: float


Tickets = dict[tuple[str, int], _Ticket]


def check_markers(writes: Iterable[TimedWriteOfClient], lease_seconds: float) -> list[str]:
    """All violations, in the order in which they happened."""
    tickets: Tickets = {}
    entries: set[str] = set()
    violations: list[str] = []
    for write in writes:
        marker, entry = MARKER.match(write.key), place_of(write.key)
        if marker is not None:
            place = (marker["root"], int(marker["ticket"]))
            violations.extend(_wrong_marker(tickets, place, write, lease_seconds))
        elif entry is not None and write.data is not None and write.key not in entries:
            entries.add(write.key)
            violations.extend(_wrong_entry(tickets, entry, write.data))
    return violations


def live_tickets(writes: Iterable[TimedWriteOfClient]) -> list[tuple[str, int]]:
    """The tables and numbers of all tickets that are live in the end."""
    tickets: Tickets = {}
    for write in writes:
        marker = MARKER.match(write.key)
        if marker is not None and write.data is not None:
            tickets[marker["root"], int(marker["ticket"])] = _parse(write, json.loads(write.data))
    return sorted(place for place, ticket in tickets.items() if ticket.live)


def _wrong_marker(
    tickets: Tickets, place: tuple[str, int], write: TimedWriteOfClient, lease_seconds: float
) -> Iterable[str]:
    name = f"ticket {place[1]} of {place[0]}"
    before = tickets.get(place)
    if write.data is None:
        yield f"{write.client}: deletes {name}"
        return
    after = tickets[place] = _parse(write, json.loads(write.data))
    if before is None:
        if not after.live:
            yield f"{write.client}: {name} begins as a tombstone"
    elif not before.live:
        yield f"{write.client}: writes over {name}, which was freed"
    elif after.txn != before.txn:
        yield f"{write.client}: writes over {name} of another transaction"
    elif not after.live and write.client != before.client and write.at - before.at < lease_seconds:
        yield f"{write.client}: frees {name} {write.at - before.at:.2f} seconds after its owner wrote it"


def _wrong_entry(tickets: Tickets, entry: Place, data: bytes) -> Iterable[str]:
    ours = told(entry, data)
    if (number := ours.get("ticket")) is not None:
        ticket = tickets.get((entry.root, number))
        if ticket is None or ticket.txn != ours["txn"]:
            version = f"version {entry.version} of {entry.root}"
            yield f"{version} names ticket {number}, which is not its transaction's"


def _parse(write: TimedWriteOfClient, record: dict[str, Any]) -> _Ticket:
    return _Ticket(record["txn"], record["live"], write.client, write.at)
