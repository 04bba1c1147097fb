"""The files around the code: they name rooms, versions and commands that exist."""

import argparse
import re
from functools import cache
from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.cli.main import build_parser
from tests.unit.test_architecture import ARROWS, MODULES, room_of

ROOT = Path(__file__).parents[2]
PYPROJECT = (ROOT / "pyproject.toml").read_text()


@cache
def _commands() -> set[str]:
    actions = [a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction)]
    return set(actions[0].choices)


def test_rooms_of_the_contributing_guide_are_those_of_the_code() -> None:
    section = (ROOT / "CONTRIBUTING.md").read_text().split("## Rooms")[1].split("\n## ")[0]
    first_cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    named = [name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(named) == sorted({room_of(path) for path in MODULES} - {"__init__"})


def test_rooms_with_arrows_are_those_of_the_code() -> None:
    assert set(ARROWS) == {room_of(path) for path in MODULES}


TEXTS = [*MODULES, *(ROOT / "docs").glob("*.md"), *(ROOT / ".github").rglob("*.yml"), *ROOT.glob("*.md")]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_that_texts_advise_exist(path: Path) -> None:
    advised = set(re.findall(r"`lakevilla (?:-[\w-]+ )?([a-z]+)\b", path.read_text()))
    assert advised <= _commands()


@pytest.mark.parametrize("path", [*TEXTS, ROOT / ".ci" / "run"], ids=lambda path: str(path.relative_to(ROOT)))
def test_make_targets_that_texts_name_exist(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(
        re.findall(r"(?:`|^\s*(?:- run: )?)make ([a-z]+(?:-[a-z]+)*)", path.read_text(), re.MULTILINE)
    )
    assert named <= targets


def test_citation_names_the_version_of_the_package() -> None:
    assert f"\nversion: {lv.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_ranges_of_libraries_have_both_ends() -> None:
    """The lower end is what was tried; the upper end keeps the next release from breaking installations."""
    lists = (
        PYPROJECT.split("dependencies = [")[1].split("\n]")[0],
        *re.findall(r"^(?:spark|iceberg) = \[(.*)\]", PYPROJECT, re.M),
    )
    found = [library for text in lists for library in re.findall(r'"([^"]+)"', text)]
    assert len(found) == 9
    assert [library for library in found if not re.fullmatch(r"[a-z]+>=[\d.]+,<[\d.]+", library)] == []


def test_locked_version_of_a_library_is_within_its_range() -> None:
    lock = dict(re.findall(r"^([a-z-]+)==([\d.]+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    for name, lowest, above in re.findall(r'"([a-z]+)>=([\d.]+),<([\d.]+)"', PYPROJECT):
        version = _numbers(lock[name])
        assert _numbers(lowest) <= version < _numbers(above), name


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
