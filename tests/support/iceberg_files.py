"""PyIceberg on tables that are kept by files alone, which it has no catalog for. For tests."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io import load_file_io
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata

from lakevilla.store.open import open_store
from lakevilla.store.port import Created

HINT = "metadata/version-hint.text"


class LostRace(Exception):
    """Somebody else's commit came first. PyIceberg does not retry then, as its user would not."""


class FilesCatalog(NoopCatalog):
    """Tables by the URLs of their folders: a commit is a create of the next `v<N>.metadata.json`."""

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        super().__init__("files")
        self._options = dict(options or {})

    def newest(self, url: str) -> int:
        """The greatest number of a metadata file, as a LIST tells it."""
        names = [Path(meta.key).name for meta in open_store(url, self._options).list("metadata/")]
        return max(int(name[1:].partition(".")[0]) for name in names if name.endswith(".metadata.json"))

    def hinted(self, url: str) -> int:
        """The version that the hint tells, and those after it that are there, as Hadoop's clients go."""
        store = open_store(url, self._options)
        hint = store.get(HINT)
        version = 0 if hint is None else int(hint.data)
        while store.head(_key(version + 1)) is not None:
            version += 1
        return version

    def at(self, url: str, version: int) -> Table:
        """The table at a version; it can be changed if that is the newest."""
        place = f"{url}/{_key(version)}"
        metadata = FromInputFile.table_metadata(load_file_io(self._s3(), place).new_input(place))
        io = load_file_io({**self._s3(), **metadata.properties}, place)
        return Table((url,), metadata, place, io, self)

    def load_table(self, identifier: Any) -> Table:
        url = identifier if isinstance(identifier, str) else identifier[0]
        return self.at(url, self.hinted(url))

    def create(
        self,
        url: str,
        schema: pa.Schema | Schema,
        spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        properties: Mapping[str, str] | None = None,
    ) -> Table:
        """A new table, whose first version is 1, as in Hadoop's catalog."""
        columns = Catalog._convert_schema_if_needed(schema)
        metadata = new_table_metadata(columns, spec, UNSORTED_SORT_ORDER, url, dict(properties or {}))
        self._write(url, 1, metadata)
        return self.load_table(url)

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        url = table.name()[0]
        current = self.load_table(url)
        try:
            for requirement in requirements:
                requirement.validate(current.metadata)
        except CommitFailedException as error:
            raise LostRace from error
        before = current.metadata_location
        metadata = update_table_metadata(current.metadata, updates, metadata_location=before)
        version = int(Path(before).name[1:].partition(".")[0]) + 1
        self._write(url, version, metadata)
        place = f"{url}/{_key(version)}"
        return CommitTableResponse.model_validate({"metadata": metadata, "metadata-location": place})

    def _write(self, url: str, version: int, metadata: TableMetadata) -> None:
        store = open_store(url, self._options)
        if not isinstance(store.create(_key(version), metadata.model_dump_json().encode()), Created):
            raise LostRace(f"version {version} of {url} is there already")
        store.put(HINT, str(version).encode())

    def _s3(self) -> dict[str, str]:
        """The options as PyIceberg calls them."""
        names = {
            "AWS_ENDPOINT_URL": "s3.endpoint",
            "AWS_REGION": "s3.region",
            "AWS_ACCESS_KEY_ID": "s3.access-key-id",
            "AWS_SECRET_ACCESS_KEY": "s3.secret-access-key",
        }
        return {names[name]: value for name, value in self._options.items() if name in names}


def _key(version: int) -> str:
    return f"metadata/v{version}.metadata.json"
