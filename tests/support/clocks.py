"""Clocks for tests of what happens after days. A directory dates its files by the environment's clock."""

import os
from pathlib import Path

from lakevilla.environment import SystemEnvironment

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


class Days(SystemEnvironment):
    """The real world, whose calendar can be moved on."""

    ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms

    def pass_days(self, days: float) -> None:
        self.ahead_ms += int(days * DAY_MS)


def date_files(folder: Path, known: set[Path], now_ms: int) -> None:
    """Date the files that another client wrote since `known` was taken, as if it had our clock."""
    for path in set(folder.rglob("*")) - known:
        if path.is_file():
            os.utime(path, ns=(now_ms * 1_000_000, now_ms * 1_000_000))
