"""States that follow each other: equal to a cold read, and cheap."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakevilla.formats.delta.files.blocks import EntryBlock
from lakevilla.formats.delta.log import replay
from lakevilla.formats.delta.log.actions import Commit
from lakevilla.formats.delta.log.entry import commit_of, identity_of
from lakevilla.formats.delta.log.replay import LiveBlock, State
from tests.unit.formats.delta.raw_log import PROTOCOL, add, memory, metadata, remove, table, write_entry


def vector(name: str) -> dict[str, Any]:
    return {"storageType": "i", "pathOrInlineDv": name, "sizeInBytes": 4, "cardinality": 1}


def identities(state: State) -> set[str]:
    found = set()
    for block in state.folded().blocks:
        for _, batch, living in block.batches():
            rows = batch.to_pylist()
            found |= {identity_of(row) for row, alive in zip(rows, living, strict=True) if alive}
    return found


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 8), st.integers(0, 2), st.booleans()), max_size=4), max_size=12
    )
)
@settings(max_examples=60, deadline=None)
def test_any_history_leaves_the_files_that_plain_replay_leaves(
    history: list[list[tuple[int, int, bool]]],
) -> None:
    expected: set[str] = {"base0", "base1", "base2"}
    state = State(0, blocks=(LiveBlock.of(EntryBlock([add(name)["add"] for name in sorted(expected)])),))
    for version, changes in enumerate(history, 1):
        actions = []
        for number, variant, adding in changes:
            path = f"base{number}" if number < 3 else f"f{number}"
            more = {"deletionVector": vector(str(variant))} if variant else {}
            actions.append(add(path, **more) if adding else remove(path, **more))
        commit = commit_of(version, actions)
        for gone in commit.removes:
            expected.discard(identity_of(gone))
        expected |= {identity_of(added) for added in commit.adds}
        state = state.after([commit])
        assert state.version == version
    assert identities(state) == expected


def test_step_by_step_and_all_at_once_give_the_same_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "_FOLD_FILES", 7)
    monkeypatch.setattr(replay, "_FOLD_BLOCKS", 3)
    store, rng, live = memory(), random.Random(5), ["f0"]
    write_entry(store, 0, PROTOCOL, metadata(("id", "long")), add("f0"))
    delta = table(store)
    warm = delta.latest()
    for version in range(1, 60):
        gone = rng.sample(live, min(len(live), rng.randrange(3)))
        live = [name for name in live if name not in gone] + [f"f{version}", f"g{version}"]
        fresh = (add(f"f{version}"), add(f"g{version}"))
        write_entry(store, version, *(remove(name) for name in gone), *fresh)
        warm = delta.latest(warm)
    cold = table(store).latest()
    assert warm is not None
    assert cold is not None
    assert sorted(file.key for file in warm.files()) == sorted(live)
    assert sorted(file.key for file in cold.files()) == sorted(live)
    assert len(warm.state.blocks) <= 4


def test_older_snapshot_does_not_change_when_a_newer_one_is_made() -> None:
    store = memory()
    write_entry(store, 0, PROTOCOL, metadata(("id", "long")), add("a"), add("b"))
    first = table(store).latest()
    assert first is not None
    second = first.advance([Commit(1, removes=(remove("a")["remove"],), adds=(add("c")["add"],))])
    assert [file.key for file in first.files()] == ["a", "b"]
    assert sorted(file.key for file in second.files()) == ["b", "c"]
    assert second.layout is first.layout


def test_file_with_another_vector_is_another_file() -> None:
    store = memory()
    write_entry(store, 0, PROTOCOL, metadata(("id", "long")), add("a"))
    write_entry(store, 1, remove("a"), add("a", deletionVector=vector("x")))
    snapshot = table(store).latest()
    assert snapshot is not None
    (file,) = snapshot.files()
    assert file.identity == "a?dv=ix"
    assert file.deletes is not None
    assert file.entry["deletionVector"]["pathOrInlineDv"] == "x"


def test_transactions_and_domains_keep_the_last_word() -> None:
    state = State.empty().after(
        [
            commit_of(
                0,
                [
                    {"txn": {"appId": "a", "version": 1}},
                    {"domainMetadata": {"domain": "d", "configuration": "1"}},
                ],
            ),
            commit_of(1, [{"txn": {"appId": "a", "version": 2}}, {"txn": {"appId": "b", "version": 7}}]),
            commit_of(2, [{"domainMetadata": {"domain": "d", "configuration": "", "removed": True}}]),
        ]
    )
    assert {name: body["version"] for name, body in state.txns.items()} == {"a": 2, "b": 7}
    assert state.domains == {}


def test_paths_are_decoded_once_and_stay_below_the_root() -> None:
    store = memory()
    elsewhere = "s3://bucket/a%20b/f.parquet"
    write_entry(
        store,
        0,
        PROTOCOL,
        metadata(("id", "long")),
        add("a%2520b/c%3Dd"),
        add(elsewhere),
        add(f"{store.url}/x%20y"),
    )
    snapshot = table(store).latest()
    assert snapshot is not None
    assert sorted(file.key for file in snapshot.files()) == ["a%20b/c=d", elsewhere, "x y"]
