"""Which files of the log make a version: hints, checkpoints of all kinds, gaps, and what it costs to ask."""

import json

import pytest

from lakevilla.errors import Corrupt, InvalidInput, Unsupported
from lakevilla.formats.delta.log.paths import LAST_CHECKPOINT, LOG, checkpoint_part_keys, entry_key
from lakevilla.store.metered import KINDS, Meter
from lakevilla.store.port import Store
from tests.unit.formats.delta.raw_log import (
    PROTOCOL,
    add,
    checkpoint_bytes,
    memory,
    metadata,
    remove,
    table,
    write_checkpoint,
    write_entry,
)

DEFINITION = (PROTOCOL, metadata(("id", "long")))


def paths(store: Store, version: int | None = None) -> list[str]:
    snapshot = table(store).latest() if version is None else table(store).at_version(version)
    assert snapshot is not None
    return sorted(file.key for file in snapshot.files())


def write_log(store: Store, upto: int, start: int = 0) -> None:
    """Version n adds the file f<n>."""
    for version in range(start, upto + 1):
        write_entry(store, version, *(DEFINITION if version == 0 else ()), add(f"f{version}"))


def adds_until(version: int) -> list[dict[str, object]]:
    return [add(f"f{number}") for number in range(version + 1)]


def names_until(version: int) -> list[str]:
    return sorted(f"f{number}" for number in range(version + 1))


def spent(meter: Meter, before: dict[str, int]) -> dict[str, int]:
    now = meter.snapshot()
    return {kind: now[kind] - before[kind] for kind in KINDS if now[kind] > before[kind]}


def test_place_without_a_log_has_no_table() -> None:
    store = memory()
    store.put("_delta_log/notes.txt", b"x")
    assert table(store).latest() is None
    with pytest.raises(InvalidInput):
        table(store).at_version(0)


@pytest.mark.parametrize(
    "hint",
    [
        None,
        b"",
        b"{",
        b"[1]",
        b'{"version": "x"}',
        b'{"version": -1}',
        b'{"version": 1e400}',
        b'{"version": 4}',
        b'{"version": 2}',
        b'{"version": 3, "parts": 5}',
        b'{"version": 900}',
        b'{"version": 4, "v2Checkpoint": {"path": "../../else.parquet"}}',
        b'{"version": 4, "sizeInBytes": 99999999999}',
    ],
)
def test_hint_of_any_quality_leads_to_the_same_files(hint: bytes | None) -> None:
    store = memory()
    write_log(store, 6)
    write_checkpoint(store, 2, *DEFINITION, *adds_until(2))
    write_checkpoint(store, 4, *DEFINITION, *adds_until(4))
    if hint is not None:
        store.put(LAST_CHECKPOINT, hint)
    assert paths(store) == names_until(6)
    for version in range(7):
        assert paths(store, version) == names_until(version)


def test_entries_below_a_checkpoint_may_be_gone() -> None:
    store = memory()
    write_log(store, 6, start=5)
    write_checkpoint(store, 4, *DEFINITION, *adds_until(4))
    assert paths(store) == names_until(6)
    assert paths(store, 4) == names_until(4)
    with pytest.raises(InvalidInput, match="versions 4 to 6"):
        table(store).at_version(3)
    with pytest.raises(InvalidInput, match="versions 4 to 6"):
        table(store).at_version(7)


def test_checkpoint_without_its_own_entry_is_a_version() -> None:
    store = memory()
    write_checkpoint(store, 4, *DEFINITION, *adds_until(4))
    assert paths(store) == names_until(4)


@pytest.mark.parametrize("hinted", [False, True])
def test_gap_in_the_log_is_corrupt(hinted: bool) -> None:
    store = memory()
    write_log(store, 6)
    write_checkpoint(store, 2, *DEFINITION, *adds_until(2))
    if hinted:
        store.put(LAST_CHECKPOINT, b'{"version": 2}')
    store.delete(entry_key(4))
    with pytest.raises(Corrupt, match="entry 4 is missing"):
        table(store).latest()
    assert paths(store, 3) == names_until(3)


def test_log_that_does_not_start_at_zero_is_corrupt() -> None:
    store = memory()
    write_log(store, 3)
    store.delete(entry_key(0))
    with pytest.raises(Corrupt):
        table(store).latest()


def test_multi_part_checkpoint_counts_only_when_complete() -> None:
    store = memory()
    write_log(store, 4)
    first, second = checkpoint_part_keys(3, 2)
    store.put(second, checkpoint_bytes(*adds_until(3)[2:]))
    assert paths(store) == names_until(4)
    store.put(first, checkpoint_bytes(*DEFINITION, *adds_until(3)[:2]))
    for version in range(4):
        store.delete(entry_key(version))
    assert paths(store) == names_until(4)
    store.put(LAST_CHECKPOINT, b'{"version": 3, "parts": 2}')
    assert paths(store) == names_until(4)


