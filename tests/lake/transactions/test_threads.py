"""One transaction, called by several threads: a call that would run at the same time as another one is
refused."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.transaction.transaction import Transaction

pytestmark = pytest.mark.formats("delta", "vectors", "iceberg", "deletes")

SCHEMA = pa.schema({"id": pa.int64(), "v": pa.int64()})


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    lake = lv.Lake(tmp_path / "lake", engine="local", storage_options={"fsync": "false"})
    lake.create("t", "id BIGINT, v BIGINT")
    lake.append("t", [{"id": number, "v": 0} for number in range(8)])
    return lake


class Held:
    """A statement in another thread that stays under way until it is let go: an append whose rows wait."""

    def __init__(self, tx: Transaction, pool: ThreadPoolExecutor) -> None:
        self._begun, self._go_on = Event(), Event()
        self._done: Future[object] = pool.submit(tx.append, "t", _stream(self._rows()))
        assert self._begun.wait(20)

    def _rows(self) -> Iterator[pa.RecordBatch]:
        self._begun.set()
        assert self._go_on.wait(20)
        yield _batch(100, 0)

    def let_go(self) -> None:
        self._go_on.set()
        self._done.result(20)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as threads:
        yield threads


def _batch(number: int, value: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"id": number, "v": value}], schema=SCHEMA)


def _stream(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(SCHEMA, batches)


def _ids(lake: lv.Lake) -> list[int]:
    return sorted(row["id"] for row in lake.read("t").collect())


def test_statements_of_many_threads_count_once_each_or_are_refused(
    lake: lv.Lake, pool: ThreadPoolExecutor
) -> None:
    lake.append("t", [{"id": number, "v": 0} for number in range(8, 32)])
    appended, updated = list[int](), list[int]()

    def work(number: int) -> None:
        try:
            tx.append("t", [{"id": 1000 + number, "v": 0}])
            appended.append(1000 + number)
            tx.update("t", {"v": "v + 1"}, where=f"id = {number}")
            updated.append(number)
        except lv.InvalidInput:
            return

    tx = lake.transaction()
    list(pool.map(work, range(32)))
    tx.commit()
    assert _ids(lake) == [*range(32), *sorted(appended)]
    changed = [row["id"] for row in lake.read("t").collect() if row["v"] == 1]
    assert sorted(changed) == sorted(updated)
    assert appended


@pytest.mark.parametrize(
    "call",
    [
        lambda tx: tx.append("t", [{"id": 200, "v": 0}]),
        lambda tx: tx.read("t"),
        lambda tx: tx.commit(),
    ],
    ids=["append", "read", "commit"],
)
def test_call_during_a_statement_of_another_thread_is_refused_and_does_nothing(
    lake: lv.Lake, pool: ThreadPoolExecutor, call: Callable[[Transaction], object]
) -> None:
    tx = lake.transaction(lv.CT)
    held = Held(tx, pool)
    with pytest.raises(lv.InvalidInput):
        call(tx)
    held.let_go()
    tx.commit()
    assert _ids(lake) == [*range(8), 100]


def test_abort_during_a_statement_of_another_thread_takes_effect_when_that_ends(
    lake: lv.Lake, pool: ThreadPoolExecutor
) -> None:
    tx = lake.transaction(lv.CT)
    held = Held(tx, pool)
    tx.abort()
    held.let_go()
    with pytest.raises(lv.InvalidInput):
        tx.commit()
    assert _ids(lake) == list(range(8))


def test_statement_inside_another_one_of_the_same_thread_is_refused(lake: lv.Lake) -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        yield _batch(100, tx.read("t").count())

    with pytest.raises(lv.InvalidInput), lake.transaction() as tx:
        tx.append("t", _stream(rows()))
    assert _ids(lake) == list(range(8))


def test_commits_of_two_threads_commit_once(lake: lv.Lake, pool: ThreadPoolExecutor) -> None:
    for number in range(5):
        tx = lake.transaction(lv.R)
        tx.append("t", [{"id": 100 + number, "v": 0}])
        ends = [pool.submit(tx.commit) for _ in range(4)]
        errors = [end.exception(20) for end in ends]
        assert errors.count(None) == 1
        assert all(isinstance(error, lv.InvalidInput) for error in errors if error is not None)
    assert _ids(lake) == [*range(8), *range(100, 105)]


def test_new_attempt_while_a_thread_of_the_last_one_is_at_work_is_refused(
    lake: lv.Lake, pool: ThreadPoolExecutor
) -> None:
    tx = lake.transaction(lv.CT)
    held = Held(tx, pool)
    with pytest.raises(lv.InvalidInput):
        tx.rewind()
    held.let_go()
    with pytest.raises(lv.InvalidInput):
        tx.commit()
    assert _ids(lake) == list(range(8))
