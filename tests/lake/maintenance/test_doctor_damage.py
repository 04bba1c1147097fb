"""The doctor on damaged lakes: it names the damage, its advice works, and no byte of the lake changes."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.store import keys
from tests.support.left_open import OPTIONS

TXN = "0197" + "b" * 28
LOG = keys.GLOBAL_LOG


@pytest.fixture
def root(tmp_path: Path) -> Path:
    lake = open_lake(tmp_path / "lake")
    lake.create("t", "id BIGINT")
    lake.create("u", "id BIGINT", format="iceberg")
    for number in range(2):
        lake.run(lambda tx, n=number: (tx.append("t", [{"id": n}]), tx.append("u", [{"id": n}])))
    return tmp_path / "lake"


def open_lake(root: Path) -> lv.Lake:
    return lv.Lake(root, engine="local", storage_options=OPTIONS, lease_seconds=0.3)


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def troubles(root: Path) -> list[lv.Check]:
    """What the doctor finds, without changing anything."""
    before = contents(root)
    found = open_lake(root).doctor()
    assert contents(root) == before
    for check in found.checks:
        assert check.state == "ok" or check.advice, check
    return [
        check for check in found.checks if check.state in ("problem", "warning") and check.subject != "Java"
    ]


def trouble(root: Path) -> lv.Check:
    (check,) = troubles(root)
    return check


def write(path: Path, data: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data)


def rows(root: Path, table: str = "t") -> int:
    return len(open_lake(root).read(table).to_dicts())


def test_lost_head_is_a_problem_that_recover_repairs(root: Path) -> None:
    (root / keys.HEAD).unlink()
    check = trouble(root)
    assert (check.subject, check.state) == ("store", "problem")
    assert "entries from 1 on" in check.text
    assert "lakevilla recover" in check.advice
    open_lake(root).recover()
    assert not troubles(root)
    assert rows(root) == 2


def test_lost_head_over_a_cleaned_log_needs_a_backup(root: Path) -> None:
    (root / keys.HEAD).unlink()
    (root / keys.slot(1)).unlink()
    assert "restore it from a backup: the entries before 2" in trouble(root).advice


@pytest.mark.parametrize("text", ["", "null", "[1]", '{"format":5,', '{"format":5}'])
def test_damaged_head_is_deleted_and_created_again(root: Path, text: str) -> None:
    (root / keys.HEAD).write_text(text)
    check = trouble(root)
    assert (check.subject, check.state) == ("store", "problem")
    assert "delete the damaged record and run `lakevilla recover`" in check.text
    (root / keys.HEAD).unlink()
    open_lake(root).recover()
    assert not troubles(root)
    assert rows(root) == 2


def test_head_of_a_newer_release_asks_for_that_release(root: Path) -> None:
    head = json.loads((root / keys.HEAD).read_text())
    (root / keys.HEAD).write_text(json.dumps({**head, "format": 99}))
    check = trouble(root)
    assert "record format 99" in check.text
    assert check.advice == "use a release, or a client, that knows what the error names"


def test_place_without_a_lake_is_told(tmp_path: Path) -> None:
    found = open_lake(tmp_path / "typo").doctor()
    (note,) = [check for check in found.checks if check.state == "note"]
    assert "there is no lake at" in note.text
    assert "check the URL" in note.advice
    assert not (tmp_path / "typo").exists()


def test_damaged_entry_after_head_is_a_problem(root: Path) -> None:
    seq = open_lake(root).history()[0].seq + 1
    write(root / keys.slot(seq), '{"format":3,')
    found = troubles(root)
    assert {check.subject for check in found} == {"unsettled entries", "files"}
    assert "delete it" in found[0].text
    (root / keys.slot(seq)).unlink()
    assert not troubles(root)


def test_lost_global_log_is_told_by_its_tables(root: Path) -> None:
    shutil.rmtree(root / "_lakevilla")
    found = troubles(root)
    assert {(check.subject, check.tables) for check in found} == {("owners", ("t",)), ("owners", ("u",))}
    assert "an earlier lake at this place" in found[0].text
    for name in ("t", "u"):
        (root / name / keys.OWNER).unlink()
    assert not troubles(root)
    open_lake(root).run(lambda tx: tx.append("t", [{"id": 3}]))
    assert rows(root) == 3


def test_table_of_another_lake_is_told_once(root: Path, tmp_path: Path) -> None:
    other = open_lake(tmp_path / "other")
    other.register("theirs", root / "t")
    check = trouble(tmp_path / "other")
    assert (check.subject, check.tables) == ("owners", ("theirs",))
    assert f"belongs to the lake at {open_lake(root).url}" in check.text
    with pytest.raises(lv.Unsupported, match="belongs to the lake"):
        other.sql("INSERT INTO theirs VALUES (3)")


def test_unreadable_owner_is_told_once(root: Path) -> None:
    (root / "t" / keys.OWNER).write_text("{{")
    check = trouble(root)
    assert (check.subject, check.state, check.tables) == ("owners", "warning", ("t",))


def _newest(folder: Path) -> Path:
    return max(folder.rglob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)


@pytest.mark.parametrize("name", ["t", "u"])
def test_missing_data_file_is_a_problem_that_a_restore_repairs(root: Path, name: str) -> None:
    before = open_lake(root).history(name)[1].version
    _newest(root / name).unlink()
    check = trouble(root)
    assert (check.subject, check.state, check.tables) == ("data", "problem", (name,))
    assert f"1 of the 2 data files of {name!r} are missing" in check.text
    open_lake(root).restore(version=before, tables=[name])
    assert not troubles(root)
    assert rows(root, name) == 1


def test_data_file_that_was_cut_off_is_told(root: Path) -> None:
    path = _newest(root / "t")
    path.write_bytes(path.read_bytes()[:100])
    check = trouble(root)
    assert (check.subject, check.state) == ("data", "warning")
    assert path.name in check.text


def test_iceberg_table_without_its_manifests_is_a_problem(root: Path) -> None:
    for path in (root / "u/metadata").glob("*.avro"):
        path.unlink()
    found = [check for check in troubles(root) if check.state == "problem"]
    assert [(check.subject, check.tables) for check in found] == [("data", ("u",))]


def _damage_log(root: Path) -> None:
    (root / "t/_delta_log/00000000000000000001.json").write_text("{")


def _delete_table(root: Path) -> None:
    shutil.rmtree(root / "t")


def _damage_metadata(root: Path) -> None:
    max((root / "u/metadata").glob("v*.json")).write_text("{")


@pytest.mark.parametrize(
    ("damage", "name"), [(_damage_log, "t"), (_delete_table, "t"), (_damage_metadata, "u")]
)
def test_table_that_cannot_be_read_is_told_once_and_can_be_dropped(
    root: Path, damage: Callable[[Path], None], name: str
) -> None:
    damage(root)
    check = trouble(root)
    assert (check.subject, check.state, check.tables) == ("tables", "problem", (name,))
    assert check.text.count("cannot be read") == 1
    assert f"DROP TABLE {name}" in check.advice
    open_lake(root).sql(f"DROP TABLE {name}")
    assert not troubles(root)


def test_marker_of_a_newer_release_asks_for_that_release(root: Path) -> None:
    write(root / "t" / keys.marker(1), '{"format":99}')
    assert trouble(root).advice == "use a release, or a client, that knows what the error names"


@pytest.mark.parametrize("text", ["{{", '{"format":99}'])
def test_records_that_cannot_be_read_are_told_without_a_resume(root: Path, text: str) -> None:
    write(root / keys.sublog(TXN, "c" * 32, 1), text)
    found = open_lake(root).doctor()
    (check,) = [check for check in found.checks if check.subject == "dead clients"]
    assert check.state == "note"
    assert "cannot be resumed" in check.text
    assert "resume(" not in check.advice
    assert open_lake(root).recover().transactions[0].obstacle
    assert open_lake(root).status().transactions[0].obstacle


def test_folder_that_is_no_transaction_is_passed_over(root: Path) -> None:
    write(root / keys.TXNS / "odd name/x", "{}")
    assert not troubles(root)
    assert not open_lake(root).status().transactions


def _names(folder: Path) -> Iterator[str]:
    return (path.name for path in folder.iterdir())


def test_junk_in_the_folders_of_records_harms_nothing(root: Path) -> None:
    write(root / LOG / "notes.txt", "x")
    write(root / "t/_lakevilla/markers/notes.txt", "x")
    write(root / "_lakevilla/probe/left.json", "{{")
    assert not troubles(root)
    assert "notes.txt" in _names(root / LOG)
