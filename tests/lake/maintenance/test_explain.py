"""Explain: which transaction waits for which, which one refused another, what was left half done, and what
comes next."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import deltalake
import pytest

import lakevilla as lv
from lakevilla.cli.main import main
from lakevilla.maintenance.reports import Finding
from lakevilla.markers.records import Marker
from lakevilla.store import keys
from lakevilla.store.open import open_store
from lakevilla.store.port import Store
from lakevilla.store.prefixed import Prefixed
from lakevilla.transaction.commit.writer_queues import WriterQueues
from tests.docs.messages import quoted, shape
from tests.support.hooked import Hooked

BOTH = lv.R | lv.CT
LEASE_SECONDS = 0.3
DEAD = "0197" + "a" * 28
A, B, C = ("0197" + letter * 28 for letter in "bcd")


@pytest.fixture
def store(tmp_path: Path) -> Hooked:
    return Hooked(open_store(str(tmp_path), {"fsync": "false"}))


@pytest.fixture
def lake(tmp_path: Path, store: Hooked) -> lv.Lake:
    lake = _open(tmp_path, store)
    for name in ("x", "y"):
        lake.create(name, "id BIGINT, v BIGINT")
        lake.append(name, [{"id": 1, "v": 0}, {"id": 2, "v": 0}])
    return lake


def _open(root: Path, store: Store | None = None) -> lv.Lake:
    return lv.Lake(root, engine="local", features=lv.R, store=store, lease_seconds=LEASE_SECONDS)


def _mark(store: Store, table: str, ticket: int, txn: str) -> None:
    marker = Marker(txn, txn, f"put-{ticket}", 0, live=True)
    Prefixed(store, table).put(keys.marker(ticket), marker.encode())


def _transfer(tx: lv.Transaction, amount: int, *names: str) -> None:
    for name in names or ("x", "y"):
        tx.update(name, {"v": f"v + {amount}"}, where="id = 1")


def _kinds(explanation: lv.Explanation) -> list[str]:
    return [finding.kind for finding in explanation.findings]


def _only(explanation: lv.Explanation, kind: str) -> Finding:
    (found,) = (finding for finding in explanation.findings if finding.kind == kind)
    return found


@contextmanager
def _outside_update(store: Hooked, root: Path, table: str, before: str = "create") -> Iterator[None]:
    """deltalake updates the row right before our first request of this kind to the table's log."""
    done: list[str] = []

    def hook(kind: str, key: str) -> None:
        if kind == before and key.startswith(f"{table}/_delta_log/") and not done:
            done.append(key)
            deltalake.DeltaTable(str(root / table)).update(predicate="id = 1", updates={"v": "v + 1000"})

    store.hook = hook
    try:
        yield
    finally:
        store.hook = None
    assert done


def test_quiet_lake_has_nothing_to_explain(lake: lv.Lake) -> None:
    assert lake.explain().findings == ()
    assert "no client waits, and nothing is left half done" in str(lake.explain())


def test_what_is_neither_transaction_nor_table_is_refused(lake: lv.Lake) -> None:
    with pytest.raises(lv.InvalidInput) as caught:
        lake.explain("nowhere")
    assert caught.value.table == "nowhere"


def test_waiting_transaction_is_explained_with_the_one_that_it_waits_for(
    lake: lv.Lake, tmp_path: Path
) -> None:
    """The first holds its place, at work, until the second has been seen to wait behind it."""
    go_on, ids = Event(), list[str]()
    first = lake.transaction(lv.R)
    _transfer(first, 1, "x")
    pinned = first._workspace.base("x")
    first._queues.claim(pinned.ref, pinned.snapshot)

    def hold() -> None:
        with first._queues.at_work():
            go_on.wait(60)
        first.commit()

    def follow() -> None:
        with _open(tmp_path).transaction(lv.R) as tx:
            ids.append(tx.id)
            _transfer(tx, 10, "x")

    threads = [Thread(target=hold), Thread(target=follow)]
    for thread in threads:
        thread.start()
    try:
        while len(lake.status().tickets) < 2:
            assert threads[1].is_alive()
        explanation = lake.explain(ids[0])
        everything = lake.explain()
        of_table = lake.explain("x")
        nobody = lake.explain("y")
    finally:
        go_on.set()
        for thread in threads:
            thread.join()
    assert _kinds(explanation) == ["open", "first", "waits"]
    waits = _only(explanation, "waits")
    assert (waits.tables, waits.transactions) == (("x",), (ids[0], first.id))
    assert waits.since_seconds is not None
    assert f"as soon as {first.id} has committed" in waits.next
    assert "is alive" in _only(explanation, "first").text
    assert "1 behind it waits" in _only(explanation, "first").next
    assert _kinds(everything) == ["first", "waits"]
    assert _kinds(of_table)[:2] == ["first", "waits"]
    shown = [shape(line).replace("'x'", "'accounts'") for line in str(of_table).splitlines()]
    assert set(quoted("docs/operating.md", "lakevilla explain ./lake accounts")) <= set(shown)
    assert "waits" not in _kinds(nobody)
    assert lake.sql("SELECT v FROM x WHERE id = 1").collect() == [(11,)]
    assert lake.explain().findings == ()


