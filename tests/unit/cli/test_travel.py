"""The commands about instants of the lake: what they print, and that names can be given and removed."""

import json
from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.cli.main import main


@pytest.fixture
def folder(tmp_path: Path) -> str:
    lake = lv.Lake(tmp_path / "lake", engine="local", storage_options={"fsync": "false"})
    lake.create("accounts", "id BIGINT")
    lake.append("accounts", [{"id": 1}])
    return str(tmp_path / "lake")


def _told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def test_history_without_a_table_lists_entries_of_the_lake(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["tag", folder, "end"])
    capsys.readouterr()
    lines = [line.split() for line in _told(capsys, "history", folder).splitlines()]
    assert [(line[0], *line[3:]) for line in lines] == [
        ("3", "tag", "end", "=", "2"),
        ("2", "commit", "accounts", "1"),
        ("1", "commit", "accounts", "0"),
    ]
    assert len(_told(capsys, "history", folder, "--limit=1").splitlines()) == 1


def test_tag_is_given_listed_and_taken_back(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _told(capsys, "tag", folder, "end") == "end is entry 2 of the lake\n"
    assert _told(capsys, "tag", folder, "first", "--at=1") == "first is entry 1 of the lake\n"
    assert _told(capsys, "tag", folder) == "       2  end\n       1  first\n"
    assert _told(capsys, "tag", folder, "end", "--delete") == ""
    assert _told(capsys, "tag", folder) == "       1  first\n"
    assert main(["tag", folder, "end", "--delete"]) == 1
    assert "unknown tag 'end'" in capsys.readouterr().err


def test_export_prints_an_instant_as_json_or_sql(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    versions = [
        json.loads(_told(capsys, "export", folder, *at))["tables"][0]["version"] for at in ([], ["--at=1"])
    ]
    assert versions == [1, 0]
    assert "version => 0" in _told(capsys, "export", folder, "--at=1", "--format=duckdb")
    assert "FOR VERSION AS OF 1" in _told(capsys, "export", folder, "--format=trino")
    assert main(["export", folder, "--at=nightly"]) == 1
    assert "unknown tag 'nightly'" in capsys.readouterr().err


def test_export_says_which_tables_are_missing(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = lv.Lake(tmp_path / "other", engine="local", storage_options={"fsync": "false"})
    other.create("x", "id BIGINT")
    lv.Lake(folder, engine="local").register("x", f"{other.url}/x")
    assert main(["export", folder]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["unknown"] == ["x"]
    assert told.err == "lakevilla: the instant has no version of x; run `lakevilla sync` first\n"


def test_changes_of_a_table_are_shown_between_instants(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lv.Lake(folder, engine="local").sql("DELETE FROM accounts")
    shown = _told(capsys, "changes", folder, "accounts", "--since=1", "--json", "--engine=local")
    kinds = [(row["id"], row["_change_type"], row["_commit_seq"]) for row in json.loads(shown)]
    assert kinds == [(1, "insert", 2), (1, "delete", 3)]
    assert "delete" not in _told(capsys, "changes", folder, "accounts", "--until=2", "--engine=local")
    assert main(["changes", folder, "accounts", "--since=9", "--engine=local"]) == 1
    assert "entry 9" in capsys.readouterr().err


def test_tables_are_restored_to_an_instant_or_a_version(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "accounts: version 2 has the rows of version 0" in _told(capsys, "restore", folder, "--to=1")
    report = json.loads(_told(capsys, "restore", folder, "accounts", "--version=1", "--json"))
    assert report["restored"] == {"accounts": 1}
    assert lv.Lake(folder, engine="local").read("accounts").count() == 1
    with pytest.raises(SystemExit):
        main(["restore", folder])
