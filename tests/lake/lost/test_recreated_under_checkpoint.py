"""A client is suspended while it writes a checkpoint, and its table is deleted or recreated meanwhile."""

import shutil
from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.store.open import open_store
from tests.lake.pauses.test_age_of_uploads import OPTIONS, Clock
from tests.support.hooked import Hooked

pytestmark = pytest.mark.formats("delta")

KINDS = {"NONE": lv.NONE, "R,CT,I": lv.R | lv.CT | lv.I}
LAYOUTS = {"classic": {}, "V2": {"delta.checkpointPolicy": "v2"}}
PLACES = {
    "before it reads the log": ("get", "_last_checkpoint"),
    "before the checkpoint": ("create", ".checkpoint"),
    "before the hint": ("put", "_last_checkpoint"),
}
SUSPENDED = {"a minute": 60.0, "ten days": 10 * 24 * 3600.0}


def _fill(lake: lv.Lake, commits: int, properties: dict[str, str] | None = None) -> None:
    lake.create("t", "id BIGINT", properties=properties or {})
    for number in range(commits):
        lake.append("t", [{"id": number}])


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("suspended", SUSPENDED)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("commits", [None, 1, 12], ids=lambda count: f"recreated with {count}")
@pytest.mark.parametrize("kind", KINDS)
def test_checkpoint_after_the_table_was_recreated_is_not_left_in_the_new_log(
    tmp_path: Path, kind: str, commits: int | None, layout: str, place: str, suspended: str
) -> None:
    clock, root = Clock(), tmp_path / "lake"
    store = Hooked(open_store(str(root), OPTIONS, environment=clock))
    lake = lv.Lake(root, engine="local", store=store, environment=clock)
    _fill(lake, 2, {"delta.checkpointInterval": "3", **LAYOUTS[layout]})
    if commits is not None:
        _fill(lv.Lake(tmp_path / "other", engine="local", storage_options=OPTIONS), commits)
    left: dict[str, bytes] = {}
    published = root / "t" / "_delta_log" / f"{3:020d}.json"

    def hook(request: str, key: str) -> None:
        kind, part = PLACES[place]
        if request == kind and part in key and published.exists() and not left:
            shutil.rmtree(root / "t")
            if commits is not None:
                shutil.copytree(tmp_path / "other" / "t", root / "t")
            left.update(_files(root / "t") or {"nothing": b""})
            clock.ahead += SUSPENDED[suspended]

    store.hook = hook
    with lake.transaction(KINDS[kind]) as tx:
        tx.append("t", [{"id": 50}])
    assert left
    found = _files(root / "t")
    # The hint of the new table may have been overwritten: it only saves readers a LIST.
    kept = [name for name in left if name in found or name not in ("nothing", "_last_checkpoint")]
    assert found == {name: left[name] for name in kept}


@pytest.mark.parametrize("markers", ["side", "log"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_checkpoint_that_is_written_late_stays_in_the_log_of_its_table(
    tmp_path: Path, layout: str, markers: str
) -> None:
    clock, root = Clock(), tmp_path / "lake"
    store = Hooked(open_store(str(root), OPTIONS, environment=clock))
    lake = lv.Lake(root, engine="local", store=store, environment=clock, features=lv.R)
    _fill(lake, 2, {"delta.checkpointInterval": "3", "lakevilla.markers": markers, **LAYOUTS[layout]})
    slept: list[str] = []

    def hook(request: str, key: str) -> None:
        if request == "create" and ".checkpoint" in key:
            slept.append(key)
            clock.ahead += 60.0

    store.hook = hook
    lake.append("t", [{"id": 50}])
    assert slept
    assert all((root / "t" / key.partition("t/")[2]).exists() for key in slept)
