"""Which instant of the lake is meant, and names for instants."""

from collections.abc import Callable
from typing import Any

from lakevilla.environment import Environment
from lakevilla.errors import InvalidInput
from lakevilla.model import Author
from lakevilla.store.metered import Meter
from lakevilla.tables.catalog import Catalog
from lakevilla.transaction.statements.queries import milliseconds
from lakevilla.versions.instants import Instants
from lakevilla.versions.records import Entry, Head
from lakevilla.versions.tags import Tag, TagChange, Untag, check_tag_name


def find(catalog: Catalog, when: Any = None, seq: int | None = None, tag: str | None = None) -> Head:
    """An instant: by the number of its entry, by its tag, or by time.

    `when` is any of them: a whole number, also as text, the name of a tag, or a time as a datetime, a date or
    ISO text.
    """
    if sum(value is not None for value in (when, seq, tag)) != 1:
        raise InvalidInput("expected exactly one of a time, seq=... and tag=...")
    instants = Instants(catalog.log(Meter()))
    if tag is not None:
        return instants.at_tag(check_tag_name(tag))
    if seq is not None:
        return instants.at_seq(_whole(seq))
    if isinstance(when, str) and when.isdecimal():
        return instants.at_seq(int(when))
    if isinstance(when, str) and when in instants.tags:
        return instants.at_tag(when)
    if isinstance(when, str) and not any(character.isdecimal() for character in when):
        return instants.at_tag(check_tag_name(when))
    return instants.at_seq(_whole(when)) if isinstance(when, int) else instants.at_time(milliseconds(when))


def tag_instant(catalog: Catalog, environment: Environment, name: str, at: Head | None) -> int:
    """Give an instant a name, the newest one if none is given; the number of its entry."""
    check_tag_name(name)
    entry = _decide(catalog, environment, lambda head: Tag(name, head.seq if at is None else at.seq))
    assert isinstance(entry.change, Tag)
    return entry.change.seq


def untag_instant(catalog: Catalog, environment: Environment, name: str) -> None:
    """Delete the tag of an instant; vacuum may then delete what is older than the retention."""
    _decide(catalog, environment, lambda _: Untag(check_tag_name(name)))


def _decide(catalog: Catalog, environment: Environment, change: Callable[[Head], TagChange]) -> Entry:
    txn = environment.new_id()
    return catalog.decide(change, Author(txn, txn, environment.new_id()), Meter()).entry


def _whole(seq: object) -> int:
    if not isinstance(seq, int) or isinstance(seq, bool):
        raise InvalidInput(f"seq must be a whole number, the number of an entry; found {seq!r}")
    return seq
