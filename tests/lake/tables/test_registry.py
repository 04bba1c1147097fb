"""Tables of a lake: created, registered, found, renamed, dropped; by several clients at once."""

import os
import shutil
from pathlib import Path
from threading import Thread

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.store.open import open_store
from lakevilla.store.port import Store

ROWS = [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]


def _rows(lake: lv.Lake, name: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in lake.read(name).collect())


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    return lv.Lake(tmp_path / "lake", engine="local")


def test_opening_a_lake_writes_nothing(tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path / "nothing", engine="local")
    assert lake.tables() == []
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("root", [None, "", 7])
def test_lake_in_no_place_is_refused(root: object) -> None:
    with pytest.raises(lv.InvalidInput, match="expected a directory, or a URL"):
        lv.Lake(root, engine="local")  # type: ignore[arg-type]


def test_entry_in_the_wrong_slot_is_corrupt(lake: lv.Lake, tmp_path: Path) -> None:
    lake.create("t", ROWS)
    log = tmp_path / "lake" / "_lakevilla" / "global" / "log"
    (log / f"{2:020d}.json").write_bytes((log / f"{1:020d}.json").read_bytes())
    with pytest.raises(lv.Corrupt, match="its record is of entry 1"):
        lake.create("u", ROWS)


def test_created_table_is_listed_read_and_found_by_another_client(lake: lv.Lake) -> None:
    lake.create("t", ROWS)
    other = lv.Lake(lake.url, engine="local")
    assert other.tables() == ["t"]
    assert _rows(other, "t") == [(1, "a"), (2, "b")]


def test_table_is_created_from_an_arrow_schema_or_columns_as_text(lake: lv.Lake) -> None:
    lake.create("a", pa.schema([pa.field("id", pa.int64(), nullable=False), ("day", pa.date32())]))
    lake.create("b", "id BIGINT NOT NULL, day DATE")
    assert lake.read("a").toArrow().schema.equals(lake.read("b").toArrow().schema)
    assert lake.read("a").count() == 0


@pytest.mark.parametrize(
    "name", ["sales.orders", "Übersicht", "with blank", "MiXeD", "日本", "a'b\"c`d", "x=1+2@#"]
)
def test_name_of_any_kind_works_from_end_to_end(lake: lv.Lake, name: str) -> None:
    lake.create(name, ROWS, partition_by=["v"])
    lake.append(name, ROWS)
    lake.update(name, {"id": 7}, where="id = 1")
    assert lv.Lake(lake.url, engine="local").read(name).count() == 4
    assert lake.tables() == [name]


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "a/b", "a\\b", "a%2fb", "a\nb", "_x", ".x", " x", "x ", "a" * 201, "e\u0301"],
)
def test_name_that_could_leave_the_lake_is_refused(lake: lv.Lake, tmp_path: Path, name: str) -> None:
    for call in (
        lambda: lake.create(name, ROWS),
        lambda: lake.read(name),
        lambda: lake.register(name, str(tmp_path)),
        lambda: lake.drop(name),
    ):
        with pytest.raises(lv.InvalidInput):
            call()
    assert list(tmp_path.iterdir()) == []


def test_create_of_a_name_that_exists_is_refused_in_any_case(lake: lv.Lake) -> None:
    lake.create("Accounts", ROWS)
    with pytest.raises(lv.InvalidInput) as caught:
        lake.create("accounts", ROWS)
    assert caught.value.table == "Accounts"
    lake.sql("CREATE TABLE IF NOT EXISTS accounts (id BIGINT)")
    assert lake.tables() == ["Accounts"]


def test_name_is_found_in_any_case(lake: lv.Lake) -> None:
    lake.create("Accounts", ROWS)
    assert lake.sql("SELECT count(*) AS n FROM ACCOUNTS").collect()[0].n == 2


def test_missing_table_names_what_is_close(lake: lv.Lake) -> None:
    lake.create("accounts", ROWS)
    with pytest.raises(lv.InvalidInput, match="unknown table 'acounts'; did you mean 'accounts'"):
        lake.read("acounts")


