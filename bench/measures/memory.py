"""The most memory that processes have held, since a mark (Linux)."""

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

_PAUSE_SECONDS = 0.2


class PeakMemory:
    """How far resident memory of a process rose since this was made: of this process, if none is named."""

    def __init__(self, pid: int | str = "self") -> None:
        self._folder = Path("/proc", str(pid))
        # "5" sets the peak back to what is resident now.
        (self._folder / "clear_refs").write_text("5")
        self._before = self._status_kb("VmRSS")

    def grown_mb(self) -> float:
        """The peak, above what there was at the mark."""
        return (self._status_kb("VmHWM") - self._before) / 1024

    def peak_mb(self) -> float:
        """The peak."""
        return self._status_kb("VmHWM") / 1024

    def _status_kb(self, name: str) -> int:
        for line in (self._folder / "status").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1])
        raise RuntimeError(f"{self._folder}/status has no {name}")


class ChildrenMemory:
    """The most that all children of a process, which come and go, held at once; looked at while the block
    runs, five times a second. What children share counts once for each."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.peak_mb = 0.0

    def __enter__(self) -> "ChildrenMemory":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_PAUSE_SECONDS):
            held = sum(_resident(self._process.children(recursive=True)))
            self.peak_mb = max(self.peak_mb, held / 1024 / 1024)


def _resident(processes: Iterable[psutil.Process]) -> Iterator[float]:
    for process in processes:
        try:
            yield process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
