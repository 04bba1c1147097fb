"""Delta tables that other engines wrote, brought back to each of their versions: rows, columns, deletes."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import lakevilla as lv
from tests.golden.tables import Golden, needed, tables

VERSIONS_TRIED = 6
SKIPS = (lv.Unsupported, lv.Corrupt)
"""Features that LakeVilla does not write, and versions whose files are not part of the golden table."""


@needed
@pytest.mark.sampled(20)
@pytest.mark.parametrize("entry", tables("read", formats=("delta",)))
def test_every_version_comes_back(entry: dict[str, Any], tmp_path: Path) -> None:
    shutil.copytree(Golden(entry).root, tmp_path / "lake" / "t")
    lake = lv.Lake(tmp_path / "lake", engine="local", storage_options={"fsync": "false"})
    try:
        versions = sorted(version.version for version in lake.history("t"))[:VERSIONS_TRIED]
    except SKIPS as error:
        pytest.skip(str(error))
    for version in versions:
        try:
            then = lake.read("t", version=version)
            wanted = then.columns, _rows(then)
            lake.restore(version=version, tables=["t"])
        except SKIPS:
            continue
        except lv.InvalidInput as error:
            if _is_refused(error):
                continue
            raise
        now = lake.read("t")
        assert (now.columns, _rows(now)) == wanted, version


def _rows(result: Any) -> list[str]:
    return sorted(repr(row) for row in result.to_arrow().to_pylist())


def _is_refused(error: Exception) -> bool:
    return "append-only" in str(error) or "another one was created" in str(error)
