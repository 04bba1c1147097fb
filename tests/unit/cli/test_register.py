"""`lakevilla register`: one existing table, or every table below a folder."""

import json
from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.cli.main import main


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two tables and a folder that looks like one."""
    house = tmp_path / "data"
    for folder in (house, house / "sales"):
        name = "accounts" if folder == house else "orders"
        other = lv.Lake(folder, engine="local", storage_options={"fsync": "false"})
        other.create(name, [{"id": 1}])
    (house / "broken" / "_delta_log").mkdir(parents=True)
    (house / "broken" / "_delta_log" / f"{0:020}.json").write_text("{}")
    return house


def _told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def test_existing_table_is_registered(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = str(tmp_path / "lake")
    place = (data / "accounts").as_uri()
    assert _told(capsys, "register", lake, "mine", place) == "mine is a table of the lake\n"
    assert _told(capsys, "tables", lake) == "mine\n"
    assert main(["register", lake, "more"]) == 1
    assert "location" in capsys.readouterr().err


def test_every_table_below_a_folder_is_registered(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = str(tmp_path / "lake")
    told = _told(capsys, "register", lake, "--all", str(data)).splitlines()
    assert told[0] == "registered 2 tables, skipped 1"
    assert {line.partition(": ")[0] for line in told[1:3]} == {"accounts", "sales.orders"}
    assert "broken" in told[3]
    assert _told(capsys, "tables", lake) == "accounts\nsales.orders\n"
    again = json.loads(_told(capsys, "register", lake, "--all", data.as_uri(), "--json"))
    assert (again["registered"], len(again["skipped"])) == ({}, 3)
    other = str(tmp_path / "other")
    report = json.loads(_told(capsys, "register", "--json", other, "--prefix", "old.", "--all", str(data)))
    assert sorted(report["registered"]) == ["old.accounts", "old.sales.orders"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "--all FOLDER"),
        (["name", "--all", "data"], "names the tables itself"),
        (["--all", "data", "--table", "x"], "names the tables itself"),
        (["name", "data", "--prefix", "old."], "goes with --all"),
    ],
)
def test_words_that_do_not_fit_are_wrong_arguments(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["register", str(tmp_path / "lake"), *words])
    assert ended.value.code == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "lake").exists()
