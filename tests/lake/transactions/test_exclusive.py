"""Exclusive tables: only transactions that the global log decides change them (`lakevilla.exclusive`)."""

from pathlib import Path

import pyarrow as pa
import pytest

import lakevilla as lv
from tests.support.outsiders import OUTSIDERS

pytestmark = pytest.mark.formats("delta", "iceberg")


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    return lv.Lake(tmp_path, engine="local", storage_options={"fsync": "false"})


def _exclusive(lake: lv.Lake) -> None:
    lake.create("e", "id BIGINT, v BIGINT", properties={"lakevilla.exclusive": "true"})
    lake.append("e", [{"id": 1, "v": 10}])


@pytest.mark.parametrize("features", [lv.NONE, lv.R])
def test_exclusive_table_is_changed_by_the_global_log_alone(lake: lv.Lake, features: lv.Features) -> None:
    _exclusive(lake)
    with pytest.raises(lv.Unsupported, match="exclusive"), lake.transaction(features) as tx:
        tx.update("e", {"v": 0})
    with lake.transaction(lv.CT) as tx:
        tx.update("e", {"v": 1})
    assert tx.receipt is not None
    assert tx.receipt.seq is not None
    assert [row.v for row in lake.read("e").collect()] == [1]


def test_outside_version_of_an_exclusive_table_is_seen_after_sync(
    lake: lv.Lake, tmp_path: Path, table_format: str
) -> None:
    _exclusive(lake)
    outside = OUTSIDERS[table_format]
    assert lake.read("e").count() == 1
    outside.append(tmp_path / "e", pa.table({"id": [9], "v": [0]}))
    assert lake.read("e").count() == 1
    assert lake.sync("e") == {"e": outside.begin + 2}
    assert lake.read("e").count() == 2


@pytest.mark.formats("delta")
def test_exclusive_does_not_go_with_markers_in_the_log(lake: lv.Lake) -> None:
    properties = {"lakevilla.exclusive": "true", "lakevilla.markers": "log"}
    with pytest.raises(lv.Unsupported, match="exclusive"):
        lake.create("e", "id BIGINT", properties=properties)
    with pytest.raises(lv.InvalidInput, match="'true' or 'false'"):
        lake.create("e", "id BIGINT", properties={"lakevilla.exclusive": "yes"})
