"""A local directory as an object store, safe between threads and processes and after a crash.

obstore's local store has no put-if-match, so this adapter makes its own system calls. A key is a path
below the root. Content is written to a temporary file in the target's folder and then appears whole:

- `create` links it (the kernel lets exactly one rival link a name);
- `put` renames it over whatever is there;
- `replace` compares the tag and renames, under a lock.

**The lock** is `flock` on the target's folder itself: the kernel frees it when its holder dies, it
leaves no file behind, and it is the same lock however the folder was reached (as part of a lake, or as
a table's own root). `put` and `delete` take it too, so that nothing slips between compare and rename.

**The tag** is (inode, size, time of change in ns). Inodes are reused at once and the kernel's clock
ticks only every few milliseconds, so the writer sets the time itself, always later than that of the
object it replaces: a tag never comes back. (A hash of the content would make `list` read every file.)

**Durability**: file and folder are flushed before a write is acknowledged (about 0.3 ms here on an SSD),
because an acknowledged commit must survive a power cut, and the data files that it names too.
`storage_options={"fsync": "false"}` trades that for speed.

**Modes**: objects and folders below the root are as open as the folder that they lie in, whatever the
process's umask, so that one client cannot lock others out. The umask decides for the root itself.

A crash can leave temporary files: nothing lists or reads them. Links below the root are not followed.
For file systems with hard links and flock on folders (ext4, xfs, btrfs, tmpfs, APFS); NFS has neither.
"""

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from lakevilla.environment import Environment
from lakevilla.errors import InvalidInput, LakeVillaError, Unavailable, Unsupported
from lakevilla.store.keys import check_folder, check_key
from lakevilla.store.port import Changed, Created, Exists, Meta, Object, Replaced, Unanswered

TEMPORARY = ".lakevilla-tmp-"
LOCK_SECONDS = 10.0

_NO_PERMISSION = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
# ENOENT: another process deleted the folder between making it and writing into it. The next try makes it
# again, as an object store would, which has no folders.
_PASSING = frozenset(
    {errno.EIO, errno.ESTALE, errno.EBUSY, errno.EAGAIN, errno.EINTR, errno.ETIMEDOUT, errno.ENOENT}
)
_NO_OBJECT = (FileNotFoundError, NotADirectoryError)
# Steps by which a time of change is moved until the file system, however coarse, shows a difference.
_STEPS_NS = (0, 1, 1_000, 1_000_000, 1_000_000_000, 2_000_000_000)


