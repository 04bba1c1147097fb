"""The object store port: the only thing that LakeVilla needs.

A store is bound to a root (a bucket and a prefix, or a directory); keys are relative to it, with `/`
between segments, and reach the store exactly as given (no escaping, no normalisation).

Contracts that every adapter keeps, and `tests/conformance/test_store.py` proves:
- Reads see the latest completed write (strong consistency). A read never sees part of a write.
- `create` succeeds for exactly one of any number of rivals, across processes and machines.
- `replace` succeeds only if the object still is the one whose etag was read.
- A miss and a lost race are values. `Unanswered` says that a request may or may not have applied;
  only the `Retrying` decorator catches it. `Unavailable` means that the store refuses us for good
  (credentials, permission, no such bucket).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from lakevilla.errors import Unavailable


@dataclass(frozen=True, slots=True)
class Object:
    """The content of one object, with the tag that `replace` wants."""

    data: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class Meta:
    """What the store knows of an object without its content."""

    key: str
    size: int
    etag: str
    modified_ms: int


@dataclass(frozen=True, slots=True)
class Created:
    """The object did not exist, and now it is ours.

    `doubtful` says that an earlier try went unanswered: ours may have been there before, and been deleted by
    another client.
    """

    etag: str
    doubtful: bool = False


@dataclass(frozen=True, slots=True)
class Exists:
    """Another client's object holds the key; ours is not there.

    `found` is that object, where it was read on the way. `doubtful` says that an earlier try went
    unanswered: where the key is one that others replace, ours may have been there for a moment before
    another client replaced it.
    """

    doubtful: bool = False
    found: Object | None = None


@dataclass(frozen=True, slots=True)
class Replaced:
    """The object was the one we had read, and now it is ours."""

    etag: str


@dataclass(frozen=True, slots=True)
class Changed:
    """The object is no longer the one we had read.

    `doubtful` says that an earlier try went unanswered: ours may have been there for a moment
    before another client replaced it again.
    """

    doubtful: bool = False


class Unanswered(Exception):
    """The request may or may not have applied: a timeout, a lost connection, a 409, 429 or 5xx."""


class Ambiguous(Unavailable):
    """A conditional write whose outcome could not be learned: it may apply, now or later.

    Only `create` and `replace` of the `Retrying` decorator raise it. The caller that knows what the write
    decided must find out by reading; nothing may be taken as failed.
    """


class Store(Protocol):
    """What an object store offers, and all that we use."""

    @property
    def url(self) -> str:
        """Where the root is, without secrets and without a trailing slash."""
        ...

    def get(self, key: str) -> Object | None:
        """The whole object, or None if there is none."""
        ...

    def get_range(self, key: str, start: int, length: int) -> bytes | None:
        """`length` bytes from `start` on (fewer at the object's end), or None if there is none."""
        ...

    def head(self, key: str) -> Meta | None:
        """Size and tag, or None if there is none."""
        ...

    def list(self, prefix: str, start_after: str = "") -> Iterator[Meta]:
        """All objects whose key starts with `prefix` (any string) and sorts after `start_after`.

        In the order of the keys' UTF-8 bytes; later pages are asked for only when they are needed.
        """
        ...

    def list_folders(self, prefix: str) -> Sequence[str]:
        """The names of the folders directly below `prefix` (empty, or ending with `/`), sorted."""
        ...

    def put(self, key: str, data: bytes) -> None:
        """Write, whatever was there. For keys that only one writer can know, and for hints."""
        ...

    def create(self, key: str, data: bytes) -> Created | Exists:
        """Write if there is nothing at the key."""
        ...

    def replace(self, key: str, data: bytes, etag: str) -> Replaced | Changed:
        """Write if the object at the key still has this tag."""
        ...

    def delete(self, key: str) -> None:
        """Remove; no error if there is none."""
        ...
