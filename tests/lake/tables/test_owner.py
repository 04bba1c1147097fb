"""A table belongs to one lake: its global log alone decides commits of it together with other tables."""

from pathlib import Path

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.store import keys
from lakevilla.store.metered import Meter
from lakevilla.versions.owner import Owner

BOTH = lv.R | lv.CT
Lakes = tuple[lv.Lake, lv.Lake]


@pytest.fixture
def lakes(tmp_path: Path) -> Lakes:
    """Two lakes with a table each; the second knows the first one's, `shared`, too."""
    first, second = (_open(tmp_path / name) for name in ("first", "second"))
    first.create("shared", pa.table({"id": [1]}))
    second.create("own", pa.table({"id": [1]}))
    second.register("shared", f"file://{tmp_path}/first/shared")
    return first, second


def _open(path: Path) -> lv.Lake:
    return lv.Lake(path, engine="local", storage_options={"fsync": "false"})


def _ids(lake: lv.Lake, name: str) -> list[int]:
    return sorted(row.id for row in lake.read(name).collect())


def _both(lake: lv.Lake, features: lv.Features = BOTH) -> lv.Receipt:
    with lake.transaction(features) as tx:
        tx.append("own", [{"id": 2}])
        tx.append("shared", [{"id": 2}])
    assert tx.receipt is not None
    return tx.receipt


def _owner(path: Path) -> Owner:
    return Owner.decode((path / keys.OWNER).read_bytes(), "owner.json")


@pytest.mark.parametrize("features", [lv.CT, BOTH])
def test_commit_of_another_lake_is_refused_before_anything_is_written(
    lakes: Lakes, tmp_path: Path, features: lv.Features
) -> None:
    first, second = lakes
    (tmp_path / "second" / "own" / keys.OWNER).unlink()
    with pytest.raises(lv.Unsupported) as refused:
        _both(second, features)
    for told in (
        "'shared'",
        str(tmp_path / "first"),
        _owner(tmp_path / "first" / "shared").lake,
        "lakevilla.R",
    ):
        assert told in str(refused.value)
    assert (_ids(second, "own"), _ids(first, "shared")) == ([1], [1])
    assert second._catalog.head(Meter(), fresh=True).seq == 2  # type: ignore[union-attr]


@pytest.mark.parametrize("features", [lv.NONE, lv.R])
def test_other_lakes_read_and_write_it_like_anybody(lakes: Lakes, features: lv.Features) -> None:
    first, second = lakes
    with second.transaction(features) as tx:
        tx.append("shared", [{"id": 7}])
    with second.transaction(BOTH) as reading:
        reading.sql("INSERT INTO own SELECT id + 100 FROM shared")
    assert (_ids(first, "shared"), _ids(second, "own")) == ([1, 7], [1, 101, 107])


def test_table_without_an_owner_belongs_to_the_lake_that_first_commits_on_it(
    lakes: Lakes, tmp_path: Path
) -> None:
    first, second = lakes
    shared = tmp_path / "first" / "shared" / keys.OWNER
    shared.unlink()
    _both(second)
    head = second._catalog.head(Meter(), fresh=True)
    assert head is not None
    assert _owner(tmp_path / "first" / "shared") == Owner(
        head.lake, second.url, _owner(shared.parents[1]).put
    )
    assert any(location.endswith("first/shared") for location in head.owned)
    assert _ids(first, "shared") == [1, 2]


def test_lake_that_loses_the_race_for_a_table_is_refused(
    lakes: Lakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other lake takes the table between the look at its owner and the claim."""
    _, second = lakes
    shared = tmp_path / "first" / "shared" / keys.OWNER
    taken = shared.read_bytes()
    shared.unlink()
    from lakevilla.tables import ownership

    probe = ownership.probe

    def take(*arguments: object) -> None:
        probe(*arguments)  # type: ignore[arg-type]
        shared.write_bytes(taken)

    monkeypatch.setattr(ownership, "probe", take)
    with pytest.raises(lv.Unsupported, match="belongs to the lake at"):
        _both(second)
    assert _ids(second, "own") == [1]


def test_owner_is_asked_once_in_the_life_of_a_table(lakes: Lakes, tmp_path: Path) -> None:
    _, second = lakes
    (tmp_path / "first" / "shared" / keys.OWNER).unlink()
    first_time, then = _both(second), _both(second)
    assert then.requests["create"] == 3
    assert first_time.requests["create"] > then.requests["create"]
    assert {kind: then.requests[kind] for kind in ("get", "list", "head")} == {"get": 2, "list": 0, "head": 0}


def test_tables_belong_to_the_lake_that_makes_them(tmp_path: Path) -> None:
    lake = _open(tmp_path)
    lake.create("a", "id BIGINT")
    with lake.transaction(BOTH) as tx:
        tx.create("b", "id BIGINT")
        tx.create("c", "id BIGINT", location=f"file://{tmp_path}-elsewhere/c")
    head = lake._catalog.head(Meter(), fresh=True)
    assert head is not None
    assert head.owned == {"a", "b", f"file://{tmp_path}-elsewhere/c"}
    for folder in (tmp_path / "a", tmp_path / "b", Path(f"{tmp_path}-elsewhere/c")):
        assert _owner(folder).lake == head.lake


def test_dropped_table_is_not_known_as_owned_any_more(tmp_path: Path) -> None:
    lake = _open(tmp_path)
    lake.create("a", "id BIGINT")
    lake.drop("a")
    head = lake._catalog.head(Meter(), fresh=True)
    assert head is not None
    assert head.owned == set()
