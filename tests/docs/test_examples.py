"""The examples of the pages run as they stand."""

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
import sqlalchemy.dialects

import lakevilla as lv
from tests.docs.examples import ROOT, examples, run_page


def test_snippets_of_the_readme_run_in_a_process_of_their_own(tmp_path: Path) -> None:
    for name in ("orders", "old/stock"):
        deltalake.write_deltalake(tmp_path / "data" / name, pa.table({"id": [1]}))
    first, second = examples("README.md")
    program = f"{first.code}\n{second.code}\nprint(lake.tables())"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "Grace" in done.stdout
    assert "200.00" in done.stdout
    assert done.stdout.splitlines()[-1] == "['accounts', 'old.stock', 'orders', 'savings']"


def test_examples_of_the_tutorial_run_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # Where PySpark is installed a lake works on Spark; the tutorial is about what is the same on both.
    monkeypatch.setattr(lv, "Lake", partial(lv.Lake, engine="local"))
    names: dict[str, Any] = {}
    assert run_page("docs/tutorial.md", names) > 10
    lake = names["lake"]
    assert lake.tables() == ["accounts", "clicks", "payments", "rich", "visits"]
    assert lake.outcome(names["tx"].id).state == "committed"


def test_examples_of_the_sql_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    run_page("docs/sql.md", names)
    assert sorted(row.name for row in names["lake"].read("people").collect()) == [
        *("Ada", "Barbara", "Grace Hopper")
    ]


@pytest.mark.parametrize(
    ("page", "count"), [("docs/delta-features.md", 2), ("docs/iceberg.md", 3), ("docs/operating.md", 1)]
)
def test_examples_of_a_page_run(
    page: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_page(page, {}) == count


def test_example_of_the_page_of_changes_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_page("docs/changes.md", {}) == 1
    printed = capsys.readouterr().out
    assert "".join(f"    {line}\n" for line in printed.splitlines()) in (ROOT / "docs/changes.md").read_text()


def test_examples_of_the_python_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    assert run_page("docs/python.md", names) >= 4
    assert names["lake"].outcome(names["lake"].history()[0].txn).state == "committed"


def test_examples_of_the_pipelines_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    assert run_page("docs/pipelines.md", names) >= 2
    assert names["lake"].read("orders").count() == 3


def test_examples_of_the_dbapi_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # An installed package registers itself, see pyproject.toml.
    sqlalchemy.dialects.registry.register("lakevilla", "lakevilla.dbapi.dialect", "LakeVillaDialect")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    assert run_page("docs/dbapi.md", names) == 3
    lake = lv.Lake("./lake", engine="local")
    assert [row.id for row in lake.read("payments")] == [1]
    assert len(lake.read("scores")) == 4


def test_examples_of_the_cookbook_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    assert run_page("docs/cookbook.md", names) == 8
    assert names["lake"].tags() == {}
    assert names["receipt"].versions.keys() == {"orders", "payments", "loads"}


def test_examples_for_users_of_other_systems_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    assert run_page("docs/coming_from.md", names) == 4
    assert names["lake"].read("stock").count() == 3
