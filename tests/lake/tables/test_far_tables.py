"""Tables at different locations and in different buckets in one transaction, registered ones included."""

from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

import lakevilla as lv
from bench.stores.seaweed import S3Server
from lakevilla.store.open import open_store

BOTH = lv.R | lv.CT
Far = tuple[lv.Lake, str, dict[str, str]]


@pytest.fixture(params=["memory", "directory", "s3"])
def far(request: pytest.FixtureRequest, tmp_path: Path) -> Far:
    """A lake with the table `near`, and an empty place outside its root: in another bucket on S3."""
    if request.param == "memory":
        name = f"memory://{tmp_path.name}"
        root, place, options = f"{name}-lake", f"{name}-far", {}
    elif request.param == "directory":
        root, place, options = str(tmp_path / "lake"), f"file://{tmp_path}/far", {"fsync": "false"}
    else:
        server: S3Server = request.getfixturevalue("s3")
        root, options = server.new_url(), server.storage_options
        place = root.replace(f"s3://{server.bucket}/", "s3://another-bucket/")
        # The server makes a bucket for the first object that is put there.
        open_store(place, options).put("hello", b"")
    lake = lv.Lake(root, engine="local", storage_options=options)
    lake.create("near", pa.table({"id": [1, 2], "v": [10, 20]}))
    return lake, place, options


def _register(far: Far) -> None:
    """A table in the far place, which another lake has made and no lake owns."""
    lake, place, options = far
    maker = lv.Lake(place, engine="local", storage_options=options)
    maker.create("t", pa.table({"id": [1, 2], "v": [0, 0]}))
    open_store(f"{place}/t", options).delete("_lakevilla/owner.json")
    lake.register("far", f"{place}/t")


def _rows(lake: lv.Lake, name: str) -> list[tuple[int, int]]:
    return sorted(tuple(row) for row in lake.read(name).collect())


def test_one_commit_changes_tables_in_two_places(far: Far) -> None:
    lake, place, options = far
    _register(far)
    with lake.transaction(BOTH) as tx:
        tx.update("near", {"v": "v - 5"}, where="id = 1")
        tx.update("far", {"v": "v + 5"}, where="id = 1")
        tx.sql("INSERT INTO far SELECT id + 10, v FROM near")
    assert tx.receipt is not None
    assert tx.receipt.versions == {"near": 1, "far": 1}
    again = lv.Lake(place, engine="local", storage_options=options)
    assert _rows(lake, "near") == [(1, 5), (2, 20)]
    assert _rows(lake, "far") == _rows(again, "t") == [(1, 5), (2, 0), (11, 5), (12, 20)]


def test_conflict_in_the_far_place_is_redone_in_both(far: Far) -> None:
    lake, place, options = far
    _register(far)
    with lake.transaction(BOTH) as tx:
        tx.sql(
            "MERGE INTO near USING far ON near.id = far.id WHEN MATCHED THEN UPDATE SET v = near.v + far.v"
        )
        tx.update("far", {"v": "v + 1"}, where="id = 1")
        other = lv.Lake(place, engine="local", storage_options=options)
        other.update("t", {"v": "v + 100"}, where="id = 1")
    assert tx.receipt is not None
    assert tx.receipt.redone == 2
    assert (_rows(lake, "near"), _rows(lake, "far")) == ([(1, 110), (2, 20)], [(1, 101), (2, 0)])


def test_helper_settles_a_commit_whose_owner_died_between_two_places(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, _, options = far
    _register(far)
    tx = lake.transaction(BOTH)
    tx.update("near", {"v": "v - 5"}, where="id = 1")
    tx.update("far", {"v": "v + 5"}, where="id = 1")

    def die(*_: object) -> None:
        raise RuntimeError("the client died")

    far_table = next(p.table for p in tx._workspace.touched if p.ref.name == "far")
    monkeypatch.setattr(far_table, "publish", die)
    with pytest.raises(RuntimeError):
        tx.commit()
    helper = lv.Lake(lake.url, engine="local", storage_options=options)
    helper.update("near", {"v": "v + 1"}, where="id = 2")
    assert (_rows(helper, "near"), _rows(helper, "far")) == ([(1, 5), (2, 21)], [(1, 5), (2, 0)])


def test_tables_are_made_and_dropped_outside_the_root(far: Far) -> None:
    lake, place, options = far
    _register(far)
    with lake.transaction(BOTH) as tx:
        tx.create("made", pa.table({"id": [7], "v": [7]}), location=f"{place}/made")
        tx.sql("INSERT INTO made SELECT * FROM far")
        tx.drop("far")
        tx.append("near", [{"id": 3, "v": 30}])
    assert lake.tables() == ["made", "near"]
    assert _rows(lake, "made") == [(1, 0), (2, 0), (7, 7)]
    # A table outside the root is forgotten, not touched.
    other = lv.Lake(place, engine="local", storage_options=options)
    assert len(other.history("t")) == 1
    with (
        pytest.raises(lv.InvalidInput, match="a table already exists at"),
        lake.transaction(BOTH) as tx,
    ):
        tx.create("again", "id BIGINT", location=f"{place}/made")


def test_outside_writer_in_the_far_place_takes_the_near_one_back(tmp_path: Path) -> None:
    """It comes between the decision and the publishing."""
    lake = lv.Lake(tmp_path / "lake", engine="local", storage_options={"fsync": "false"})
    lake.create("near", pa.table({"id": [1], "v": [10]}))
    deltalake.write_deltalake(str(tmp_path / "far"), pa.table({"id": [1], "v": [0]}))
    lake.register("far", f"file://{tmp_path}/far")
    tx = lake.transaction(lv.CT)
    tx.update("near", {"v": "v - 5"})
    tx.update("far", {"v": "v + 5"})
    publish = tx._workspace.base("near").table.publish

    def first_the_outsider(*arguments: object) -> object:
        if len(lake.history("near")) == 1:
            deltalake.DeltaTable(str(tmp_path / "far")).update(updates={"v": "v + 100"})
        return publish(*arguments)  # type: ignore[arg-type]

    tx._workspace.base("near").table.publish = first_the_outsider  # type: ignore[method-assign,assignment]
    far_table = next(p.table for p in tx._workspace.touched if p.ref.name == "far")
    publish_far = far_table.publish

    def after_the_near_one(*arguments: object) -> object:
        while len(lake.history("near")) == 1:
            lake._environment.sleep(0.01)
        return publish_far(*arguments)  # type: ignore[arg-type]

    far_table.publish = after_the_near_one  # type: ignore[method-assign,assignment]
    with pytest.raises(lv.Conflict):
        tx.commit()
    assert (_rows(lake, "near"), _rows(lake, "far")) == ([(1, 10)], [(1, 100)])
    assert lake.history("near", 1)[0].operation == "ROLLBACK"
