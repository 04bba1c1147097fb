"""One suite for every store: what `store.port` promises, on memory, a directory and a real S3 server."""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from bench.stores.seaweed import S3Server
from lakevilla.environment import SystemEnvironment
from lakevilla.errors import InvalidInput
from lakevilla.store.open import open_adapter, open_store
from lakevilla.store.port import Changed, Created, Exists, Replaced, Store
from lakevilla.store.prefixed import Prefixed
from lakevilla.store.probe import probe
from lakevilla.store.retry import Retrying

ODD_KEYS = [
    "a%2Fb/ü x+y@#'",
    "day=2024-01-01 00%3A00/part 1.parquet",
    "e\u0301/\u00e9",
    "日本語/🙂.json",
    "q\"uote's/<a>&b?c=d;e,f*|~^`{}[]()!$:",
    "UPPER/lower/Mixed",
    ".hidden/..dots../a.",
    "_delta_log/00000000000000000000.json",
    "a\\b",
]


@pytest.fixture
def store(any_place: tuple[str, dict[str, str]]) -> Store:
    """The bare adapter: no decorator may hide what it does."""
    return open_adapter(*any_place, SystemEnvironment())


def test_missing_object_is_none(store: Store) -> None:
    assert store.get("no/such") is None
    assert store.get_range("no/such", 0, 5) is None
    assert store.get_range("no/such", 0, 0) is None
    assert store.head("no/such") is None
    assert list(store.list("")) == []
    assert list(store.list_folders("")) == []
    store.delete("no/such")


def test_put_object_reads_back_and_is_replaced_by_the_next(store: Store) -> None:
    store.put("f/a", b"one")
    store.put("f/a", b"second")
    found = store.get("f/a")
    assert found is not None
    assert found.data == b"second"
    meta = store.head("f/a")
    assert meta is not None
    assert (meta.key, meta.size, meta.etag) == ("f/a", 6, found.etag)
    assert abs(meta.modified_ms - SystemEnvironment().now_ms()) < 60_000
    store.delete("f/a")
    assert store.get("f/a") is None


def test_empty_object_is_not_a_missing_one(store: Store) -> None:
    assert isinstance(store.create("empty", b""), Created)
    found = store.get("empty")
    assert found is not None
    assert found.data == b""
    assert store.get_range("empty", 0, 10) == b""
    assert isinstance(store.create("empty", b"x"), Exists)


@pytest.mark.parametrize(
    ("start", "length", "expected"),
    [
        (0, 3, b"012"),
        (4, 2, b"45"),
        (8, 5, b"89"),
        (10, 1, b""),
        (99, 5, b""),
        (3, 0, b""),
        (0, 10, b"0123456789"),
    ],
)
def test_range_is_cut_at_the_objects_end(store: Store, start: int, length: int, expected: bytes) -> None:
    store.put("ten", b"0123456789")
    assert store.get_range("ten", start, length) == expected


@pytest.mark.parametrize("key", ODD_KEYS)
def test_odd_key_passes_exactly(store: Store, key: str, request: pytest.FixtureRequest) -> None:
    if "\\" in key and "s3" in request.node.callspec.params.values():
        pytest.skip("SeaweedFS takes a backslash for a slash")
    assert isinstance(store.create(key, key.encode()), Created)
    found = store.get(key)
    assert found is not None
    assert found.data == key.encode()
    assert [meta.key for meta in store.list("")] == [key]
    assert [meta.key for meta in store.list(key)] == [key]
    if "/" in key:
        assert list(store.list_folders("")) == [key.split("/")[0]]
    store.delete(key)
    assert store.get(key) is None


@pytest.mark.parametrize(
    "key", ["", "/a", "a/", "a//b", ".", "a/../b", "../a", "a/./b", "a\nb", "a\x00", "\ud800"]
)
def test_unusable_key_is_refused(store: Store, key: str) -> None:
    requests: list[Callable[[], object]] = [
        lambda: store.get(key),
        lambda: store.head(key),
        lambda: store.put(key, b"x"),
        lambda: store.create(key, b"x"),
        lambda: store.replace(key, b"x", "tag"),
        lambda: store.delete(key),
    ]
    for request in requests:
        with pytest.raises(InvalidInput):
            request()
    if key != "\ud800":  # Any text may be where a listing starts.
        assert list(store.list("", key)) == []
    assert list(store.list("")) == []


@pytest.mark.parametrize("folder", ["../", "a//", "/", "a/../", "./"])
def test_unusable_folder_is_refused(store: Store, folder: str) -> None:
    with pytest.raises(InvalidInput):
        list(store.list(folder))
    with pytest.raises(InvalidInput):
        store.list_folders(folder)
    with pytest.raises(InvalidInput):
        store.list_folders("no-slash")


