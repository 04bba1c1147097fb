"""Plain English: the worst habits stay out of the docs and of the docstrings, comments and messages."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINE_LENGTH = 100
MOST_COLUMNS = 6

HABITS = {
    "a bare person as the subject": re.compile(
        r"(?:^|[.:;,(]\s+|\b(?:and|or|but|that|because|if|so)\s+)"
        r"(?:who|somebody|someone|nobody|no one|everybody|everyone|anybody|anyone)\s+"
        r"(?!(?:else's)\b)[a-z]+",
        re.IGNORECASE,
    ),
    "whoever": re.compile(r"\bwhoever\b|\bfor whom\b", re.IGNORECASE),
    "is no <noun>": re.compile(
        r"(?<!\bthere )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b)[a-z]+", re.IGNORECASE
    ),
    "a phrase that has to be decoded": re.compile(
        r"\b(?:beside|is gone|gives? way|gave way|signs? of life|takes? back|taken back|by itself)\b"
        r"|\b(?:tells? of|of chance|stands? on|stood on|where we stand|of one's own|in vain|mend(?:s|ed)?)\b"
        r"|\b(?:(?:come|came|comes) to nothing|bec(?:a|o)mes? of|(?:goe?s?|went) on with|heard of)\b",
        re.IGNORECASE,
    ),
}
"""Each habit by name. Not found are "clients who write", where the noun is there, and "there is no". For the
phrases the field has better words: dead, released, rolled back, outside of, automatically, continue, resume,
is pinned at, had no effect, the outcome of, fix."""


@dataclass(frozen=True)
class Finding:
    """One bad habit at one place."""

    path: Path
    line: int
    habit: str
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.habit}: {self.text.strip()[:100]}"


@dataclass(frozen=True)
class Text:
    """A piece of prose, and the line of the file that it starts at."""

    line: int
    words: str


def find_habits(path: Path, texts: Iterator[Text]) -> Iterator[Finding]:
    """The bad habits in these texts; a sentence may go over several lines."""
    for text in texts:
        joined = re.sub(r"\s*\n\s*(?:#\s*)?", " ", text.words)
        for habit, pattern in HABITS.items():
            for match in pattern.finditer(joined):
                around = joined[max(0, match.start() - 30) : match.end() + 40]
                yield Finding(path, text.line, habit, around)


def prose_of_page(path: Path) -> Iterator[Text]:
    """The paragraphs, list items and table rows of a page, without code."""
    block: list[str] = []
    start, fenced = 1, False
    for number, line in enumerate([*path.read_text().splitlines(), ""], 1):
        if line.strip().startswith("```"):
            fenced = not fenced
        is_code = fenced or line.strip().startswith("```") or (line.startswith("    ") and not block)
        opens = bool(re.match(r"\s*(?:[-*|#<]|\d+\.) ?", line))
        if block and (is_code or opens or not line.strip()):
            yield Text(start, "\n".join(block))
            block = []
        if line.strip() and not is_code:
            start = number if not block else start
            block.append(re.sub(r"`[^`]*`", "`x`", line))


def prose_of_module(path: Path) -> Iterator[Text]:
    """The docstrings, messages and comments of a module. Strings without a space are names, not prose."""
    source = path.read_text()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield Text(node.lineno, node.value)
    comments: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if comments and comments[-1][0] + 1 != token.start[0]:
            yield Text(comments[0][0], "\n".join(text for _, text in comments))
            comments = []
        comments.append((token.start[0], token.string.lstrip("# ")))
    if comments:
        yield Text(comments[0][0], "\n".join(text for _, text in comments))


def findings_in(folder: Path) -> list[Finding]:
    """The bad habits in the modules of a folder, but for those that this test shows as examples."""
    paths = sorted(path for path in folder.rglob("*.py") if path != Path(__file__))
    return [found for path in paths for found in find_habits(path, prose_of_module(path))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_has_no_bad_habit(page: Path) -> None:
    assert [str(found) for found in find_habits(page, prose_of_page(page))] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_prose_of_a_page_is_wrapped_and_its_tables_are_narrow(page: Path) -> None:
    fenced, wrong = False, []
    for number, line in enumerate(page.read_text().splitlines(), 1):
        fenced ^= line.startswith("```")
        if fenced or line.startswith(("```", "    ")):
            continue
        if line.startswith("|"):
            columns = len(re.sub(r"\\\||`[^`]*`", "x", line).strip().strip("|").split("|"))
            wrong += [f"line {number}: {columns} columns"] if columns > MOST_COLUMNS else []
        elif len(line) > LINE_LENGTH and " " in line.strip():
            wrong.append(f"line {number}: {len(line)} characters")
    assert wrong == []


@pytest.mark.parametrize("folder", ["lakevilla", "sim", "bench", "tests", "examples"])
def test_code_has_no_bad_habit(folder: str) -> None:
    assert [str(found) for found in findings_in(ROOT / folder)] == []


@pytest.mark.parametrize(
    ("text", "habit"),
    [
        ("Who only reads is never refused.", "a bare person as the subject"),
        ("It waits, and nobody else writes.", "a bare person as the subject"),
        ("Others see it; whoever comes next goes on.", "whoever"),
        ("'x' is no engine", "is no <noun>"),
        ("the client is gone", "a phrase that has to be decoded"),
        ("what became of a transaction that came to nothing", "a phrase that has to be decoded"),
    ],
)
def test_bad_habit_is_found(text: str, habit: str) -> None:
    assert habit in {found.habit for found in find_habits(ROOT, iter([Text(1, text)]))}


@pytest.mark.parametrize(
    "text",
    [
        "It is no longer read.",
        "There is no queue.",
        "A read-only transaction never waits.",
        "a client whose lease has expired",
    ],
)
def test_plain_sentence_is_not_found(text: str) -> None:
    assert list(find_habits(ROOT, iter([Text(1, text)]))) == []
