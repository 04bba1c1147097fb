"""Markers in the log (lakevilla.markers = 'log'): versions held by transactions, empty until they commit.

`begin` is the first version of a table; the newest that the `lake` begins with is two above it.
"""

import json
import multiprocessing
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep

import pytest

import lakevilla as lv
from tests.support.lakes.marked import (
    entry,
    is_pending,
    legacy,
    marked_lake,
    open_lake,
    outsider,
    sent,
    value,
    versions,
)

pytestmark = pytest.mark.formats("delta", "iceberg")

SHORT = 0.2
"""The lease of clients who wait for a silent owner. Others have a long one, on slow machines too."""


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    return marked_lake(tmp_path)


def test_open_transaction_holds_the_next_version_by_an_empty_entry(
    lake: lv.Lake, tmp_path: Path, begin: int
) -> None:
    with lake.transaction(lv.R) as tx:
        tx.read("t").collect()
        assert versions(tmp_path) == 3, "a read-only transaction holds nothing"
        tx.update("t", {"v": 1}, where="id = 3")
        assert is_pending(tmp_path, begin + 3)
        assert legacy(tmp_path) == (begin + 3, 20, 0)
        tx.append("t", [{"id": 30, "v": 5}])
        assert versions(tmp_path) == 4
    assert tx.receipt is not None
    assert tx.receipt.versions == {"t": begin + 3}
    assert not is_pending(tmp_path, begin + 3)
    assert legacy(tmp_path) == (begin + 3, 21, 6)


REQUESTS = {
    # The miss and the data; whether anything lies above the marker; the data; the marker and the commit.
    "delta": {"get": 2, "list": 1, "put": 1, "create": 1, "replace": 1},
    # The same, by one GET; a manifest and the list of manifests; and besides the hint another look above.
    "iceberg": {"get": 2 + 1 + 1, "put": 1 + 2 + 1, "create": 1, "replace": 1},
}


def test_update_costs_a_look_and_one_replace_more_than_beside_the_log(
    lake: lv.Lake, table_format: str
) -> None:
    with lake.transaction(lv.R) as tx:
        tx.update("t", {"v": 1}, where="id = 3")
    assert tx.receipt is not None
    assert sent(tx.receipt.requests) == REQUESTS[table_format]
    with lake.transaction(lv.R) as tx:
        tx.read("t")
    assert tx.receipt is not None
    assert sent(tx.receipt.requests) == {"get": 1}


def test_readers_stop_before_a_marker_and_see_what_it_becomes(
    lake: lv.Lake, tmp_path: Path, begin: int
) -> None:
    warm, tx = open_lake(tmp_path), lake.transaction(lv.R)
    assert warm.read("t").count() == 20
    tx.append("t", [{"id": 30, "v": 5}])
    assert warm.read("t").count() == 20
    cold = open_lake(tmp_path)
    assert cold.read("t").count() == 20
    assert [h.version for h in cold.history("t", limit=2)] == [begin + 2, begin + 1]
    with pytest.raises(lv.InvalidInput) as caught:
        cold.sql(f"SELECT * FROM t VERSION AS OF {begin + 3}")
    assert caught.value.version == begin + 3
    tx.commit()
    for client in (warm, cold):
        assert (client.read("t").count(), value(client, 30)) == (21, 5)
    assert cold.sql(f"SELECT * FROM t VERSION AS OF {begin + 3}").count() == 21


def test_newest_version_is_what_a_time_after_a_pending_marker_means(lake: lv.Lake) -> None:
    tx = lake.transaction(lv.R)
    tx.append("t", [{"id": 30, "v": 5}])
    assert lake.read("t", at="2100-01-01").count() == 20
    tx.commit()
    assert lake.read("t", at="2100-01-01").count() == 21


def test_transactions_publish_in_the_order_of_their_markers(
    lake: lv.Lake, tmp_path: Path, begin: int
) -> None:
    first, second = lake.transaction(lv.R), lake.transaction(lv.R)
    first.update("t", {"v": "v + 1"}, where="id = 5")
    second.update("t", {"v": "v * 10"}, where="id = 5")
    third = lake.transaction(lv.R)
    third.append("t", [{"id": 30, "v": 0}])
    with ThreadPoolExecutor(2) as pool:
        later, last = pool.submit(second.commit), pool.submit(third.commit)
        sleep(0.2)
        assert [is_pending(tmp_path, begin + version) for version in (3, 4, 5)] == [True] * 3
        first.commit()
        assert (later.result().versions, later.result().redone) == ({"t": begin + 4}, 1)
        assert (last.result().versions, last.result().redone) == ({"t": begin + 5}, 0)
    assert (value(lake, 5), lake.read("t").count()) == (10, 21)
    assert legacy(tmp_path) == (begin + 5, 21, 10)


