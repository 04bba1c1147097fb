"""The rooms that the pages name are those of the code, and so are the files."""

import re

from tests.docs.examples import ROOT
from tests.unit.test_architecture import ARROWS, FOUNDATION

ROOMS = set(ARROWS) - {"__init__"}
PACKAGE = ROOT / "lakevilla"
ARCHITECTURE = (ROOT / "docs/architecture.md").read_text()


def _in_first_column(page: str) -> set[str]:
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_contributing_names_every_room() -> None:
    assert _in_first_column((ROOT / "CONTRIBUTING.md").read_text()) == ROOMS


def test_architecture_names_every_room() -> None:
    rooms = ARCHITECTURE[ARCHITECTURE.index("## Rooms") : ARCHITECTURE.index("## The walk of an UPDATE")]
    assert set(re.findall(r"`(\w+)`", rooms)) >= ROOMS


def test_arrows_of_the_diagram_are_those_of_the_code() -> None:
    drawn = re.findall(r"^    (\w+) --> (\w+)$", ARCHITECTURE, re.M)
    for room, used in drawn:
        # The command and the database API use what users import.
        allowed = ARROWS["__init__"] if room in ("cli", "dbapi") else ARROWS[room]
        wanted = FOUNDATION if used == "foundation" else {used}
        assert wanted & allowed, f"{room} must not import {used}"
    assert {name for arrow in drawn for name in arrow} == ROOMS - FOUNDATION | {"foundation"}


def test_files_that_the_pages_name_exist() -> None:
    files = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")}
    for page in ("docs/architecture.md", "docs/paper.md"):
        for named in re.findall(r"\b[\w/]+\.py\b", (ROOT / page).read_text()):
            found = any(file == named or file.endswith(f"/{named}") for file in files)
            assert found or (ROOT / named).exists(), f"{page} names {named}"


def test_modules_that_docstrings_name_exist() -> None:
    for path in PACKAGE.rglob("*.py"):
        for named in re.findall(r"`((?:\w+\.)+\w+)`", path.read_text()):
            *folders, last = named.split(".")
            if folders[0] not in ROOMS:
                continue
            module, member = PACKAGE.joinpath(*folders, last), PACKAGE.joinpath(*folders)
            found = (
                module.exists() or module.with_suffix(".py").exists() or member.with_suffix(".py").exists()
            )
            assert found, f"{path.relative_to(ROOT)} names {named}"
