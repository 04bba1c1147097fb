"""One place under several spellings is one table."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.tables.catalog import Catalog
from tests.support.outsiders import OUTSIDERS, Outsider

pytestmark = pytest.mark.formats("delta", "iceberg")

OPTIONS = {"fsync": "false"}
SPELLINGS: list[Callable[[Path], str]] = [
    lambda at: f"file://{at}/t",
    lambda at: f"file://{at}/t/",
    lambda at: f"file://{at}/./t",
    lambda at: f"file://{at}//t",
    lambda at: f"file://{at}/../{at.name}/t",
    lambda at: f"FILE://{at}/t",
    lambda at: f"file://localhost{at}/t",
    lambda at: f"file://{at}/%74",
]
LINKS: list[Callable[[Path], str]] = [
    lambda at: f"file://{at}/link-to-t",
    lambda at: f"file://{at}-link/t",
]


def _open(path: Path) -> lv.Lake:
    return lv.Lake(path, engine="local", storage_options=OPTIONS)


@pytest.fixture
def outside(table_format: str) -> Outsider:
    return OUTSIDERS[table_format]


@pytest.fixture
def far(tmp_path: Path, outside: Outsider) -> Path:
    """A folder outside the lake with a table `t`, and links to both."""
    far = tmp_path / "far"
    far.mkdir()
    outside.create(far / "t", pa.table({"id": [1], "v": [10]}))
    (far / "link-to-t").symlink_to(far / "t")
    (tmp_path / "far-link").symlink_to(far)
    return far


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    return _open(tmp_path / "lake")


def _ids(lake: lv.Lake | lv.Transaction, name: str) -> list[int]:
    return sorted(row.id for row in lake.read(name).collect())


def _register_as_before(monkeypatch: pytest.MonkeyPatch, lake: lv.Lake, name: str, location: str) -> None:
    """What an earlier release did: it stored locations as they were given."""
    with monkeypatch.context() as patch:
        patch.setattr(Catalog, "place_of", lambda _, at: at)
        patch.setattr(Catalog, "real_place", lambda _, at: at)
        lake.register(name, location)


@pytest.mark.parametrize("spelling", SPELLINGS + LINKS)
def test_second_name_for_one_place_is_refused(
    lake: lv.Lake, far: Path, spelling: Callable[[Path], str]
) -> None:
    lake.register("x", f"file://{far}/t")
    with pytest.raises(lv.InvalidInput, match="'x'"):
        lake.register("y", spelling(far))
    with pytest.raises(lv.InvalidInput):
        lake.create("y", "id BIGINT", location=spelling(far))
    assert lake.tables() == ["x"]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_table_registered_under_any_spelling_is_read_and_written(
    lake: lv.Lake, tmp_path: Path, far: Path, spelling: Callable[[Path], str]
) -> None:
    lake.register("x", spelling(far))
    lake.append("x", [{"id": 2, "v": 20}])
    assert _ids(_open(tmp_path / "lake"), "x") == [1, 2]
    with pytest.raises(lv.InvalidInput, match="'x'"):
        lake.register("y", f"file://{far}/t")


@pytest.mark.parametrize("spelling", SPELLINGS[1:])
def test_spelling_of_an_earlier_release_is_recognised(
    lake: lv.Lake, tmp_path: Path, far: Path, spelling: Callable[[Path], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _register_as_before(monkeypatch, lake, "x", spelling(far))
    again = _open(tmp_path / "lake")
    again.append("x", [{"id": 2, "v": 20}])
    assert _ids(again, "x") == [1, 2]
    with pytest.raises(lv.InvalidInput, match="'x'"):
        again.register("y", f"file://{far}/t")
    again.drop("x")
    again.register("y", f"file://{far}/t")
    assert _ids(again, "y") == [1, 2]


@pytest.mark.parametrize("features", [lv.CT, lv.R | lv.CT, lv.R | lv.CT | lv.I])
@pytest.mark.parametrize("spelling", SPELLINGS[1:] + LINKS)
def test_two_names_of_an_earlier_release_are_not_changed_in_one_commit(
    lake: lv.Lake,
    far: Path,
    spelling: Callable[[Path], str],
    features: lv.Features,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _register_as_before(monkeypatch, lake, "x", f"file://{far}/t")
    _register_as_before(monkeypatch, lake, "y", spelling(far))
    with lake.transaction(features) as tx:
        tx.append("x", [{"id": 2, "v": 20}])
        with pytest.raises(lv.InvalidInput, match=r"'y'.*'x'"):
            tx.append("y", [{"id": 3, "v": 30}])
        with pytest.raises(lv.InvalidInput):
            tx.read("y")
        tx.append("x", [{"id": 4, "v": 40}])
    assert _ids(lake, "x") == _ids(lake, "y") == [1, 2, 4]
    with lake.transaction(features) as tx:
        assert _ids(tx, "y") == _ids(tx, "x")
        with pytest.raises(lv.InvalidInput):
            tx.append("y", [{"id": 5, "v": 50}])
    lake.drop("y")
    lake.append("x", [{"id": 6, "v": 60}])
    assert _ids(lake, "x") == [1, 2, 4, 6]


@pytest.mark.parametrize("link", LINKS)
def test_table_registered_by_a_link_is_recognised(
    lake: lv.Lake, far: Path, link: Callable[[Path], str]
) -> None:
    lake.register("x", link(far))
    assert _ids(lake, "x") == [1]
    with pytest.raises(lv.InvalidInput, match="'x'"):
        lake.register("y", f"file://{far}/t")


def test_two_new_tables_in_one_place_are_refused(lake: lv.Lake, far: Path) -> None:
    with lake.transaction() as tx:
        tx.create("a", "id BIGINT", location=f"file://{far}/new")
        for url in (f"file://{far}//new", f"file://{far}-link/new"):
            with pytest.raises(lv.InvalidInput):
                tx.create("b", "id BIGINT", location=url)
    assert lake.tables() == ["a"]


def test_table_of_the_lake_named_by_a_url_is_the_same_table(lake: lv.Lake, tmp_path: Path) -> None:
    lake.create("b", [{"id": 1}])
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    for client in (lake, _open(tmp_path / "link")):
        for url in ("lake/b", "lake//b/", "lake/./%62", "link/b"):
            for scheme in ("file://", "FILE://", "file://localhost"):
                with pytest.raises(lv.InvalidInput, match="'b'"):
                    client.register("c", f"{scheme}{tmp_path}/{url}")
    lake.drop("b")
    lake.register("c", f"FILE://{tmp_path}/link//b")
    assert _ids(lake, "c") == [1]
    assert lake.tables() == ["c"]


def test_scheme_has_no_case_on_other_stores(tmp_path: Path) -> None:
    name = tmp_path.name
    far = lv.Lake(f"memory://{name}/far", engine="local")
    far.create("t", [{"id": 1}])
    lake = lv.Lake(f"memory://{name}/lake", engine="local")
    lake.register("x", f"MEMORY://{name}/far/t/")
    with pytest.raises(lv.InvalidInput, match="'x'"):
        lake.register("y", f"memory://{name}/far/t")
    with pytest.raises(lv.InvalidInput):
        lake.register("y", f"memory://{name}/far//t")