def test_abort_leaves_an_empty_version_and_lets_the_next_one_pass(
    lake: lv.Lake, tmp_path: Path, begin: int
) -> None:
    first, second = lake.transaction(lv.R), lake.transaction(lv.R)
    first.update("t", {"v": 7}, where="id = 5")
    second.update("t", {"v": "v + 1"}, where="id = 5")
    first.abort()
    assert legacy(tmp_path) == (begin + 4, 20, 0)
    assert not is_pending(tmp_path, begin + 3)
    assert second.commit().versions == {"t": begin + 4}
    assert (value(lake, 5), legacy(tmp_path)) == (1, (begin + 4, 20, 1))
    freed = lake.history("t")[1]
    assert (freed.version, freed.operation, freed.txn) == (begin + 3, "FREED MARKER", None)
    assert (freed.added, freed.removed) == ((), ())
    assert lake.outcome(first.id).state != "committed"


def test_version_freed_above_one_that_was_filled_later_hides_it_from_nobody(
    lake: lv.Lake, tmp_path: Path, begin: int
) -> None:
    warm, (first, second) = open_lake(tmp_path), (lake.transaction(lv.R), lake.transaction(lv.R))
    assert warm.read("t").count() == 20
    first.append("t", [{"id": 30, "v": 5}])
    second.append("t", [{"id": 31, "v": 7}])
    second.abort()
    assert [warm.read("t").count(), open_lake(tmp_path).read("t").count()] == [20, 20]
    assert legacy(tmp_path) == (begin + 4, 20, 0)
    assert first.commit().versions == {"t": begin + 3}
    assert [warm.read("t").count(), open_lake(tmp_path).read("t").count()] == [21, 21]
    assert legacy(tmp_path) == (begin + 4, 21, 5)
    for version, rows in ((2, 20), (3, 21), (4, 21)):
        assert lake.read("t", version=begin + version).count() == rows
    assert [len(one.added) for one in lake.history("t", limit=3)] == [0, 1, 1]
    lake.append("t", [{"id": 32, "v": 1}])
    assert (legacy(tmp_path), warm.read("t").count()) == ((begin + 5, 22, 6), 22)


def test_marker_freed_by_one_who_saw_those_below_pending_shows_what_they_became(
    lake: lv.Lake, tmp_path: Path, begin: int
) -> None:
    first, second, third = (lake.transaction(lv.R) for _ in range(3))
    for number, tx in enumerate((first, second, third), 30):
        tx.append("t", [{"id": number, "v": 1}])
    first.commit()
    third.abort()
    assert legacy(tmp_path) == (begin + 5, 21, 1)
    second.commit()
    assert legacy(tmp_path) == (begin + 5, 22, 2)


def test_run_again_keeps_its_version(lake: lv.Lake, begin: int) -> None:
    first = lake.transaction(lv.R)
    first.update("t", {"v": "v + 1"}, where="id = 5")
    seen: list[int] = []

    def work(tx: lv.Transaction) -> None:
        seen.append(value(tx, 5))
        tx.update("t", {"v": seen[-1] * 10}, where="id = 5")
        if len(seen) == 1:
            first.commit()

    receipt = lake.run(work)
    assert (seen, receipt.versions, receipt.attempts) == ([0, 1], {"t": begin + 4}, 2)
    assert value(lake, 5) == 10


@pytest.mark.parametrize("features", [lv.NONE, lv.CT, lv.R | lv.CT])
def test_other_features_are_refused_before_anything_is_written(
    lake: lv.Lake, tmp_path: Path, features: lv.Features
) -> None:
    before = set(tmp_path.rglob("*"))
    changes: list[Callable[[lv.Transaction], object]] = [
        lambda tx: tx.append("t", [{"id": 30, "v": 0}]),
        lambda tx: tx.update("t", {"v": 1}),
        lambda tx: tx.sql("ALTER TABLE t ADD COLUMNS (w BIGINT)"),
    ]
    for change in changes:
        with (
            pytest.raises(lv.Unsupported, match=r"only transactions with\s+lakevilla.R"),
            lake.transaction(features) as tx,
        ):
            change(tx)
    assert set(tmp_path.rglob("*")) == before


def test_tables_with_markers_in_the_log_can_be_read_beside_any_others(lake: lv.Lake) -> None:
    lake.create("u", "n BIGINT")
    with lake.transaction(lv.R | lv.CT) as tx:
        tx.sql("INSERT INTO u SELECT count(*) FROM t")
    assert lake.read("u").collect()[0].n == 20


def test_whoever_waits_frees_a_silent_owner_who_then_comes_after_it(
    lake: lv.Lake, tmp_path: Path, begin: int
) -> None:
    asleep = open_lake(tmp_path, SHORT).transaction(lv.R)
    asleep.update("t", {"v": "v + 1"}, where="id = 5")
    sleep(7 * SHORT)  # longer than an idle transaction beats
    with open_lake(tmp_path, SHORT).transaction(lv.R) as tx:
        tx.update("t", {"v": "v + 10"}, where="id = 5")
    assert tx.receipt is not None
    assert tx.receipt.versions == {"t": begin + 4}
    woken = asleep.commit()
    assert (woken.versions, woken.redone) == ({"t": begin + 5}, 1)
    assert (value(lake, 5), legacy(tmp_path)) == (11, (begin + 5, 20, 11))


