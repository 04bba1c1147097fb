"""Other projects' readers on what a death left: deltalake and PyIceberg find the same version and files."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import StaticTable

from sim.checkers.commits import rows_of
from sim.checkers.effects import bag
from sim.checkers.iceberg import IcebergLog, log_key
from sim.checkers.logs import read_log, table_roots

BUCKET = "sim://bucket/"

Objects = Mapping[str, bytes]


def check_tables(objects: Objects, folder: Path, rows: bool) -> None:
    """Open every table of a store, of which deltalake finds its own in this folder; compare `rows` too."""
    for root in table_roots(objects):
        log = read_log(objects, root)
        if isinstance(log, IcebergLog):
            names, found = _by_pyiceberg(objects, log_key(root, log.commits[-1].version), rows)
        else:
            names, found = _by_deltalake(objects, folder, root, log.commits[-1].version, rows)
        assert names == {file.key.rpartition("/")[2] for file in log.live.values()}
        if rows:
            assert bag(found) == bag(
                [row for file in log.live.values() for row in rows_of(file, objects) or ()]
            )


def _by_deltalake(
    objects: Objects, folder: Path, root: str, version: int, rows: bool
) -> tuple[set[str], list[dict[str, Any]]]:
    for key, data in objects.items():
        if key.startswith(f"{root}/"):
            (folder / key).parent.mkdir(parents=True, exist_ok=True)
            (folder / key).write_bytes(data)
    table = DeltaTable(folder / root)
    assert table.version() == version
    names = {uri.rpartition("/")[2] for uri in table.file_uris()}
    return names, table.to_pyarrow_table().to_pylist() if rows else []


def _by_pyiceberg(objects: Objects, key: str, rows: bool) -> tuple[set[str], list[dict[str, Any]]]:
    files, place = ObjectsIO(objects), f"{BUCKET}{key}"
    metadata = FromInputFile.table_metadata(files.new_input(place))
    table = StaticTable(("t",), metadata, place, files, NoopCatalog("t"))
    scan = table.scan()
    names = {task.file.file_path.rpartition("/")[2] for task in scan.plan_files()}
    return names, scan.to_arrow().to_pylist() if rows else []


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
        return _Object(location, self._objects.get(location.removeprefix(BUCKET)))

    def new_output(self, location: str) -> OutputFile:
        raise NotImplementedError(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        raise NotImplementedError(location)
