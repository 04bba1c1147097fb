"""Exit codes, and how errors are told."""

import os
import sys
from typing import TextIO

import lakevilla as lv

INTERRUPTED = 130

TEXT = """exit codes:
  0    done
  1    failed; the reason is on standard error
  2    wrong arguments
  3    aborted: nothing is visible; run it again
  4    outcome unknown: ask lakevilla outcome before you run it again
  5    the store cannot be reached
  6    not supported
  7    records are damaged, or a table is torn
  130  interrupted by Ctrl-C
  143  ended by SIGTERM"""

_CODES: tuple[tuple[type[Exception], int], ...] = (
    (lv.Aborted, 3),
    (lv.CommitUnknown, 4),
    (lv.Unavailable, 5),
    (lv.Unsupported, 6),
    (lv.Corrupt, 7),
)


def code_of(error: Exception) -> int:
    """The exit code for an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), 1)


def tell(error: Exception) -> None:
    """An error on standard error; our name in colour on terminals."""
    print(f"{paint('lakevilla:', '1;31', sys.stderr)} {error}", file=sys.stderr)


def paint(text: str, code: str, stream: TextIO) -> str:
    """Text in a colour of the terminal; plain where there is none, and where NO_COLOR is set."""
    if not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\033[{code}m{text}\033[0m"