class Directory:
    """A folder of the local file system. It is made by the first write, not by opening it."""

    def __init__(self, path: str, environment: Environment, *, fsync: bool = True) -> None:
        self._root = os.path.abspath(path)
        self._environment = environment
        self._fsync = fsync

    def __repr__(self) -> str:
        return f"Directory({self._root!r})"

    @property
    def url(self) -> str:
        return f"file://{quote(self._root)}".rstrip("/")

    def get(self, key: str) -> Object | None:
        with self._errors(key), self._open(key) as file:
            if file is None:
                return None
            status = os.fstat(file)
            return Object(_read(file, status.st_size), _tag(status))

    def get_range(self, key: str, start: int, length: int) -> bytes | None:
        with self._errors(key), self._open(key) as file:
            if file is None:
                return None
            return _read(file, max(0, min(length, os.fstat(file).st_size - start)), start)

    def head(self, key: str) -> Meta | None:
        with self._errors(key), self._open(key) as file:
            return None if file is None else _meta(key, os.fstat(file))

    def list(self, prefix: str, start_after: str = "") -> Iterator[Meta]:
        folder = check_folder(prefix[: prefix.rfind("/") + 1])
        with self._errors(prefix):
            yield from self._walk(folder, prefix, start_after)

    def list_folders(self, prefix: str) -> Sequence[str]:
        check_folder(prefix)
        with self._errors(prefix):
            names = [name[:-1] for name in self._names(prefix) if name.endswith("/")]
        # A folder without objects does not count: object stores do not have them.
        return sorted(name for name in names if next(self.list(f"{prefix}{name}/"), None) is not None)

    def put(self, key: str, data: bytes) -> None:
        with self._errors(key), self._written(key, data) as (temporary, path), _folder_of(path) as folder:
            with self._locked(folder, path):
                _date_after(temporary, path)
                os.replace(temporary, path)
            self._flush(folder, path)

    def create(self, key: str, data: bytes) -> Created | Exists:
        with self._errors(key):
            # Most lost races are lost before they start; a rival's object needs no copy of ours.
            with self._open(key) as file:
                if file is not None:
                    return Exists()
            with self._written(key, data) as (temporary, path), _folder_of(path) as folder:
                written = _tag(os.stat(temporary))
                try:
                    os.link(temporary, path)
                except FileExistsError:
                    if stat.S_ISDIR(os.lstat(path).st_mode):
                        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)) from None
                    return Exists()
                self._flush(folder, path)
                return Created(written)

    def replace(self, key: str, data: bytes, etag: str) -> Replaced | Changed:
        with self._errors(key):
            current = self.head(key)
            if current is None or current.etag != etag:
                return Changed()
            with self._written(key, data) as (temporary, path), _folder_of(path) as folder:
                with self._locked(folder, path):
                    current = self.head(key)
                    if current is None or current.etag != etag:
                        return Changed()
                    _date_after(temporary, path)
                    written = _tag(os.stat(temporary))
                    os.replace(temporary, path)
                self._flush(folder, path)
                return Replaced(written)

    def delete(self, key: str) -> None:
        with self._errors(key):
            path = self._path(key)
            with contextlib.suppress(*_NO_OBJECT), _folder_of(path) as folder:
                with self._locked(folder, path):
                    os.unlink(path)
                self._flush(folder, path)

    def _path(self, key: str) -> str:
        """Where a key lies, having seen that no link leads away from the root."""
        check_key(key)
        path = self._root
        for segment in key.split("/"):
            if segment.startswith(TEMPORARY):
                raise InvalidInput(
                    f"{key!r} cannot be used as a key: names that begin with {TEMPORARY!r} are reserved"
                )
            path = f"{path}/{segment}"
            if os.path.islink(path):
                raise Unavailable(f"{path} is a symbolic link: links below a lake's root are not followed")
        return path

    @contextlib.contextmanager
    def _open(self, key: str) -> Iterator[int | None]:
        """The object's file for reading, or None if there is no object."""
        try:
            file = os.open(self._path(key), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except _NO_OBJECT:
            yield None
            return
        try:
            yield file if stat.S_ISREG(os.fstat(file).st_mode) else None
        finally:
            os.close(file)

    @contextlib.contextmanager
    def _written(self, key: str, data: bytes) -> Iterator[tuple[str, str]]:
        """A flushed temporary file with the data, in the folder of the key; deleted when the block ends."""
        path = self._path(key)
        folder = os.path.dirname(path)
        self._make_folder(folder)
        temporary = f"{folder}/{TEMPORARY}{self._environment.new_id()}"
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            try:
                _follow_mode(file, folder)
                _write(file, data)
                # The kernel's own time would repeat within a tick; see the tag above.
                now_ns = self._environment.now_ms() * 1_000_000 + int(self._environment.random() * 1_000_000)
                os.utime(file, ns=(now_ns, now_ns))
                if self._fsync:
                    os.fsync(file)
            finally:
                os.close(file)
            yield temporary, path
        finally:
            # What stays is ignored by all; and the write may have taken effect, so it has not failed.
            with contextlib.suppress(OSError):
                os.unlink(temporary)

    def _make_folder(self, folder: str) -> None:
        if os.path.isdir(folder):
            return
        parent = os.path.dirname(folder)
        self._make_folder(parent)
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder)
            if folder.startswith(f"{self._root}/"):
                _follow_mode(folder, parent)
        if not os.path.isdir(folder):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        with _folder_of(folder) as opened:
            self._flush(opened, folder)

    def _flush(self, folder: int, path: str) -> None:
        """Make the entry of `path` in its folder durable."""
        if not self._fsync:
            return
        try:
            os.fsync(folder)
        except OSError as failure:
            # The entry is visible already, so this is not a clean failure.
            raise Unanswered(f"{path}: cannot flush its folder ({failure.strerror})") from failure

    @contextlib.contextmanager
    def _locked(self, folder: int, path: str) -> Iterator[None]:
        """Alone with the folder of `path`, among all writers of this class."""
        end = self._environment.elapsed() + LOCK_SECONDS
        while not _try_lock(folder):
            if self._environment.elapsed() > end:
                raise Unanswered(f"{path}: its folder stayed locked for {LOCK_SECONDS} s")
            self._environment.sleep(0.0005 + 0.002 * self._environment.random())
        try:
            yield
        finally:
            # Explicitly: a process forked meanwhile has a copy of the descriptor and would keep it. An error
            # here would hide that the write took effect; closing the folder frees the lock too.
            with contextlib.suppress(OSError):
                fcntl.flock(folder, fcntl.LOCK_UN)

    def _names(self, folder: str) -> Sequence[str]:
        """What lies directly in a folder, in the order of the keys; folders end with `/`.

        With the slash in the comparison `a/x` sorts after `a-b`, as it does among whole keys.
        """
        try:
            with os.scandir(self._path(folder[:-1]) if folder else self._root) as entries:
                return sorted(
                    f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else entry.name
                    for entry in entries
                    if not entry.name.startswith(TEMPORARY) and not entry.is_symlink()
                )
        except _NO_OBJECT:
            return []

    def _walk(self, folder: str, prefix: str, start_after: str) -> Iterator[Meta]:
        for name in self._names(folder):
            key = folder + name
            if not key.startswith(prefix):
                continue
            if name.endswith("/"):
                if key > start_after or start_after.startswith(key):
                    yield from self._walk(key, prefix, start_after)
            elif key > start_after and (status := self._status(key)) is not None:
                yield _meta(key, status)

    def _status(self, key: str) -> os.stat_result | None:
        """None if the file was removed since its folder was read."""
        try:
            return os.lstat(f"{self._root}/{key}")
        except FileNotFoundError:
            return None

    @contextlib.contextmanager
    def _errors(self, key: str) -> Iterator[None]:
        """The operating system's refusals in the port's words."""
        try:
            yield
        except OSError as failure:
            raise _translate(failure, f"{self._root}/{key}") from failure


