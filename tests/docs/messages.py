"""Messages that a page quotes, compared with what the code says."""

import re

from tests.docs.examples import ROOT

_VARIABLE = (
    (r"part-[0-9a-f]{32}-[0-9a-f]{32}\.parquet", "<file>"),
    (r"\b[0-9a-f]{32}\b", "<id>"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", "<time>"),
    (r"\d+:\d\d:\d\d", "<age>"),
    (r"[\d.]+ seconds", "<seconds>"),
    (r"(ticket|version) \d+", r"\1 <number>"),
)


def quoted(page: str, command: str) -> list[str]:
    """What a page shows below this command line, without what differs from run to run."""
    lines = (ROOT / page).read_text().splitlines()
    start = lines.index(f"    $ {command}") + 1
    end = next(at for at in range(start, len(lines)) if not lines[at].strip())
    return [shape(line.removeprefix("    ")) for line in lines[start:end]]


def shape(line: str) -> str:
    """A line without ids, times and numbers."""
    for pattern, name in _VARIABLE:
        line = re.sub(pattern, name, line)
    return line
