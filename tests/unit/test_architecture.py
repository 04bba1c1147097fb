"""The house rules, enforced: arrows between rooms, and what may be imported or called where."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "lakevilla"

# Each room, and the rooms that it may import from. The order is the direction of the arrows.
FOUNDATION = {
    "errors",
    "predicates",
    "pruning",
    "model",
    "environment",
    "progress",
    "timestamps",
    "display",
    "answers",
}
ARROWS = {
    "errors": set(),
    "predicates": {"errors"},
    "pruning": {"predicates"},
    "model": {"errors", "predicates"},
    "answers": {"timestamps", "display"},
    "encoding": {"errors", "predicates", "model"},
    "environment": set(),
    "progress": {"environment"},
    "timestamps": set(),
    "display": set(),
    "sql": FOUNDATION,
    "store": FOUNDATION,
    "files": FOUNDATION | {"store"},
    "formats": FOUNDATION | {"sql", "store", "files", "encoding"},
    "versions": FOUNDATION | {"store", "encoding"},
    "markers": FOUNDATION | {"store"},
    "sublogs": FOUNDATION | {"store", "encoding"},
    "conflicts": FOUNDATION,
    "validation": FOUNDATION,
    "engines": FOUNDATION | {"sql", "store", "files"},
    "settle": FOUNDATION | {"store", "files", "formats", "versions", "conflicts"},
    "tables": FOUNDATION | {"sql", "store", "formats", "versions", "settle"},
    "transaction": FOUNDATION
    | {
        "tables",
        "sql",
        "store",
        "files",
        "formats",
        "versions",
        "markers",
        "sublogs",
        "conflicts",
        "validation",
        "engines",
        "settle",
    },
    "maintenance": FOUNDATION
    | {"sql", "store", "formats", "versions", "markers", "sublogs", "settle", "tables", "transaction"},
    "travel": FOUNDATION | {"sql", "store", "versions", "engines", "tables", "transaction"},
    "session": FOUNDATION | {"sql", "engines", "transaction", "maintenance", "travel"},
    "lake": FOUNDATION
    | {
        "sql",
        "store",
        "versions",
        "markers",
        "engines",
        "tables",
        "transaction",
        "maintenance",
        "travel",
        "session",
    },
    "streaming": FOUNDATION | {"lake", "transaction"},
    "spark_source": FOUNDATION | {"engines", "lake"},
    "api": FOUNDATION | {"lake", "engines", "transaction", "maintenance", "travel", "session"},
    "__init__": {"errors", "api", "streaming"},
    "cli": {"__init__", "timestamps", "environment", "progress", "store", "engines", "tables", "session"},
    "dbapi": {"__init__", "errors", "sql"},
}

# Heavy libraries live in one room each.
HOMES = {
    "duckdb": "engines/local/",
    "obstore": "store/",
    "pyspark": "engines/spark/",
    "pyiceberg": "formats/iceberg/",
    "sqlalchemy": "dbapi/",
}

# The world reaches the core through the Environment alone.
BANNED_CALLS = {
    "time.time",
    "time.time_ns",
    "time.monotonic",
    "time.sleep",
    "datetime.now",
    "datetime.utcnow",
    "datetime.today",
    "date.today",
}
BANNED_IMPORTS = {"random", "uuid", "time", "secrets", "concurrent", "multiprocessing", "asyncio"}
ALLOWED_FROM_THREADING = {"Lock", "RLock", "local"}

MODULES = sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    """The room of a module: its folder, or itself if it is a single file."""
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _imports(tree: ast.AST) -> list[tuple[str, str]]:
    """Every import as (module, name); name is empty for `import module`."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found += [(node.module or "", alias.name) for alias in node.names]
    return found


def _rooms_imported(tree: ast.AST) -> set[str]:
    rooms = set()
    for module, name in _imports(tree):
        parts = module.split(".")
        if parts[0] != "lakevilla":
            continue
        if len(parts) > 1:
            rooms.add(parts[1])
        elif not name:
            rooms.add("__init__")
        else:
            rooms.add(name if (PACKAGE / name).exists() or (PACKAGE / f"{name}.py").exists() else "__init__")
    return rooms


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_module_imports_only_along_the_arrows(path: Path) -> None:
    room = room_of(path)
    imported = _rooms_imported(_parsed(path))
    assert imported - {room} <= ARROWS[room], f"{room} must not import {imported - ARROWS[room] - {room}}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_module_keeps_heavy_libraries_in_their_rooms(path: Path) -> None:
    place = str(path.relative_to(PACKAGE))
    for module, _ in _imports(_parsed(path)):
        home = HOMES.get(module.split(".")[0])
        assert home is None or place.startswith(home), f"{module} belongs into {home}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_module_takes_time_chance_and_threads_from_the_environment(path: Path) -> None:
    if path.name == "environment.py":
        return
    tree = _parsed(path)
    for module, name in _imports(tree):
        if (module, name) == ("uuid", "UUID"):
            # The type of values; it makes none up.
            continue
        assert module.split(".")[0] not in BANNED_IMPORTS, f"{module}: take it from the Environment"
        if module.split(".")[0] == "threading":
            assert name in ALLOWED_FROM_THREADING, "threads come from Environment.fan_out"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            assert ast.unparse(node.func) not in BANNED_CALLS, f"line {node.lineno}: ask the Environment"


@pytest.mark.parametrize(("one", "other"), [("spark", "local"), ("local", "spark")])
def test_engines_are_blind_to_each_other(one: str, other: str) -> None:
    for path in (PACKAGE / "engines" / one).rglob("*.py"):
        imported = {f"{module}.{name}." for module, name in _imports(_parsed(path))}
        found = [module for module in imported if module.startswith(f"lakevilla.engines.{other}.")]
        assert not found, f"{path.name} imports {found}: what both need lies outside of them"


def test_public_duration_is_defined_once() -> None:
    """Two definitions of one name can drift apart, and clients that disagree on a duration lose data."""
    places: dict[str, list[str]] = {}
    for path in MODULES:
        for name in re.findall(r"^([A-Z][A-Z_]*_(?:SECONDS|MS))\b.* = ", path.read_text(), re.MULTILINE):
            places.setdefault(name, []).append(str(path.relative_to(PACKAGE)))
    assert "PREMISE_SECONDS" in places
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


@pytest.mark.parametrize("root", ["lakevilla", "sim", "bench", "tests"])
def test_folders_hold_at_most_fifteen_modules(root: str) -> None:
    paths = (PACKAGE.parent / root).rglob("*.py")
    folders = Counter(path.parent.as_posix() for path in paths if path.stem != "__init__")
    assert {folder: found for folder, found in folders.items() if found > 15} == {}


def test_folders_of_unit_tests_mirror_the_rooms() -> None:
    unit = Path(__file__).parent
    for folder in (path for path in unit.rglob("*") if path.is_dir() and path.name != "__pycache__"):
        place = folder.relative_to(unit)
        assert place.parts[0] in {"bench", "sim"} or (PACKAGE / place).is_dir(), f"no room {place}"
