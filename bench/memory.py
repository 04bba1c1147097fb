"""The most memory that this process has held, since a mark (Linux)."""

from pathlib import Path


class PeakMemory:
    """How far resident memory rose above what it was when this was made."""

    def __init__(self) -> None:
        # "5" sets the peak back to what is resident now.
        Path("/proc/self/clear_refs").write_text("5")
        self._before = _status_kb("VmRSS")

    def grown_mb(self) -> float:
        return (_status_kb("VmHWM") - self._before) / 1024


def _status_kb(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    raise RuntimeError(f"/proc/self/status has no {name}")
