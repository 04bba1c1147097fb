"""Processor time: what work takes of a machine, also while other work runs there (Linux)."""

import time

import psutil


class ProcessorTime:
    """The processor seconds of this process, and of another one with all its children, if one is given."""

    def __init__(self, pid: int | None = None) -> None:
        self._other = None if pid is None else psutil.Process(pid)

    def seconds(self) -> float:
        """How much went by until now."""
        others = 0.0
        if self._other is not None:
            for process in (self._other, *self._other.children(recursive=True)):
                others += _used(process)
        return time.process_time() + others


def _used(process: psutil.Process) -> float:
    """What a process used, and those of its children that have ended."""
    try:
        return float(sum(process.cpu_times()[:4]))
    except psutil.NoSuchProcess:
        return 0.0
