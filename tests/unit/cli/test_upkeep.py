"""The commands that keep a lake in order: what they print, and that nothing is deleted unless it is said."""

import json
from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.cli.main import main
from lakevilla.markers.records import Marker
from lakevilla.store import keys
from lakevilla.store.open import open_store
from lakevilla.store.prefixed import Prefixed
from tests.support.clocks import Days, date_files

TXN = "0197" + "a" * 28


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """A lake with a table of which one file was removed nine days ago."""
    clock = Days()
    clock.pass_days(-9)
    lake = lv.Lake(tmp_path, engine="local", environment=clock, storage_options={"fsync": "false"})
    lake.create("t", "id BIGINT")
    lake.append("t", [{"id": 1}])
    lake.update("t", {"id": 2})
    date_files(tmp_path, set(), clock.now_ms())
    return str(tmp_path)


def _files(folder: str) -> int:
    return len(list((Path(folder) / "t").glob("*.parquet")))


def _mark(folder: str) -> None:
    marker = Marker(TXN, TXN, "p", 0, live=True, predecessors=("b" * 32,))
    Prefixed(open_store(folder), "t").put(keys.marker(5), marker.encode())


def test_vacuum_deletes_nothing_unless_told(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["vacuum", folder, "--list"]) == 0
    out, err = capsys.readouterr()
    assert "t (version 2, retention 168 hours): would delete 1 file" in out
    assert "--delete" in out
    assert out.startswith("t/part-")
    assert "t: 2 files" in err
    assert _files(folder) == 2


def test_vacuum_deletes_when_told(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["vacuum", folder, "t", "--delete"]) == 0
    out, err = capsys.readouterr()
    assert "removed by the log: 1 file" in out
    assert "t: 1 of 1 files deleted" in err
    assert _files(folder) == 1
    assert main(["vacuum", folder, "--delete"]) == 0
    assert "in all: deleted 0 files" in capsys.readouterr().out


def test_vacuum_takes_a_retention(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["vacuum", folder, "--retention-hours", "240", "--delete"]) == 0
    assert "deleted 0 files" in capsys.readouterr().out
    assert main(["vacuum", folder, "--retention-hours", "1", "--delete"]) == 1
    assert capsys.readouterr().err.startswith("lakevilla: retention_hours must be at least 24; found 1")
    assert _files(folder) == 2


def test_vacuum_takes_foreign_files_and_dropped_tables_when_told(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    strange = Path(folder) / "t" / "strange.bin"
    strange.write_bytes(b"x")
    clock = Days()
    clock.pass_days(-9)
    lv.Lake(folder, engine="local", environment=clock).create("u", "id BIGINT")
    lv.Lake(folder, engine="local", environment=clock).drop("u")
    date_files(Path(folder), set(), clock.now_ms())
    assert main(["vacuum", folder, "--delete"]) == 0
    assert "kept, of unknown origin: 1 file" in capsys.readouterr().out
    assert main(["vacuum", folder, "--delete", "--foreign", "--dropped"]) == 0
    assert "dropped table in u: deleted 3 files" in capsys.readouterr().out
    assert not strange.exists()


def test_vacuum_of_an_unknown_table_fails_in_a_sentence(
    folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["vacuum", folder, "nowhere"]) == 1
    assert "unknown table 'nowhere'" in capsys.readouterr().err


def test_status_as_a_table_and_as_json(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    _mark(folder)
    assert main(["status", folder]) == 0
    assert TXN in capsys.readouterr().out
    assert main(["status", folder, "--json"]) == 0
    (ticket,) = json.loads(capsys.readouterr().out)["tickets"]
    assert (ticket["table"], ticket["ticket"], ticket["waits_for"]) == ("t", 5, ["b" * 32])


def test_recover_of_a_quiet_lake_says_so(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recover", folder]) == 0
    assert capsys.readouterr().out == "nothing to recover\n"


@pytest.mark.parametrize("command", ["vacuum", "recover", "status"])
def test_lake_that_is_not_there_is_empty(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, str(tmp_path / "nowhere")]) == 0
    assert not (tmp_path / "nowhere").exists()
    assert not capsys.readouterr().err


def test_sync_says_which_versions_are_new(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    with lv.Lake(folder, engine="local").transaction(lv.R) as tx:
        tx.append("t", [{"id": 3}])
    assert main(["sync", folder]) == 0
    assert capsys.readouterr().out == "t: version 3\n"
    assert main(["sync", folder, "t"]) == 0
    assert capsys.readouterr().out == "nothing to adopt\n"
    assert main(["sync", folder, "nothing"]) != 0
    assert "unknown table 'nothing'" in capsys.readouterr().err


def test_doctor_tells_what_is_wrong_by_its_exit_code(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", folder, "--no-probe"]) == 0
    assert "vacuum would delete 1 file" in capsys.readouterr().out
    assert main(["doctor", folder, "--json", "--no-files"]) == 0
    told = json.loads(capsys.readouterr().out)
    checks = told["checks"]
    assert told["healthy"] is True
    assert {"store", "conditional writes", "torn tables"} <= {check["subject"] for check in checks}
    (Path(folder) / "t" / "_delta_log" / f"{1:020}.json").write_text("{")
    with pytest.raises(SystemExit) as ended:
        main(["doctor", folder, "--no-files"])
    assert ended.value.code == 1
    assert "PROBLEM  tables: 't' cannot be read" in capsys.readouterr().out
