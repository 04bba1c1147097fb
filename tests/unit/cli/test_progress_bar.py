"""The line that shows how far long work has come."""

import pytest

from lakevilla.cli.progress_bar import text_of
from lakevilla.progress import Progress


@pytest.mark.parametrize(
    ("progress", "end"),
    [
        (Progress("UPDATE t", 0, None, "tasks", 2.0), "UPDATE t  2 s"),
        (Progress("UPDATE t", 1, 4, "tasks", 2.0), " 25%  1 task of 4 tasks, 6 s left"),
        (Progress("UPDATE t", 0, 4, "tasks", 2.0), "  0%  0 tasks of 4 tasks, 2 s"),
        (Progress("UPDATE t", 4, 4, "tasks", 2.0), "100%  4 tasks of 4 tasks, computing, 2 s"),
        (
            Progress("reading t", 1_500_000, 3_000_000, "bytes", 90.0),
            " 50%  1.5 MB of 3.0 MB, 1 min 30 s left",
        ),
    ],
)
def test_line_says_what_is_known(progress: Progress, end: str) -> None:
    line = text_of(progress, 100)
    assert line.startswith(progress.what)
    assert line.endswith(end)
    assert len(text_of(progress, 30)) <= 30
