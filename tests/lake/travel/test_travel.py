"""Time travel over the whole lake: by number, time and tag, and what cannot be found is said so."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.environment import SystemEnvironment
from lakevilla.store import keys
from lakevilla.store.metered import KINDS, Meter, Metered
from lakevilla.store.open import open_store
from lakevilla.versions.head_encoding import STEPS_KEPT
from tests.support.clocks import Days

pytestmark = pytest.mark.formats("delta", "iceberg")

OPTIONS = {"fsync": "false"}


@pytest.fixture
def clock() -> Days:
    return Days()


@pytest.fixture
def lake(tmp_path: Path, clock: Days) -> lv.Lake:
    return lv.Lake(tmp_path, engine="local", storage_options=OPTIONS, environment=clock)


def _ids(lake: Any, name: str) -> list[int]:
    return sorted(row.id for row in lake.read(name).collect())


def _transfer(lake: lv.Lake, number: int) -> int:
    """One entry that changes both tables."""
    with lake.transaction() as tx:
        tx.append("a", [{"id": number}])
        tx.append("b", [{"id": -number}])
    assert tx.receipt is not None
    assert tx.receipt.seq is not None
    return tx.receipt.seq


@pytest.fixture
def seqs(lake: lv.Lake) -> list[int]:
    lake.create("a", "id BIGINT")
    lake.create("b", "id BIGINT")
    return [_transfer(lake, number) for number in (1, 2, 3)]


def test_lake_at_an_entry_has_every_table_as_it_was_then(lake: lv.Lake, seqs: list[int]) -> None:
    for number, seq in enumerate(seqs, 1):
        then = lake.at(seq=seq)
        assert then.seq == seq
        assert _ids(then, "a") == list(range(1, number + 1))
        assert _ids(then, "b") == list(range(-number, 0))
        both = then.sql("SELECT a.id, b.id FROM a JOIN b ON a.id = -b.id WHERE a.id >= :least", least=2)
        assert len(both.collect()) == number - 1


def test_tables_come_go_and_change_their_names_with_time(lake: lv.Lake, seqs: list[int], begin: int) -> None:
    lake.rename("a", "c")
    lake.drop("b")
    lake.create("b", pa.table({"id": [77]}))
    assert lake.at(seq=0).tables() == []
    assert lake.at(seq=1).tables() == ["a"]
    assert lake.at(seq=seqs[-1]).tables() == ["a", "b"]
    assert lake.at(seq=seqs[-1] + 1).tables() == ["b", "c"]
    assert lake.at(seq=seqs[-1] + 2).tables() == ["c"]
    assert _ids(lake.at(seq=seqs[0]), "B") == [-1]
    assert _ids(lake.at(seq=seqs[-1] + 3), "b") == [77]
    assert [row[0] for row in lake.at(seq=seqs[0]).sql("SHOW TABLES").collect()] == ["a", "b"]
    assert lake.at(seq=seqs[0]).versions == {"a": begin + 1, "b": begin + 1}


def test_lake_at_a_time_is_the_newest_entry_until_then(lake: lv.Lake, seqs: list[int], clock: Days) -> None:
    clock.pass_days(1)
    before = datetime.fromtimestamp(clock.now_ms() / 1000, UTC)
    clock.pass_days(1)
    later = _transfer(lake, 4)
    assert lake.at(before).seq == seqs[-1]
    assert lake.at(before.isoformat()).seq == seqs[-1]
    assert lake.at(before + timedelta(days=1, minutes=5)).seq == lake.at("9999-01-01").seq == later
    assert lake.at(before).time < before
    with pytest.raises(
        lv.InvalidInput, match=r"2001-01-01 00:00:00Z is too early: .* begins with entry 0, of"
    ):
        lake.at("2001-01-01")


def test_time_between_entries_that_were_put_aside_long_ago_is_found(
    lake: lv.Lake, clock: Days, begin: int
) -> None:
    lake.create("a", "id BIGINT")
    times: dict[int, int] = {}
    for number in range(3 * STEPS_KEPT + 3):
        clock.pass_days(0.5)
        lake.append("a", [{"id": number}])
        times[lake.history(limit=1)[0].seq] = clock.now_ms()
    assert len(times) == 3 * STEPS_KEPT + 3
    for seq, at in times.items():
        assert lake.at(datetime.fromtimestamp(at / 1000 + 3600, UTC)).seq == seq
        assert lake.at(seq=seq).versions == {"a": begin + seq - 1}


def test_clock_that_goes_back_does_not_make_times_go_back(
    lake: lv.Lake, seqs: list[int], clock: Days
) -> None:
    clock.pass_days(-3)
    late = _transfer(lake, 4)
    entries = lake.history()
    assert [entry.seq for entry in entries] == list(range(late, 0, -1))
    assert all(one.time_ms >= other.time_ms for one, other in pairwise(entries))
    assert lake.at(seq=late).time == lake.at(seq=seqs[-1]).time


def test_tag_names_now_with_what_others_wrote_until_now(lake: lv.Lake, seqs: list[int]) -> None:
    with lake.transaction(lv.NONE) as tx:
        tx.append("a", [{"id": 10}])
    at = lake.tag("month-end")
    _transfer(lake, 11)
    assert at == seqs[-1] + 1
    assert lake.tags() == {"month-end": at}
    assert _ids(lake.at(tag="month-end"), "a") == [1, 2, 3, 10]
    assert lake.at("month-end").seq == at
    lake.untag("month-end")
    assert lake.tags() == {}
    with pytest.raises(lv.InvalidInput, match="unknown tag 'month-end'; available: none"):
        lake.at(tag="month-end")


@pytest.mark.parametrize("how", [lambda s: s, lambda s: str(s), lambda s: "other"])
def test_tag_can_name_any_instant_that_is_kept(
    lake: lv.Lake, seqs: list[int], how: Callable[[int], object], begin: int
) -> None:
    lake.tag("other", at=lake.at(seq=seqs[0]))
    assert lake.tag("first", at=how(seqs[0])) == seqs[0]
    assert lake.at(tag="first").versions == {"a": begin + 1, "b": begin + 1}


def test_second_tag_of_a_name_is_refused_and_tells_where_the_first_is(lake: lv.Lake, seqs: list[int]) -> None:
    lake.tag("x", at=seqs[0])
    with pytest.raises(lv.InvalidInput, match=f"tag 'x' already exists, at entry {seqs[0]}: call lake.untag"):
        lake.tag("x")
    with pytest.raises(lv.InvalidInput, match="unknown tag 'y'; available: 'x'"):
        lake.untag("y")


WRONG: Mapping[str, tuple[Callable[[lv.Lake], object], str]] = {
    "later": (lambda lake: lake.at(seq=99), "unknown entry 99 of the lake; the newest is 5"),
    "negative": (lambda lake: lake.at(seq=-1), "unknown entry -1"),
    "no number": (lambda lake: lake.at(seq="x"), "whole number"),  # type: ignore[arg-type]
    "a flag": (lambda lake: lake.at(True), "whole number"),
    "nothing": (lambda lake: lake.at(), "expected exactly one of"),
    "too much": (lambda lake: lake.at("2026-01-01", seq=3), "expected exactly one of"),
    "no such tag": (lambda lake: lake.at("nightly"), "unknown tag 'nightly'; available: none"),
    "no time": (lambda lake: lake.at("2026-99"), "is not a time"),
    "tag of a number": (lambda lake: lake.tag("7"), "cannot be a tag"),
    "untag of none": (lambda lake: lake.untag(""), "cannot be a tag"),
    "negative limit": (lambda lake: lake.history(limit=-1), "cannot be negative"),
}


@pytest.mark.parametrize("case", WRONG)
def test_instant_that_cannot_be_is_refused_with_what_there_is(
    lake: lv.Lake, seqs: list[int], case: str
) -> None:
    ask, reason = WRONG[case]
    assert seqs[-1] == 5
    with pytest.raises(lv.InvalidInput, match=reason):
        ask(lake)


def test_lake_that_nobody_has_changed_has_no_instants(lake: lv.Lake) -> None:
    assert lake.history() == []
    assert lake.tags() == {}
    with pytest.raises(lv.InvalidInput, match="no instants yet"):
        lake.at(seq=0)


CHANGES: Mapping[str, Callable[[lv.PastLake], object]] = {
    "append": lambda past: past.append("a", [{"id": 9}]),
    "overwrite": lambda past: past.overwrite("a", [{"id": 9}]),
    "update": lambda past: past.update("a", {"id": 9}),
    "delete": lambda past: past.delete("a"),
    "merge": lambda past: past.merge("a", [{"id": 9}], on="target.id = source.id", not_matched="insert"),
    "create": lambda past: past.create("c", "id BIGINT"),
    "create as": lambda past: past.create("c", pa.table({"id": [1]})),
    "drop": lambda past: past.drop("a"),
    "rename": lambda past: past.rename("a", "c"),
    "register": lambda past: past.register("c", f"{past.url}/a"),
    "add column": lambda past: past.add_column("a", "v", "INT"),
    "insert": lambda past: past.sql("INSERT INTO a VALUES (9)"),
    "create by SQL": lambda past: past.sql("CREATE TABLE c AS SELECT * FROM a"),
    "drop by SQL": lambda past: past.sql("DROP TABLE a"),
}


@pytest.mark.parametrize("verb", CHANGES)
def test_change_of_the_past_is_refused_and_leaves_nothing(
    lake: lv.Lake, seqs: list[int], tmp_path: Path, verb: str
) -> None:
    past = lake.at(seq=seqs[1])
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(lv.InvalidInput, match="cannot change the lake at entry 4"):
        CHANGES[verb](past)
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == before


def test_version_beside_an_instant_is_refused(lake: lv.Lake, seqs: list[int]) -> None:
    past = lake.at(seq=seqs[1])
    with pytest.raises(lv.InvalidInput, match="Leave the version out"):
        past.read("a", version=1)
    with pytest.raises(lv.InvalidInput, match="Leave the version out"):
        past.sql("SELECT * FROM a VERSION AS OF 1").collect()


def test_description_and_history_of_a_table_end_at_the_instant(
    lake: lv.Lake, seqs: list[int], begin: int
) -> None:
    lake.add_column("a", "v", "INT")
    past = lake.at(seq=seqs[1])
    assert [row.col_name for row in past.sql("DESCRIBE a").collect()] == ["id"]
    assert [row.version for row in past.sql("DESCRIBE HISTORY a").collect()] == [begin + 2, begin + 1, begin]


def test_table_that_was_not_there_is_said_so_with_what_was(lake: lv.Lake, seqs: list[int]) -> None:
    lake.create("accounts", "id BIGINT")
    with pytest.raises(lv.InvalidInput) as caught:
        lake.at(seq=seqs[0]).read("accounts")
    assert caught.value.table == "accounts"
    with pytest.raises(lv.InvalidInput, match="did you mean 'accounts'"):
        lake.at(lake.history(limit=1)[0].seq).read("account")


def test_table_of_which_no_version_was_part_of_the_instant_is_said_so(
    lake: lv.Lake, seqs: list[int], tmp_path: Path
) -> None:
    other = lv.Lake(tmp_path / "elsewhere", engine="local", storage_options=OPTIONS)
    other.create("x", pa.table({"id": [5]}))
    lake.register("x", f"{other.url}/x")
    then = lake.at(seq=seqs[-1] + 1)
    assert then.tables() == ["a", "b"]
    assert then.export().unknown == ("x",)
    with pytest.raises(lv.InvalidInput) as caught:
        then.read("x")
    assert caught.value.table == "x"
    lake.sync()
    assert _ids(lake.at(lake.history(limit=1)[0].seq), "x") == [5]


def test_repr_tells_the_lake_and_the_instant(lake: lv.Lake, seqs: list[int], tmp_path: Path) -> None:
    assert repr(lake.at(seq=4)).startswith(f"PastLake('file://{tmp_path}', entry 4, 20")


def test_history_of_the_lake_tells_what_each_entry_did(lake: lv.Lake, seqs: list[int], begin: int) -> None:
    lake.tag("x")
    lake.rename("a", "c")
    lake.drop("b")
    lake.untag("x")
    told = [(e.seq, e.kind, dict(e.tables), dict(e.tags)) for e in lake.history()]
    assert told[::-1] == [
        (1, "commit", {"a": begin}, {}),
        (2, "commit", {"b": begin}, {}),
        *((3 + n, "commit", {"a": begin + 1 + n, "b": begin + 1 + n}, {}) for n in range(3)),
        (6, "tag", {}, {"x": 5}),
        (7, "rename", {"a": None, "c": begin + 3}, {}),
        (8, "commit", {"b": None}, {}),
        (9, "untag", {}, {"x": None}),
    ]
    assert [entry.seq for entry in lake.history(limit=2)] == [9, 8]
    assert all(entry.published and len(entry.txn) == 32 for entry in lake.history())


def test_history_goes_on_where_head_rolled(lake: lv.Lake) -> None:
    lake.create("a", "id BIGINT")
    for number in range(STEPS_KEPT + 5):
        lake.append("a", [{"id": number}])
    seqs = [entry.seq for entry in lake.history()]
    assert seqs == list(range(STEPS_KEPT + 6, 0, -1))
    assert [entry.seq for entry in lake.history(limit=STEPS_KEPT)] == seqs[:STEPS_KEPT]


@pytest.mark.formats("delta")
def test_lake_of_the_first_format_tells_from_where_on_it_keeps_instants(
    lake: lv.Lake, seqs: list[int], tmp_path: Path
) -> None:
    store = open_store(str(tmp_path), OPTIONS, environment=SystemEnvironment())
    old = (
        '{"format":1,"lake":"l","seq":5,"put":"p","tables":{"a":{"location":"a","format":"delta"}},"dropped":[],'
        '"versions":{"a":3},"torn":[],"owned":["a"]}'
    )
    store.put(keys.HEAD, old.encode())
    lake = lv.Lake(tmp_path, engine="local", storage_options=OPTIONS)
    assert _ids(lake.at(seq=seqs[-1]), "a") == [1, 2, 3]
    lake.append("a", [{"id": 4}])
    for number in range(STEPS_KEPT):
        lake.tag(f"t{number}", at=6)
    assert _ids(lake.at(seq=5), "a") == [1, 2, 3]
    with pytest.raises(lv.InvalidInput, match=r"a release that did not keep .* begin with entry 5"):
        lake.at(seq=4)
    with pytest.raises(lv.InvalidInput, match=r"too early: what is kept begins with entry 5$"):
        lake.at("2001-01-01")


def test_reading_an_instant_costs_head_and_each_table_at_its_version(
    lake: lv.Lake, tmp_path: Path, begin: int
) -> None:
    lake.create("a", pa.table({"id": [0]}))
    for number in range(2 * STEPS_KEPT + 9):
        lake.append("a", [{"id": number}])
    meter = Meter()
    store = Metered(open_store(str(tmp_path), OPTIONS, environment=SystemEnvironment()), meter)
    fresh = lv.Lake(tmp_path, engine="local", store=store)
    for seq, cost in ((70, {"get": 1}), (3, {"get": 2, "list": 1})):
        before = meter.snapshot()
        then = fresh.at(seq=seq)
        after = meter.snapshot()
        assert {kind: after[kind] - before[kind] for kind in KINDS if after[kind] > before[kind]} == cost
        assert then.versions == {"a": begin + seq - 1}
