"""Delta tables that other engines wrote: each behaves as its kind in the manifest demands."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakevilla.environment import SystemEnvironment
from lakevilla.errors import LakeVillaError, Unavailable
from lakevilla.files.reading import read_files
from lakevilla.formats.delta.snapshot import DeltaSnapshot
from lakevilla.formats.delta.table import DeltaTable
from lakevilla.predicates import ANYTHING
from lakevilla.store.opening import open_store
from lakevilla.store.port import Store
from tests.golden.canonical import checksum

GOLDEN = Path(__file__).parents[3] / "shared" / "data" / "golden"
MANIFEST = GOLDEN / "manifest.json"
ENVIRONMENT = SystemEnvironment(threads=4)

pytestmark = pytest.mark.skipif(not MANIFEST.exists(), reason=f"there are no golden tables at {GOLDEN}")


def tables(*kinds: str) -> list[Any]:
    if not MANIFEST.exists():
        return []
    entries = json.loads(MANIFEST.read_text())["tables"]
    return [
        pytest.param(entry, id=entry["id"])
        for entry in entries
        if entry["format"] == "delta" and entry["kind"] in kinds
    ]


def open_table(entry: dict[str, Any]) -> DeltaTable:
    return DeltaTable(open_store(str(GOLDEN / entry["path"] / "table")), ENVIRONMENT, open_elsewhere)


def open_elsewhere(url: str) -> Store:
    # Golden tables with remote paths must not send requests from a test.
    if not url.startswith("file:"):
        raise Unavailable(f"{url} is not on this machine")
    return open_store(url)


def rows(table: DeltaTable, snapshot: DeltaSnapshot | None) -> pa.Table:
    assert snapshot is not None
    files = snapshot.files(ANYTHING)
    parts = list(read_files(ENVIRONMENT, table.open, files, snapshot.schema, snapshot.partition_columns))
    return pa.concat_tables(parts) if parts else snapshot.schema.empty_table()


@pytest.mark.parametrize("entry", tables("read"))
def test_readable_table_gives_the_known_rows_at_every_version(entry: dict[str, Any]) -> None:
    table = open_table(entry)
    latest = table.latest()
    assert latest is not None
    assert latest.version == entry["latest_version"]
    assert len(latest.files(ANYTHING)) == entry["active_data_files"]
    assert checksum(rows(table, latest)) == entry["expected"]["sha256"]
    for version, known in entry.get("versions", {}).items():
        assert checksum(rows(table, table.at_version(int(version)))) == known["sha256"], version


@pytest.mark.parametrize("entry", tables("read", "log-only"))
def test_log_followed_entry_by_entry_ends_in_the_same_files(entry: dict[str, Any]) -> None:
    table = open_table(entry)
    latest = table.latest()
    assert latest is not None
    try:
        followed: DeltaSnapshot | None = table.at_version(max(0, latest.version - 3))
    except LakeVillaError:
        pytest.skip("older versions are gone or cannot be read")
    followed = table.latest(followed)
    assert followed is not None
    assert followed.version == latest.version
    assert sorted(f.identity for f in followed.files()) == sorted(f.identity for f in latest.files())
    assert len(latest.files()) == entry["active_data_files"]


@pytest.mark.parametrize("entry", tables("negative"))
def test_broken_table_raises(entry: dict[str, Any]) -> None:
    table = open_table(entry)
    with pytest.raises(LakeVillaError):
        rows(table, table.latest())


@pytest.mark.parametrize("entry", tables("unsupported-by-all", "needs-test-prefix"))
def test_table_that_nobody_reads_is_refused(entry: dict[str, Any]) -> None:
    table = open_table(entry)
    with pytest.raises(LakeVillaError):
        rows(table, table.latest())


@pytest.mark.parametrize("entry", tables("one-reader", "rejected", "disputed"))
def test_doubtful_table_gives_rows_that_a_reader_gave_or_an_error(entry: dict[str, Any]) -> None:
    table = open_table(entry)
    try:
        found = checksum(rows(table, table.latest()))
    except LakeVillaError:
        return
    results = [result for result in entry["readers"].values() if isinstance(result, dict)]
    assert found in [result.get("sha256") for result in results]
