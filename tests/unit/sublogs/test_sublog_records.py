"""Sublogs: golden bytes, refusal of nonsense and of newer formats, and how they are put together."""

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from lakevilla.errors import Corrupt, Unsupported
from lakevilla.model import Batch, Counts, Features, ReadSet, TableRef
from lakevilla.predicates import Compare
from lakevilla.sublogs.finder import Left, newest
from lakevilla.sublogs.records import Anew, Ran, Record, RolledBack, Saved, Sublog, Terms, Touched, join

TABLE = TableRef("t", "tables/t", "delta")
TOUCHED = Touched(TABLE, 7, ReadSet((Compare(("id",), "=", 3),), frozenset({"b", "a"})))
RAN = Ran(
    touched=(TOUCHED,),
    text="UPDATE t SET v = :v",
    parameters={"v": Decimal("1.5")},
    counts=Counts(updated=2),
    target="tables/t",
    change={"operation": "UPDATE", "actions": []},
)
FAILED = Ran(once="it was rolled back", rows=True, over=True)
SUBLOG = Sublog("txn-1", "attempt-1", "put-1", 1_760_000_000_000, 4, (RAN, Saved("ö"), RolledBack("ö")))
SUBLOG_BYTES = (
    '{"format":1,"txn":"txn-1","attempt":"attempt-1","put":"put-1","begun_ms":1760000000000,"first":4,'
    '"records":[{"kind":"statement","text":"UPDATE t SET v = :v","parameters":{"v":{"decimal":"1.5"}},'
    '"once":"","counts":[0,2,0],"rows":false,"touched":[{"name":"t","location":"tables/t","format":"delta",'
    '"version":7,"read":{"predicates":[["=",["id"],3]],"files":["a","b"]}}],"target":"tables/t",'
    '"change":{"operation":"UPDATE","actions":[]},"over":false},{"kind":"savepoint","name":"ö"},'
    '{"kind":"rollback","name":"ö"}]}'
).encode()
ANEW = Sublog("txn-1", "attempt-1", "put-2", 0, 0, (Anew((Saved("a"), FAILED), 3),))
ANEW_BYTES = (
    b'{"format":1,"txn":"txn-1","attempt":"attempt-1","put":"put-2","begun_ms":0,"first":0,"records":['
    b'{"kind":"anew","statements":3,"records":[{"kind":"savepoint","name":"a"},{"kind":"statement",'
    b'"text":null,"parameters":{},"once":"it was rolled back","counts":null,"rows":true,"touched":[],'
    b'"target":null,"change":null,"over":true}]}]}'
)


@pytest.mark.parametrize(("sublog", "data"), [(SUBLOG, SUBLOG_BYTES), (ANEW, ANEW_BYTES)])
def test_sublog_encodes_to_its_golden_bytes_and_back(sublog: Sublog, data: bytes) -> None:
    assert sublog.encode() == data
    assert Sublog.decode(data, "sublog") == sublog


def test_newer_record_format_is_refused() -> None:
    with pytest.raises(Unsupported, match="record format 6"):
        Sublog.decode(SUBLOG_BYTES.replace(b'"format":1', b'"format":6'), "it")


def test_sublog_of_a_batch_has_a_format_that_earlier_releases_refuse() -> None:
    terms = Terms(Features.CT | Features.I, once=Batch("etl", 3))
    sublog = replace(Sublog.decode(SUBLOG_BYTES, "it"), terms=terms)
    assert sublog.encode().startswith(b'{"format":3,')
    assert Sublog.decode(sublog.encode(), "it").terms == terms


def _with(**members: Any) -> bytes:
    """The golden sublog with members of its first record replaced."""
    record = json.loads(SUBLOG_BYTES)
    record["records"][0] |= members
    return json.dumps(record).encode()


@pytest.mark.parametrize(
    "damaged",
    [
        b"", b"[]", SUBLOG_BYTES[:-3], SUBLOG_BYTES.replace(b'"first":4', b'"first":"4"'),
        SUBLOG_BYTES.replace(b'"kind":"savepoint"', b'"kind":"savings"'),
        SUBLOG_BYTES.replace(b'"records":', b'"record":'), ANEW_BYTES.replace(b'"savepoint"', b'"rollback"'),
        _with(text=7), _with(parameters=[]), _with(parameters={"v": {"decimal": "x"}}), _with(counts=[1]),
        _with(counts=7), _with(rows=1), _with(touched=None), _with(touched=[{"name": "t"}]),
        _with(target=None),
        _with(change=None), _with(change="x"), _with(over="no"), _with(once=None),
    ],
)  # fmt: skip
def test_damaged_sublog_is_corrupt_and_named(damaged: bytes) -> None:
    with pytest.raises(Corrupt, match=r"txns/7\.json"):
        Sublog.decode(damaged, "txns/7.json")


def _sublog(first: int, *names: str) -> Sublog:
    return Sublog("t", "a", "p", 0, first, tuple(Saved(name) for name in names))


def _names(records: list[Record]) -> str:
    return "".join(record.name for record in records if isinstance(record, Saved))


def test_records_are_joined_by_their_place() -> None:
    assert _names(join([_sublog(2, "c"), _sublog(0, "a", "b")])) == "abc"


def test_records_that_were_tried_again_count_once() -> None:
    assert _names(join([_sublog(0, "a"), _sublog(0, "a", "b"), _sublog(2, "c")])) == "abc"


def test_records_end_where_one_is_missing() -> None:
    assert _names(join([_sublog(0, "a"), _sublog(2, "c")])) == "a"


def _left(*attempts: str) -> list[Left]:
    return [Left(attempt, 0, (), ()) for attempt in attempts]


@pytest.mark.parametrize(
    ("attempts", "named", "expected"),
    [
        (["1", "2"], None, "2"),
        (["1", "2"], "1", "2"),
        (["1", "2", "3"], "2", "2"),
        (["1", "2"], "9", "2"),
    ],
)
def test_attempt_that_took_over_last_is_gone_on_with(
    attempts: list[str], named: str | None, expected: str
) -> None:
    assert newest(_left(*attempts), "1", named).attempt == expected
