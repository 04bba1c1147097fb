"""Golden bytes of the lake's own records, and what decoding refuses."""

import pytest

from lakevilla.errors import Corrupt
from lakevilla.model import Batch, ReadSet, TableRef
from lakevilla.predicates import ANYTHING, Compare
from lakevilla.versions.commits import NEW, Adopt, Adopted, Commit, Drop, Read, Void, Write
from lakevilla.versions.owner import Owner
from lakevilla.versions.records import (
    AnyChange,
    CreateTable,
    DropTable,
    Entry,
    RegisterTable,
    RenameTable,
)
from lakevilla.versions.tags import Expire, Tag, Untag

ACCOUNTS = TableRef("accounts", "accounts", "delta")
ORDERS = TableRef("sales.Örders", "s3://other/orders", "delta")

BY_KEY = Compare(("id",), "=", 3)

CHANGES: list[tuple[AnyChange, str]] = [
    (Void(), '{"kind":"void"}'),
    (Tag("Månad", 42), '{"kind":"tag","tag":"Månad","at":42}'),
    (Untag("Månad"), '{"kind":"untag","tag":"Månad"}'),
    (Expire(7), '{"kind":"expire","before":7}'),
    (
        Adopt((Adopted(ORDERS, 4),), frozenset({"b", "a"})),
        '{"kind":"adopt","tables":[{"name":"sales.Örders","location":"s3://other/orders","format":"delta",'
        '"version":4}],"mended":["a","b"]}',
    ),
    (
        Commit(
            (
                Write(
                    ACCOUNTS,
                    4,
                    {"actions": []},
                    ReadSet((Compare(("id",), "=", 3),), frozenset({"f"})),
                    False,
                ),
            ),
            (Read(ORDERS, 9, ReadSet((ANYTHING,))),),
        ),
        '{"kind":"commit","writes":[{"name":"accounts","location":"accounts","format":"delta","base":4,'
        '"change":{"actions":[]},"read":{"predicates":[["=",["id"],3]],"files":["f"]},"blind":false,"ticket":null,"exclusive":false}],"reads":[{"name":"sales.Örders",'
        '"location":"s3://other/orders","format":"delta","base":9,"read":{"predicates":[["anything"]],"files":[]}}],"drops":[],"ticket":null}',
    ),
    (
        Commit(
            (Write(ACCOUNTS, NEW, {"actions": []}, ReadSet(), False),),
            (),
            (Drop(ORDERS, None), Drop(TableRef("old", "old", "delta"), 7)),
        ),
        '{"kind":"commit","writes":[{"name":"accounts","location":"accounts","format":"delta","base":-1,'
        '"change":{"actions":[]},"read":{"predicates":[],"files":[]},"blind":false,"ticket":null,"exclusive":false}],"reads":[],'
        '"drops":[{"name":"sales.Örders","location":"s3://other/orders","format":"delta","base":null},'
        '{"name":"old","location":"old","format":"delta","base":7}],"ticket":null}',
    ),
    (
        CreateTable(ACCOUNTS, '{"commitInfo":{}}\n'),
        '{"kind":"create","name":"accounts","location":"accounts","format":"delta",'
        '"first":"{\\"commitInfo\\":{}}\\n"}',
    ),
    (
        RegisterTable(ORDERS),
        '{"kind":"register","name":"sales.Örders","location":"s3://other/orders","format":"delta"}',
    ),
    (
        RenameTable(ACCOUNTS, "konten", 12),
        '{"kind":"rename","name":"accounts","location":"accounts","format":"delta","to":"konten","base":12}',
    ),
    (
        DropTable(ACCOUNTS, 12),
        '{"kind":"drop","name":"accounts","location":"accounts","format":"delta","base":12}',
    ),
    (
        DropTable(ORDERS, None),
        '{"kind":"drop","name":"sales.Örders","location":"s3://other/orders","format":"delta","base":null}',
    ),
]


def test_owner_encodes_to_its_golden_bytes_and_back() -> None:
    golden = '{"format":1,"lake":"lake-1","url":"s3://bücket/lake","put":"put-1"}'.encode()
    owner = Owner("lake-1", "s3://bücket/lake", "put-1")
    assert owner.encode() == golden
    assert Owner.decode(golden, "owner.json") == owner


@pytest.mark.parametrize("damaged", [b"", b"[]", b'{"format":1}', b'{"format":1,"lake":7,"url":"","put":""}'])
def test_damaged_owner_is_corrupt_and_named(damaged: bytes) -> None:
    with pytest.raises(Corrupt, match=r"t/owner\.json"):
        Owner.decode(damaged, "t/owner.json")


@pytest.mark.parametrize(("change", "text"), CHANGES)
def test_entry_encodes_to_its_golden_bytes_and_back(change: AnyChange, text: str) -> None:
    entry = Entry(seq=3, txn="t", attempt="a", put="p", time_ms=1_000, change=change)
    golden = f'{{"format":1,"seq":3,"txn":"t","attempt":"a","put":"p","time_ms":1000,"change":{text}}}'
    assert entry.encode() == golden.encode()
    assert Entry.decode(golden.encode(), "entry 3") == entry


def test_entry_of_a_batch_has_a_format_that_earlier_releases_refuse() -> None:
    entry = Entry(3, "t", "a", "p", 1, Commit((), once=Batch("étl", 7)))
    data = entry.encode()
    assert data.startswith(b'{"format":2,')
    assert '"once":["étl",7]'.encode() in data
    assert Entry.decode(data, "entry 3") == entry
    with pytest.raises(Corrupt, match="entry 3"):
        Entry.decode(data.replace(b",7]", b"]"), "entry 3")


def test_unknown_kind_of_entry_is_corrupt() -> None:
    entry = Entry(3, "t", "a", "p", 1, RegisterTable(ACCOUNTS)).encode()
    with pytest.raises(Corrupt, match="unknown kind"):
        Entry.decode(entry.replace(b'"register"', b'"explode"'), "entry 3")
