"""What an import brings along, seen in a process of its own: modules are counted, time is not measured."""

import subprocess
import sys
from pathlib import Path

import pytest

import lakevilla as lv

FEW = 40
"""`import lakevilla` brings about ten modules. NumPy alone would bring a hundred."""
MANY = 1000
"""What a statement of the command brings: most are modules of NumPy, PyArrow, sqlglot and this package."""
LIBRARIES = {"duckdb", "fastavro", "numpy", "obstore", "pandas", "pyarrow", "pyiceberg", "pyspark", "sqlglot"}


def _modules_after(program: str) -> set[str]:
    """The names of all modules that a fresh process has after this program."""
    listing = f"import sys\nbefore = set(sys.modules)\n{program}\nprint(*sorted(set(sys.modules) - before))"
    run = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True)
    return set(run.stdout.splitlines()[-1].split())


def _program(arguments: list[str]) -> str:
    """One call of the command."""
    return f"sys.argv = {['lakevilla', *arguments]}\nfrom lakevilla.cli.main import main\nassert main() == 0"


def _libraries(modules: set[str]) -> set[str]:
    return {name.split(".")[0] for name in modules} & LIBRARIES


def test_import_of_the_package_brings_no_library() -> None:
    modules = _modules_after("import lakevilla; lakevilla.Conflict")
    assert not _libraries(modules)
    assert len(modules) <= FEW, sorted(modules)


def test_help_of_the_command_brings_no_library() -> None:
    calls = [["--help"], ["vacuum", "--help"], ["shell", "--help"], ["--version"]]
    program = f"""
from lakevilla.cli.main import main
for arguments in {calls}:
    try:
        main(arguments)
    except SystemExit:
        pass
"""
    assert not _libraries(_modules_after(program))


def test_statement_on_the_local_engine_brings_only_what_it_needs(tmp_path: Path) -> None:
    """A call takes about half a second, nearly all of it for imports: each library costs a tenth or more."""
    script = "CREATE TABLE t (id INT); INSERT INTO t VALUES (1); SELECT id FROM t"
    modules = _modules_after(_program(["sql", str(tmp_path), script]))
    assert not _libraries(modules) & {"pandas", "pyiceberg", "fastavro", "pyspark"}
    assert not {"prompt_toolkit", "rich", "asyncio"} & {name.split(".")[0] for name in modules}
    assert len(modules) <= MANY, sorted(modules)


def test_names_of_tables_bring_no_library_of_data(tmp_path: Path) -> None:
    """Listings and completion take a fifth of the time of a statement: they need no more than the store."""
    folder = str(tmp_path / "lake")
    lv.Lake(folder, engine="local").create("t", "id INT")
    calls = (
        ["tables", folder],
        ["completion", "candidates", "--line", f"lakevilla status {folder} "],
    )
    modules = _modules_after("\n".join(map(_program, calls)))
    assert _libraries(modules) <= {"obstore"}
    assert len(modules) <= 250, sorted(modules)


@pytest.mark.parametrize(
    ("arguments", "libraries", "most"),
    [
        (["history", "{}"], {"obstore", "numpy", "pyarrow", "sqlglot"}, 585),
        (["status", "{}"], {"obstore", "numpy", "pyarrow", "sqlglot"}, 640),
        (["sql", "{}", "SELECT 1"], {"obstore", "numpy", "pyarrow", "sqlglot", "duckdb"}, 650),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_command_brings_these_libraries_and_no_more(
    tmp_path: Path, arguments: list[str], libraries: set[str], most: int
) -> None:
    """With compiled modules 650 take about half a second of processor time."""
    folder = str(tmp_path / "lake")
    lv.Lake(folder, engine="local").create("t", "id INT")
    modules = _modules_after(_program([word.format(folder) for word in arguments]))
    assert _libraries(modules) == libraries
    assert len(modules) <= most, sorted(modules)


def test_commands_that_move_no_rows_bring_no_engine(tmp_path: Path) -> None:
    folder = str(tmp_path / "lake")
    lv.Lake(folder, engine="local").create("t", "id INT")
    commands = ("status", "history", "tag", "explain", "doctor")
    modules = _modules_after("\n".join(_program([command, folder]) for command in commands))
    assert not _libraries(modules) & {"duckdb", "pandas", "pyiceberg", "fastavro", "pyspark"}
    assert "lakevilla.engines.local.engine" not in modules
    assert len(modules) <= MANY


def test_opened_lake_brings_no_engine_and_no_library_of_another_format() -> None:
    program = "import lakevilla\nlakevilla.Lake('/nowhere', engine='local').transaction(lakevilla.R)"
    assert not _libraries(_modules_after(program)) & {"duckdb", "pandas", "pyiceberg", "fastavro", "pyspark"}


@pytest.mark.parametrize("name", [*lv.__all__, "__version__"])
def test_public_name_is_found_and_listed(name: str) -> None:
    assert getattr(lv, name) is getattr(lv, name)
    assert name in dir(lv)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError) as error:
        lv.Lakes  # type: ignore[attr-defined]  # noqa: B018
    assert error.value.name == "Lakes"
    assert error.value.obj is lv


def test_threads_that_first_need_iceberg_tables_of_two_kinds_at_once_get_them() -> None:
    """Imports of PyIceberg's modules by threads, in different orders, must not meet."""
    program = """
from threading import Barrier, Thread
from lakevilla.environment import SystemEnvironment
from lakevilla.formats.catalogs import KnownCatalogs
from lakevilla.formats.registry import open_table
from lakevilla.store.open import open_store
catalogs = KnownCatalogs({"prod": {"type": "sql", "uri": "sqlite:///:memory:"}})
store, environment, start, opened = open_store("memory://"), SystemEnvironment(), Barrier(4), []
def work(kind):
    start.wait()
    opened.append(open_table(kind, store, environment, open_store, catalogs))
threads = [Thread(target=work, args=(kind,)) for kind in ["iceberg", "iceberg@prod/s.c"] * 2]
for one in threads: one.start()
for one in threads: one.join()
assert len(opened) == 4
"""
    assert "pyiceberg" in _libraries(_modules_after(program))
