"""`lakevilla shell` on a terminal: completion, several lines, Ctrl-C, and an open transaction at the end."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest

import lakevilla as lv

PROGRAM = "import sys; from lakevilla.cli.main import main; sys.exit(main())"
SECONDS = 100
RUNNING = "\x1b[?2004l"
"""Shown when a text is taken to be run: pasted text would not be marked from here on."""
CONTROLS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[=>]|\r")


class Terminal:
    """A shell on a pseudo-terminal, and what it has shown since the last look."""

    def __init__(self, folder: str, home: Path) -> None:
        environment = {
            **os.environ,
            "XDG_STATE_HOME": str(home),
            "TERM": "xterm",
            "PROMPT_TOOLKIT_NO_CPR": "1",
        }
        self._child: Any = pexpect.spawn(
            sys.executable,
            ["-c", PROGRAM, "shell", folder, "--engine=local"],
            env=environment,
            encoding="utf-8",
            timeout=SECONDS,
            dimensions=(50, 200),
        )
        self.expect("lake>")

    def expect(self, text: str) -> str:
        """What was shown up to and with this text."""
        self._child.expect_exact(text)
        return CONTROLS.sub("", self._child.before + text)

    def type(self, text: str) -> None:
        self._child.send(text)

    def run(self, text: str, until: str = "lake>") -> str:
        """What a statement shows, up to the next prompt."""
        self.type(f"{text}\r")
        # The first time shown is that of the statement: the prompt itself is drawn anew with each key.
        return self.expect(" s)") + self.expect(until)

    def control(self, letter: str) -> None:
        self._child.sendcontrol(letter)

    def end(self) -> int:
        self._child.expect(pexpect.EOF)
        self._child.close()
        return int(self._child.exitstatus)

    @property
    def rest(self) -> str:
        return CONTROLS.sub("", self._child.before)

    def close(self) -> None:
        self._child.close(force=True)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    lake = lv.Lake(tmp_path / "lake", engine="local", storage_options={"fsync": "false"})
    lake.create("accounts", "id BIGINT, holder STRING")
    lake.sql("INSERT INTO accounts VALUES (1, 'Ada'), (2, 'Grace')")
    return str(tmp_path / "lake")


@pytest.fixture
def terminal(folder: str, tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(folder, tmp_path)
    yield terminal
    terminal.close()


def test_statement_of_several_lines_runs_at_its_semicolon(terminal: Terminal) -> None:
    terminal.type("SELECT holder\r")
    terminal.expect("->")
    terminal.type("FROM accounts -- not yet;\r")
    terminal.expect("->")
    assert "|Grace|" in terminal.run("WHERE id = 2;").replace(" ", "")
    terminal.control("d")
    assert terminal.end() == 0


def test_tab_completes_keywords_tables_and_columns(terminal: Terminal) -> None:
    terminal.type("SEL\t")
    terminal.expect("ECT")
    terminal.type(" 1 AS one FROM acc\t")
    terminal.expect("ounts")
    terminal.type(" WHERE hol\t")
    terminal.expect("der")
    assert "one" in terminal.run(" = 'Ada';")


def test_tab_completes_views_and_their_columns(terminal: Terminal) -> None:
    terminal.run("CREATE VIEW wealthy AS SELECT holder AS rich_holder FROM accounts;")
    terminal.run("CREATE TEMPORARY VIEW poor_ones AS SELECT id AS poor_id FROM accounts;")
    terminal.type("SELECT 1 AS one FROM weal\t")
    terminal.expect("thy")
    terminal.type(" WHERE rich\t")
    terminal.expect("_holder")
    assert "one" in terminal.run(" = 'Ada';")
    terminal.type("SELECT 1 AS one FROM poor\t")
    terminal.expect("_ones")
    terminal.type(" WHERE poor_i\t")
    terminal.expect("d")
    assert "one" in terminal.run(" = 1;")
    terminal.type("DROP VIEW weal\t")
    terminal.expect("thy")
    terminal.run(";")


def test_prompt_shows_the_transaction_and_leaving_asks_twice(terminal: Terminal, folder: str) -> None:
    terminal.run("BEGIN;", "lake*>")
    assert "2 deleted" in terminal.run("DELETE FROM accounts;", "lake*>")
    terminal.control("d")
    terminal.expect("is open, and leaving rolls it back")
    terminal.expect("lake*>")
    assert "0" in terminal.run("SELECT count(*) FROM accounts;", "lake*>")
    terminal.control("d")
    terminal.expect("leaving rolls it back")
    terminal.expect("lake*>")
    terminal.control("d")
    assert terminal.end() == 0
    assert "the open transaction was rolled back" in terminal.rest
    assert lv.Lake(folder, engine="local").read("accounts").count() == 2


def test_interrupt_stops_the_statement_and_not_the_shell(terminal: Terminal) -> None:
    terminal.run("BEGIN;", "lake*>")
    terminal.type("SELECT count(*) FROM range(10000000000) a WHERE sqrt(a.id) = 0.5;\r")
    terminal.expect(RUNNING)
    time.sleep(1)
    terminal.control("c")
    terminal.expect("interrupted: it was undone; the transaction is still open")
    terminal.expect("lake*>")
    assert "2" in terminal.run("SELECT count(*) FROM accounts;", "lake*>")


def test_interrupt_clears_the_line(terminal: Terminal) -> None:
    terminal.type("SELECT 'open\r")
    terminal.expect("->")
    terminal.control("c")
    terminal.expect("lake>")
    assert "|  7|" in terminal.run("SELECT 7;")


def test_errors_and_shortcuts_leave_the_shell_running(terminal: Terminal) -> None:
    terminal.type("SELCT 1;\r")
    terminal.expect("did you mean SELECT?")
    assert "accounts" in terminal.run("\\d")
    assert "holder" in terminal.run("\\d accounts")
    terminal.type("\\dd\r")
    terminal.expect("unknown shortcut")
    terminal.type("\\timing\r")
    terminal.expect("times are not shown")
    terminal.type("\\?\r")
    terminal.expect("open transactions")
    terminal.type("exit\r")
    assert terminal.end() == 0


def test_history_is_kept_for_the_next_shell(folder: str, tmp_path: Path) -> None:
    first = Terminal(folder, tmp_path)
    first.run("SELECT 41 + 1 AS kept;")
    first.control("d")
    first.end()
    second = Terminal(folder, tmp_path)
    second.type("\x1b[A")
    second.expect("AS kept;")
    assert "42" in second.run("")
    second.close()


def test_shell_without_a_terminal_says_what_to_use(folder: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "shell", folder],
        input="",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "lakevilla sql LAKE -" in done.stderr


def test_shell_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    from lakevilla.cli import terminal as module
    from lakevilla.session.completion import Completions

    monkeypatch.setitem(sys.modules, "prompt_toolkit", None)
    with pytest.raises(lv.InvalidInput, match=r"pip install 'lakevilla\[shell\]'"):
        module._prompt_session(Completions(list, lambda _: []))
