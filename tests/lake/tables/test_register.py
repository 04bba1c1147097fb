"""Existing tables get names: by paths of any form, alone or a whole folder at once."""

from pathlib import Path

import pytest

import lakevilla as lv


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    return lv.Lake(tmp_path / "lake", engine="local", storage_options={"fsync": "false"})


def make(folder: Path, table_format: str = "delta") -> Path:
    """A table at a folder, made by another lake."""
    other = lv.Lake(folder.parent, engine="local", storage_options={"fsync": "false"})
    other.create(folder.name, [{"id": 1}], format=table_format)
    return folder


@pytest.mark.parametrize("form", ["absolute", "path", "url", "home", "relative", "dot", "relative path"])
def test_table_is_registered_by_a_path_of_any_form(
    lake: lv.Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    far = make(tmp_path / "far away" / "sales")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    location = {
        "absolute": str(far),
        "path": far,
        "url": far.as_uri(),
        "home": "~/far away/sales",
        "relative": "far away/sales",
        "dot": "./far away/../far away/sales",
        "relative path": Path("far away/sales"),
    }[form]
    lake.register("sales", location)  # type: ignore[arg-type]
    assert [row.id for row in lake.read("sales")] == [1]
    monkeypatch.chdir("/")
    again = lv.Lake(tmp_path / "lake", engine="local")
    assert len(again.read("sales")) == 1
    with pytest.raises(lv.InvalidInput):
        again.register("twice", far)


def test_relative_path_may_be_a_folder_of_the_lake(
    lake: lv.Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.create("t", "id INT")
    make(tmp_path / "lake" / "deep" / "sales")
    monkeypatch.chdir(tmp_path)
    lake.register("sales", "deep/sales")
    assert len(lake.read("sales")) == 1
    make(tmp_path / "deep" / "sales")
    with pytest.raises(lv.InvalidInput, match="ambiguous"):
        lake.register("other", "deep/sales")
    lake.register("other", "./deep/sales")
    assert len(lake.read("other")) == 1


def test_path_without_a_table_is_refused(lake: lv.Lake, tmp_path: Path) -> None:
    for location in (tmp_path, "~/none", "none", str(tmp_path / "none")):
        with pytest.raises(lv.InvalidInput):
            lake.register("none", location)


def test_warehouse_is_registered_in_one_call(lake: lv.Lake, tmp_path: Path) -> None:
    house = tmp_path / "ware house"
    make(house / "orders")
    make(house / "sales" / "items", "iceberg")
    make(house / "hr.db" / "people")
    make(house / "a" / "b" / "c")
    (house / "empty").mkdir()
    (house / "_hidden" / "x" / "_delta_log").mkdir(parents=True)
    broken = house / "broken" / "_delta_log"
    broken.mkdir(parents=True)
    (broken / "00000000000000000000.json").write_text("{}")
    lake.create("t", "id INT")
    lake.register("known", house / "orders")
    report = lake.register_all(house)
    assert sorted(report.registered) == ["a.b.c", "hr.people", "sales.items"]
    assert {Path(location).name: reason for location, reason in report.skipped.items()}.keys() == {
        "orders",
        "broken",
    }
    assert "as 'known'" in str(report)
    assert str(report).startswith("registered 3 tables, skipped 2")
    assert lake.tables() == ["a.b.c", "hr.people", "known", "sales.items", "t"]
    assert len(lake.sql("SELECT * FROM sales.items JOIN hr.people USING (id)")) == 1
    again = lake.register_all(house)
    assert (again.registered, len(again.skipped)) == ({}, 5)


def test_names_that_are_taken_are_skipped_unless_a_prefix_is_given(lake: lv.Lake, tmp_path: Path) -> None:
    make(tmp_path / "house" / "t")
    lake.create("t", "id INT")
    assert lake.register_all(str(tmp_path / "house")).registered == {}
    report = lake.register_all((tmp_path / "house").as_uri(), prefix="old.")
    assert list(report.registered) == ["old.t"]


def test_folder_that_holds_no_tables_is_refused(lake: lv.Lake, tmp_path: Path) -> None:
    make(tmp_path / "house" / "delta")
    make(tmp_path / "house" / "iceberg", "iceberg")
    for name in ("delta", "iceberg"):
        with pytest.raises(lv.InvalidInput, match=r"is a table: .*lake\.register\(name"):
            lake.register_all(tmp_path / "house" / name)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("a")
    with pytest.raises(lv.InvalidInput, match="no Delta or Iceberg table found"):
        lake.register_all(tmp_path / "notes")
    with pytest.raises(lv.InvalidInput, match=r"lake\.register_all"):
        lake.register("house", tmp_path / "house")


def test_tables_in_the_root_need_no_registration(lake: lv.Lake, tmp_path: Path) -> None:
    lake.create("t", "id INT")
    report = lake.register_all(tmp_path / "lake")
    assert report.registered == {}
    with pytest.raises(lv.InvalidInput, match="nothing"):
        lake.register_all(tmp_path / "none")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SELECT * FROM delta.`{place}`", "lake.register('outside', '{place}')"),
        ("SELECT * FROM iceberg.`{place}`", "lake.register('outside', '{place}')"),
        ("INSERT INTO `{place}` VALUES (1)", "lake.register('outside', '{place}')"),
        ("CREATE TABLE o (id BIGINT) LOCATION '{place}'", "lake.register('o', '{place}')"),
        ("CREATE TABLE o LOCATION '{place}'", "lake.register('o', '{place}')"),
        ("CREATE TABLE o (id BIGINT) LOCATION 'outside'", "lake.register('o', 'outside')"),
        ("CREATE EXTERNAL TABLE o (id BIGINT) LOCATION '{place}'", "lake.register(name, location)"),
        ("SELECT * FROM outside", "lake.register('outside', location)"),
        ("CONVERT TO DELTA outside", "lake.register(name, location)"),
    ],
)
def test_statement_that_means_a_table_elsewhere_names_register(tmp_path: Path, text: str, hint: str) -> None:
    place = tmp_path / "outside"
    lv.Lake(tmp_path, engine="local").create("outside", "id BIGINT")
    lake = lv.Lake(tmp_path / "lake", engine="local")
    with pytest.raises(lv.LakeVillaError) as error:
        lake.sql(text.format(place=place))
    assert hint.format(place=place) in str(error.value)
    lake.register("outside", str(place))
    assert lake.sql("SELECT * FROM outside").to_dicts() == []


def test_files_in_the_place_of_a_table_name_append(tmp_path: Path) -> None:
    with pytest.raises(lv.InvalidInput, match=r"lake\.append"):
        lv.Lake(tmp_path, engine="local").sql("SELECT * FROM parquet.`/data/x.parquet`")


def test_new_table_takes_a_path_as_its_location(tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path / "lake", engine="local")
    lake.sql(f"CREATE TABLE far (id BIGINT) LOCATION '{tmp_path}/far'")
    lake.sql("INSERT INTO far VALUES (1)")
    assert (tmp_path / "far/_delta_log").is_dir()
    assert lv.Lake(tmp_path / "lake", engine="local").read("far").to_dicts() == [{"id": 1}]