def test_recover_frees_a_silent_owner_and_status_shows_it(lake: lv.Lake, tmp_path: Path, begin: int) -> None:
    lake = open_lake(tmp_path, SHORT)
    asleep = open_lake(tmp_path, SHORT).transaction(lv.R)
    asleep.update("t", {"v": "v + 1"}, where="id = 5")
    assert [(t.table, t.ticket, t.transaction) for t in lake.status().tickets] == [
        ("t", begin + 3, asleep.id)
    ]
    sleep(7 * SHORT)
    assert [ticket.ticket for ticket in lake.recover().freed] == [begin + 3]
    assert lake.status().tickets == ()
    assert lake.recover().freed == ()
    assert asleep.commit().versions == {"t": begin + 4}
    assert value(lake, 5) == 1


@pytest.mark.formats("delta")
def test_own_checkpoints_never_cover_a_marker(tmp_path: Path) -> None:
    lake = open_lake(tmp_path)
    properties = {"lakevilla.markers": "log", "delta.checkpointInterval": "1"}
    lake.create("t", "id BIGINT, v BIGINT", properties=properties)
    pending = [lake.transaction(lv.R) for _ in range(3)]
    for number, tx in enumerate(pending):
        tx.append("t", [{"id": number, "v": 1}])
    for number, tx in enumerate(pending):
        tx.commit()
        newest = max(int(path.name[:20]) for path in (tmp_path / "t/_delta_log").glob("*.checkpoint.*"))
        assert newest == number + 1
        assert legacy(tmp_path)[1:] == (number + 1, number + 1)
        assert open_lake(tmp_path).read("t").count() == number + 1


@pytest.mark.parametrize(
    ("properties", "error"),
    [
        ({"lakevilla.markers": "beside"}, lv.InvalidInput),
        ({"LakeVilla.Markers": "log"}, lv.InvalidInput),
        ({"lakevilla.markers": "log", "lakevilla.exclusive": "true"}, lv.Unsupported),
        ({"lakevilla.markers": "log", "delta.enableInCommitTimestamps": "true"}, lv.LakeVillaError),
    ],
)
def test_properties_that_cannot_be_are_refused(
    tmp_path: Path, properties: dict[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        open_lake(tmp_path).create("t", "id BIGINT", properties=properties)


@pytest.mark.parametrize(
    "change",
    [
        "SET TBLPROPERTIES ('lakevilla.markers' = 'side')",
        "UNSET TBLPROPERTIES ('lakevilla.markers')",
        "SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
    ],
)
def test_markers_do_not_leave_the_log_again(lake: lv.Lake, change: str, begin: int) -> None:
    with pytest.raises((lv.InvalidInput, lv.Unsupported)):
        lake.sql(f"ALTER TABLE t {change}")
    assert lake.history("t")[0].version == begin + 2


def test_client_without_markers_in_the_log_stops_at_one_that_somebody_left(
    lake: lv.Lake, tmp_path: Path, begin: int
) -> None:
    """Another client took the property away, while a transaction held a version."""
    tx = lake.transaction(lv.R)
    tx.append("t", [{"id": 30, "v": 1}])
    # In Delta's log the first version says so, in Iceberg's every one does.
    number = 0 if begin == 0 else begin + 2
    actions = entry(tmp_path, number)
    for action in actions:
        action.get("metaData", {}).update(configuration={})
        action.get("properties", {}).pop("lakevilla.markers", None)
    place = tmp_path / "t" / outsider(tmp_path).entry(number)
    place.write_text("\n".join(json.dumps(action) for action in actions))
    with pytest.raises(lv.Unsupported, match="held by a marker"):
        open_lake(tmp_path).append("t", [{"id": 31, "v": 1}])


def _add_one(place: Path, times: int) -> None:
    lake = open_lake(place)
    for _ in range(times):
        with lake.transaction(lv.R) as tx:
            tx.update("t", {"v": "v + 1"}, where="id = 5")


def test_threads_lose_no_update_and_readers_see_every_sum_in_turn(lake: lv.Lake, tmp_path: Path) -> None:
    """A reader that opens the table anew each time, and one that goes on from what it knows."""
    done = threading.Event()
    seen: list[list[tuple[int, int]]] = [[], []]

    def watch(number: int) -> None:
        reader = open_lake(tmp_path)
        while not done.is_set():
            reader = open_lake(tmp_path) if number else reader
            row = reader.sql("SELECT count(*) AS n, sum(v) AS total FROM t").collect()[0]
            seen[number].append((row.n, row.total))

    with ThreadPoolExecutor(6) as pool:
        watchers = [pool.submit(watch, number) for number in range(2)]
        try:
            for worker in [pool.submit(_add_one, tmp_path, 4) for _ in range(4)]:
                worker.result()
        finally:
            done.set()
        for watcher in watchers:
            watcher.result()
    assert (value(lake, 5), legacy(tmp_path)[1:]) == (16, (20, 16))
    for rows in seen:
        assert {count for count, _ in rows} == {20}
        assert [total for _, total in rows] == sorted(total for _, total in rows)


@pytest.mark.formats("delta")
def test_processes_lose_no_update(lake: lv.Lake, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_add_one, args=(tmp_path, 5)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert value(lake, 5) == 15
    assert legacy(tmp_path)[1:] == (20, 15)
