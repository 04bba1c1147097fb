"""Clients of a simulated world that queue on one table, which lies at the lake's root."""

from collections.abc import Callable

from lakevilla.markers.lease import Leases
from lakevilla.markers.records import Lease, Marker
from lakevilla.markers.side import SideQueue
from lakevilla.store import keys
from lakevilla.store.retry import Retrying
from sim.world.client import World
from sim.world.faults import Fate


class Steady:
    """Every request applies after 10 ms and is answered after 20, but for the fates that a test sets.

    A fate is given once, to the first request of that client and kind.
    """

    def __init__(self) -> None:
        self.fates: dict[tuple[str, str], Fate] = {}
        self.requests: list[tuple[str, str, str]] = []

    def fate(self, client: str, kind: str, key: str) -> Fate:
        self.requests.append((client, kind, key))
        return self.fates.pop((client, kind), None) or Fate(applies=(0.01,), answer=0, answer_after=0.02)


class Player:
    """One client, with its leases."""

    def __init__(self, world: World, name: str, idle_seconds: float = 60.0) -> None:
        self.client = world.client(name)
        self.environment = self.client.environment
        self.store = Retrying(self.client.store, self.environment)
        self.leases = Leases(self.store, self.environment, idle_seconds=idle_seconds)

    def queue(self, txn: str, attempt: str = "a1") -> SideQueue:
        return SideQueue(self.store, self.leases, self.environment, txn, attempt)


class Table:
    """What the table's log would say: which tickets published, in which order."""

    def __init__(self) -> None:
        self.published: list[int] = []

    def dead(self) -> int:
        return max(self.published, default=0)


def marker_at(world: World, ticket: int) -> Marker | None:
    data = world.bucket.contents().get(keys.marker(ticket))
    return None if data is None else Marker.decode(data, "marker")


def lease_of(world: World, txn: str) -> Lease | None:
    data = world.bucket.contents().get(keys.lease(txn))
    return None if data is None else Lease.decode(data, "lease")


def run(world: World, *bodies: tuple[Player, Callable[[], None]]) -> None:
    """Start every body as a thread of its player's process, and play to the end."""
    for player, body in bodies:
        world.start(player.client, body)
    world.run()
