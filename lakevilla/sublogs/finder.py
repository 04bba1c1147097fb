"""Finding the sublogs that a transaction has left."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from lakevilla.environment import Environment
from lakevilla.errors import Corrupt
from lakevilla.store import keys
from lakevilla.store.port import Store
from lakevilla.sublogs.records import Record, Sublog, Terms, join


@dataclass(frozen=True, slots=True)
class Left:
    """What one attempt has left, from its beginning up to the last record that is there, and where."""

    attempt: str
    begun_ms: int
    records: tuple[Record, ...]
    keys: tuple[str, ...]
    terms: Terms = field(default_factory=Terms)


def has_sublogs(store: Store, txn: str) -> bool:
    """Whether a transaction has left any. One LIST, below the lake's root."""
    return bool(_list(store, txn))


def read_sublogs(store: Store, environment: Environment, txn: str) -> list[Left]:
    """What every attempt of a transaction has left, the oldest first. One LIST, and one round of GETs."""
    listed = _list(store, txn)
    found = environment.fan_out([partial(_read, store, key) for key in listed])
    attempts: dict[str, list[tuple[str, Sublog]]] = {}
    for key, sublog in zip(listed, found, strict=True):
        if sublog is not None:
            attempts.setdefault(sublog.attempt, []).append((key, sublog))
    return [_left(attempt, attempts[attempt]) for attempt in sorted(attempts)]


def newest(left: Sequence[Left], txn: str, named: str | None) -> Left:
    """The attempt to continue.

    `named` is the attempt that the transaction's lease names. Once a client took the transaction over, that
    is the right one; the lease of the client that began it names the first attempt for all of them, which
    are in the order of their ids.
    """
    taken_over = (found for found in left if found.attempt == named != txn)
    return next(taken_over, left[-1])


def _list(store: Store, txn: str) -> list[str]:
    return [meta.key for meta in store.list(keys.txn_folder(txn)) if keys.attempt_of(meta.key) is not None]


def _left(attempt: str, found: list[tuple[str, Sublog]]) -> Left:
    places, sublogs = zip(*found, strict=True)
    return Left(attempt, sublogs[0].begun_ms, tuple(join(sublogs)), places, sublogs[0].terms)


def _read(store: Store, key: str) -> Sublog | None:
    found = store.get(key)
    if found is None:
        return None
    where = f"{store.url}/{key}"
    sublog = Sublog.decode(found.data, where)
    if sublog.attempt != keys.attempt_of(key):
        raise Corrupt(f"{where} is misplaced: its record names attempt {sublog.attempt}")
    return sublog
