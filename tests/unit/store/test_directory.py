"""A directory as a store: crashes, permissions, links, leftovers."""

import contextlib
import errno
import fcntl
import multiprocessing
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lakevilla.environment import SystemEnvironment
from lakevilla.errors import InvalidInput, Unavailable
from lakevilla.store.adapters.directory import TEMPORARY, Directory, _folder_of
from lakevilla.store.port import Changed, Created, Exists, Replaced, Unanswered
from tests.unit.store.clocked import Clocked


@pytest.fixture
def store(tmp_path: Path) -> Directory:
    return Directory(str(tmp_path / "root"), SystemEnvironment())


def test_missing_root_is_made_by_the_first_write_only(tmp_path: Path) -> None:
    store = Directory(str(tmp_path / "a/b"), SystemEnvironment())
    assert store.get("k") is None
    assert list(store.list("")) == []
    assert store.replace("k", b"", "tag") == Changed()
    store.delete("k")
    assert not (tmp_path / "a").exists()
    store.put("k", b"")
    assert (tmp_path / "a/b/k").exists()


def test_no_temporary_file_is_left_by_any_write(store: Directory, tmp_path: Path) -> None:
    created = store.create("k", b"1")
    assert isinstance(created, Created)
    assert store.create("k", b"2") == Exists()
    assert isinstance(store.replace("k", b"3", created.etag), Replaced)
    assert store.replace("k", b"4", created.etag) == Changed()
    store.put("k", b"5")
    assert os.listdir(tmp_path / "root") == ["k"]


def test_temporary_file_of_a_crash_is_invisible(store: Directory, tmp_path: Path) -> None:
    store.put("f/k", b"")
    (tmp_path / "root" / "f" / f"{TEMPORARY}dead").write_bytes(b"half")
    assert [meta.key for meta in store.list("")] == ["f/k"]
    with pytest.raises(InvalidInput):
        store.get(f"f/{TEMPORARY}dead")


def test_folder_without_objects_is_no_folder(store: Directory, tmp_path: Path) -> None:
    store.put("a/b/k", b"")
    store.delete("a/b/k")
    assert list(store.list_folders("")) == []


