"""Tables that other engines wrote, as the manifest in their folder describes them, opened by their
formats."""

import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pytest

from lakevilla.environment import SystemEnvironment
from lakevilla.errors import Unavailable
from lakevilla.files.reader import read_files
from lakevilla.formats.iceberg.snapshot import IcebergSnapshot
from lakevilla.formats.port import Snapshot, Table
from lakevilla.formats.registry import open_table
from lakevilla.model import DataFile
from lakevilla.predicates import ANYTHING
from lakevilla.store.open import open_store
from lakevilla.store.port import Store

GOLDEN = Path(__file__).parents[3] / "shared" / "data" / "golden"
MANIFEST = GOLDEN / "manifest.json"
ENVIRONMENT = SystemEnvironment(threads=4)

needed = pytest.mark.skipif(not MANIFEST.exists(), reason=f"there are no golden tables at {GOLDEN}")


def tables(*kinds: str, formats: tuple[str, ...] = ("delta", "iceberg")) -> list[Any]:
    """The entries of the manifest, as parameters of a test."""
    if not MANIFEST.exists():
        return []
    entries = json.loads(MANIFEST.read_text())["tables"]
    return [
        pytest.param(entry, id=entry["id"])
        for entry in entries
        if entry["format"] in formats and entry["kind"] in kinds
    ]


@dataclass(frozen=True)
class Golden:
    """A table where it lies now, which mostly is not where it was written."""

    entry: dict[str, Any]

    @property
    def root(self) -> Path:
        return Path(GOLDEN, self.entry["path"], "table")

    @cached_property
    def table(self) -> Table:
        return open_table(self.entry["format"], open_store(str(self.root)), ENVIRONMENT, _elsewhere)

    @property
    def latest(self) -> Snapshot:
        found = self.table.latest()
        assert found is not None
        return found

    def open(self, file: DataFile) -> tuple[Store, str]:
        """Iceberg records whole paths: the file is where the longest end of its path is below the table."""
        if self.entry["format"] == "iceberg":
            parts = unquote(file.key.removeprefix("file:")).strip("/").split("/")
            ends = ("/".join(parts[start:]) for start in range(len(parts)))
            found = next((end for end in ends if (self.root / end).is_file()), None)
            if found is not None:
                return open_store(str(self.root)), found
        return self.table.open(file)

    def rows(self, snapshot: Snapshot) -> pa.Table:
        """All rows of a version."""
        files = snapshot.files(ANYTHING)
        parts = list(read_files(ENVIRONMENT, self.open, files, snapshot.schema, snapshot.partition_columns))
        return pa.concat_tables(parts) if parts else snapshot.schema.empty_table()

    def past(self) -> dict[str, tuple[Snapshot, str]]:
        """Earlier states with the checksums of their rows: versions of Delta, snapshots of Iceberg."""
        found: dict[str, tuple[Snapshot, str]] = {}
        for version, known in self.entry.get("versions", {}).items():
            found[version] = self.table.at_version(int(version)), known["sha256"]
        for number, known in self.entry.get("snapshots", {}).items():
            found[number] = _with_snapshot(self.latest, int(number)), known["sha256"]
        return found


def _elsewhere(url: str) -> Store:
    # Golden tables with remote paths must not send requests from a test.
    if not url.startswith("file:"):
        raise Unavailable(f"{url} is not on this machine")
    return open_store(url)


def _with_snapshot(latest: Snapshot, number: int) -> Snapshot:
    """The table as it would be if this snapshot were the current one, with the schema of its time."""
    assert isinstance(latest, IcebergSnapshot)
    snapshot = next(each for each in latest.raw["snapshots"] if each["snapshot-id"] == number)
    schema = snapshot.get("schema-id", latest.raw.get("current-schema-id"))
    raw = {**latest.raw, "current-snapshot-id": number, "current-schema-id": schema}
    return IcebergSnapshot.of(replace(latest.at, raw=raw), latest.context)
