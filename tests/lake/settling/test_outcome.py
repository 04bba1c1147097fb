"""`lake.outcome`: the outcome of a transaction, asked by another client."""

from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.cli.main import main
from lakevilla.store import keys
from lakevilla.store.open import open_store
from tests.support.hooked import Hooked
from tests.support.left_open import OPTIONS, abandon, add, make_lake, open_lake

pytestmark = pytest.mark.formats("delta", "iceberg")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_lake(tmp_path)


def test_committed_transaction_is_found_in_the_log_of_its_table(root: Path, begin: int) -> None:
    lake = open_lake(root)
    lake.create("u", "id BIGINT")
    with lake.transaction(lv.R) as tx:
        add(3, 1)(tx)
    for number in range(20):
        lake.append("t", [{"id": 100 + number, "v": 0}])
    found = open_lake(root).outcome(tx.id)
    assert (found.state, found.table, found.version, found.seq) == ("committed", "t", begin + 3, None)
    assert found.advice == f"it is committed, as version {begin + 3} of 't': do not run it again"


def test_committed_transaction_is_found_after_its_table_was_renamed_and_dropped(
    root: Path, begin: int
) -> None:
    lake = open_lake(root)
    with lake.transaction(lv.R) as tx:
        add(3, 1)(tx)
    lake.rename("t", "s")
    assert open_lake(root).outcome(tx.id).table == "s"
    lake.drop("s")
    found = open_lake(root).outcome(tx.id)
    assert (found.state, found.version) == ("committed", begin + 3)


def test_change_of_the_registry_is_found_in_the_global_log(root: Path) -> None:
    lake = open_lake(root)
    with lake.transaction(lv.NONE) as created:
        created.create("u", [{"id": 1}])
    with lake.transaction(lv.NONE) as dropped:
        dropped.drop("u")
    for tx, seq in ((created, 2), (dropped, 3)):
        found = open_lake(root).outcome(tx.id)
        assert (found.state, found.seq) == ("committed", seq)


def test_transaction_that_left_records_can_be_resumed(root: Path) -> None:
    old = abandon(root, add(3, 1), add(4, 1))
    found = open_lake(root).outcome(old.id)
    assert (found.state, f"lake.resume('{old.id}')" in found.advice) == ("undecided", True)


def test_transaction_that_left_nothing_is_undecided_however_old(root: Path) -> None:
    found = open_lake(root).outcome("000000000001" + "0" * 20)
    assert (found.state, "may still commit" in found.advice) == ("undecided", True)


def test_transaction_whose_client_beats_is_live(root: Path) -> None:
    lake = open_lake(root)
    tx = lake.transaction(lv.R)
    add(3, 1)(tx)
    tx._queues.claim(tx._workspace.base("t").ref, tx._workspace.base("t").snapshot)
    while not (root / keys.lease(tx.id)).exists():
        lake._environment.sleep(0.01)
    assert open_lake(root).outcome(tx.id).state == "live"
    tx.commit()
    assert open_lake(root).outcome(tx.id).state == "committed"


def test_commit_on_several_tables_is_found_by_its_entry(root: Path) -> None:
    lake = open_lake(root)
    lake.create("u", "id BIGINT")
    with lake.transaction(lv.R | lv.CT) as tx:
        add(3, 1)(tx)
        tx.append("u", [{"id": 1}])
    assert tx.receipt is not None
    found = open_lake(root).outcome(tx.id)
    assert (found.state, found.seq) == ("committed", tx.receipt.seq)


@pytest.mark.formats("delta")
def test_only_entries_that_may_matter_are_read(root: Path) -> None:
    lake = open_lake(root)
    for number in range(40):
        lake.append("t", [{"id": 100 + number, "v": 0}])
    log = sorted((root / "t" / "_delta_log").glob("*.json"))
    for path in log[:30]:
        path.write_text(path.read_text().replace('"timestamp":1', '"timestamp":'))
    store = Hooked(open_store(str(root), OPTIONS))
    asked: list[str] = []
    store.hook = lambda kind, key: asked.append(key) if kind == "get" else None
    other = open_lake(root, store)
    other.read("t")
    asked.clear()
    with lake.transaction(lv.R) as tx:
        add(3, 1)(tx)
    assert other.outcome(tx.id).version == 43
    assert not any(key.endswith(f"{3:020d}.json") and "_delta_log" in key for key in asked)


def test_command_tells_what_became_of_a_transaction(
    root: Path, capsys: pytest.CaptureFixture[str], begin: int
) -> None:
    with open_lake(root).transaction(lv.R) as tx:
        add(3, 1)(tx)
    assert main(["outcome", str(root), tx.id]) == 0
    told = f"it is committed, as version {begin + 3} of 't': do not run it again"
    assert capsys.readouterr().out == f"committed: {told}\n"


def test_table_that_cannot_be_read_at_the_moment_is_asked_again_unless_it_is_dropped(root: Path) -> None:
    lake = open_lake(root)
    lake.create("u", "id BIGINT")
    with lake.transaction(lv.R) as tx:
        add(3, 1)(tx)
    store = Hooked(open_store(str(root), OPTIONS))
    other = lv.Lake(root, engine="local", store=store)

    def refuse(_: str, key: str) -> None:
        if key.startswith("t/"):
            raise lv.Unavailable(f"the store refuses {key!r}")

    store.hook = refuse
    with pytest.raises(lv.Unavailable, match=r"outcome .* is not known: .* table 't' could not be read"):
        other.outcome(tx.id)
    store.hook = None
    assert other.outcome(tx.id).state == "committed"
    lake.drop("t")
    store.hook = refuse
    assert other.outcome(tx.id).state == "unknown"


def test_transaction_that_a_table_names_is_found_although_another_table_cannot_be_read(root: Path) -> None:
    lake = open_lake(root)
    lake.create("u", "id BIGINT")
    with lake.transaction(lv.R) as tx:
        add(3, 1)(tx)
    store = Hooked(open_store(str(root), OPTIONS))

    def refuse(_: str, key: str) -> None:
        if key.startswith("u/"):
            raise lv.Unavailable(f"the store refuses {key!r}")

    store.hook = refuse
    assert lv.Lake(root, engine="local", store=store).outcome(tx.id).state == "committed"
