"""What a transaction stores so that it can be resumed, when, and what it leaves behind."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from time import sleep

import pytest

import lakevilla as lv
from lakevilla.errors import Unavailable
from lakevilla.store import keys
from lakevilla.store.port import Ambiguous
from tests.support.left_open import abandon, add, hooked, make_lake, open_lake, records, store_all, values
from tests.support.outsiders import OUTSIDERS

pytestmark = pytest.mark.formats("delta", "iceberg")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_lake(tmp_path)


def test_redone_statements_are_recorded_anew(root: Path) -> None:
    lake = open_lake(root)
    first = lake.transaction(lv.R)
    first.update("t", {"v": "v + 100"}, where="id = 15")
    first._queues.claim(first._workspace.base("t").ref, first._workspace.base("t").snapshot)
    old = lake.transaction(lv.R)
    old.append("t", [{"id": 30, "v": 0}])
    old.savepoint("a")
    with ThreadPoolExecutor(1) as pool:
        later = pool.submit(lambda: [sleep(0.1), first.commit()])  # type: ignore[func-returns-value]
        old.update("t", {"v": "v + 1"}, where="id IN (15, 30)")
        later.result()
    store_all(lake, old)
    assert old.statements == 2
    with open_lake(root).resume(old.id) as tx:
        assert (tx.statements, values(tx, 15, 30)) == (2, [101, 1])
        tx.rollback_to("a")
        assert values(tx, 15, 30) == [100, 0]
    assert values(lake, 15, 30) == [100, 0]


def test_resumed_transaction_stays_with_its_table(root: Path) -> None:
    lake = open_lake(root)
    lake.create("u", "id BIGINT")
    old = abandon(root, lambda tx: tx.savepoint("a"), add(3, 1), add(4, 1))
    tx = lake.resume(old.id)
    tx.rollback_to("a")
    with pytest.raises(lv.InvalidInput, match="can change only 't'"):
        tx.append("u", [{"id": 1}])


def test_client_that_takes_another_table_leaves_nothing_to_resume(root: Path) -> None:
    lake = open_lake(root)
    lake.create("u", "id BIGINT")
    old = abandon(root, lambda tx: tx.savepoint("a"), add(3, 1), add(4, 1), lambda tx: tx.rollback_to("a"))
    assert records(root)
    old.append("u", [{"id": 1}])
    assert records(root) == []
    old.commit()
    assert (values(lake, 3), lake.read("u").count()) == ([0], 1)


def test_client_that_takes_another_table_after_it_was_resumed_is_fenced(root: Path) -> None:
    lake = open_lake(root)
    lake.create("u", "id BIGINT")
    old = abandon(root, lambda tx: tx.savepoint("a"), add(3, 1), add(4, 1))
    lake.resume(old.id).commit()
    old.rollback_to("a")
    with pytest.raises(lv.Fenced, match="resumed by another client"):
        old.append("u", [{"id": 1}])
    assert (values(lake, 3), lake.read("u").count()) == ([1], 0)


def test_run_that_starts_again_after_it_was_resumed_is_fenced(root: Path) -> None:
    lake, other = open_lake(root), open_lake(root)
    calls: list[str] = []

    def work(tx: lv.Transaction) -> None:
        calls.append(tx.id)
        seen = values(tx, 3)[0]
        tx.update("t", {"v": seen + 1}, where="id = 3")
        add(4, 1)(tx)
        store_all(lake, tx)
        other.resume(tx.id).commit()
        raise lv.Conflict("run it again")

    with pytest.raises(lv.Fenced):
        lake.run(work)
    assert (len(calls), values(lake, 3, 4)) == (1, [1, 1])


def test_run_that_starts_again_leaves_nothing_of_its_first_attempt(root: Path) -> None:
    lake = open_lake(root)
    seen: list[list[str]] = []

    def work(tx: lv.Transaction) -> None:
        seen.append(records(root))
        add(3, 1)(tx)
        add(4, 1)(tx)
        lake.close()
        if len(seen) == 1:
            raise lv.Conflict("run it again")

    lake.run(work)
    lake.close()
    assert (seen, records(root), values(lake, 3, 4)) == ([[], []], [], [1, 1])


def test_commit_does_not_wait_for_its_records(root: Path) -> None:
    lake, store = hooked(root)
    began, released, sent = Event(), Event(), list[tuple[str, str]]()

    def hold(kind: str, key: str) -> None:
        sent.append((kind, key))
        if keys.attempt_of(key) is not None:
            began.set()
            released.wait(60)

    store.hook = hold
    with lake.transaction(lv.R) as tx:
        add(3, 1)(tx)
        add(4, 1)(tx)
        assert began.wait(60)
    assert not released.is_set()
    before = sent[: [kind for kind, _ in sent].index("create")]
    assert [kind for kind, key in before if keys.attempt_of(key) is not None] == ["put"]
    released.set()
    lake.close()
    assert [kind for kind, key in sent if keys.attempt_of(key) is not None] == ["put", "delete"]
    assert (values(open_lake(root), 3, 4), records(root)) == ([1, 1], [])


def test_second_statement_adds_its_records_and_nothing_else(root: Path, table_format: str) -> None:
    lake, store = hooked(root)
    values(lake, 1)
    sent: list[tuple[str, str]] = []
    store.hook = lambda kind, key: sent.append((kind, key))
    with lake.transaction(lv.R) as tx:
        tx.append("t", [{"id": 30, "v": 0}])
        tx.append("t", [{"id": 31, "v": 0}])
        lake.close()
    lake.close()
    data = [kind for kind, key in sent if key.endswith(".parquet")]
    log = [kind for kind, key in sent if key.startswith("t/") and not key.endswith(".parquet")]
    own = [kind for kind, key in sent if keys.attempt_of(key) is not None]
    # A manifest of both files, the list of manifests, and the hint at the end.
    expected = {"delta": ["get", "create"], "iceberg": ["get", "put", "put", "create", "put"]}
    assert (data, log) == (["put", "put"], expected[table_format])
    assert own in (["put", "delete"], ["put", "put", "delete", "delete"]), "in one object, or in two"
    assert len(sent) == len(data) + len(log) + len(own)


def test_record_that_cannot_be_stored_fails_nothing_and_is_stored_with_the_next(root: Path) -> None:
    lake, store = hooked(root)
    failures: list[str] = []

    def refuse(kind: str, key: str) -> None:
        if keys.attempt_of(key) is not None and not failures:
            failures.append(key)
            raise Unavailable("not now")

    store.hook = refuse
    old = lake.transaction(lv.R)
    add(3, 1)(old)
    add(3, 1)(old)
    lake.close()
    add(3, 1)(old)
    store_all(lake, old)
    assert failures
    with open_lake(root).resume(old.id) as tx:
        assert (tx.statements, values(tx, 3)) == (3, [3])


@pytest.mark.parametrize("applied", [True, False])
def test_commit_whose_outcome_is_unknown_is_cleared_up_by_resume(
    root: Path, applied: bool, table_format: str, begin: int
) -> None:
    lake, store = hooked(root)
    old = lake.transaction(lv.R)
    add(3, 1)(old)
    add(4, 1)(old)
    lake.close()
    lost: list[str] = []

    def lose(kind: str, key: str) -> None:
        if kind == "create" and key == f"t/{OUTSIDERS[table_format].entry(begin + 3)}":
            lost.append(key)
        if lost and kind == "get":
            raise Unavailable("nothing can be read back")

    real = store.inner.create

    def create(key: str, data: bytes) -> object:
        if applied:
            real(key, data)
        raise Ambiguous("no answer")

    store.hook = lose
    store.inner.create = create  # type: ignore[method-assign]
    with pytest.raises(lv.CommitUnknown, match=r"lake\.outcome"):
        old.commit()
    lake.close()
    other = open_lake(root)
    if applied:
        assert other.outcome(old.id).state == "committed"
        with pytest.raises(lv.InvalidInput) as caught:
            other.resume(old.id)
        assert (caught.value.table, caught.value.version) == ("t", begin + 3)
    else:
        assert other.outcome(old.id).state == "undecided"
        other.resume(old.id).commit()
    assert values(other, 3, 4) == [1, 1]


def _left_behind(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in (root / keys.TXNS).rglob("*.json"))


def test_abort_after_a_resume_leaves_nothing_behind(root: Path) -> None:
    old = abandon(root, add(3, 1), add(4, 1))
    lake = open_lake(root)
    lake.resume(old.id).abort()
    lake.close()
    assert _left_behind(root) == []


def test_client_that_took_over_from_one_that_aborts_keeps_its_lease(root: Path) -> None:
    old = abandon(root, add(3, 1), add(4, 1))
    first, second = open_lake(root), open_lake(root)
    middle = first.resume(old.id)
    last = second.resume(old.id)
    middle.abort()
    first.close()
    assert [path for path in _left_behind(root) if path.endswith("lease.json")]
    with pytest.raises(lv.Fenced):
        old._leave_records()
    last.commit()
    assert values(second, 3, 4) == [1, 1]


def test_resume_that_fails_does_not_fence_the_old_client(root: Path) -> None:
    lake = open_lake(root)
    old = lake.transaction(lv.R)
    values(old, 3)
    values(old, 4)
    lake.close()
    with pytest.raises(lv.InvalidInput, match="changed nothing"):
        open_lake(root).resume(old.id)
    old._leave_records()
    add(3, 1)(old)
    old.commit()
    assert values(lake, 3) == [1]


def test_recover_tells_which_transactions_cannot_be_resumed(root: Path) -> None:
    def look(tx: lv.Transaction) -> None:
        values(tx, 1)

    changed = abandon(root, add(3, 1), add(4, 1))
    idle = abandon(root, look, look)
    undone = abandon(root, lambda tx: tx.savepoint("a"), add(3, 1), look, lambda tx: tx.rollback_to("a"))
    lake, store = hooked(root)
    done = lake.transaction(lv.R)
    add(5, 1)(done)
    add(6, 1)(done)
    lake.close()

    def die(kind: str, key: str) -> None:
        if kind == "delete":
            raise Unavailable("the client died right after its commit")

    store.hook = die
    done.commit()
    lake.close()
    other = open_lake(root)
    report = other.recover()
    obstacles = {one.transaction: one.obstacle for one in report.transactions}
    assert {txn for txn, obstacle in obstacles.items() if not obstacle} == {changed.id}
    assert set(obstacles) == {changed.id, idle.id, undone.id, done.id}
    assert str(report).count("lake.resume continues it") == 1
    for txn in (idle.id, undone.id, done.id):
        with pytest.raises(lv.InvalidInput):
            other.resume(txn)