def test_create_of_a_taken_key_leaves_it_alone(store: Store) -> None:
    created = store.create("k", b"first")
    assert isinstance(created, Created)
    assert store.create("k", b"other") == Exists()
    assert store.create("k", b"first") == Exists()
    found = store.get("k")
    assert found is not None
    assert (found.data, found.etag) == (b"first", created.etag)


def test_replace_with_the_tag_of_create_get_head_list_or_replace_succeeds(store: Store) -> None:
    created = store.create("k", b"0")
    assert isinstance(created, Created)
    first = store.replace("k", b"1", created.etag)
    assert isinstance(first, Replaced)
    second = store.replace("k", b"2", first.etag)
    assert isinstance(second, Replaced)
    found = store.get("k")
    assert found is not None
    assert isinstance(store.replace("k", b"3", found.etag), Replaced)
    meta = store.head("k")
    assert meta is not None
    assert isinstance(store.replace("k", b"4", meta.etag), Replaced)
    (listed,) = store.list("k")
    assert isinstance(store.replace("k", b"5", listed.etag), Replaced)
    last = store.get("k")
    assert last is not None
    assert last.data == b"5"


def test_replace_of_a_changed_or_missing_object_writes_nothing(store: Store) -> None:
    created = store.create("k", b"one")
    assert isinstance(created, Created)
    store.put("k", b"two")
    assert store.replace("k", b"six", created.etag) == Changed()
    found = store.get("k")
    assert found is not None
    assert found.data == b"two"
    store.delete("k")
    assert store.replace("k", b"six", found.etag) == Changed()
    assert store.get("k") is None


def test_quick_rewrites_of_equal_size_never_repeat_a_tag(store: Store) -> None:
    created = store.create("k", b"000")
    assert isinstance(created, Created)
    tags = [created.etag]
    for number in range(1, 200):
        replaced = store.replace("k", f"{number:03d}".encode(), tags[-1])
        assert isinstance(replaced, Replaced)
        tags.append(replaced.etag)
    assert len(set(tags)) == 200


def test_listing_is_in_the_order_of_whole_keys(store: Store) -> None:
    keys = [
        "B",
        "a-b/x",
        "a.json",
        "a/x",
        "a/y-z/1",
        "a/y/z",
        "a0",
        "b/c",
        "c d/e",
        "c/e",
        "z",
        "ü",
        "\uffee",
        "🙂",
    ]
    for key in reversed(keys):
        store.put(key, key.encode())
    assert sorted(keys, key=str.encode) == keys
    assert [meta.key for meta in store.list("")] == keys
    assert [meta.size for meta in store.list("")] == [len(key.encode()) for key in keys]
    for start in [*keys, "A", "a", "a-", "a-b", "a/", "a/y", "c", "zzz", "\U0010ffff"]:
        assert [meta.key for meta in store.list("", start)] == [key for key in keys if key > start], start
        for prefix in ["a", "a/", "a/y", "a-b/", "c", "B", "nothing", "nothing/at/all"]:
            wanted = [key for key in keys if key > start and key.startswith(prefix)]
            assert [meta.key for meta in store.list(prefix, start)] == wanted, (prefix, start)


def test_folders_are_the_names_directly_below(store: Store) -> None:
    for key in ["top", "db.t/_delta_log/0", "db.t/x", "Ü b/y/z", "_lakevilla/global/HEAD.json"]:
        store.put(key, b"")
    assert list(store.list_folders("")) == ["_lakevilla", "db.t", "Ü b"]
    assert list(store.list_folders("db.t/")) == ["_delta_log"]
    assert list(store.list_folders("Ü b/y/")) == []


def test_listing_of_many_pages_is_whole_and_can_start_anywhere(store: Store) -> None:
    keys = [f"log/{number:020d}.json" for number in range(2205)]
    environment = SystemEnvironment()
    environment.fan_out([lambda key=key: store.put(key, b"") for key in keys])
    assert [meta.key for meta in store.list("log/")] == keys
    assert [meta.key for meta in store.list("log/", keys[1100])] == keys[1101:]
    assert [meta.key for meta in store.list("log/0000000000000000210")] == keys[2100:2110][:10]
    assert next(store.list("log/", keys[2203])).key == keys[2204]


def test_large_object_arrives_whole(store: Store) -> None:
    data = bytes(range(256)) * (12 * 4096)
    store.put("large", data)
    found = store.get("large")
    assert found is not None
    assert found.data == data
    assert store.get_range("large", 5_000_000, 7) == data[5_000_000:5_000_007]


