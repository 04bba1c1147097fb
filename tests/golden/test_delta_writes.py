"""Delta tables that other engines wrote, changed by us: all engines read equal rows afterwards.

Each table is copied, all its rows are rewritten into files of ours, a checkpoint is written, and the table
is opened anew from that checkpoint, by us and by delta-rs. Tables that ask more of a writer than we do must
stay as they are.
"""

import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from lakevilla.errors import InvalidInput, Unsupported
from lakevilla.formats.delta.checkpoints.writer import write_checkpoint
from lakevilla.formats.properties import is_true
from lakevilla.model import Change
from lakevilla.predicates import ANYTHING
from lakevilla.store.open import open_store
from tests.golden.canonical import checksum
from tests.golden.tables import GOLDEN, tables
from tests.support.delta_writer import Writer


@pytest.fixture
def copy(entry: dict[str, Any], tmp_path: Path) -> Path:
    place = tmp_path / "table"
    shutil.copytree(GOLDEN / entry["path"] / "table", place)
    for folder, _, names in os.walk(place):
        for path in (Path(folder), *(Path(folder, name) for name in names)):
            path.chmod(0o755)
    return place


@pytest.mark.parametrize("entry", tables("read", formats=("delta",)))
def test_a_table_of_others_keeps_its_rows_when_we_rewrite_it(entry: dict[str, Any], copy: Path) -> None:
    writer = Writer(open_store(str(copy), {"fsync": "false"}))
    before = writer.latest()
    log = sorted(path.name for path in (copy / "_delta_log").iterdir())
    try:
        before.refuse_writes()
    except Unsupported:
        with pytest.raises(Unsupported):
            writer.publish(Change("WRITE"), before)
        assert sorted(path.name for path in (copy / "_delta_log").iterdir()) == log
        return
    rows = writer.rows(before)
    if is_true(before.properties, "delta.appendOnly"):
        with pytest.raises(InvalidInput, match="append-only"):
            writer.rewrite(rows, base=before)
        return
    after = writer.rewrite(rows, base=before)
    assert after.version == before.version + 1
    write_checkpoint(writer.store, writer.environment, after)
    known = entry["expected"]["sha256"]
    assert checksum(writer.rows(after)) == known
    for path in (copy / "_delta_log").glob("*.json"):
        if path.name[:20].isdigit() and int(path.name[:20]) < after.version:
            path.unlink()
    cold = Writer(writer.store)
    assert checksum(cold.rows()) == known
    assert {file.identity for file in cold.latest().files(ANYTHING)} == {
        file.identity for file in after.files(ANYTHING)
    }
    if entry["readers"].get("deltalake.QueryBuilder") == "ok":
        found = (
            QueryBuilder()
            .register("t", DeltaTable(str(copy)))
            .execute("SELECT count(*) AS n FROM t")
            .read_all()
        )
        assert pa.table(found)["n"].to_pylist() == [rows.num_rows]
