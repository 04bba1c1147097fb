"""The records of module 2: what a transaction did so far, for a client that resumes it.

A sublog holds records of one attempt in the order in which things happened: statements that finished, with
their physical change and the SQL text that can redo them, statements that failed, savepoints, and rollbacks
to them; or all of that anew, after the transaction moved to newer versions of its tables. It is written once
and never changed. JSON with a format number and a put-id, like all our records: format 1 for transactions
with R alone, format 2, which has their terms too, for those that a slot decides, format 3 for those that
commit a batch, format 4 for those that use views or replace a table, and format 5 for those that delete rows
of files that stay.

A result that was handed out is not kept: neither what its reader may have asked of it later, nor whether
the reader has looked at a number of rows. The client that resumes must assume that the user knows both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lakevilla.encoding import decode_reads, decode_value, encode_reads, encode_value
from lakevilla.errors import Corrupt
from lakevilla.model import Batch, Counts, Features, ReadSet, TableRef
from lakevilla.store.records import decode, encode, flag, number, optional_number, text

SLOT_FORMAT = 2
"""Older clients must not take a transaction that a slot decides for one with R alone."""
BATCH_FORMAT = 3
"""Nor may they commit one that has a batch without it."""
VIEW_FORMAT = 4
"""Nor leave views out, nor take a table that is replaced for one that is altered."""
ROW_FORMAT = 5
"""Nor publish a change of rows on a version where others have deleted rows of the same files."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What the transaction picked, and the number of an entry of the global log that was settled before its
    first record was stored: no other client can have decided it by an entry up to this one. `once` is the
    batch that it commits."""

    features: Features = Features.R
    isolation: str = "serializable"
    slack: int = 0
    since: int = 0
    once: Batch | None = None

    @property
    def by_slots(self) -> bool:
        """Whether a slot of the global log decides it."""
        return self.features != Features.R


@dataclass(frozen=True, slots=True)
class Touched:
    """A table that a statement used: the version at which the transaction pinned it, and what was read."""

    table: TableRef
    version: int
    read: ReadSet


@dataclass(frozen=True, slots=True)
class Ran:
    """One statement.

    `text` is None where SQL cannot express the statement, and `once` says why it cannot run again (empty if
    it can). `counts` is its result if it gave numbers of rows; `rows` says that it gave rows, which its
    client may read whenever it likes. `change` is what it does to the table at `target`, in the terms of the
    table's format: it makes that table if `makes`. If `drops`, it drops the table at `target`. `seq` is, with
    isolation, the entry whose instant the transaction had pinned after it. `over` says that nothing is left
    of it, but for what its client has learned: it failed, or it was rolled back. `view` is the view that it
    makes or drops. `seen` are the views that the transaction had used by then, as they were stored; None for
    a name that was free.
    """

    touched: tuple[Touched, ...] = ()
    text: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    once: str = ""
    counts: Counts | None = None
    rows: bool = False
    target: str | None = None
    change: Mapping[str, Any] | None = None
    over: bool = False
    makes: bool = False
    drops: bool = False
    seq: int | None = None
    view: Mapping[str, Any] | None = None
    seen: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)

    @property
    def needs_views(self) -> bool:
        """Whether a client must know views, or tables that are replaced, to resume from here."""
        replaces = self.change is not None and bool(self.change.get("replaces"))
        return self.view is not None or bool(self.seen) or replaces

    @property
    def needs_rows(self) -> bool:
        """Whether its change deletes rows of files that stay."""
        return self.change is not None and bool(self.change.get("rows"))

    def changing(self, change: Mapping[str, Any]) -> "Ran":
        """The same with what it does to its target."""
        return replace(self, change=change)


@dataclass(frozen=True, slots=True)
class Saved:
    """A savepoint was set here."""

    name: str


@dataclass(frozen=True, slots=True)
class RolledBack:
    """The transaction returned to the savepoint."""

    name: str


@dataclass(frozen=True, slots=True)
class Anew:
    """All that was done, as it is after the transaction moved to newer versions of its tables.

    It replaces the records before it, of which `statements` had finished.
    """

    records: tuple[Ran | Saved, ...]
    statements: int


Record = Ran | Saved | RolledBack | Anew


@dataclass(frozen=True, slots=True)
class Sublog:
    """Some records of one attempt; `first` is the place of the first of them among all of the attempt.

    `begun_ms` is what now() means in the transaction's statements.
    """

    txn: str
    attempt: str
    put: str
    begun_ms: int
    first: int
    records: tuple[Record, ...]
    terms: Terms = Terms()

    def encode(self) -> bytes:
        fields = {
            "txn": self.txn,
            "attempt": self.attempt,
            "put": self.put,
            "begun_ms": self.begun_ms,
            "first": self.first,
            "records": [_encode_record(record) for record in self.records],
        }
        ran = [kept for record in self.records for kept in _statements(record)]
        if any(record.needs_rows for record in ran):
            own = ROW_FORMAT
        elif any(record.needs_views for record in ran):
            own = VIEW_FORMAT
        elif self.terms.by_slots:
            own = SLOT_FORMAT if self.terms.once is None else BATCH_FORMAT
        else:
            return encode(fields)
        return encode({**fields, "terms": _encode_terms(self.terms)}, own)

    @staticmethod
    def decode(data: bytes, where: str) -> "Sublog":
        record = decode(data, where, ROW_FORMAT)
        try:
            return Sublog(
                txn=text(record["txn"]),
                attempt=text(record["attempt"]),
                put=text(record["put"]),
                begun_ms=number(record["begun_ms"]),
                first=number(record["first"]),
                records=tuple(_decode_record(kept) for kept in record["records"]),
                terms=_decode_terms(record["terms"]) if record["format"] > 1 else Terms(),
            )
        except (KeyError, TypeError, AttributeError, ValueError, Corrupt) as error:
            raise Corrupt(f"{where} is not a valid sublog: {error!r}") from error


def _statements(record: Record) -> list[Ran]:
    """The statements of a record."""
    records = record.records if isinstance(record, Anew) else [record]
    return [kept for kept in records if isinstance(kept, Ran)]


def join(sublogs: Sequence[Sublog]) -> list[Record]:
    """The records of one attempt from its beginning; they end where one is missing."""
    at = {sublog.first + offset: record for sublog in sublogs for offset, record in enumerate(sublog.records)}
    found: list[Record] = []
    while len(found) in at:
        found.append(at[len(found)])
    return found


def _encode_terms(terms: Terms) -> dict[str, Any]:
    return {
        "features": terms.features.value,
        "isolation": terms.isolation,
        "slack": terms.slack,
        "since": terms.since,
        **({} if terms.once is None else {"once": [terms.once.app, terms.once.number]}),
    }


def _decode_terms(record: Mapping[str, Any]) -> Terms:
    features = Features(number(record["features"]))
    once = record.get("once")
    batch = None if once is None else Batch(text(once[0]), number(once[1]))
    return Terms(features, text(record["isolation"]), number(record["slack"]), number(record["since"]), batch)


def _encode_record(record: Record) -> dict[str, Any]:
    match record:
        case Saved(name):
            return {"kind": "savepoint", "name": name}
        case RolledBack(name):
            return {"kind": "rollback", "name": name}
        case Anew(records, statements):
            return {
                "kind": "anew",
                "statements": statements,
                "records": [_encode_record(kept) for kept in records],
            }
        case Ran():
            counts = record.counts
            return {
                "kind": "statement",
                "text": record.text,
                "parameters": {name: encode_value(value) for name, value in record.parameters.items()},
                "once": record.once,
                "counts": None if counts is None else [counts.inserted, counts.updated, counts.deleted],
                "rows": record.rows,
                "touched": [_encode_touched(touched) for touched in record.touched],
                "target": record.target,
                "change": record.change,
                "over": record.over,
                # Only with slots, in format 2.
                **({"makes": True} if record.makes else {}),
                **({"drops": True} if record.drops else {}),
                **({} if record.seq is None else {"seq": record.seq}),
                # Only in format 4.
                **({} if record.view is None else {"view": dict(record.view)}),
                **({"seen": dict(record.seen)} if record.seen else {}),
            }


def _encode_touched(touched: Touched) -> dict[str, Any]:
    ref = touched.table
    return {
        "name": ref.name,
        "location": ref.location,
        "format": ref.format,
        "version": touched.version,
        "read": encode_reads(touched.read),
    }


def _decode_record(record: Mapping[str, Any]) -> Record:
    match record["kind"]:
        case "savepoint":
            return Saved(text(record["name"]))
        case "rollback":
            return RolledBack(text(record["name"]))
        case "anew":
            return _decode_anew(record)
        case "statement":
            return _decode_ran(record)
        case kind:
            raise TypeError(f"unknown kind of record {kind!r}")


def _decode_anew(record: Mapping[str, Any]) -> Anew:
    records = []
    for kept in record["records"]:
        found = _decode_record(kept)
        if not isinstance(found, Ran | Saved):
            raise TypeError(f"expected a statement or a savepoint, found {found!r}")
        records.append(found)
    return Anew(tuple(records), number(record["statements"]))


def _decode_ran(record: Mapping[str, Any]) -> Ran:
    change, counts = record["change"], record["counts"]
    if change is not None and not isinstance(change, dict):
        raise TypeError(f"expected a change, found {change!r}")
    drops = flag(record.get("drops", False))
    if (change is None and not drops) != (record["target"] is None):
        raise TypeError("expected both a change and its target, found only one of them")
    return Ran(
        touched=tuple(_decode_touched(touched) for touched in record["touched"]),
        text=None if record["text"] is None else text(record["text"]),
        parameters={text(name): decode_value(value) for name, value in record["parameters"].items()},
        once=text(record["once"]),
        counts=None if counts is None else _decode_counts(counts),
        rows=flag(record["rows"]),
        target=None if record["target"] is None else text(record["target"]),
        change=change,
        over=flag(record["over"]),
        makes=flag(record.get("makes", False)),
        drops=drops,
        seq=optional_number(record.get("seq")),
        view=record.get("view"),
        seen=dict(record.get("seen", {})),
    )


def _decode_counts(counts: Any) -> Counts:
    if not isinstance(counts, list) or len(counts) != 3:
        raise TypeError(f"expected three numbers, found {counts!r}")
    return Counts(*(number(count) for count in counts))


def _decode_touched(record: Mapping[str, Any]) -> Touched:
    ref = TableRef(text(record["name"]), text(record["location"]), text(record["format"]))
    return Touched(ref, number(record["version"]), decode_reads(record["read"]))
