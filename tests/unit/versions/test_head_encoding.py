"""How HEAD lies on the store: golden bytes, what decoding refuses, and that steps lead where they should."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakevilla.errors import Corrupt, Unsupported
from lakevilla.model import Batch, TableRef
from lakevilla.versions.batches import Done
from lakevilla.versions.commits import Commit, Void
from lakevilla.versions.head_encoding import Packed, pack, pack_past, unpack, unpack_past
from lakevilla.versions.head_steps import Step, decode_step, difference, encode_step, follow
from lakevilla.versions.records import DropTable, Entry, Head

ACCOUNTS = TableRef("accounts", "accounts", "delta")
ORDERS = TableRef("sales.Örders", "s3://other/orders", "delta")

STATE = Head(
    lake="lake-1",
    seq=7,
    put="",
    tables={"accounts": ACCOUNTS, "sales.Örders": ORDERS},
    dropped=frozenset({"old", "accounts-1"}),
    versions={"s3://other/orders": 3, "accounts": 12},
    torn=frozenset({"accounts"}),
    owned=frozenset({"s3://other/orders", "accounts"}),
    time_ms=1000,
    tags={"month-end": 4},
    horizon=2,
    ticket=5,
)
DROPPED = replace(
    STATE,
    seq=8,
    put="put-2",
    tables={"sales.Örders": ORDERS},
    dropped=frozenset({"old", "accounts-1", "accounts"}),
    versions={"s3://other/orders": 4},
    owned=frozenset({"s3://other/orders"}),
    time_ms=1010,
    tags={"month-end": 4, "now": 8},
    horizon=3,
)
DROP = Entry(8, "t8", "a8", "p8", 1010, DropTable(ACCOUNTS, 12))
STEP = difference(STATE, DROPPED, DROP, published=True)
PACKED = Packed(STATE, (STEP,))

STEP_TEXT = (
    '{"seq":8,"time_ms":1010,"txn":"t8","kind":"drop","published":true,"tables":{"accounts":null},'
    '"versions":{"accounts":null,"s3://other/orders":4},"tags":{"now":8},'
    '"dropped":{"added":["accounts"],"removed":[]},"owned":{"added":[],"removed":["accounts"]},"horizon":3}'
)
BASE_TEXT = (
    '{"seq":7,"time_ms":1000,"tables":{"accounts":{"location":"accounts","format":"delta"},'
    '"sales.Örders":{"location":"s3://other/orders","format":"delta"}},'
    '"versions":{"accounts":12,"s3://other/orders":3},"tags":{"month-end":4},"dropped":["accounts-1","old"],'
    '"torn":["accounts"],"owned":["accounts","s3://other/orders"],"horizon":2,"ticket":5}'
)
HEAD_BYTES = (
    f'{{"format":2,"lake":"lake-1","seq":8,"put":"put-2","base":{BASE_TEXT},"steps":[{STEP_TEXT}]}}'
).encode()
FORMAT_1 = (
    '{"format":1,"lake":"lake-1","seq":7,"put":"put-1","tables":{'
    '"accounts":{"location":"accounts","format":"delta"},'
    '"sales.Örders":{"location":"s3://other/orders","format":"delta"}},'
    '"dropped":["accounts-1","old"],"versions":{"accounts":12,"s3://other/orders":3},"torn":["accounts"],'
    '"owned":["accounts","s3://other/orders"]}'
).encode()


def test_head_packs_to_its_golden_bytes_and_back() -> None:
    assert pack(PACKED, "put-2", inline=True) == HEAD_BYTES
    outline = unpack(HEAD_BYTES, "HEAD")
    assert (outline.lake, outline.put, outline.base, outline.base_seq) == ("lake-1", "put-2", STATE, 7)
    assert Packed(STATE, outline.steps) == PACKED
    assert replace(PACKED.head, put="put-2") == DROPPED


def test_head_that_names_its_base_packs_to_its_golden_bytes_and_back() -> None:
    golden = f'{{"format":2,"lake":"lake-1","seq":8,"put":"p","base":{{"seq":7}},"steps":[{STEP_TEXT}]}}'
    assert pack(PACKED, "p", inline=False) == golden.encode()
    outline = unpack(golden.encode(), "HEAD")
    assert (outline.base, outline.base_seq, outline.steps) == (None, 7, (STEP,))


def test_what_is_put_aside_packs_to_its_golden_bytes_and_back() -> None:
    golden = f'{{"format":2,"lake":"lake-1","seq":8,"base":{BASE_TEXT},"steps":[{STEP_TEXT}]}}'.encode()
    assert pack_past(PACKED) == golden
    assert unpack_past(golden, "it") == PACKED
    assert (unpack_past(golden, "it").at(7), PACKED.at(8)) == (STATE, replace(DROPPED, put=""))


def test_head_of_the_first_format_is_a_state_without_steps() -> None:
    outline = unpack(FORMAT_1, "HEAD")
    assert outline.base == replace(STATE, time_ms=0, tags={}, horizon=0, ticket=0)
    assert (outline.put, outline.base_seq, outline.steps) == ("put-1", 7, ())


def test_newer_record_format_is_refused_with_the_version_it_needs() -> None:
    newer = HEAD_BYTES.replace(b'"format":2,"lake"', b'"format":6,"lake"')
    with pytest.raises(Unsupported, match="record format 6, and this LakeVilla reads up to 5"):
        unpack(newer, "HEAD")


def test_head_that_gives_up_tables_has_a_format_that_earlier_releases_refuse() -> None:
    data = pack(PACKED, "put-2", True, frozenset({"b", "a"}))
    assert data.startswith(b'{"format":3,')
    assert b'"given_up":["a","b"]' in data
    assert unpack(data, "HEAD").given_up == {"a", "b"}
    assert unpack(HEAD_BYTES, "HEAD").given_up == frozenset()


def test_head_that_keeps_batches_has_a_format_that_earlier_releases_refuse() -> None:
    committed = replace(STATE, seq=8, batches={"etl": Done(3, 8)})
    entry = Entry(8, "t8", "a8", "p8", 1010, Commit((), once=Batch("etl", 3)))
    packed = Packed(STATE, (difference(STATE, committed, entry, published=True),))
    for kept in (packed, Packed(committed)):
        for data in (pack(kept, "put-2", True), pack(kept, "put-2", False), pack_past(kept)):
            assert data.startswith(b'{"format":4,')
        assert unpack_past(pack_past(kept), "heads").head.batches == {"etl": Done(3, 8)}


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b'{"format":"1"}',
        FORMAT_1[:-10],
        FORMAT_1.replace(b'"seq":7', b'"seq":"7"'),
        FORMAT_1.replace(b'"seq":7', b'"seq":true'),
        FORMAT_1.replace(b'"location":"accounts"', b'"location":null'),
        FORMAT_1.replace(b'"dropped":["accounts-1","old"]', b'"dropped":5'),
        FORMAT_1.replace(b'"lake":"lake-1",', b""),
        HEAD_BYTES.replace(b'"seq":8,"put"', b'"seq":9,"put"'),
        HEAD_BYTES.replace(b'{"seq":8,"time', b'{"seq":9,"time'),
        HEAD_BYTES.replace(b'"put":"put-2",', b""),
        HEAD_BYTES.replace(b'"accounts":null}', b'"accounts":{}}'),
        HEAD_BYTES.replace(b'"horizon":3', b'"horizon":"3"'),
        HEAD_BYTES.replace(b'"seq":7,"time_ms":1000,"tables"', b'"seq":7,"time_ms":1000,"taples"'),
    ],
)
def test_damaged_head_is_corrupt_and_named(damaged: bytes) -> None:
    assert damaged not in (FORMAT_1, HEAD_BYTES)
    with pytest.raises(Corrupt, match=r"lake/HEAD\.json"):
        unpack(damaged, "lake/HEAD.json")


def test_past_that_names_its_base_only_is_corrupt() -> None:
    with pytest.raises(Corrupt, match="not a valid record"):
        unpack_past(pack(PACKED, "p", inline=False), "it")


NAMES = st.text(alphabet="aβ", max_size=2)
PLACES = st.frozensets(NAMES, max_size=4)
NUMBERS = st.integers(0, 3)
REFS = st.dictionaries(NAMES, st.sampled_from(["p", "s3://q"]), max_size=4).map(
    lambda places: {name: TableRef(name, place, "delta") for name, place in places.items()}
)
PARTS = st.fixed_dictionaries(
    {
        "tables": REFS,
        "dropped": PLACES,
        "versions": st.dictionaries(NAMES, NUMBERS, max_size=4),
        "torn": PLACES,
        "owned": PLACES,
        "tags": st.dictionaries(NAMES, NUMBERS, max_size=4),
        "horizon": NUMBERS,
        "ticket": NUMBERS,
        "time_ms": NUMBERS,
    }
)
HISTORIES = st.lists(PARTS, min_size=1, max_size=6).map(
    lambda many: [Head("lake", seq, "", **parts) for seq, parts in enumerate(many)]
)


@given(HISTORIES)
def test_steps_between_any_states_lead_from_one_to_the_other_also_when_they_were_stored(
    states: list[Head],
) -> None:
    steps: list[Step] = []
    for seq, (old, new) in enumerate(pairwise(states), 1):
        step = difference(old, new, Entry(seq, "t", "a", "p", new.time_ms, Void()), seq % 2 == 0)
        assert decode_step(encode_step(step)) == step
        assert follow(old, [step]) == new
        steps.append(step)
    packed = unpack_past(pack_past(Packed(states[0], tuple(steps))), "it")
    assert [packed.at(state.seq) for state in states] == states
    assert packed.head == states[-1]


@given(PARTS)
def test_step_between_equal_states_names_no_part(parts: dict[str, object]) -> None:
    state = Head("lake", 1, "", **parts)  # type: ignore[arg-type]
    copy = replace(state, tables=dict(state.tables), versions=dict(state.versions))
    step = difference(state, copy, Entry(1, "t", "a", "p", 1, Void()), True)
    assert (step.maps, step.added, step.removed, step.numbers) == ({}, {}, {}, {})
