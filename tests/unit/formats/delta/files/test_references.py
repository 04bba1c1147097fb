"""Which files a Delta log names, however it spells them: paths, vectors, checkpoints, other places."""

import pyarrow as pa
import pytest

from lakevilla.errors import Corrupt
from lakevilla.formats.delta.log.paths import entry_key
from lakevilla.store.port import Store
from tests.support.hooked import Hooked
from tests.unit.formats.delta import raw_log
from tests.unit.formats.delta.raw_log import PROTOCOL, add, metadata, remove, write_entry

FUTURE_MS = 4_000_000_000_000
VECTOR = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40}
VECTOR_FILE = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


@pytest.fixture
def store() -> Store:
    return raw_log.memory()


def _needed(store: Store, keys: list[str], since_ms: int = 0) -> list[str]:
    table = raw_log.table(store)
    newest = table.latest()
    assert newest is not None
    flags = table.references(newest, since_ms).needed(pa.array(keys, pa.string())).to_pylist()
    return [key for key, flag in zip(keys, flags, strict=True) if flag]


def _removed(store: Store, keys: list[str]) -> list[str]:
    table = raw_log.table(store)
    newest = table.latest()
    assert newest is not None
    flags = table.references(newest, FUTURE_MS).removed(pa.array(keys, pa.string())).to_pylist()
    return [key for key, flag in zip(keys, flags, strict=True) if flag]


def test_live_files_are_needed_by_their_keys_not_by_their_encoded_paths(store: Store) -> None:
    write_entry(store, 0, PROTOCOL, metadata(("a", "long")), add("x.parquet"), add("d=a%20b/y.parquet"))
    keys = ["x.parquet", "d=a b/y.parquet", "d=a%20b/y.parquet", "y.parquet"]
    assert _needed(store, keys, FUTURE_MS) == ["x.parquet", "d=a b/y.parquet"]


@pytest.mark.parametrize(
    "path",
    [
        "s3a://bucket/table/sub/x%20y.parquet",
        "file:/elsewhere/x%20y.parquet",
        "./sub/x%20y.parquet",
        "sub//x%20y.parquet",
    ],
)
def test_file_spelled_in_a_way_that_cannot_be_compared_protects_its_name(store: Store, path: str) -> None:
    """The same place may have several names; a file is never deleted because of that."""
    write_entry(store, 0, PROTOCOL, metadata(("a", "long")), add(path))
    assert _needed(store, ["sub/x y.parquet", "x y.parquet", "sub/z.parquet"], FUTURE_MS) == [
        "sub/x y.parquet",
        "x y.parquet",
    ]


def test_removed_files_are_needed_as_long_as_their_entry_is_young(store: Store) -> None:
    write_entry(store, 0, PROTOCOL, metadata(("a", "long")), add("x.parquet"), add("y.parquet"))
    write_entry(store, 1, remove("x.parquet"))
    keys = ["x.parquet", "y.parquet", "z.parquet"]
    assert _needed(store, keys) == ["x.parquet", "y.parquet"]
    assert _needed(store, keys, FUTURE_MS) == ["y.parquet"]
    assert _removed(store, keys) == ["x.parquet"]


def test_deletion_vector_is_needed_as_long_as_an_action_that_names_it(store: Store) -> None:
    inline = {"storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f"}
    other = {**VECTOR, "pathOrInlineDv": "vBn[lx{q8@P<9BNH/isA"}
    write_entry(store, 0, PROTOCOL, metadata(("a", "long")), add("x.parquet", deletionVector=VECTOR))
    assert _needed(store, [VECTOR_FILE, "x.parquet"], FUTURE_MS) == [VECTOR_FILE, "x.parquet"]
    write_entry(
        store,
        1,
        remove("x.parquet", deletionVector=VECTOR),
        add("x.parquet", deletionVector=other),
        add("i.parquet", deletionVector=inline),
    )
    assert _needed(store, [VECTOR_FILE, "x.parquet"]) == [VECTOR_FILE, "x.parquet"]
    assert _needed(store, [VECTOR_FILE, "x.parquet"], FUTURE_MS) == ["x.parquet"]
    assert _removed(store, [VECTOR_FILE]) == [VECTOR_FILE]


def test_tombstones_of_a_checkpoint_count_by_their_own_time(store: Store) -> None:
    actions = [
        PROTOCOL,
        metadata(("a", "long")),
        add("x.parquet"),
        remove("old.parquet", deletionTimestamp=1000),
        remove("young.parquet", deletionTimestamp=FUTURE_MS + 1),
    ]
    raw_log.write_checkpoint(store, 3, *actions)
    keys = ["x.parquet", "old.parquet", "young.parquet"]
    assert _needed(store, keys, FUTURE_MS) == ["x.parquet", "young.parquet"]
    assert _removed(store, keys) == ["old.parquet"]


def test_entries_written_since_the_version_was_read_count_too(store: Store) -> None:
    write_entry(store, 0, PROTOCOL, metadata(("a", "long")))
    table = raw_log.table(store)
    newest = table.latest()
    assert newest is not None
    write_entry(store, 1, add("x.parquet"))
    references = table.references(newest, FUTURE_MS)
    write_entry(store, 2, add("y.parquet"))
    keys = pa.array(["x.parquet", "y.parquet"])
    assert references.needed(keys).to_pylist() == [True, False]
    assert references.named_since(keys).to_pylist() == [False, True]
    assert references.named_since(keys).to_pylist() == [False, True]


def test_young_entry_that_vanishes_is_not_passed_over(store: Store) -> None:
    write_entry(store, 0, PROTOCOL, metadata(("a", "long")))
    write_entry(store, 1, remove("x.parquet"))
    newest = raw_log.table(store).latest()
    assert newest is not None
    hooked = Hooked(store)
    hooked.hook = lambda kind, key: store.delete(key) if (kind, key) == ("get", entry_key(1)) else None
    table = raw_log.table(hooked)
    with pytest.raises(Corrupt, match="vanished"):
        table.references(newest, 0)
