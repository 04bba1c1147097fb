"""A client is suspended right before it publishes, and its table is deleted or recreated meanwhile."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.store.open import open_store
from tests.lake.pauses.test_age_of_uploads import OPTIONS, Clock
from tests.support.hooked import Hooked

pytestmark = pytest.mark.formats("delta", "iceberg")

KINDS = {"NONE": lv.NONE, "R": lv.R, "CT": lv.CT, "R,CT,I": lv.R | lv.CT | lv.I}
SUSPENDED = {"a minute": 60.0, "ten days": 10 * 24 * 3600.0}


def _fill(lake: lv.Lake, commits: int) -> None:
    lake.create("t", "id BIGINT, v BIGINT")
    for number in range(commits):
        lake.append("t", [{"id": number, "v": 1}])


def _log(folder: Path) -> dict[str, bytes]:
    found = (*folder.glob("_delta_log/*.json"), *folder.glob("metadata/v*.metadata.json"))
    return {path.name: path.read_bytes() for path in found}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("suspended", SUSPENDED)
@pytest.mark.parametrize("commits", [None, 0, 2, 4], ids=lambda count: f"recreated with {count}")
@pytest.mark.parametrize("kind", KINDS)
def test_publish_after_the_table_was_recreated_leaves_nothing_in_the_new_log(
    tmp_path: Path, kind: str, commits: int | None, suspended: str
) -> None:
    clock, root = Clock(), tmp_path / "lake"
    store = Hooked(open_store(str(root), OPTIONS, environment=clock))
    lake = lv.Lake(root, engine="local", store=store, environment=clock)
    _fill(lake, 2)
    if commits is not None:
        _fill(lv.Lake(tmp_path / "other", engine="local", storage_options=OPTIONS), commits)
    tx = lake.transaction(KINDS[kind])
    tx.append("t", [{"id": 50, "v": 50}])
    tx._workspace.uploads.finish()
    left: dict[str, bytes] = {}

    def recreate() -> None:
        shutil.rmtree(root / "t")
        if commits is not None:
            shutil.copytree(tmp_path / "other" / "t", root / "t")
        left.update(_log(root / "t"))
        clock.ahead += SUSPENDED[suspended]

    store.hook = _before_publish(recreate)
    with pytest.raises(lv.LakeVillaError):
        tx.commit()
    store.hook = None
    assert left or commits is None
    assert _log(root / "t") == left


def _before_publish(act: Callable[[], None]) -> Callable[[str, str], None]:
    """Act before the first create in the table's log."""
    done: list[str] = []

    def hook(request: str, key: str) -> None:
        if request == "create" and ("t/_delta_log/" in key or "t/metadata/v" in key) and not done:
            done.append(key)
            act()

    return hook