def test_table_in_the_root_is_found_without_being_registered(tmp_path: Path) -> None:
    lv.Lake(tmp_path / "first", engine="local").create("t", ROWS)
    (tmp_path / "second").mkdir()
    os.rename(tmp_path / "first" / "t", tmp_path / "second" / "Found")
    lake = lv.Lake(tmp_path / "second", engine="local", features=lv.R)
    assert lake.tables() == ["Found"]
    assert lake.read("Found").count() == 2
    assert lv.Lake(tmp_path / "second", engine="local", features=lv.R).read("FOUND").count() == 2
    lake.append("Found", ROWS)
    assert not (tmp_path / "second" / "_lakevilla").exists()
    with pytest.raises(lv.InvalidInput) as caught:
        lake.create("found", ROWS)
    assert caught.value.table == "Found"


def test_registered_table_outside_is_used_and_dropped_without_being_touched(tmp_path: Path) -> None:
    outside = lv.Lake(tmp_path / "outside", engine="local")
    outside.create("orders", ROWS)
    url = f"file://{tmp_path}/outside/orders"
    lake = lv.Lake(tmp_path / "lake", engine="local", features=lv.R)
    lake.register("bestellungen", url)
    lake.append("bestellungen", ROWS)
    assert outside.read("orders").count() == 4
    versions = len(outside.history("orders"))
    lake.drop("bestellungen")
    assert lake.tables() == []
    assert len(outside.history("orders")) == versions


