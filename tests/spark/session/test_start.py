"""A Spark that we start ourselves: quiet, with progress on a terminal alone, and plain words where Java is
missing or too old."""

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lakevilla as lv
from lakevilla.engines.spark.session import java

CLI = "import sys; from lakevilla.cli.main import main; sys.exit(main())"
WAIT_SECONDS = 300

# Errors must still be told: by Spark's log, and by whatever else writes to the JVM's standard error.
FAILING = """
import sys
import lakevilla as lv

lake = lv.Lake(sys.argv[1], engine="spark")
lake.create("t", "id BIGINT")
lake.sql("INSERT INTO t SELECT id FROM range(4)")
print(lake.read("t").count())
sys.stdout.flush()
spark = lake.read("t").sparkSession
spark._jvm.System.err.println("here something fails")
try:
    lake.sql("SELECT assert_true(id > 5, 'said by a task') FROM t").collect()
except lv.InvalidInput as error:
    print("failed:", error)
spark._jvm.org.slf4j.LoggerFactory.getLogger("any").error("said by Spark")
"""


def fake_java(folder: Path, script: str) -> str:
    """A JAVA_HOME whose java is this script."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(folder)


def version(text: str) -> str:
    return f"echo 'openjdk version \"{text}\" 2024-01-16' >&2"


def test_missing_java_is_told_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    told = java.trouble()
    assert told is not None
    assert told.startswith("Java was not found on this machine. Spark needs Java 17 or 21: install it")
    assert told.endswith("Without Java, open the lake with engine='local'.")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    told = java.trouble()
    assert told is not None
    assert f"JAVA_HOME points to ({tmp_path}/nowhere). Spark needs Java 17 or 21" in told


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (version("1.8.0_392"), "is version 1.8.0_392. Spark needs Java 17 or 21"),
        (version("11.0.22"), "is version 11.0.22. Spark needs Java 17 or 21"),
        ("exit 1", "does not start"),
    ],
    ids=["8", "11", "broken"],
)
def test_wrong_java_is_told_with_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, words: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path, script))
    told = java.trouble()
    assert told is not None
    assert words in told
    assert "engine='local'" in told


@pytest.mark.parametrize("text", ["17", "17.0.15", "21.0.2", "25"])
def test_java_that_spark_may_run_on_is_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    picked = "echo 'Picked up JAVA_TOOL_OPTIONS: -Da=\"8\"' >&2\n"
    monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path, picked + version(text)))
    assert java.trouble() is None


@pytest.mark.parametrize("script", [None, version("1.8.0_392")], ids=["missing", "8"])
def test_statement_without_the_right_java_ends_with_one_sentence(tmp_path: Path, script: str | None) -> None:
    home = str(tmp_path / "nowhere") if script is None else fake_java(tmp_path / "java", script)
    lake = tmp_path / "lake"
    lv.Lake(lake, engine="local").create("t", [{"id": 1}])
    done = subprocess.run(
        [sys.executable, "-c", CLI, "sql", str(lake), "SELECT * FROM t", "--engine=spark"],
        env={**os.environ, "JAVA_HOME": home},
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert done.returncode == 1
    assert not done.stdout
    start, line = done.stderr.splitlines()
    assert start.startswith("Starting Spark")
    assert "Spark needs Java 17 or 21" in line
    assert "engine='local'" in line


@pytest.mark.long
def test_our_own_spark_is_quiet_in_a_pipe_until_something_fails(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAILING, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert done.stdout.startswith("4\nfailed: "), done.stderr
    assert "said by a task" in done.stdout
    assert "lakevilla_" not in done.stdout + done.stderr
    before, _, after = done.stderr.partition("here something fails\n")
    assert before == ""
    # No stack of a task whose failure was raised; other errors of Spark are told.
    assert "said by Spark" in after
    assert len(after.splitlines()) == 1
    assert " WARN " not in after


@pytest.mark.long
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(
    ("begin", "what", "tasks"),
    [("INSERT INTO t ", "INSERT INTO t", "of 4 tasks"), ("", "SELECT", "of 1 task")],
    ids=["change", "query"],
)
def test_long_job_shows_progress_on_a_terminal_until_ctrl_c_ends_it(
    tmp_path: Path, begin: str, what: str, tasks: str
) -> None:
    lake = lv.Lake(tmp_path, engine="local")
    lake.create("t", "id BIGINT")
    endless = f"{begin}SELECT id FROM range(0, 100000000000000, 1, 4) WHERE sqrt(id) = 0.5"
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "wb") as terminal:
        process = subprocess.Popen(
            [sys.executable, "-c", CLI, "sql", str(tmp_path), endless, "--engine=spark"],
            stdout=subprocess.PIPE,
            stderr=terminal,
            # Ctrl-C on a terminal is for all processes of the group.
            start_new_session=True,
        )
    with ended(process):
        told = read_until(ours, tasks)
        begun, _, progress = told.partition("\n")
        assert begun.strip() == "Starting Spark ..."
        assert "\n" not in progress
        assert f"{what}  [" in progress
        assert "[Stage " not in progress, "Spark's own bar as well"
        os.killpg(process.pid, signal.SIGINT)
        told += read_until(ours, None)
        out, _ = process.communicate(timeout=WAIT_SECONDS)
        os.close(ours)
    assert process.returncode == 130, told
    assert not out
    assert "lakevilla: interrupted" in told
    assert "Traceback" not in told
    assert lake.history("t")[0].version == 0


@pytest.mark.usefixtures("interruptible")
def test_interrupt_while_spark_starts_leaves_no_jvm_behind(tmp_path: Path) -> None:
    lv.Lake(tmp_path, engine="local").create("t", [{"id": 1}])
    process = subprocess.Popen(
        [sys.executable, "-c", CLI, "sql", str(tmp_path), "DELETE FROM t", "--engine=spark"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with ended(process):
        wait_for_java(process.pid)
        os.killpg(process.pid, signal.SIGINT)
        # The pipes end when the last process of the group has: also the JVM.
        _, err = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 130, err
    assert "Traceback" not in err


@contextlib.contextmanager
def ended(leader: "subprocess.Popen[Any]") -> Iterator[None]:
    """Whatever happens, nothing of this process group goes on for ever."""
    try:
        yield
    except BaseException:
        os.killpg(leader.pid, signal.SIGKILL)
        raise


def wait_for_java(group: int) -> None:
    """Until Spark's own JVM of this process group runs, after the one that finds out how to run it."""
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        listed = subprocess.run(
            ["ps", "-eo", "pgid=,args=", "-ww"], capture_output=True, text=True, check=True
        )
        for line in listed.stdout.splitlines():
            pgid, program, *arguments = line.split()
            ours = pgid == str(group) and program.endswith("java") and arguments[:1] == ["-cp"]
            if ours and "org.apache.spark.launcher.Main" not in arguments:
                return
        time.sleep(0.05)
    raise AssertionError("no java started")


def read_until(source: int, words: str | None) -> str:
    """What comes on the terminal, until these words or until the last writer has closed it."""
    seen, waiting = bytearray(), select.poll()
    waiting.register(source, select.POLLIN)
    end = time.monotonic() + WAIT_SECONDS
    while words is None or words.encode() not in seen:
        assert time.monotonic() < end, seen
        if not waiting.poll(1000):
            continue
        try:
            piece = os.read(source, 4096)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    return seen.decode()
