"""Other projects' readers on what a death left: deltalake and PyIceberg find the same files."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import StaticTable

from sim.checkers.tables.commits import rows_of
from sim.checkers.tables.effects import bag
from sim.checkers.tables.iceberg import IcebergLog, log_key
from sim.checkers.tables.logs import read_log, table_roots
from sim.world.catalogs import WAREHOUSE

BUCKET = "sim://bucket/"

Objects = Mapping[str, bytes]


class Seen(NamedTuple):
    """What a reader finds: the version, the names of the data files, and the rows if asked for."""

    version: int
    names: set[str]
    rows: list[dict[str, Any]]


def differing_tables(objects: Objects, folder: Path, rows: bool = False) -> list[str]:
    """What other readers find otherwise in the tables of a store: versions, files and, if asked for, `rows`.
    deltalake gets a copy of its tables in this folder."""
    return [what for root in table_roots(objects) for what in _differences(objects, folder, root, rows)]


def _differences(objects: Objects, folder: Path, root: str, rows: bool) -> list[str]:
    log = read_log(objects, root)
    version = log.commits[-1].version
    if isinstance(log, IcebergLog):
        seen = by_pyiceberg(objects, root, version, rows)
    else:
        seen = _by_deltalake(objects, folder, root, rows)
    names = {file.key.rpartition("/")[2] for file in log.live.values()}
    found = []
    if seen.version != version:
        found.append(f"others see version {seen.version} of {root}, which is at {version}")
    if seen.names != names:
        found.append(f"others see the files {seen.names} of {root}, which has {names}")
    if rows and bag(seen.rows) != bag([row for f in log.live.values() for row in rows_of(f, objects) or ()]):
        found.append(f"others see other rows of {root}: {seen.rows}")
    return found


def _by_deltalake(objects: Objects, folder: Path, root: str, rows: bool) -> Seen:
    for key, data in objects.items():
        if key.startswith(f"{root}/"):
            (folder / key).parent.mkdir(parents=True, exist_ok=True)
            (folder / key).write_bytes(data)
    table = DeltaTable(folder / root)
    names = {uri.rpartition("/")[2] for uri in table.file_uris()}
    # Its query engine reads deletion vectors too.
    queries = QueryBuilder().register("t", table) if rows else None
    found = [] if queries is None else pa.table(queries.execute("SELECT * FROM t").read_all()).to_pylist()
    return Seen(table.version(), names, found)


def by_pyiceberg(objects: Objects, root: str, version: int, rows: bool) -> Seen:
    """PyIceberg opens the metadata file that it is given: that of this version."""
    files, place = ObjectsIO(objects), f"{BUCKET}{log_key(root, version)}"
    metadata = FromInputFile.table_metadata(files.new_input(place))
    scan = StaticTable(("t",), metadata, place, files, NoopCatalog("t")).scan()
    names = {task.file.file_path.rpartition("/")[2] for task in scan.plan_files()}
    return Seen(version, names, scan.to_arrow().to_pylist() if rows else [])


class _Object(InputFile):
    """An object of the bucket, as PyIceberg reads files."""

    def __init__(self, location: str, data: bytes | None) -> None:
        super().__init__(location)
        self._data = data

    def __len__(self) -> int:
        return len(self._data or b"")

    def exists(self) -> bool:
        return self._data is not None

    def open(self, seekable: bool = True) -> Any:
        if self._data is None:
            raise FileNotFoundError(self.location)
        return io.BytesIO(self._data)


class ObjectsIO(FileIO):
    """A bucket's objects, as PyIceberg wants them; nothing is written."""

    def __init__(self, objects: Objects) -> None:
        super().__init__()
        self._objects = objects

    def new_input(self, location: str) -> InputFile:
        # The tables of catalogs are judged as if they lay where others do.
        key = location.removeprefix(BUCKET).removeprefix(f"{WAREHOUSE}/")
        return _Object(location, self._objects.get(key))

    def new_output(self, location: str) -> OutputFile:
        raise NotImplementedError(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        raise NotImplementedError(location)