def test_links_below_the_root_are_not_followed(store: Directory, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    store.put("k", b"")
    (tmp_path / "root" / "folder").symlink_to(outside)
    (tmp_path / "root" / "file").symlink_to(outside / "secret")
    for key in ("folder/secret", "file"):
        with pytest.raises(Unavailable, match="symbolic link"):
            store.get(key)
        with pytest.raises(Unavailable, match="symbolic link"):
            store.put(key, b"changed")
        with pytest.raises(Unavailable, match="symbolic link"):
            store.delete(key)
    assert [meta.key for meta in store.list("")] == ["k"]
    assert list(store.list_folders("")) == []
    assert (outside / "secret").read_bytes() == b"secret"


def test_root_that_is_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    Directory(str(tmp_path / "link"), SystemEnvironment()).put("k", b"x")
    assert (tmp_path / "real" / "k").read_bytes() == b"x"


def test_file_where_a_folder_is_needed_is_refused(store: Directory) -> None:
    store.put("a", b"")
    assert store.get("a/b") is None
    with pytest.raises(Unavailable, match="a file in place of a folder"):
        store.create("a/b", b"")
    store.put("f/x", b"")
    assert store.get("f") is None
    for write in (lambda: store.create("f", b""), lambda: store.put("f", b"")):
        with pytest.raises(Unavailable, match="a file in place of a folder"):
            write()


def test_name_too_long_for_the_file_system_is_refused(store: Directory) -> None:
    with pytest.raises(InvalidInput):
        store.put("x" * 300, b"")


READ_ONLY = """
import os, sys
from lakevilla.environment import SystemEnvironment
from lakevilla.errors import Unavailable
from lakevilla.store.adapters.directory import Directory

os.setgroups([]) if os.geteuid() == 0 else None
os.setuid(65534) if os.geteuid() == 0 else None
store = Directory(sys.argv[1], SystemEnvironment())
assert store.get("k").data == b"x"
tag = store.get("k").etag
for write in (
    lambda: store.put("k", b"y"), lambda: store.create("new", b"y"), lambda: store.replace("k", b"y", tag),
    lambda: store.delete("k"), lambda: store.put("a/b", b"y"),
):
    try:
        write()
    except Unavailable as failure:
        assert "check the permissions" in str(failure), failure
    else:
        raise SystemExit("a write to a read-only directory succeeded")
assert [meta.key for meta in store.list("")] == ["k"]
"""


def test_read_only_directory_can_be_read_and_refuses_writes() -> None:
    # Root may write anywhere, so the child becomes another user, which could not enter pytest's folders.
    with tempfile.TemporaryDirectory() as root:
        Directory(root, SystemEnvironment()).put("k", b"x")
        os.chmod(f"{root}/k", 0o444)
        os.chmod(root, 0o555)
        subprocess.run([sys.executable, "-c", READ_ONLY, root], check=True, timeout=60)
        os.chmod(root, 0o755)


def _write_beyond_the_limit(root: str) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    store = Directory(root, SystemEnvironment())
    for write in (lambda: store.put("k", bytes(5000)), lambda: store.create("n", bytes(5000))):
        try:
            write()
        except Unavailable:
            continue
        os._exit(1)
    os._exit(0)


def test_write_that_does_not_fit_leaves_nothing(store: Directory, tmp_path: Path) -> None:
    store.put("k", b"old")
    child = multiprocessing.get_context("fork").Process(
        target=_write_beyond_the_limit, args=(str(tmp_path / "root"),)
    )
    child.start()
    child.join(30)
    assert child.exitcode == 0
    found = store.get("k")
    assert found is not None
    assert found.data == b"old"
    assert os.listdir(tmp_path / "root") == ["k"]


def test_full_disk_is_unavailable(store: Directory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def no_space(file: int, data: object) -> int:
        raise OSError(28, "No space left on device")

    store.put("k", b"old")
    monkeypatch.setattr(os, "write", no_space)
    with pytest.raises(Unavailable, match="free some space"):
        store.create("n", b"new")
    assert os.listdir(tmp_path / "root") == ["k"]


def test_flush_that_fails_after_the_write_is_unanswered(
    store: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("k", b"old")
    flush = os.fsync

    def fail_on_folders(file: int) -> None:
        if stat.S_ISDIR(os.fstat(file).st_mode):
            raise OSError(28, "No space left on device")
        flush(file)

    monkeypatch.setattr(os, "fsync", fail_on_folders)
    with pytest.raises(Unanswered):
        store.create("n", b"new")


Write = Callable[[Directory], object]

WRITES: dict[str, Write] = {
    "create": lambda store: store.create("n", b"new"),
    "put": lambda store: store.put("k", b"new"),
    "replace": lambda store: store.replace("k", b"new", _etag(store, "k")),
    "delete": lambda store: store.delete("k"),
}


def _etag(store: Directory, key: str) -> str:
    found = store.get(key)
    assert found is not None
    return found.etag


def _content(store: Directory) -> list[bytes | None]:
    found = [store.get(key) for key in ("k", "n")]
    return [None if item is None else item.data for item in found]


@pytest.mark.parametrize("code", [errno.EMFILE, errno.EACCES, errno.ENOMEM])
@pytest.mark.parametrize("kind", WRITES)
def test_folder_that_cannot_be_opened_fails_before_the_write_takes_effect(
    store: Directory, monkeypatch: pytest.MonkeyPatch, kind: str, code: int
) -> None:
    store.put("k", b"old")
    before, opened = _content(store), os.open

    def refuse_folders(path: str, flags: int, *mode: int) -> int:
        if flags & os.O_DIRECTORY:
            raise OSError(code, os.strerror(code))
        return opened(path, flags, *mode)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse_folders)
        with pytest.raises(Unavailable):
            WRITES[kind](store)
    assert _content(store) == before


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, name)
        for kind in WRITES
        for name in ("fsync", "flock", "unlink")
        if (kind, name) != ("delete", "unlink")
    ],
)
def test_failure_after_the_write_took_effect_is_never_reported_as_a_refusal(
    store: Directory, monkeypatch: pytest.MonkeyPatch, kind: str, name: str
) -> None:
    store.put("k", b"old")
    before, module = _content(store), fcntl if name == "flock" else os
    original = getattr(module, name)

    def fail(*arguments: object) -> object:
        result = original(*arguments)
        if _content(store) != before:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return result

    monkeypatch.setattr(module, name, fail)
    with contextlib.suppress(Unanswered):
        WRITES[kind](store)
    monkeypatch.undo()
    assert _content(store) != before


