"""Decoded HEADs that clients of one process share: they cannot be changed, and few are kept."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from types import MappingProxyType
from typing import Any

import pytest

from lakevilla.errors import Corrupt
from lakevilla.model import Batch, TableRef
from lakevilla.versions import head_encoding
from lakevilla.versions.batches import Done
from lakevilla.versions.commits import Commit
from lakevilla.versions.head_encoding import HEAD_BYTES, Packed, pack, pack_past, unpack, unpack_past
from lakevilla.versions.head_steps import MAPS, difference, follow
from lakevilla.versions.records import Entry, Head
from lakevilla.versions.views import View, ViewColumn

ACCOUNTS = TableRef("accounts", "accounts", "delta")
VIEW = View("v", "SELECT 1 AS one", (ViewColumn("one", "one", "INT"),), "all of it")
STATE = Head(
    lake="lake-1",
    seq=7,
    put="",
    tables={"accounts": ACCOUNTS},
    dropped=frozenset({"old"}),
    versions={"accounts": 12},
    torn=frozenset({"accounts"}),
    owned=frozenset({"accounts"}),
    tags={"month-end": 4},
    horizon=2,
    doomed=frozenset({"old"}),
    ids={"accounts": "id-1"},
    batches={"etl": Done(2, 5)},
    views={"v": VIEW},
)
AFTER = replace(
    STATE,
    seq=8,
    tables={"savings": TableRef("savings", "savings", "iceberg")},
    dropped=frozenset({"accounts"}),
    versions={"savings": 1},
    tags={"now": 8},
    horizon=3,
    ids={"savings": "id-2"},
    batches={"etl": Done(3, 8)},
    views={"w": replace(VIEW, name="w")},
)
ENTRY = Entry(8, "t8", "a8", "p8", 1010, Commit((), once=Batch("etl", 3)))
PACKED = Packed(STATE, (difference(STATE, AFTER, ENTRY, published=True),))
DATA = pack(PACKED, "put-2", inline=True, given_up=frozenset({"savings"}))


@pytest.fixture(autouse=True)
def empty_cache() -> None:
    head_encoding._unpack_kept.cache_clear()


def changeable(value: Any, where: str = "it") -> list[str]:
    """The places in a value that a caller could change."""
    match value:
        case None | bool() | int() | str():
            return []
        case tuple() | frozenset():
            parts = {f"{where}[{index}]": one for index, one in enumerate(value)}
        case MappingProxyType():
            parts = {f"{where}[{key!r}]": value[key] for key in value}
        case _ if is_dataclass(value) and type(value).__dataclass_params__.frozen:  # type: ignore[attr-defined]
            parts = {f"{where}.{field.name}": getattr(value, field.name) for field in fields(value)}
        case _:
            return [f"{where}: {type(value).__name__}"]
    return [found for place, part in parts.items() for found in changeable(part, place)]


def test_nothing_of_a_decoded_head_can_be_changed() -> None:
    outline = unpack(DATA, "HEAD")
    assert outline.base is not None
    assert changeable(replace(outline, base=None)) == []
    # What the record does not have is empty, and made anew for each HEAD.
    stored = {name: getattr(outline.base, name) for name in MAPS}
    assert all(stored.values())
    assert changeable(tuple(stored.values())) == []
    with pytest.raises(TypeError):
        outline.base.tables["accounts"] = ACCOUNTS  # type: ignore[index]
    assert changeable(unpack_past(pack_past(PACKED), "it").steps) == []


def test_change_of_a_state_that_follows_changes_no_shared_head() -> None:
    outline = unpack(DATA, "HEAD")
    assert outline.base is not None
    after = follow(outline.base, outline.steps)
    assert after == replace(AFTER, put="")
    for name in MAPS:
        values = getattr(after, name)
        assert values is not getattr(outline.base, name)
        values.clear()
    again = unpack(bytes(bytearray(DATA)), "HEAD")
    assert again is outline
    assert again.base is not None
    assert follow(again.base, again.steps) == replace(AFTER, put="")


def test_every_part_of_a_state_with_values_is_a_proxy_when_read() -> None:
    base = unpack_past(pack_past(PACKED), "it").base
    assert {name for name in MAPS if isinstance(getattr(base, name), MappingProxyType)} == set(MAPS)
    mappings = {field.name for field in fields(Head) if isinstance(getattr(base, field.name), Mapping)}
    assert mappings == set(MAPS)


def test_few_heads_are_kept_and_no_large_one() -> None:
    for number in range(40):
        unpack(pack(PACKED, f"put-{number}", inline=True), "HEAD")
    assert head_encoding._unpack_kept.cache_info().currsize == head_encoding._HEADS_KEPT
    head_encoding._unpack_kept.cache_clear()
    many = {f"table-{number:05}": replace(ACCOUNTS, name=f"table-{number:05}") for number in range(2000)}
    large = pack(Packed(replace(STATE, tables=many)), "put", inline=True)
    assert len(large) > HEAD_BYTES
    first = unpack(large, "HEAD")
    assert first.base is not None
    assert len(first.base.tables) == 2000
    assert unpack(large, "HEAD") == first
    assert head_encoding._unpack_kept.cache_info().currsize == 0


def test_equal_bytes_in_two_lakes_are_reported_in_the_place_where_they_are() -> None:
    for where in ("one/HEAD.json", "two/HEAD.json", "one/HEAD.json"):
        with pytest.raises(Corrupt, match=where):
            unpack(DATA[:-5], where)
