"""A decided commit on several tables, one of which cannot be published on any more: settling ends all the
same, alike for every client, and the rest of the lake goes on."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.environment import SystemEnvironment
from lakevilla.errors import Torn, Unavailable
from lakevilla.settle import completion
from lakevilla.store import keys
from lakevilla.store.open import open_store
from lakevilla.store.port import Store
from lakevilla.versions.log import GlobalLog
from lakevilla.versions.records import Head
from tests.support.hooked import Hooked
from tests.support.outsiders import OUTSIDERS

pytestmark = pytest.mark.formats("delta", "iceberg")

BOTH = lv.R | lv.CT


class Died(BaseException):
    """The client ends here."""


@pytest.fixture(autouse=True)
def no_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "SECOND_LOOK_SECONDS", 0.0)


def client(place: Path, store: Store | None = None) -> lv.Lake:
    store = store or open_store(str(place), {"fsync": "false"})
    return lv.Lake(place, engine="local", features=lv.R, store=store)


def hooked(place: Path) -> Hooked:
    return Hooked(open_store(str(place), {"fsync": "false"}))


def is_entry(kind: str, key: str, *tables: str) -> bool:
    """Whether this request creates a log entry of one of these tables."""
    table, _, rest = key.partition("/")
    return kind == "create" and table in tables and rest.startswith(("_delta_log/", "metadata/v"))


def head_of(place: Path) -> Head:
    store = open_store(str(place), {"fsync": "false"})
    read = GlobalLog(store, SystemEnvironment()).read_head()
    assert read is not None
    return read.head


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    """a, b and c with one row each."""
    lake = client(tmp_path)
    for name in ("a", "b", "c"):
        lake.create(name, "id BIGINT, v BIGINT")
        lake.append(name, [{"id": 1, "v": 0}])
    return lake


def die_after_the_slot(place: Path, *published: str) -> str:
    """A transaction that changes a and b, and whose client dies when all but these are still to publish."""
    store = hooked(place)
    tx = client(place, store).transaction(BOTH)
    tx.update("a", {"v": "1"})
    tx.update("b", {"v": "1"})
    left = {"a", "b"} - set(published)

    def die(kind: str, key: str) -> None:
        if is_entry(kind, key, *left) or (not left and kind == "replace" and key == keys.HEAD):
            raise Died

    store.hook = die
    with pytest.raises(Died):
        tx.commit()
    return tx.id


def delete_folder(folder: Path, table_format: str) -> None:
    shutil.rmtree(folder)


def damage_log(folder: Path, table_format: str) -> None:
    outsider = OUTSIDERS[table_format]
    (folder / outsider.entry(outsider.version(folder) + 1)).write_text('{"commitInfo":{}}\n{"add":{"pa')


def clean_log(folder: Path, table_format: str) -> None:
    """Another client writes on, and cleans up what the entry was validated on."""
    outsider = OUTSIDERS[table_format]
    for number in range(3):
        outsider.append(folder, pa.table({"id": [number], "v": [number]}))
    newest = outsider.version(folder)
    if table_format == "delta":
        from deltalake import DeltaTable

        DeltaTable(str(folder)).create_checkpoint()
    for version in range(newest):
        (folder / outsider.entry(version)).unlink(missing_ok=True)


LOSSES = [delete_folder, damage_log, clean_log]


def assert_goes_on(place: Path) -> None:
    """A client that comes next writes the other tables, alone and together, and finds nothing half done."""
    other = client(place)
    with other.transaction(BOTH) as tx:
        tx.update("a", {"v": "v + 10"})
        tx.update("c", {"v": "v + 10"})
    assert [client(place).read(name).collect()[0].v for name in ("a", "c")] == [10, 10]
    assert not client(place).recover().settled


@pytest.mark.parametrize("lose", LOSSES)
@pytest.mark.parametrize("published", [(), ("a",)])
def test_lost_table_of_a_dead_client_is_given_up_and_the_rest_rolled_back(
    lake: lv.Lake,
    tmp_path: Path,
    table_format: str,
    lose: Callable[[Path, str], None],
    published: tuple[str, ...],
) -> None:
    die_after_the_slot(tmp_path, *published)
    lose(tmp_path / "b", table_format)
    assert_goes_on(tmp_path)
    assert head_of(tmp_path).given_up == frozenset()


@pytest.mark.parametrize("lose", LOSSES)
def test_lost_table_can_be_dropped_and_made_again(
    lake: lv.Lake, tmp_path: Path, table_format: str, lose: Callable[[Path, str], None]
) -> None:
    die_after_the_slot(tmp_path)
    lose(tmp_path / "b", table_format)
    other = lv.Lake(tmp_path, engine="local", storage_options={"fsync": "false"})
    other.sql("DROP TABLE IF EXISTS b")
    assert other.tables() == ["a", "c"]
    other.create("b", "id BIGINT")
    other.append("b", [{"id": 7}])
    assert [row.id for row in other.read("b").collect()] == [7]
    assert not head_of(tmp_path).torn


def test_owner_that_published_before_the_loss_rolls_back_with_the_others(
    lake: lv.Lake, tmp_path: Path
) -> None:
    store = hooked(tmp_path)
    tx = client(tmp_path, store).transaction(BOTH)
    tx.update("a", {"v": "1"})
    tx.update("b", {"v": "1"})

    def lose(kind: str, key: str) -> None:
        if kind == "replace" and key == keys.HEAD:
            store.hook = None
            shutil.rmtree(tmp_path / "b")
            assert client(tmp_path).recover().settled

    store.hook = lose
    with pytest.raises(Torn) as caught:
        tx.commit()
    assert (caught.value.tables, caught.value.transaction) == (("b",), tx.id)
    assert_goes_on(tmp_path)


def test_owner_whose_head_gave_a_table_up_meanwhile_settles_by_that(lake: lv.Lake, tmp_path: Path) -> None:
    store = hooked(tmp_path)
    tx = client(tmp_path, store).transaction(BOTH)
    tx.update("a", {"v": "1"})
    tx.update("b", {"v": "1"})

    def give_up(kind: str, key: str) -> None:
        if kind == "replace" and key == keys.HEAD:
            store.hook = None
            plain = open_store(str(tmp_path), {"fsync": "false"})
            completion.give_up(GlobalLog(plain, SystemEnvironment()), SystemEnvironment(), "b")

    store.hook = give_up
    with pytest.raises(Torn):
        tx.commit()
    assert head_of(tmp_path).torn == {"b"}
    assert_goes_on(tmp_path)


def test_store_that_stays_away_blocks_until_an_operator_gives_the_table_up(
    lake: lv.Lake, tmp_path: Path
) -> None:
    txn = die_after_the_slot(tmp_path)
    store = hooked(tmp_path)

    def refuse(kind: str, key: str) -> None:
        if is_entry(kind, key, "b"):
            raise Unavailable(f"access denied: {key}")

    store.hook = refuse
    operator = client(tmp_path, store)
    with pytest.raises(Unavailable):
        operator.recover()
    assert operator.outcome(txn).state == "undecided"
    with pytest.raises(lv.InvalidInput):
        operator.recover(give_up="c")
    assert operator.recover(give_up="B").settled
    assert_goes_on(tmp_path)
    with pytest.raises(lv.InvalidInput):
        operator.recover(give_up="b")
    with pytest.raises(Torn), operator.transaction(BOTH) as tx:
        tx.update("a", {"v": "7"})
        tx.update("b", {"v": "7"})
    operator.sync("b", accept_torn=True)
    assert not head_of(tmp_path).torn


def test_recover_goes_on_where_the_table_of_an_open_transaction_is_out_of_reach(
    lake: lv.Lake, tmp_path: Path
) -> None:
    tx = lake.transaction(lv.R)
    tx.update("b", {"v": "1"})
    tx.update("b", {"v": "2"})
    store = hooked(tmp_path)

    def refuse(kind: str, key: str) -> None:
        if key.startswith("b/"):
            raise Unavailable(f"access denied: {key}")

    store.hook = refuse
    (found,) = client(tmp_path, store).recover().transactions
    assert (found.transaction, found.tables) == (tx.id, ("b",))
    assert "access denied" in found.obstacle
    assert set(tx.commit().versions) == {"b"}


def test_change_that_finds_no_row_in_a_blocked_lake_is_no_commit(lake: lv.Lake, tmp_path: Path) -> None:
    lake.append("c", [{"id": 9, "v": 0}])
    die_after_the_slot(tmp_path)
    store = hooked(tmp_path)

    def refuse(kind: str, key: str) -> None:
        if is_entry(kind, key, "b"):
            raise Unavailable(f"access denied: {key}")

    store.hook = refuse
    other = lv.Lake(tmp_path, engine="local", store=store)
    with pytest.raises(Unavailable):
        other.update("c", {"v": "1"}, where="id = 9")


def test_client_that_is_too_old_for_a_version_in_the_way_rolls_back_like_a_newer_one(
    lake: lv.Lake, tmp_path: Path, table_format: str
) -> None:
    die_after_the_slot(tmp_path, "a")
    folder, outsider = tmp_path / "b", OUTSIDERS[table_format]
    newest = outsider.version(folder)
    if table_format == "delta":
        features = {"readerFeatures": ["futureFeature"], "writerFeatures": ["futureFeature"]}
        protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
        text = json.dumps({"commitInfo": {"operation": "UPGRADE"}}) + "\n" + json.dumps(protocol)
    else:
        raw = json.loads((folder / outsider.entry(newest)).read_text())
        text = json.dumps({**raw, "format-version": 9})
    (folder / outsider.entry(newest + 1)).write_text(text)
    assert_goes_on(tmp_path)
    assert "b" not in head_of(tmp_path).torn


def test_inverse_of_an_append_is_published_on_an_append_only_table(
    lake: lv.Lake, tmp_path: Path, table_format: str
) -> None:
    if table_format != "delta":
        pytest.skip("Iceberg has no such property")
    lake.sql("ALTER TABLE a SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    tx = lake.transaction(BOTH)
    tx.append("a", [{"id": 2, "v": 0}])
    tx.append("b", [{"id": 2, "v": 0}])
    OUTSIDERS["delta"].add_text_column(tmp_path / "b", "note")
    tx.commit()
    assert [client(tmp_path).read(name).count() for name in ("a", "b")] == [2, 2]
    with pytest.raises(lv.InvalidInput):
        lake.sql("DELETE FROM a")


def test_table_whose_folder_was_deleted_is_corrupt_and_does_not_stop_vacuum(
    lake: lv.Lake, tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path / "b")
    for features in (lv.R, lv.R | lv.CT | lv.I):
        other = lv.Lake(tmp_path, engine="local", features=features, storage_options={"fsync": "false"})
        with pytest.raises(lv.Corrupt):
            other.read("b").collect()
        with pytest.raises(lv.Corrupt):
            other.append("b", [{"id": 1, "v": 1}])
        with pytest.raises(lv.Corrupt):
            other.sync("b")
        report = other.vacuum(dry_run=False)
        assert set(report.failed) == {"b"}
        assert {table.table for table in report.tables} == {"a", "c"}
    other.sql("ALTER TABLE b RENAME TO gone")
    other.drop("gone")
    assert other.tables() == ["a", "c"]


@pytest.mark.parametrize("features", [lv.CT, lv.R | lv.CT, lv.R | lv.CT | lv.I])
@pytest.mark.parametrize("only_read", [False, True])
def test_commit_on_a_table_elsewhere_that_was_dropped_does_not_bring_it_back(
    lake: lv.Lake, tmp_path: Path, table_format: str, features: lv.Features, only_read: bool
) -> None:
    away = tmp_path / "elsewhere" / "x"
    OUTSIDERS[table_format].create(away, pa.table({"id": [1], "v": [1]}))
    lake.register("x", f"file://{away}")
    tx = lake.transaction(features)
    if only_read:
        tx.sql("INSERT INTO c SELECT * FROM x")
    else:
        tx.append("x", [{"id": 2, "v": 2}])
        tx.append("c", [{"id": 2, "v": 2}])
    client(tmp_path).sql("DROP TABLE x")
    with pytest.raises(lv.Conflict):
        tx.commit()
    assert "x" not in client(tmp_path).tables()
    assert OUTSIDERS[table_format].rows(away) == [{"id": 1, "v": 1}]
