"""The data files in a table's folder, in columns, and how old they are by the store's own clock."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.environment import Environment
from lakevilla.errors import Unavailable
from lakevilla.store import keys
from lakevilla.store.port import Meta, Store

FILES = pa.schema([("key", pa.string()), ("size", pa.int64()), ("modified_ms", pa.int64())])

_CHUNK = 64 * 1024


def list_files(store: Store) -> pa.Table:
    """Everything below the store's root, as `FILES`."""
    batches = [_batch(metas) for metas in _chunks(store.list(""))]
    return pa.Table.from_batches(batches, FILES)


def data_files(files: pa.Table, partition_fields: Sequence[str], others: Iterable[str]) -> pa.Table:
    """Those that may be data files of this table.

    Left out is what Delta hides, names and folders that begin with `_` or `.` (but not those of partition
    fields, and not the files of a change data feed), and what is below `others`: folders that belong to
    another table.
    """
    paths = pc.replace_substring_regex(files.column("key"), rf"^{keys.FEED_FOLDER}", "")
    if partition_fields:
        names = "|".join(re.escape(name) for name in partition_fields)
        paths = pc.replace_substring_regex(paths, rf"(^|/)({names})=[^/]*", r"\1partition")
    return without(files.filter(pc.invert(pc.match_substring_regex(paths, r"(^|/)[_.]"))), others)


def without(files: pa.Table, folders: Iterable[str]) -> pa.Table:
    """The files that are in none of these folders."""
    for folder in folders:
        files = files.filter(pc.invert(pc.starts_with(files.column("key"), folder)))
    return files


def tables_below(files: pa.Table, log_folders: Iterable[str]) -> set[str]:
    """The folders below the root that have their own log: other tables, whose files are not ours."""
    found: set[str] = set()
    for folder in log_folders:
        logs = pc.filter(files.column("key"), pc.match_substring(files.column("key"), f"/{folder}"))
        found |= {key.partition(f"/{folder}")[0] + "/" for key in pc.unique(logs).to_pylist()}
    return found


def store_now_ms(store: Store, environment: Environment) -> int:
    """What time it is where the files' times come from: never later than the store says.

    A machine whose clock is ahead would take fresh files for old ones. So the store is asked, by an object
    that is written and deleted again.
    """
    key = keys.probe(environment.new_id())
    try:
        store.put(key, b"{}")
        meta = store.head(key)
    finally:
        store.delete(key)
    if meta is None:
        raise Unavailable(f"{store.url}/{key} was written and cannot be found: is the store consistent?")
    return min(environment.now_ms(), meta.modified_ms)


@dataclass(frozen=True)
class RunBegin:
    """When a run of vacuum began, by its client's clocks.

    All ages are those of this moment. For a client that is suspended after it settled all decided entries, or
    decided which instants are kept, the retention would pass meanwhile for what later entries and these
    instants need.
    """

    environment: Environment
    is_dry: bool
    now_ms: int
    elapsed: float

    @staticmethod
    def now(environment: Environment, is_dry: bool) -> "RunBegin":
        return RunBegin(environment, is_dry, environment.now_ms(), environment.elapsed())

    def by(self, store: Store) -> int:
        """This moment by a store's clock, or earlier. A dry run writes nothing, and goes by its own clock."""
        environment = self.environment
        now_ms = environment.now_ms() if self.is_dry else store_now_ms(store, environment)
        passed_ms = int((environment.elapsed() - self.elapsed) * 1000)
        return now_ms - max(0, passed_ms, environment.now_ms() - self.now_ms)


def _chunks(metas: Iterable[Meta]) -> Iterator[list[Meta]]:
    chunk: list[Meta] = []
    for meta in metas:
        chunk.append(meta)
        if len(chunk) == _CHUNK:
            yield chunk
            chunk = []
    yield chunk


def _batch(metas: list[Meta]) -> pa.RecordBatch:
    columns = [[m.key for m in metas], [m.size for m in metas], [m.modified_ms for m in metas]]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, FILES, strict=True)], schema=FILES
    )
