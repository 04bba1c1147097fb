"""Peaks of memory, of this process and of the children of one."""

import subprocess
import sys
import time

import psutil

from bench.measures.memory import ChildrenMemory, PeakMemory

MEGABYTE = 1024 * 1024


def test_peak_is_told_after_the_memory_is_given_back() -> None:
    peak = PeakMemory()
    held = bytearray(b"x" * 60 * MEGABYTE)
    del held

    assert peak.grown_mb() > 50
    assert peak.peak_mb() > peak.grown_mb()


def test_children_are_counted_also_those_that_have_ended() -> None:
    with ChildrenMemory(psutil.Process().pid) as children:
        work = "import time; held = b'x' * (80 << 20); time.sleep(1)"
        subprocess.run([sys.executable, "-c", work], check=True)
        time.sleep(0.3)

    assert children.peak_mb > 80
