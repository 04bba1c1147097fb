"""Catalogs of Iceberg tables in the simulated world, as PyIceberg opens them.

Contract: an object of the store, the pointer of a table, names its current metadata file. A client that asks
a catalog sends requests, and these meet the same fates as any other. Updates are applied by PyIceberg.
`Metastore` is like the catalogs of SQL, Glue and Hive: requirements are judged in the client's process, on
what the pointer said; then the pointer is replaced, if it still says that. Losers leave their metadata files.
`Rest` is like a REST catalog: its server judges and replaces in one step, on whatever is there then. It may
also refuse a commit because another request is in progress.
"""

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import BadRequestError, CommitFailedException, NoSuchTableError
from pyiceberg.io import FileIO
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata
from pyiceberg.typedef import Identifier

from lakevilla.store.port import Changed, Object, Unanswered
from sim.world.bucket import EPOCH_MS, Bucket
from sim.world.client import Client
from sim.world.faults import IN_PROGRESS
from sim.world.formats import METASTORE

URL = "sim://bucket"
WAREHOUSE = "_warehouse"
_NAME = re.compile(r"/metadata/(\d+)-[^/]+\.metadata\.json$")

Answer = CommitTableResponse | CommitFailedException | BadRequestError


def folder_of(table: str) -> str:
    """Where the tables of catalogs lie in the store: not where a lake looks for its own."""
    return f"{WAREHOUSE}/{table}"


def pointer_key(catalog: str, table: str) -> str:
    return f"_catalogs/{catalog}/{table}"


def key_of(location: str) -> str:
    """The key of what lies at this URL."""
    return location.removeprefix(f"{URL}/")


def number_of(location: str) -> int:
    """The version whose metadata file this is."""
    found = _NAME.search(location)
    assert found is not None, f"{location} is not a metadata file of a catalog"
    return int(found[1])


def options_of(client: Client) -> dict[str, dict[str, str]]:
    """What a client's lake opens the catalogs with."""
    impls = {kind.name_here: f"{__name__}.{kind.__name__}" for kind in (Metastore, Rest)}
    # What PyIceberg does not know it hands on.
    return {
        name: cast(dict[str, str], {"py-catalog-impl": impl, "client": client})
        for name, impl in impls.items()
    }


def catalog_of(client: Client, table: str) -> "Metastore | Rest":
    """The catalog of a table, for one client."""
    kind = Metastore if client.formats.catalog_of(table) == METASTORE else Rest
    return kind(kind.name_here, client=client)


class _Simulated(NoopCatalog):
    """What both have in common."""

    name_here: str

    def __init__(self, name: str, *, client: Client, **_: Any) -> None:
        super().__init__(name)
        self._client = client

    def create(self, table: str, raw: dict[str, Any]) -> None:
        """Put a table there, without faults."""
        metadata = TableMetadataUtil.parse_obj(raw)
        location = _location(metadata, 0, self._client.environment.new_id())
        self._client.store.put(key_of(location), _encoded(metadata))
        self._client.store.create(pointer_key(self.name, table), location.encode())

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        return self.commit(_name(table.name()), requirements, updates)

    def commit(
        self, table: str, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        raise NotImplementedError

    def _table(self, table: str, location: str, metadata: TableMetadata) -> Table:
        # No client reads files by it.
        return Table((table,), metadata, location, cast(FileIO, None), self)


class Metastore(_Simulated, MetastoreCatalog):
    """Judges here, then swaps."""

    name_here = METASTORE

    def load_table(self, identifier: str | Identifier) -> Table:
        return self._load(_name(identifier))[0]

    def commit(
        self, table: str, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        store, environment = self._client.store, self._client.environment
        current, etag = self._load(table)
        made = _made(
            current.metadata, current.metadata_location, requirements, updates, environment.elapsed()
        )
        location = _location(made, number_of(current.metadata_location) + 1, environment.new_id())
        store.put(key_of(location), _encoded(made))
        key = pointer_key(self.name, table)
        if isinstance(store.replace(key, location.encode(), etag), Changed):
            raise CommitFailedException("the table was changed by another process")
        return _answer(made, location)

    def _load(self, table: str) -> tuple[Table, str]:
        """The table, and the tag of its pointer."""
        found = _current(self._client.store.get, pointer_key(self.name, table))
        if found is None:
            raise NoSuchTableError(table)
        pointer, location, metadata = found
        return self._table(table, location, metadata), pointer.etag


class Rest(_Simulated):
    """Asks a server, which does everything at one instant."""

    name_here = "rest"

    def load_table(self, identifier: str | Identifier) -> Table:
        table = _name(identifier)
        found = self._ask("get", table, lambda bucket, key: _current(bucket.get, key))
        if found is None:
            raise NoSuchTableError(table)
        _, location, metadata = found
        return self._table(table, location, metadata)

    def commit(
        self, table: str, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        client = self._client

        def serve(bucket: Bucket, key: str) -> Answer:
            found, now = _current(bucket.get, key), client.environment.elapsed()
            assert found is not None, "no client drops tables of catalogs here"
            _, location, metadata = found
            try:
                made = _made(metadata, location, requirements, updates, now)
            except CommitFailedException as refused:
                return refused
            except ValueError as wrong:
                return BadRequestError(str(wrong))
            following = _location(made, number_of(location) + 1, f"{len(bucket.writes):032x}")
            bucket.put(now, client.name, key_of(following), _encoded(made))
            bucket.put(now, client.name, key, following.encode())
            return _answer(made, following)

        try:
            answer: Answer = self._ask("replace", table, serve)
        except Unanswered as error:
            if not str(error).endswith(f": {IN_PROGRESS}"):
                raise
            # Also if nothing changed, and also if this one was made: a gateway may have sent it twice.
            raise CommitFailedException("another request is in progress") from error
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _ask(self, kind: str, table: str, serve: Callable[[Bucket, str], Any]) -> Any:
        store, key = self._client.store, pointer_key(self.name, table)
        return store.request(kind, key, lambda: serve(store.bucket, key))


def _current(get: Callable[[str], Object | None], key: str) -> tuple[Object, str, TableMetadata] | None:
    """The pointer with this key, the metadata file that it names, and what stands there."""
    pointer = get(key)
    if pointer is None:
        return None
    location = pointer.data.decode()
    found = get(key_of(location))
    assert found is not None, "no client deletes metadata files here"
    return pointer, location, _parsed(found.data)


def _made(
    metadata: TableMetadata,
    location: str,
    requirements: tuple[TableRequirement, ...],
    updates: tuple[TableUpdate, ...],
    now: float,
) -> TableMetadata:
    """The next version, if all requirements hold. Its time is simulated, and does not go back."""
    for requirement in requirements:
        requirement.validate(metadata)
    made = update_table_metadata(metadata, updates, metadata_location=location)
    now_ms = max(EPOCH_MS + round(now * 1000), metadata.last_updated_ms)
    return made.model_copy(update={"last_updated_ms": now_ms})


def _answer(metadata: TableMetadata, location: str) -> CommitTableResponse:
    return CommitTableResponse.model_validate({"metadata": metadata, "metadata-location": location})


def _location(metadata: TableMetadata, version: int, unique: str) -> str:
    return f"{metadata.location}/metadata/{version:05d}-{unique}.metadata.json"


def _encoded(metadata: TableMetadata) -> bytes:
    return metadata.model_dump_json().encode()


@lru_cache(maxsize=512)
def _parsed(data: bytes) -> TableMetadata:
    return TableMetadataUtil.parse_obj(json.loads(data))


def _name(identifier: str | Identifier) -> str:
    return identifier if isinstance(identifier, str) else identifier[-1]
