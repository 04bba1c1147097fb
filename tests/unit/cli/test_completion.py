"""Completion in shells: what can stand next, and that the scripts are right in bash, zsh and fish."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.cli.completion import SCRIPTS
from lakevilla.cli.main import main


@pytest.fixture
def folder(tmp_path: Path) -> str:
    lake = lv.Lake(tmp_path / "lake", engine="local")
    lake.create("accounts", "id BIGINT")
    lake.create("orders", "id BIGINT")
    lake.tag("month-end")
    return str(tmp_path / "lake")


def _found(capsys: pytest.CaptureFixture[str], line: str, *more: str) -> list[str]:
    assert main(["completion", "candidates", "--line", line, *more]) == 0
    return capsys.readouterr().out.split()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("lakevilla res", ["restore"]),
        ("lakevilla -v res", ["restore"]),
        ("lakevilla vacuum {} ", ["accounts", "orders"]),
        ("lakevilla vacuum {} acc", ["accounts"]),
        ("lakevilla vacuum {} accounts ", []),
        ("lakevilla history {} --limit 3 o", ["orders"]),
        ("lakevilla restore {} --to ", ["month-end"]),
        ("lakevilla restore {} accounts o", ["orders"]),
        ("lakevilla restore {} --to month-end o", ["orders"]),
        ("lakevilla sql {} --format js", ["json", "jsonl"]),
        ("lakevilla sql {} --format=pa", ["--format=parquet"]),
        ("lakevilla sql {} --out", ["--output"]),
        ("lakevilla recover {} --give-up a", ["accounts"]),
        ("lakevilla tables ", []),
        ("lakevilla nothing ", []),
        ("lakevilla vacuum /nowhere ", []),
        ("lakevilla vacuum ftp://nowhere ", []),
        ("lakevilla sql {} 'SELECT", []),
        ("lakevilla completion ", ["bash", "zsh", "fish", "candidates"]),
    ],
    ids=str,
)
def test_candidates_are_what_can_stand_next(
    folder: str, line: str, found: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _found(capsys, line.format(folder)) == found
    assert not capsys.readouterr().err


def test_bash_gets_only_what_follows_its_word_breaks(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _found(capsys, f"lakevilla sql {folder} --format=pa", "--word", "pa") == ["parquet"]
    assert _found(capsys, f"lakevilla sql {folder} --format=", "--word", "=")[0] == "table"


@pytest.mark.parametrize("shell", SCRIPTS)
def test_script_completes_a_table_in_its_shell(
    folder: str, shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The shells of this machine only: bash is on each."""
    path = shutil.which(shell)
    if path is None:
        assert shell != "bash"
        return
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    line = f"lakevilla vacuum {folder} acc"
    asked = {
        "bash": f"{script}\nCOMP_LINE='{line}' COMP_POINT={len(line)} COMP_CWORD=3\n"
        f"COMP_WORDS=(lakevilla vacuum {folder} acc)\n_lakevilla\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
        "zsh": f"compdef() {{ :; }}\n_files() {{ :; }}\ncompadd() {{ print -l $found; }}\n{script}\n"
        f"words=(lakevilla vacuum {folder} acc) CURRENT=4\n_lakevilla",
        "fish": f"{script}\ncomplete -C '{line}'",
    }[shell]
    places = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    environment = {"PATH": places, "HOME": str(tmp_path)}
    done = subprocess.run(
        [path, "-c", asked], capture_output=True, text=True, env=environment, check=True, timeout=60
    )
    assert done.stdout.split() == ["accounts"], done.stderr