def test_view_below_a_prefix_sees_only_its_own(store: Store) -> None:
    view = Prefixed(store, "db/table")
    store.put("db/table2/x", b"")
    assert isinstance(view.create("a/k", b"1"), Created)
    found = store.get("db/table/a/k")
    assert found is not None
    assert isinstance(view.replace("a/k", b"22", found.etag), Replaced)
    view.put("b", b"")
    assert [meta.key for meta in view.list("")] == ["a/k", "b"]
    assert [meta.key for meta in view.list("", "a/k")] == ["b"]
    assert list(view.list_folders("")) == ["a"]
    head = view.head("a/k")
    assert head is not None
    assert (head.key, head.size) == ("a/k", 2)
    assert view.get_range("a/k", 1, 1) == b"2"
    assert view.url == f"{store.url}/db/table"
    view.delete("a/k")
    assert view.get("a/k") is None


def test_honest_store_passes_the_probe_and_keeps_no_trace(store: Store) -> None:
    probe(store, SystemEnvironment())
    assert list(store.list("")) == []


# Races.

THREADS = 16
PROCESSES = 4


def _rounds(store_url: str) -> int:
    # SeaweedFS makes the losers of a race wait for whole seconds, so there are fewer rounds on it.
    return 3 if store_url.startswith("s3://") else 25


def test_threads_race_on_create_and_one_wins_each_time(store: Store) -> None:
    rounds = _rounds(store.url)
    patient = Retrying(store, SystemEnvironment())
    barrier = Barrier(THREADS)

    def rival(me: int) -> list[bool]:
        return _create_rounds(patient, barrier, me, rounds)

    with ThreadPoolExecutor(THREADS) as pool:
        wins = list(pool.map(rival, range(THREADS)))
    _check_creates(store, wins, rounds)


def test_threads_race_on_replace_and_one_wins_each_time(store: Store) -> None:
    rounds = _rounds(store.url)
    patient = Retrying(store, SystemEnvironment())
    store.put("counter", b"start")
    barrier = Barrier(THREADS)

    def rival(me: int) -> list[bool]:
        return _replace_rounds(patient, barrier, me, rounds)

    with ThreadPoolExecutor(THREADS) as pool:
        wins = list(pool.map(rival, range(THREADS)))
    assert [sum(won) for won in zip(*wins, strict=True)] == [1] * rounds


@pytest.mark.parametrize("kind", ["directory", "s3"])
def test_processes_race_and_one_wins_each_time(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url, options = str(tmp_path / "store"), dict[str, str]()
    if kind == "s3":
        server: S3Server = request.getfixturevalue("s3")
        url, options = server.new_url(), server.storage_options
    rounds = _rounds(url)
    store = open_store(url, options)
    store.put("counter", b"start")
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(PROCESSES)
    answers = context.Queue()
    rivals = [
        context.Process(target=_rival_process, args=(url, options, barrier, me, rounds, answers))
        for me in range(PROCESSES)
    ]
    for rival in rivals:
        rival.start()
    results = dict(answers.get(timeout=60) for _ in rivals)
    for rival in rivals:
        rival.join(60)
        assert rival.exitcode == 0
    _check_creates(store, [results[me][0] for me in range(PROCESSES)], rounds)
    assert [sum(won) for won in zip(*(results[me][1] for me in range(PROCESSES)), strict=True)] == [
        1
    ] * rounds


def _rival_process(url: str, options: dict[str, str], barrier, me: int, rounds: int, answers) -> None:  # type: ignore[no-untyped-def]
    store = open_store(url, options)
    answers.put(
        (me, (_create_rounds(store, barrier, me, rounds), _replace_rounds(store, barrier, me, rounds)))
    )


def _create_rounds(store: Store, barrier: Barrier, me: int, rounds: int) -> list[bool]:
    won = []
    for number in range(rounds):
        barrier.wait(60)
        won.append(isinstance(store.create(f"race/{number:03d}", f"{me}".encode()), Created))
    return won


def _replace_rounds(store: Store, barrier: Barrier, me: int, rounds: int) -> list[bool]:
    won = []
    for number in range(rounds):
        barrier.wait(60)
        found = store.get("counter")
        assert found is not None
        barrier.wait(60)
        won.append(isinstance(store.replace("counter", f"{number}:{me}".encode(), found.etag), Replaced))
    return won


def _check_creates(store: Store, wins: list[list[bool]], rounds: int) -> None:
    for number in range(rounds):
        winners = [me for me, won in enumerate(wins) if won[number]]
        found = store.get(f"race/{number:03d}")
        assert found is not None
        assert [str(winner).encode() for winner in winners] == [found.data]