@pytest.mark.parametrize("form", ["json", "parquet"])
@pytest.mark.parametrize("hinted", [False, True])
def test_v2_checkpoint_reads_its_sidecars(form: str, hinted: bool) -> None:
    store = memory()
    write_log(store, 5, start=4)
    sidecars = []
    for name, files in (("a.parquet", adds_until(3)[:3]), ("b.parquet", adds_until(3)[3:])):
        data = checkpoint_bytes(*files)
        store.put(f"{LOG}_sidecars/{name}", data)
        sidecars.append({"sidecar": {"path": name, "sizeInBytes": len(data)}})
    key = f"{3:020}.checkpoint.0a0a0a0a-1111-2222-3333-444444444444.{form}"
    actions = (*DEFINITION, *sidecars)
    lines = "\n".join(json.dumps(action) for action in actions).encode()
    store.put(LOG + key, lines if form == "json" else checkpoint_bytes(*actions))
    if hinted:
        store.put(LAST_CHECKPOINT, json.dumps({"version": 3, "v2Checkpoint": {"path": key}}).encode())
    assert paths(store) == names_until(5)
    store.delete(f"{LOG}_sidecars/b.parquet")
    with pytest.raises(Corrupt, match="missing"):
        table(store).latest()


def test_compacted_entries_stand_for_the_entries_that_they_replace() -> None:
    store = memory()
    write_log(store, 1)
    write_entry(store, 2, remove("f0"), add("g"))
    write_entry(store, 3, remove("g"), add("h"))
    write_log(store, 4, start=4)
    before = [paths(store, version) for version in range(5)]
    lines = (remove("f0"), remove("g"), add("h"), add("f1"))
    compacted = "\n".join(json.dumps(line) for line in lines).encode()
    store.put(f"{LOG}{1:020}.{3:020}.compacted.json", compacted)
    for version in (1, 2, 3):
        held = store.get(entry_key(version))
        assert [paths(store, v) for v in range(5)] == before
        store.put(entry_key(version), b"not read any more" if version < 3 else held.data if held else b"")
        assert paths(store) == before[4]
        store.put(entry_key(version), held.data if held else b"")


def test_checkpoint_that_is_not_parquet_is_corrupt() -> None:
    store = memory()
    write_log(store, 3)
    store.put(f"{LOG}{2:020}.checkpoint.parquet", b"PAR1 nonsense PAR1")
    with pytest.raises(Corrupt):
        table(store).latest()


@pytest.mark.parametrize(
    "text", [b"{", b"\xff", b"[]", b'{"add": 5}', b'{"add": {"path": 7}}', b'{"protocol": {}}']
)
def test_malformed_entry_is_corrupt(text: bytes) -> None:
    store = memory()
    write_log(store, 2)
    store.put(entry_key(3), text)
    with pytest.raises(Corrupt):
        table(store).latest()


def test_table_that_becomes_unreadable_is_refused_on_the_way() -> None:
    store = memory()
    write_log(store, 2)
    base = table(store).latest()
    write_entry(store, 3, {"protocol": {"minReaderVersion": 9, "minWriterVersion": 9}})
    with pytest.raises(Unsupported, match="reader version 9"):
        table(store).latest(base)


def test_cold_open_by_hint_asks_for_hint_listing_checkpoint_and_tail() -> None:
    meter = Meter()
    store = memory(meter)
    write_log(store, 6)
    write_checkpoint(store, 4, *DEFINITION, *adds_until(4))
    store.put(LAST_CHECKPOINT, b'{"version": 4}')
    before = meter.snapshot()
    assert paths(store) == names_until(6)
    assert spent(meter, before) == {"get": 4, "list": 1}


def test_current_snapshot_costs_one_get_to_confirm() -> None:
    meter = Meter()
    store = memory(meter)
    write_log(store, 6)
    delta = table(store)
    base = delta.latest()
    before = meter.snapshot()
    assert delta.latest(base) is base
    assert spent(meter, before) == {"get": 1}


@pytest.mark.parametrize("text", ["id > 0", "{}", "[]", '{"expression": 7}', "null"])
def test_invariant_in_another_form_is_read_and_refused_to_writers(text: str) -> None:
    store = memory()
    field = {"name": "id", "type": "long", "nullable": True, "metadata": {"delta.invariants": text}}
    definition = metadata()
    definition["metaData"]["schemaString"] = json.dumps({"type": "struct", "fields": [field]})
    write_entry(store, 0, PROTOCOL, definition, add("f"))
    snapshot = table(store).latest()
    assert snapshot is not None
    assert len(snapshot.files()) == 1
    with pytest.raises(Unsupported):
        snapshot.checks  # noqa: B018


def test_version_that_a_clean_up_has_reached_half_is_not_available() -> None:
    """Entries before the newest checkpoint go one by one, and an older checkpoint may still be there."""
    store = memory()
    write_log(store, 5)
    for version in (1, 4):
        write_checkpoint(store, version, *DEFINITION, *adds_until(version))
    store.delete(entry_key(2))
    with pytest.raises(InvalidInput):
        paths(store, 3)
    assert paths(store) == [f"f{number}" for number in range(6)]
