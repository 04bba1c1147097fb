"""Files of others with small damages: right rows or an error of ours, never a crash or another exception."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.damage.tables import make_tables

FIRST, COUNT = 0, 120
SECONDS = 120


def test_damaged_files_give_rows_or_an_error_of_ours(tmp_path: Path) -> None:
    make_tables(tmp_path)
    command = [sys.executable, "-m", "tests.damage.worker", str(tmp_path), str(FIRST), str(COUNT)]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired as late:
        last = (late.stdout or b"").decode().rstrip().rpartition("\n")[2]
        pytest.fail(f"no end within {SECONDS} s; the last line was {last!r}")
    lines = found.stdout.splitlines()
    wrong = [
        f"{seed}: {result}"
        for seed, result in zip(lines[::2], lines[1::2], strict=False)
        if result != "result 'ok'"
    ]
    assert not wrong, "\n".join(wrong)
    assert found.returncode == 0, f"the process ended with {found.returncode} at {lines[-1]}\n{found.stderr}"
    assert len(lines) == 2 * COUNT
