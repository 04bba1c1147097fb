"""The Python examples of a page, as code that can run."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

_BLOCK = re.compile(r"(?P<before>(?:<!--[^\n]*-->\n)?)```python\n(?P<code>.*?)^```", re.M | re.S)
NOT_RUN = "<!-- not run: "
"""Stands in the line before an example that needs what a test does not have, and says what that is."""


@dataclass(frozen=True)
class Example:
    """One example: the line of the page that it starts at, and its code."""

    line: int
    code: str


def examples(page: str) -> list[Example]:
    """The examples of a page that run, in order."""
    text = (ROOT / page).read_text()
    return [
        Example(text[: found.start("code")].count("\n"), found["code"])
        for found in _BLOCK.finditer(text)
        if not found["before"].startswith(NOT_RUN)
    ]


def run_page(page: str, names: dict[str, Any]) -> int:
    """Run the examples of a page one after the other, with these names; how many there were."""
    found = examples(page)
    for example in found:
        # Line numbers of the page, so that a failure names the line there.
        exec(compile("\n" * example.line + example.code, page, "exec"), names)
    return len(found)