@pytest.mark.parametrize("kind", ["put", "create"])
def test_folder_deleted_while_it_is_written_into_is_made_again_by_the_next_try(
    store: Directory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str
) -> None:
    write = os.write

    def delete_the_folder(file: int, data: bytes) -> int:
        monkeypatch.undo()
        shutil.rmtree(tmp_path / "root" / "a")
        return write(file, data)

    monkeypatch.setattr(os, "write", delete_the_folder)
    with pytest.raises(Unanswered):
        getattr(store, kind)("a/k", b"x")
    getattr(store, kind)("a/k", b"x")
    found = store.get("a/k")
    assert found is not None
    assert found.data == b"x"


def test_narrow_umask_locks_no_other_user_out(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    root.chmod(0o775)
    before = os.umask(0o077)
    try:
        store = Directory(str(root), SystemEnvironment())
        store.put("a/b/k", b"1")
        assert isinstance(store.create("a/n", b"1"), Created)
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in root.rglob("*")}
    assert modes == {"a": 0o775, "b": 0o775, "k": 0o664, "n": 0o664}


def test_new_root_is_as_open_as_the_umask_says(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    before = os.umask(0o077)
    try:
        Directory(str(tmp_path / "root"), SystemEnvironment()).put("k", b"1")
    finally:
        os.umask(before)
    assert (tmp_path / "root").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "root" / "k").stat().st_mode & 0o777 == 0o600


def test_clock_set_back_does_not_repeat_a_tag(tmp_path: Path) -> None:
    environment = Clocked()
    environment.now_ms = lambda: 1_700_000_000_000  # type: ignore[method-assign]
    store = Directory(str(tmp_path), environment)
    created = store.create("k", b"0")
    assert isinstance(created, Created)
    tags = [created.etag]
    for number in range(50):
        replaced = store.replace("k", b"%d" % (number % 10), tags[-1])
        assert isinstance(replaced, Replaced)
        tags.append(replaced.etag)
    store.put("k", b"1")
    found = store.get("k")
    assert found is not None
    assert len({*tags, found.etag}) == 52


def _replace_forever(root: str, started: str) -> None:
    store = Directory(root, SystemEnvironment(), fsync=False)
    number = 0
    while True:
        found = store.get("k")
        assert found is not None
        store.replace("k", b"%09d" % number * 20_000, found.etag)
        number += 1
        if number == 3:
            Path(started).touch()


def test_killed_in_the_middle_of_replace_leaves_a_whole_object_and_no_lock(
    store: Directory, tmp_path: Path
) -> None:
    store.put("k", b"%09d" % 0 * 20_000)
    context = multiprocessing.get_context("fork")
    for attempt in range(12):
        started = tmp_path / f"started-{attempt}"
        child = context.Process(
            target=_replace_forever, args=(str(tmp_path / "root"), str(started)), daemon=True
        )
        child.start()
        end = time.monotonic() + 30
        while not started.exists():
            assert child.is_alive()
            assert time.monotonic() < end
            time.sleep(0.001)
        time.sleep(0.0007 * attempt)
        os.kill(child.pid or 0, signal.SIGKILL)
        child.join(10)
        found = store.get("k")
        assert found is not None
        assert found.data == found.data[:9] * 20_000
        assert [meta.key for meta in store.list("")] == ["k"]
        assert isinstance(store.replace("k", b"%09d" % attempt * 20_000, found.etag), Replaced)


def test_lock_that_stays_held_ends_unanswered(store: Directory, tmp_path: Path) -> None:
    store.put("k", b"")
    folder = os.open(tmp_path / "root", os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    found = store.get("k")
    assert found is not None
    try:
        with pytest.raises(Unanswered, match="stayed locked"):
            Directory(str(tmp_path / "root"), Clocked()).replace("k", b"x", found.etag)
    finally:
        os.close(folder)
    assert isinstance(store.replace("k", b"x", found.etag), Replaced)


def test_one_folder_is_one_lock_however_it_is_reached(store: Directory, tmp_path: Path) -> None:
    store.put("t/k", b"0")
    table = Directory(str(tmp_path / "root" / "t"), SystemEnvironment())
    found, same = store.get("t/k"), table.get("k")
    assert found is not None
    assert found == same
    path = str(tmp_path / "root" / "t" / "k")
    with _folder_of(path) as folder, store._locked(folder, path), pytest.raises(Unanswered):
        Directory(str(tmp_path / "root" / "t"), Clocked()).replace("k", b"x", found.etag)