def test_stale_owner_is_said_to_be_passed_over(lake: lv.Lake, store: Hooked) -> None:
    _mark(store, "x", 5, DEAD)
    first = _only(lake.explain("x"), "first")
    assert "is dead: its lease did not change for 0.3 seconds" in first.text
    assert "recover" in first.next
    _mark(store, "x", 6, A)
    first = _only(lake.explain("x"), "first")
    assert "releases this ticket" in first.next
    waits = _only(lake.explain(A), "waits")
    assert waits.transactions == (A, DEAD)
    assert "do not wait for it" in waits.next


def test_pair_that_takes_places_in_opposite_orders_is_a_line_and_no_ring(
    lake: lv.Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have to redo, one changed x then y, the other y then x; both line up, and one waits."""
    lined_up, go_on = Event(), Event()
    queue_up = WriterQueues.queue_up

    def stop(self: WriterQueues, tables: list) -> dict:  # type: ignore[type-arg]
        met = queue_up(self, tables)
        if self._workspace.txn == first.id:
            lined_up.set()
            with self.at_work():
                go_on.wait(60)
        return met

    monkeypatch.setattr(WriterQueues, "queue_up", stop)
    first, second = lake.transaction(BOTH), _open(tmp_path).transaction(BOTH)
    _transfer(first, 1, "x", "y")
    _transfer(second, 10, "y", "x")
    with lake.transaction(BOTH) as rival:
        _transfer(rival, 100, "x", "y")
    threads = [Thread(target=first.commit), Thread(target=second.commit)]
    threads[0].start()
    assert lined_up.wait(60)
    threads[1].start()
    try:
        while len(lake.status().tickets) < 3:
            assert threads[1].is_alive()
        explanation = lake.explain(second.id)
    finally:
        go_on.set()
        for thread in threads:
            thread.join()
    assert [(f.kind, f.tables) for f in explanation.findings if f.kind != "open"] == [
        ("first", ("x",)),
        ("waits", ("x",)),
        ("first", ("y",)),
    ]
    assert _only(explanation, "waits").transactions == (second.id, first.id)
    for name in ("x", "y"):
        assert lake.sql(f"SELECT v FROM {name} WHERE id = 1").collect() == [(111,)]


def test_ring_is_named_with_its_tables(lake: lv.Lake, store: Hooked) -> None:
    lake.create("z", "id BIGINT")
    for table, order in (("x", (A, B)), ("y", (B, C)), ("z", (C, A))):
        for ticket, txn in enumerate(order, 5):
            _mark(store, table, ticket, txn)
    ring = _only(lake.explain(), "ring")
    assert set(ring.transactions) == {A, B, C}
    assert ring.tables == ("x", "y", "z")
    assert f"{B} waits for {A} on 'x'" in ring.text
    assert "end one of them" in ring.next
    _mark(store, "z", 6, DEAD)
    assert "ring" not in _kinds(lake.explain())


def test_winner_of_a_conflict_is_explained_by_the_id_that_the_error_carries(lake: lv.Lake) -> None:
    loser = lake.transaction(lv.CT)
    _transfer(loser, 1)
    with lake.transaction(BOTH) as winner:
        _transfer(winner, 10)
    with lake.transaction(BOTH) as later:
        _transfer(later, 10)
    with pytest.raises(lv.Conflict) as caught:
        loser.commit()
    error = caught.value
    assert (error.table, error.operation, error.transaction) == ("x", "UPDATE", winner.id)
    assert winner.id in str(error)
    assert winner.id in error.winner
    committed = _only(lake.explain(error.transaction), "committed")
    assert winner.receipt is not None
    assert f"entry {winner.receipt.seq} of the global log" in committed.text
    assert "version 2 of 'x' (UPDATE, 1 file added, 1 removed)" in committed.text
    assert f"x: - {error.file}" in committed.files
    assert committed.tables == ("x", "y")


def test_winner_of_a_conflict_on_one_table_is_explained(lake: lv.Lake) -> None:
    loser = lake.transaction(lv.NONE)
    _transfer(loser, 1, "x")
    with lake.transaction(lv.R) as winner:
        _transfer(winner, 10, "x")
    with pytest.raises(lv.Conflict) as caught:
        loser.commit()
    assert caught.value.transaction == winner.id
    committed = _only(lake.explain(caught.value.transaction), "committed")
    assert "version 2 of 'x'" in committed.text
    assert f"- {caught.value.file}" in committed.files


def test_loser_is_told_who_was_in_the_way_and_what_was_taken_back(
    lake: lv.Lake, store: Hooked, tmp_path: Path
) -> None:
    tx = lake.transaction(lv.CT)
    _transfer(tx, 1)
    with _outside_update(store, tmp_path, "y"), pytest.raises(lv.Conflict) as caught:
        tx.commit()
    assert caught.value.transaction == ""
    assert "delta-rs" in caught.value.winner
    explanation = lake.explain(tx.id)
    back = _only(explanation, "rolled back")
    assert "version 2 (UPDATE by delta-rs" in back.text
    assert "version 2 of 'x' by version 3" in back.text
    assert [name.startswith("y: part-") for name in back.files] == [True]
    assert lake.outcome(tx.id).state == "aborted"
    assert "delta-rs" in str(lake.explain("y"))


def test_redone_transaction_is_told_attempt_by_attempt_and_is_committed(
    lake: lv.Lake, store: Hooked, tmp_path: Path
) -> None:
    tx = lake.transaction(BOTH)
    _transfer(tx, 1)
    with _outside_update(store, tmp_path, "y"):
        receipt = tx.commit()
    assert receipt.redone == 1, "a commit that was rolled back, with its inverse, concerns no transaction"
    assert _kinds(lake.explain(tx.id)) == ["rolled back", "committed"]
    assert f"version {receipt.versions['x']} of 'x'" in _only(lake.explain(tx.id), "committed").text
    assert (lake.outcome(tx.id).state, lake.outcome(tx.id).seq) == ("committed", receipt.seq)


def test_commit_that_its_owner_left_half_done_is_explained_until_somebody_completes_it(
    lake: lv.Lake, store: Hooked, tmp_path: Path
) -> None:
    tx = lake.transaction(BOTH)
    _transfer(tx, 1)

    def die(kind: str, key: str) -> None:
        if kind == "create" and key.startswith("y/_delta_log/"):
            raise RuntimeError("the client died")

    store.hook = die
    with pytest.raises(RuntimeError):
        tx.commit()
    store.hook = None
    found = _only(lake.explain(), "unsettled")
    assert "'x' has it as version 2, 'y' does not have it yet" in found.text
    assert (found.tables, found.transactions) == (("x", "y"), (tx.id,))
    assert any(name.startswith("y: + part-") for name in found.files)
    assert "recover" in found.next
    assert _kinds(lake.explain(tx.id)) == ["unsettled"]
    assert "unsettled" in _kinds(lake.explain("y"))
    _open(tmp_path).recover()
    assert _kinds(lake.explain(tx.id)) == ["committed"]
    assert lake.explain().findings == ()


def test_open_transaction_is_told_with_what_it_has_done(lake: lv.Lake) -> None:
    tx = lake.transaction(lv.R)
    _transfer(tx, 1, "x")
    _transfer(tx, 1, "x")
    lake.close()
    opened = _only(lake.explain(tx.id), "open")
    assert "2 statements on 'x'" in opened.text
    assert "resume" in opened.next
    tx.abort()
    # Its records are removed in parallel with the abort.
    lake.close()
    assert "may be run again" in _only(lake.explain(tx.id), "open").next


def test_change_of_the_lakes_tables_is_told(lake: lv.Lake) -> None:
    created = lake.history("x")[-1].txn
    assert created is not None
    assert "create of 'x'" in _only(lake.explain(created), "committed").text


def test_tables_that_a_commit_makes_and_drops_are_told(lake: lv.Lake) -> None:
    with lake.transaction(BOTH) as tx:
        tx.create("n", "id BIGINT")
        tx.update("x", {"v": "v + 1"})
        tx.drop("y")
    committed = _only(lake.explain(tx.id), "committed")
    assert "version 0 of 'n' (CREATE TABLE" in committed.text
    assert "'y' is dropped" in committed.text
    assert set(committed.tables) == {"n", "x", "y"}
    assert lake.outcome(tx.id).state == "committed"


def test_command_prints_sentences_and_json(
    lake: lv.Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with lake.transaction(BOTH) as tx:
        _transfer(tx, 1)
    assert main(["explain", str(tmp_path), tx.id]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"Transaction {tx.id} is committed since 20")
    assert "\n  next: nothing" in out
    assert main(["explain", str(tmp_path), "x", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["about"], told["findings"][0]["transactions"]) == ("table 'x'", [tx.id])
    assert main(["explain", str(tmp_path)]) == 0
    assert "no client waits" in capsys.readouterr().out


def test_transaction_that_tore_a_table_is_told_to_be_visible_there(
    lake: lv.Lake, store: Hooked, tmp_path: Path
) -> None:
    tx = lake.transaction(lv.CT)
    for name in ("x", "y"):
        tx.update(name, {"v": "v + 1"})
    deltalake.DeltaTable(str(tmp_path / "y")).update({"v": "v + 100"})
    entries: list[str] = []

    def build(kind: str, key: str) -> None:
        if kind == "create" and key.startswith("x/_delta_log/"):
            entries.append(key)
            if len(entries) == 2:
                deltalake.DeltaTable(str(tmp_path / "x")).update({"v": "v * 2"})

    store.hook = build
    with pytest.raises(lv.Torn):
        tx.commit()
    store.hook = None
    explained = _open(tmp_path).explain(tx.id)
    assert [finding.kind for finding in explained.findings].count("torn") == 1
    assert "could not be rolled back on 'x'" in str(explained)
    assert "its changes may be visible in 'x', and nowhere else" in str(explained)
    assert "nothing of this attempt is visible" not in str(explained)
