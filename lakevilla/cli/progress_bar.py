"""A line on standard error that shows how far long work has come, on terminals only."""

import shutil
import sys
from threading import Lock

from lakevilla.cli.exits import paint
from lakevilla.progress import Progress

_CELLS = 24
_ERASE = "\r\033[K"
_UNITS = ("B", "kB", "MB", "GB", "TB")


class ProgressBar:
    """The bar of this process. Whatever else writes to the terminal calls `clear` first."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._is_drawn = False

    def show(self, progress: Progress) -> None:
        """Draw a report over the last one; the last report of a piece of work removes the bar."""
        self.clear()
        if progress.finished:
            return
        line = text_of(progress, shutil.get_terminal_size().columns - 1)
        with self._lock:
            sys.stderr.write(paint(line, "36", sys.stderr))
            sys.stderr.flush()
            self._is_drawn = True

    def clear(self) -> None:
        """Remove the bar."""
        with self._lock:
            if self._is_drawn:
                sys.stderr.write(_ERASE)
                sys.stderr.flush()
                self._is_drawn = False


BAR = ProgressBar()


def text_of(progress: Progress, width: int) -> str:
    """One line of at most this width: what, a bar if the total is known, amounts, and the time left."""
    done, left = amount(progress.done, progress.unit), progress.seconds_left
    if progress.fraction is None:
        told = f"{done}, " if progress.done else ""
        return f"{progress.what}  {told}{duration(progress.seconds)}"[:width]
    full = int(progress.fraction * _CELLS)
    bar = f"[{'#' * full}{'.' * (_CELLS - full)}] {progress.fraction:4.0%}"
    if progress.done == progress.total:
        rest = f"computing, {duration(progress.seconds)}"
    else:
        # Before the first piece of it is done, nothing says how long the rest takes.
        rest = duration(progress.seconds) if left is None else f"{duration(left)} left"
    line = f"{bar}  {done} of {amount(progress.total or 0, progress.unit)}, {rest}"
    room = width - len(line) - 2
    return (f"{progress.what[:room]}  {line}" if room >= 8 else line)[:width]


def amount(count: int, unit: str) -> str:
    """Rows and tasks with commas, bytes in the largest unit that leaves a number above 1."""
    if unit != "bytes":
        return f"{count:,} {unit.removesuffix('s') if count == 1 else unit}"
    size, step = float(count), 0
    while size >= 1000 and step < len(_UNITS) - 1:
        size, step = size / 1000, step + 1
    return f"{size:.1f} {_UNITS[step]}" if step else f"{count} B"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, in whole numbers."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return (
        f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"
    )
