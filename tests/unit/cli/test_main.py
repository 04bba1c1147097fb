"""The command line: what it tells, to which stream, and with which exit code."""

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.cli import tables
from lakevilla.cli.main import main

COMMANDS = [
    "demo",
    "sql",
    "shell",
    "tables",
    "register",
    "restore",
    "outcome",
    "sync",
    "explain",
    "history",
    "changes",
    "tag",
    "export",
    "status",
    "recover",
    "optimize",
    "vacuum",
    "doctor",
    "completion",
]
LOCAL = "--engine=local"
PROGRAM = "import sys; from lakevilla.cli.main import main; sys.exit(main())"
MARKING = PROGRAM.replace("sys.exit", "import lakevilla.api; open('{}', 'w').close(); sys.exit")
"""Makes this file when everything is imported."""


@pytest.fixture
def folder(tmp_path: Path) -> str:
    lake = lv.Lake(tmp_path / "lake", engine="local")
    lake.create("accounts", "id BIGINT, owner STRING")
    lake.sql("INSERT INTO accounts VALUES (1, 'Ada'), (2, 'Grace')")
    return str(tmp_path / "lake")


@pytest.fixture
def usual_logging() -> Iterator[None]:
    """What `-v` changes is changed back."""
    ours, root = logging.getLogger("lakevilla"), logging.getLogger()
    before = ours.level, root.level, list(root.handlers)
    yield
    ours.setLevel(before[0])
    root.setLevel(before[1])
    root.handlers[:] = before[2]


@pytest.mark.parametrize("arguments", [[], *([command] for command in COMMANDS)], ids=str)
def test_help_is_told_for_every_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main([*arguments, "--help"])
    told = capsys.readouterr()
    assert exit.value.code == 0
    assert told.out.startswith(" ".join(["usage: lakevilla", *arguments]))
    assert not told.err


def test_help_lists_every_command_and_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    assert all(f"\n    {command} " in out for command in COMMANDS)
    assert "130  interrupted" in out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nothing"],
        ["sql", "lake"],
        ["sql", "lake", "SELECT 1", "-f", "file"],
        ["sql", "lake", "SELECT 1", "--format", "xml"],
        ["sql", "lake", "SELECT 1", "--isolation", "dirty"],
        ["sql", "lake", "SELECT 1", "--param", "hidden-secret"],
        ["sql", "lake", "SELECT 1", "--rows", "-3"],
        ["sql", "lake", "SELECT 1", "--engine", "other"],
        ["history", "lake", "t", "--limit", "many"],
        ["tables", "lake", "--option", "hidden-secret"],
        ["tables", "lake", "--option", "=hidden-secret"],
    ],
    ids=str,
)
def test_wrong_arguments_exit_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(arguments)
    told = capsys.readouterr()
    assert exit.value.code == 2
    assert not told.out
    assert "lakevilla" in told.err
    assert "hidden-secret" not in told.err


def test_commands_tell_what_they_did(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", folder, "CREATE TABLE more (id INT)", LOCAL]) == 0
    assert capsys.readouterr().out == "done\n"
    assert main(["tables", folder]) == 0
    assert capsys.readouterr().out == "accounts\nmore\n"
    assert main(["sql", folder, "DELETE FROM accounts WHERE id = 1", LOCAL]) == 0
    assert capsys.readouterr().out == "0 inserted, 0 updated, 1 deleted\n"
    assert main(["sql", folder, "SELECT owner FROM accounts", LOCAL]) == 0
    assert "|Grace|" in capsys.readouterr().out
    assert main(["history", folder, "accounts", "--limit=1"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.split()[0] == "2"
    assert "DELETE" in line


def test_rows_beyond_the_limit_are_not_shown(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", folder, "SELECT * FROM accounts ORDER BY id", "--rows=1", LOCAL]) == 0
    out = capsys.readouterr().out
    assert "Ada" in out
    assert "Grace" not in out
    assert "only showing top 1 row" in out


def test_lake_without_tables_is_said_to_be_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tables", str(tmp_path / "nothing")]) == 0
    told = capsys.readouterr()
    assert not told.out
    assert "there are no tables" in told.err


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["sql", "{}", "SELECT nothing FROM accounts"], "nothing"),
        (["sql", "{}", "SELECT FROM WHERE"], "syntax"),
        (["sql", "{}", "SELECT 1 DIV 0"], "zero"),
        (["sql", "ftp://host/lake", "SELECT 1"], "ftp://"),
        (["history", "{}", "missing"], "missing"),
        (["demo", "--lake", "{}"], "not an empty directory"),
        (["demo", "--lake", "{}/accounts/_delta_log/00000000000000000000.json"], "not an empty directory"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_error_is_one_sentence_and_exits_with_1(
    folder: str, command: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([part.format(folder) for part in command]) == 1
    told = capsys.readouterr()
    assert not told.out
    assert told.err.startswith("lakevilla: ")
    assert words in told.err
    assert "Traceback" not in told.err


def test_error_of_another_library_is_told_in_one_line_unless_asked_for_more(
    folder: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    usual_logging: None,
) -> None:
    def fail(options: object) -> None:
        raise RuntimeError("\nthe first line\nand a plan")

    monkeypatch.setattr(tables, "_tables", fail)
    assert main(["tables", folder]) == 1
    assert capsys.readouterr().err.splitlines()[0] == "lakevilla: the first line"
    with pytest.raises(RuntimeError):
        main(["-v", "tables", folder])


def test_verbose_tells_our_steps_and_not_those_of_pyspark(folder: str, usual_logging: None) -> None:
    assert main(["-v", "tables", folder]) == 0
    assert logging.getLogger("lakevilla").isEnabledFor(logging.DEBUG)
    assert not logging.getLogger("py4j").isEnabledFor(logging.DEBUG)


@pytest.mark.usefixtures("interruptible")
def test_interrupt_exits_with_130(folder: str, tmp_path: Path) -> None:
    slow = "SELECT count(*) FROM range(10000000000) a WHERE sqrt(a.id) = 0.5"
    begun = tmp_path / "begun"
    process = subprocess.Popen(
        [sys.executable, "-c", MARKING.format(begun), "sql", folder, slow, LOCAL],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not begun.exists():
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert not out
    assert err.startswith("lakevilla: interrupted")
    assert "Traceback" not in err


def test_reader_that_has_enough_ends_the_command_quietly(folder: str) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write) as nobody:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "tables", folder],
            stdout=nobody,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, "")
