"""DuckDB behind the engine: locked in, shared by threads, made anew after a fork."""

import os
import signal
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Timer

import numpy as np
import pyarrow as pa
import pytest

from lakevilla.engines.local import scan
from lakevilla.engines.local.connections import Connections
from lakevilla.environment import SystemEnvironment
from lakevilla.errors import InvalidInput, Unavailable
from tests.unit.engines.local.tables import Database, Table, schema


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "COPY (SELECT 1) TO '/tmp/lakevilla-must-not-exist'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "ATTACH '/tmp/lakevilla-must-not-exist.db'",
        "SET enable_external_access = true",
        "SELECT * FROM outside",
    ],
)
def test_duckdb_reaches_nothing_outside_even_if_a_text_slipped_through(text: str) -> None:
    outside = pa.table({"a": [1]})
    assert outside.num_rows == 1
    with pytest.raises(InvalidInput):
        Connections(SystemEnvironment()).run(text, {})


def test_many_threads_get_their_own_answers() -> None:
    table = Table("t", schema(a=pa.int64())).add(pa.table({"a": pa.array(range(1000), pa.int64())}))
    db = Database(table)

    def ask(number: int) -> int:
        return int(db.rows("SELECT sum(a) + :n FROM t WHERE a >= 0", n=number)[0][0])

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(64))) == [499500 + number for number in range(64)]


def test_statement_that_fails_leaves_the_engine_usable() -> None:
    db = Database(Table("t", schema(a=pa.int32())).add([{"a": 0}]))
    for _ in range(3):
        with pytest.raises(InvalidInput):
            db.run("SELECT 1 / a FROM t")
        assert db.rows("SELECT a + 1 FROM t") == [(1,)]


def test_forked_child_opens_a_database_of_its_own() -> None:
    connections = Connections(SystemEnvironment())
    assert connections.run("SELECT 1 AS a", {}).column(0)[0].as_py() == 1
    child = os.fork()
    if child == 0:
        found = connections.run("SELECT 2 AS a", {}).column(0)[0].as_py()
        os._exit(0 if found == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_large_table_is_streamed_and_can_be_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "EAGER_BYTES", 0)
    table = Table("t", schema(a=pa.int64(), x=pa.float64()))
    for start in (0, 500):
        rows = range(start, start + 500)
        table.add(pa.table({"a": pa.array(rows, pa.int64()), "x": pa.array([float("nan")] * 500)}))
    db = Database(table)
    assert db.rows("SELECT count(*), sum(a) FROM t WHERE x > 5") == [(1000, 499500)]
    assert db.rows("SELECT count(*) FROM t p JOIN t q ON p.a = q.a") == [(1000,)]
    assert db.rows("SELECT count(*) FROM t WHERE a > (SELECT avg(a) FROM t)") == [(500,)]


@pytest.mark.usefixtures("interruptible")
def test_interrupt_of_a_query_stays_an_interrupt() -> None:
    slow = "SELECT sum(a.range * b.range % 7) FROM range(1000000) a, range(1000000) b"
    timer = Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        Connections(SystemEnvironment()).run(slow, {})
    timer.join()


@pytest.mark.usefixtures("interruptible")
def test_interrupt_of_a_large_join_of_tables_ends_it_at_once() -> None:
    """The tables are unregistered afterwards, which once waited for the join."""
    table = pa.table({"id": np.arange(3_000_000)})
    slow = "SELECT count(DISTINCT a.id * b.id) FROM t a JOIN t b ON a.id % 300 = b.id % 300"
    timer = Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT))
    begun = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        Connections(SystemEnvironment()).run(slow, {"t": table})
    timer.join()
    assert time.monotonic() - begun < 20


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("streamed", [False, True])
def test_interrupt_of_a_join_without_matches_ends_it_at_once(streamed: bool) -> None:
    """One task of DuckDB compares all pairs."""
    slow = "SELECT a.range FROM range(100000) a JOIN range(100000) b ON sqrt(a.range * b.range + 1) = 0.5"
    timer = Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    connections = Connections(SystemEnvironment())
    begun = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        _ = list(connections.stream(slow, {})) if streamed else connections.run(slow, {})
    timer.join()
    assert time.monotonic() - begun < 20
    assert connections.run("SELECT 1 AS a", {}).to_pylist() == [{"a": 1}]


def test_failure_of_a_stream_is_raised_as_it_was() -> None:
    def tables() -> Iterator[pa.Table]:
        yield pa.table({"a": [1]})
        raise Unavailable("the store does not answer")

    stream = scan.Stream(pa.schema([("a", pa.int64())]), tables)
    with pytest.raises(Unavailable, match="the store does not answer"):
        Connections(SystemEnvironment()).run("SELECT sum(a) FROM s", {"s": stream})


def test_error_in_the_middle_of_a_stream_of_results_is_ours() -> None:
    text = "SELECT CASE WHEN range = 900000 THEN CAST('x' AS INT) ELSE 1 END FROM range(1000000)"
    with pytest.raises(InvalidInput):
        list(Connections(SystemEnvironment()).stream(text, {}))


class _Slow(SystemEnvironment):
    """Its threads still hold each task when its result is known, as one that the interpreter's end finds."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[Callable[[], None]] = []

    def background(self, task: Callable[[], None]) -> Callable[[], None]:
        self.held.append(task)
        return super().background(task)


class _Action:
    """Stands for what holds objects of DuckDB."""

    def __init__(self, failing: bool) -> None:
        self.failing = failing

    def __call__(self) -> int:
        if self.failing:
            raise InvalidInput("wrong")
        return 7


@pytest.mark.parametrize("failing", [False, True])
def test_thread_of_a_query_keeps_nothing_of_it_when_its_result_is_known(failing: bool) -> None:
    """A thread that drops the last reference to an object of DuckDB at exit aborts the process."""
    environment = _Slow()
    connections, action = Connections(environment), _Action(failing)
    seen = weakref.ref(action)
    try:
        assert connections._apart(None, action) == 7  # type: ignore[arg-type]
        assert not failing
    except InvalidInput:
        assert failing
    assert len(environment.held) == 1
    del action
    assert seen() is None