def _translate(failure: OSError, path: str) -> LakeVillaError | Unanswered:
    said = failure.strerror or str(failure)
    if failure.errno in _NO_PERMISSION:
        return Unavailable(f"{path}: {said}; check the permissions of the directory")
    if failure.errno in _NO_SPACE:
        return Unavailable(f"{path}: {said}; nothing was written, free some space and try again")
    if failure.errno in (errno.ENAMETOOLONG, errno.EILSEQ):
        return InvalidInput(f"{path}: {said}")
    if failure.errno in (errno.ENOTDIR, errno.EISDIR, errno.EEXIST):
        return Unavailable(
            f"{path}: {said}; there is a file in place of a folder, or a folder in place of a file"
        )
    if failure.errno in (errno.EBADF, errno.ENOTSUP, errno.ENOLCK):
        return Unsupported(f"{path}: this file system has no hard links or no locks on folders ({said})")
    if failure.errno in _PASSING:
        return Unanswered(f"{path}: {said}")
    return Unavailable(f"{path}: {said}")


@contextlib.contextmanager
def _folder_of(path: str) -> Iterator[int]:
    """The folder of `path`, opened before anything takes effect: what fails later than that leaves open
    whether the write applied."""
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):
            os.close(folder)


def _follow_mode(made: int | str, folder: str) -> None:
    """Let a new file or folder be as open as the folder that it lies in, whatever the process's umask: all
    clients of a lake need each other's objects."""
    mode, theirs = os.stat(made).st_mode, os.stat(folder).st_mode
    wanted = theirs & 0o777 if stat.S_ISDIR(mode) else theirs & 0o666
    if wanted != mode & 0o777:
        # Some file systems have no modes.
        with contextlib.suppress(OSError):
            os.chmod(made, wanted | (mode & 0o7000))


def _try_lock(folder: int) -> bool:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _tag(status: os.stat_result) -> str:
    return f"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"


def _meta(key: str, status: os.stat_result) -> Meta:
    return Meta(key, status.st_size, _tag(status), status.st_mtime_ns // 1_000_000)


def _date_after(temporary: str, path: str) -> None:
    """Give the temporary file a later time of change than what it replaces, if there is something."""
    try:
        before_ns = os.lstat(path).st_mtime_ns
    except FileNotFoundError:
        return
    for step in _STEPS_NS:
        if os.stat(temporary).st_mtime_ns > before_ns:
            return
        os.utime(temporary, ns=(before_ns + step, before_ns + step))


def _read(file: int, length: int, start: int = 0) -> bytes:
    parts = []
    while length > 0 and (part := os.pread(file, length, start)):
        parts.append(part)
        start += len(part)
        length -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _write(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]
