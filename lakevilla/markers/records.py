"""The records of module 1: a marker (one ticket in a table's writer queue) and a transaction's lease.

JSON with a format number, a put-id that makes every write unique, and explicit encode and decode, like
all our records. A marker is replaced once, by its tombstone; a lease is replaced by every beat.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lakevilla.errors import Corrupt
from lakevilla.store.records import decode, encode, flag, number, text


@dataclass(frozen=True, slots=True)
class Marker:
    """The client that holds a ticket. `live` is False in a tombstone.

    `predecessors` holds the ids of the transactions that precede the owner on this table. `claimed_ms` is the
    owner's wall clock, for people.
    """

    txn: str
    attempt: str
    put: str
    claimed_ms: int
    live: bool
    predecessors: tuple[str, ...] = ()

    def tombstone(self, put: str) -> "Marker":
        """What frees this ticket. Its number is never used again."""
        return replace(self, put=put, live=False, predecessors=())

    def record(self) -> dict[str, Any]:
        """The marker as a JSON object."""
        return {
            "txn": self.txn,
            "attempt": self.attempt,
            "put": self.put,
            "claimed_ms": self.claimed_ms,
            "live": self.live,
            "precedes": list(self.predecessors),
        }

    def encode(self) -> bytes:
        return encode(self.record())

    @staticmethod
    def decode(data: bytes, where: str) -> "Marker":
        return Marker.of(decode(data, where), where)

    @staticmethod
    def of(record: Mapping[str, Any], where: str) -> "Marker":
        """The marker in a JSON object."""
        try:
            return Marker(
                txn=text(record["txn"]),
                attempt=text(record["attempt"]),
                put=text(record["put"]),
                claimed_ms=number(record["claimed_ms"]),
                live=flag(record["live"]),
                predecessors=tuple(text(txn) for txn in record["precedes"]),
            )
        except (KeyError, TypeError) as error:
            raise Corrupt(f"{where} is not a valid marker: {error!r}") from error


VACUUM = "vacuum"
"""The attempt that a lease names which vacuum wrote: it deletes what the transaction left."""


@dataclass(frozen=True, slots=True)
class Lease:
    """One beat of a transaction that holds tickets. `written_ms` is the owner's wall clock, for people."""

    txn: str
    attempt: str
    put: str
    beat: int
    written_ms: int

    def encode(self) -> bytes:
        return encode(
            {
                "txn": self.txn,
                "attempt": self.attempt,
                "put": self.put,
                "beat": self.beat,
                "written_ms": self.written_ms,
            }
        )

    @staticmethod
    def decode(data: bytes, where: str) -> "Lease":
        record = decode(data, where)
        try:
            return Lease(
                txn=text(record["txn"]),
                attempt=text(record["attempt"]),
                put=text(record["put"]),
                beat=number(record["beat"]),
                written_ms=number(record["written_ms"]),
            )
        except (KeyError, TypeError) as error:
            raise Corrupt(f"{where} is not a valid lease: {error!r}") from error
