"""With which version a table begins, and which of two clients that make one in the same place is first."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.store.open import open_store
from tests.support.hooked import Hooked
from tests.support.outsiders import OUTSIDERS, Outsider

pytestmark = pytest.mark.formats("iceberg")

THEIRS = pa.table({"id": [7], "v": [70]})
OPTIONS = {"fsync": "false"}


@pytest.fixture
def outside(table_format: str) -> Outsider:
    return OUTSIDERS[table_format]


@pytest.fixture
def store(tmp_path: Path) -> Hooked:
    return Hooked(open_store(str(tmp_path), OPTIONS))


@pytest.fixture
def lake(tmp_path: Path, store: Hooked) -> lv.Lake:
    return lv.Lake(tmp_path, engine="local", store=store)


def _log(folder: Path) -> list[str]:
    """The names of what makes versions."""
    return sorted(path.name for path in folder.rglob("*.json") if "lakevilla" not in path.name)


@pytest.mark.formats("delta", "iceberg")
@pytest.mark.parametrize("features", [lv.NONE, lv.R | lv.CT], ids=str)
def test_table_that_another_client_makes_at_the_same_moment_is_met_and_left_alone(
    lake: lv.Lake, store: Hooked, tmp_path: Path, features: lv.Features, outside: Outsider
) -> None:
    tx = lake.transaction(features)
    tx.create("n", "id BIGINT, v BIGINT")

    def step(kind: str, key: str) -> None:
        if kind == "create" and key == f"n/{outside.entry(outside.begin)}":
            store.hook = None
            outside.create(tmp_path / "n", THEIRS)
            theirs.extend(_log(tmp_path / "n"))

    theirs: list[str] = []
    store.hook = step
    with pytest.raises(lv.Conflict):
        tx.commit()
    assert theirs
    assert _log(tmp_path / "n") == theirs
    assert outside.rows(tmp_path / "n") == THEIRS.to_pylist()
    assert lake.read("n").collect() == [(7, 70)]


@pytest.mark.parametrize("features", [lv.NONE, lv.R | lv.CT], ids=str)
def test_new_table_has_a_hint(lake: lv.Lake, tmp_path: Path, features: lv.Features) -> None:
    with lake.transaction(features) as tx:
        tx.create("n", "id BIGINT, v BIGINT")
    assert (tmp_path / "n" / "metadata" / "version-hint.text").read_text() == "1"


def _named_by_a_catalog(metadata: Path) -> None:
    for path in metadata.glob("v*.metadata.json"):
        path.rename(metadata / f"0000{path.name[1]}-0197aaaa-aaaa-7aaa-aaaa-aaaaaaaaaaaa.metadata.json")


def _cleaned_up(metadata: Path) -> None:
    (metadata / "v1.metadata.json").unlink()


def _begun_with_0(metadata: Path) -> None:
    (metadata / "v1.metadata.json").rename(metadata / "v0.metadata.json")
    (metadata / "v2.metadata.json").unlink()


def _compressed(metadata: Path) -> None:
    for path in metadata.glob("v*.metadata.json"):
        name = path.name.replace(".metadata.json", ".gz.metadata.json")
        (metadata / name).write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()


@pytest.mark.parametrize("kind", [_named_by_a_catalog, _cleaned_up, _begun_with_0, _compressed])
def test_table_without_a_plain_version_1_is_found_by_the_look_before_the_create(
    lake: lv.Lake, store: Hooked, tmp_path: Path, kind: Callable[[Path], None], outside: Outsider
) -> None:
    tx = lake.transaction(lv.R | lv.CT)
    tx.create("n", "id BIGINT, v BIGINT")

    def step(_: str, key: str) -> None:
        if key == "n/metadata/":
            store.hook = None
            outside.create(tmp_path / "n", THEIRS)
            kind(tmp_path / "n" / "metadata")
            theirs.extend(_log(tmp_path / "n"))

    theirs: list[str] = []
    store.hook = step
    with pytest.raises(lv.Conflict):
        tx.commit()
    assert theirs
    assert _log(tmp_path / "n") == theirs


@pytest.mark.parametrize("hinted", [True, False])
def test_table_that_begins_with_0_is_read_and_written(
    lake: lv.Lake, tmp_path: Path, outside: Outsider, hinted: bool
) -> None:
    outside.create(tmp_path / "t", THEIRS)
    metadata = tmp_path / "t" / "metadata"
    _begun_with_0(metadata)
    (metadata / "version-hint.text").write_text("0")
    if not hinted:
        (metadata / "version-hint.text").unlink()
    assert lake.read("t").collect() == []
    lake.append("t", [{"id": 1, "v": 10}])
    with lake.transaction() as tx:
        tx.create("u", "id BIGINT")
        tx.update("t", {"v": 11})
    assert tx.receipt is not None
    assert tx.receipt.versions == {"t": 2, "u": 1}
    assert [entry.version for entry in lake.history("t")] == [2, 1, 0]
    assert lake.read("t", version=0).collect() == []
    assert outside.rows(tmp_path / "t") == [{"id": 1, "v": 11}]


def test_log_without_a_version_is_named(tmp_path: Path) -> None:
    log = tmp_path / "t" / "_delta_log"
    log.mkdir(parents=True)
    (log / "00000000000000000000.crc").write_text("{}")
    with pytest.raises(lv.InvalidInput, match="'t'; its folder has a log without any version"):
        lv.Lake(tmp_path, engine="local").read("t")
