"""Delta tables of very many files: a real log and checkpoint over files of which only one exists.

What a client does before it reads data (find the checkpoint, replay it, choose files) does not touch data
files, so they need not be there. The one file that a point read must end at is real: a client that prunes
badly fails on a missing file instead of being slow. The checkpoint is of the classic kind, in one part, with
statistics of every column as JSON text, as deltalake and Spark write it; its rows are in no order.
"""

import json
import uuid
from dataclasses import dataclass
from typing import Any

import numpy as np
import obstore
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from obstore.store import LocalStore, ObjectStore, S3Store

from bench.data.rows import accounts
from bench.stores.places import Place

ROWS_PER_FILE = 1000
_VERSION = 10
_TIME_MS = 1_700_000_000_000

_STRINGS = pa.map_(pa.string(), pa.string())
_ADD = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", _STRINGS),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
    ]
)
_REMOVE = pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())])
_PROTOCOL = pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])
_METADATA = pa.struct(
    [
        ("id", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", _STRINGS)])),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.string())),
        ("configuration", _STRINGS),
        ("createdTime", pa.int64()),
    ]
)


@dataclass(frozen=True)
class BigTable:
    """Where a table of many files lies, and the key whose row is in the file that exists."""

    path: str
    files: int
    key: int


def write_big_table(place: Place, path: str, files: int) -> BigTable:
    """Write a table of `files` files whose log holds a checkpoint and one entry."""
    real = files // 2
    names = _names(files)
    data = _parquet(accounts(_keys(real)))
    checkpoint = _parquet(_checkpoint(names, len(data)))
    log = f"{path}/_delta_log"
    store = _client(place)
    obstore.put(store, f"{path}/{names[real]}", data)
    obstore.put(store, f"{log}/{_VERSION:020}.checkpoint.parquet", checkpoint)
    hint = {"version": _VERSION, "size": files + 2, "sizeInBytes": len(checkpoint), "numOfAddFiles": files}
    obstore.put(store, f"{log}/_last_checkpoint", json.dumps(hint).encode())
    entry = {"commitInfo": {"timestamp": _TIME_MS, "operation": "WRITE", "operationParameters": {}}}
    obstore.put(store, f"{log}/{_VERSION:020}.json", json.dumps(entry).encode())
    return BigTable(path, files, _keys(real)[7])


def _client(place: Place) -> ObjectStore:
    if "://" in place.root:
        bucket, _, prefix = place.root.removeprefix("s3://").partition("/")
        options: Any = {name.lower(): value for name, value in place.storage_options.items()}
        options.pop("aws_allow_http")
        return S3Store(bucket, prefix=prefix, config=options, client_options={"allow_http": True})
    return LocalStore(place.root, mkdir=True)


def _keys(file: int) -> range:
    return range(file * ROWS_PER_FILE, (file + 1) * ROWS_PER_FILE)


def _names(files: int) -> list[str]:
    chance = np.random.default_rng(files).bytes(16 * files)
    ids = (uuid.UUID(bytes=chance[at : at + 16], version=4) for at in range(0, len(chance), 16))
    return [f"part-{place:05d}-{name}-c000.snappy.parquet" for place, name in enumerate(ids)]


def _checkpoint(names: list[str], file_bytes: int) -> pa.Table:
    files = len(names)
    order = np.random.default_rng(files).permutation(files)
    no_partition = pa.MapArray.from_arrays(np.zeros(files + 1, np.int32), _text([]), _text([]))
    adds = pa.StructArray.from_arrays(
        [
            _text(names).take(order),
            no_partition,
            pa.array(np.full(files, file_bytes)),
            pa.array(np.full(files, _TIME_MS)),
            pa.array(np.ones(files, np.bool_)),
            _statistics(files).take(order),
        ],
        fields=list(_ADD),
    )
    protocol: dict[str, object] = {"minReaderVersion": 1, "minWriterVersion": 2}
    return pa.table(
        {
            "add": pa.chunked_array([pa.nulls(2, _ADD), adds]),
            "remove": pa.nulls(files + 2, _REMOVE),
            "metaData": _first_rows([None, _metadata()], _METADATA, files),
            "protocol": _first_rows([protocol, None], _PROTOCOL, files),
        }
    )


def _first_rows(rows: list[dict[str, object] | None], kind: pa.DataType, files: int) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(rows, kind), pa.nulls(files, kind)])


def _metadata() -> dict[str, object]:
    types = {"id": "long", "owner": "string", "city": "string", "balance": "double"}
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in types.items()]
    return {
        "id": str(uuid.UUID(int=7, version=4)),
        "format": {"provider": "parquet", "options": []},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": [],
        "createdTime": _TIME_MS,
    }


def _statistics(files: int) -> pa.Array:
    """The statistics of every file as JSON text, which agree with the rows that the files would hold."""
    first = np.arange(files, dtype=np.int64) * ROWS_PER_FILE
    last = first + ROWS_PER_FILE - 1
    parts = [
        f'{{"numRecords":{ROWS_PER_FILE},"minValues":{{"id":',
        *_bounds(first, '"amber"'),
        '},"maxValues":{"id":',
        *_bounds(last, '"heath"'),
        '},"nullCount":{"id":0,"owner":0,"city":0,"balance":0}}',
    ]
    return pc.binary_join_element_wise(*parts, "")


def _bounds(keys: np.ndarray, city: str) -> list[object]:
    text = pa.array(keys).cast(pa.string())
    owner = pc.utf8_lpad(text, 6, "0")
    return [text, ',"owner":"owner ', owner, f'","city":{city},"balance":', _text(keys * 1.25)]


def _text(values: object) -> pa.Array:
    return pa.array(values, pa.string()) if isinstance(values, list) else pa.array(values).cast(pa.string())


def _parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="snappy")
    return bytes(sink.getvalue())