def test_register_of_a_place_without_a_table_is_refused(lake: lv.Lake, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(lv.InvalidInput, match="no table found at"):
        lake.register("x", f"file://{tmp_path}/empty")


def test_renamed_table_keeps_its_rows_and_frees_its_name(lake: lv.Lake) -> None:
    lake.create("old", ROWS)
    lake.rename("old", "new")
    assert lake.tables() == ["new"]
    lake.create("old", [{"x": 1}])
    other = lv.Lake(lake.url, engine="local")
    assert _rows(other, "new") == [(1, "a"), (2, "b")]
    assert _rows(other, "old") == [(1,)]


def test_dropped_table_is_gone_and_its_name_gets_a_new_folder(lake: lv.Lake) -> None:
    lake.create("t", ROWS)
    lake.drop("t")
    assert lake.tables() == []
    with pytest.raises(lv.InvalidInput) as caught:
        lake.read("t")
    assert caught.value.table == "t"
    lake.sql("DROP TABLE IF EXISTS t")
    lake.create("t", [{"x": 1}])
    assert _rows(lv.Lake(lake.url, engine="local"), "t") == [(1,)]
    assert lake.tables() == ["t"]


def test_client_that_still_knows_a_dropped_table_is_told(lake: lv.Lake) -> None:
    lake.create("t", ROWS)
    other = lv.Lake(lake.url, engine="local")
    other.append("t", ROWS)
    lake.drop("t")
    with pytest.raises(lv.InvalidInput) as caught:
        other.append("t", ROWS)
    assert caught.value.table == "t"


def test_statement_in_flight_when_its_table_is_dropped_conflicts(lake: lv.Lake) -> None:
    lake.create("t", ROWS)
    other = lv.Lake(lake.url, engine="local").transaction()
    other.append("t", ROWS)
    lake.drop("t")
    with pytest.raises(lv.Conflict, match=r"'t'.* was dropped"):
        other.commit()


def test_client_that_still_knows_a_dropped_name_finds_its_new_table(lake: lv.Lake) -> None:
    lake.create("t", ROWS)
    other = lv.Lake(lake.url, engine="local")
    assert other.read("t").count() == 2
    lake.drop("t")
    lake.create("t", [{"x": 1}])
    assert _rows(other, "t") == [(1,)]


def test_client_that_still_knows_a_renamed_table_by_its_old_name_is_told(lake: lv.Lake) -> None:
    lake.create("a", ROWS)
    other = lv.Lake(lake.url, engine="local")
    assert other.read("a").count() == 2
    lake.rename("a", "b")
    lake.append("b", ROWS)
    with pytest.raises(lv.InvalidInput) as caught:
        other.append("a", ROWS)
    assert caught.value.table == "a"
    lake.create("a", [{"x": 1}])
    other.append("a", [{"x": 2}])
    assert (lake.read("a").count(), lake.read("b").count()) == (2, 4)


def test_statement_in_flight_when_its_table_is_renamed_commits(lake: lv.Lake) -> None:
    lake.create("a", ROWS)
    other = lv.Lake(lake.url, engine="local").transaction()
    other.append("a", ROWS)
    lake.rename("a", "b")
    other.commit()
    assert lake.read("b").count() == 4


def test_client_of_a_lake_without_head_learns_of_the_first_drop(tmp_path: Path) -> None:
    lv.Lake(tmp_path / "first", engine="local").create("t", ROWS)
    (tmp_path / "second").mkdir()
    os.rename(tmp_path / "first" / "t", tmp_path / "second" / "t")
    old = lv.Lake(tmp_path / "second", engine="local", features=lv.R)
    old.append("t", ROWS)
    lv.Lake(tmp_path / "second", engine="local").drop("t")
    with pytest.raises(lv.InvalidInput) as caught:
        old.append("t", ROWS)
    assert caught.value.table == "t"


def test_dropped_table_brought_to_another_lake_is_a_table_there(tmp_path: Path) -> None:
    first = lv.Lake(tmp_path / "first", engine="local")
    first.create("t", ROWS)
    first.drop("t")
    os.rename(tmp_path / "first" / "t", tmp_path / "t")
    second = lv.Lake(tmp_path, engine="local", features=lv.R)
    second.create("other", ROWS)
    second.append("t", ROWS)
    assert second.read("t").count() == 4


def test_dropped_table_that_is_registered_again_is_used_again(lake: lv.Lake) -> None:
    lake.create("t", ROWS)
    lake.drop("t")
    lake.register("again", "t")
    lake.append("again", ROWS)
    assert lv.Lake(lake.url, engine="local").read("again").count() == 4
    assert lake.tables() == ["again"]


def test_rivals_that_create_one_name_leave_one_table(lake: lv.Lake) -> None:
    outcomes: list[str] = []

    def create(number: int) -> None:
        try:
            lv.Lake(lake.url, engine="local").create("t", [{"x": number}])
            outcomes.append("created")
        except (lv.InvalidInput, lv.Conflict):
            outcomes.append("refused")

    threads = [Thread(target=create, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["created"] + ["refused"] * 5
    assert lake.read("t").count() == 1


def test_rivals_that_create_different_names_all_succeed(lake: lv.Lake) -> None:
    threads = [
        Thread(target=lambda n=number: lv.Lake(lake.url, engine="local").create(f"t{n}", ROWS))
        for number in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lake.tables() == [f"t{number}" for number in range(6)]


class ReadOnly:
    """A store whose rights end at reading: whatever writes is refused, as a bucket would."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> object:
        if name in ("put", "create", "replace", "delete"):
            raise lv.Unavailable(f"no right to {name}")
        return getattr(self._store, name)


def test_client_without_write_permission_can_read(lake: lv.Lake, tmp_path: Path) -> None:
    lake.create("t", ROWS)
    lake.append("t", ROWS)
    os.rename(tmp_path / "lake" / "t", tmp_path / "lake" / "found")
    lake.create("u", ROWS)
    reader = lv.Lake(lake.url, store=ReadOnly(open_store(lake.url)), engine="local")
    assert set(reader.tables()) >= {"u", "found"}
    assert reader.read("found").count() == 4
    assert reader.sql("SELECT count(*) AS n FROM found VERSION AS OF 0").collect()[0].n == 2
    assert len(reader.history("u")) == 1
    for change in (
        lambda: reader.append("u", ROWS),
        lambda: reader.create("v", ROWS),
        lambda: reader.drop("u"),
    ):
        with pytest.raises(lv.Unavailable):
            change()


def test_location_below_the_root_is_the_table_that_lies_there(lake: lv.Lake, tmp_path: Path) -> None:
    lake.create("t", ROWS)
    root = (tmp_path / "lake").as_uri()
    with pytest.raises(lv.InvalidInput) as caught:
        lake.register("again", f"{root}/t")
    assert caught.value.table == "t"
    lake.create("named", ROWS, location=f"{root}/some%20folder/")
    assert lake.tables() == ["named", "t"]
    assert (tmp_path / "lake" / "some folder" / "_delta_log").is_dir()


@pytest.mark.parametrize("name", [5, None, b"t"])
def test_name_that_is_no_text_is_refused(lake: lv.Lake, name: str) -> None:
    with pytest.raises(lv.InvalidInput, match="text"):
        lake.read(name)


def test_lake_that_was_deleted_and_made_anew_is_seen_by_an_old_client(tmp_path: Path) -> None:
    place = tmp_path / "lake"
    old, new = lv.Lake(place, engine="local"), lv.Lake(place, engine="local")
    old.create("t", ROWS)
    for _ in range(3):
        old.append("t", ROWS)
    shutil.rmtree(place)
    new.create("t", ROWS)
    assert old.tables() == ["t"]
    old.append("t", ROWS)
    assert new.read("t").count() == 4
