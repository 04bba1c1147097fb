"""Rows of one file in the walk of a decided commit: others change rows between slot and publishing."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.environment import SystemEnvironment
from lakevilla.store.adapters.directory import Directory
from tests.support.hooked import Hooked

COUNT = 200
BY_SLOT = [lv.CT, lv.R | lv.CT, lv.R | lv.CT | lv.I]
OURS = tuple(range(0, 120, 3))
THEIRS = tuple(range(1, 121, 3))


class Died(BaseException):
    """A client ends in the middle of its commit."""


@pytest.fixture
def store(tmp_path: Path) -> Hooked:
    return Hooked(Directory(str(tmp_path), SystemEnvironment()))


@pytest.fixture
def lake(store: Hooked, tmp_path: Path) -> lv.Lake:
    lake = lv.Lake(tmp_path, engine="local", store=store, merge_on_read=True)
    lake.create("t", pa.table({"id": list(range(COUNT)), "v": [0] * COUNT}))
    lake.create("other", pa.table({"id": [1], "v": [0]}))
    return lake


@pytest.fixture
def second(lake: lv.Lake, tmp_path: Path) -> lv.Lake:
    """A client that commits without slots."""
    options = {"fsync": "false"}
    return lv.Lake(
        tmp_path, engine="local", storage_options=options, merge_on_read=True, features=lv.Features.NONE
    )


def before_publish(store: Hooked, acts: dict[str, Callable[[], object]]) -> None:
    """Let others act right before the first version of a table that a commit creates."""

    def hook(kind: str, key: str) -> None:
        table = key.partition("/_delta_log/")[0]
        if kind == "create" and table in acts:
            acts.pop(table)()

    store.hook = hook


def values(lake: lv.Lake, table: str = "t") -> dict[int, int]:
    rows = [tuple(row) for row in lake.sql(f"SELECT id, v FROM {table}").collect()]
    assert len(dict(rows)) == len(rows)
    return dict(rows)


def without(*gone: int) -> dict[int, int]:
    return {key: 0 for key in range(COUNT) if key not in gone}


def operations(lake: lv.Lake, table: str) -> list[str]:
    return [entry.operation for entry in lake.history(table)]


@pytest.mark.parametrize("features", BY_SLOT)
def test_commit_of_other_rows_before_the_publish_is_merged(
    lake: lv.Lake, second: lv.Lake, store: Hooked, features: lv.Features
) -> None:
    with lake.transaction(features) as tx:
        tx.sql(f"DELETE FROM t WHERE id IN {OURS}")
        tx.sql("UPDATE other SET v = 1")
        before_publish(store, {"t": lambda: second.sql(f"DELETE FROM t WHERE id IN {THEIRS}")})
    assert tx.receipt is not None
    assert tx.receipt.redone == 0
    assert "ROLLBACK" not in operations(second, "t")
    assert values(second) == without(*OURS, *THEIRS)


@pytest.mark.parametrize("features", [lv.R | lv.CT, lv.R | lv.CT | lv.I])
def test_merged_part_is_rolled_back_to_the_rows_that_others_left(
    lake: lv.Lake, second: lv.Lake, store: Hooked, features: lv.Features
) -> None:
    with lake.transaction(features) as tx:
        tx.sql(f"DELETE FROM t WHERE id IN {OURS}")
        tx.sql("UPDATE other SET v = v + 1")
        acts: dict[str, Callable[[], object]] = {
            "t": lambda: second.sql(f"DELETE FROM t WHERE id IN {THEIRS}"),
            "other": lambda: second.sql("UPDATE other SET v = 10"),
        }
        before_publish(store, acts)
    assert "ROLLBACK" in operations(second, "t")
    assert values(second) == without(*OURS, *THEIRS)
    assert values(second, "other") == {1: 11}
    (inverse,) = [entry.version for entry in second.history("t") if entry.operation == "ROLLBACK"]
    rows = second.sql(f"SELECT id, v FROM t VERSION AS OF {inverse}").collect()
    assert dict(tuple(row) for row in rows) == without(*THEIRS)


@pytest.mark.parametrize("features", BY_SLOT)
def test_helper_merges_what_the_dead_owner_decided(
    lake: lv.Lake, second: lv.Lake, store: Hooked, features: lv.Features
) -> None:
    def die() -> None:
        second.sql(f"DELETE FROM t WHERE id IN {THEIRS}")
        raise Died

    tx = lake.transaction(features)
    tx.sql(f"DELETE FROM t WHERE id IN {OURS}")
    tx.sql("UPDATE other SET v = 1")
    before_publish(store, {"t": die})
    with pytest.raises(Died):
        tx.commit()
    store.hook = None
    second.recover()
    assert values(second) == without(*OURS, *THEIRS)
    assert second.outcome(tx.id).state == "committed"


@pytest.mark.parametrize("features", [lv.R | lv.CT, lv.R | lv.CT | lv.I])
def test_same_row_before_the_publish_is_rolled_back_and_redone(
    lake: lv.Lake, second: lv.Lake, store: Hooked, features: lv.Features
) -> None:
    with lake.transaction(features) as tx:
        tx.sql("UPDATE t SET v = v + 1 WHERE id = 5")
        tx.sql("UPDATE other SET v = 1")
        before_publish(store, {"t": lambda: second.sql("UPDATE t SET v = 10 WHERE id = 5")})
    assert tx.receipt is not None
    assert tx.receipt.redone == 1
    assert values(second)[5] == 11
