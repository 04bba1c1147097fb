"""Trace which files of the package a transaction passes: `python -m bench.walk "UPDATE ..."`.

Prints every file in the order in which it is first entered, and two counts. A file counts when one of its
functions runs. A hop is a call from a function in one file to a function in another file of the package
(imports and calls within one file do not count). The lake is in memory and on the local engine, so that the
walk of the protocol is shown and not that of Spark; the statements run once before, so that caches are warm.
The figures in docs/architecture.md come from here.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import lakevilla as lv
from lakevilla.store.open import open_store

PACKAGE = Path(lv.__file__).parent
ALL = lv.R | lv.CT | lv.I
UPDATE = "UPDATE accounts SET balance = balance - 10 WHERE id = 1"
TRANSFER = [UPDATE, "UPDATE savings SET balance = balance + 10 WHERE id = 1"]


class Walk:
    """The files that are entered while `recording`, in this thread and in those that it starts."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.hops = 0
        self.calls = 0
        self.recording = False

    def __enter__(self) -> "Walk":
        sys.setprofile(self._seen)
        threading.setprofile(self._seen)
        return self

    def __exit__(self, *_: Any) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _seen(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not self.recording:
            return
        entered = _file(frame)
        if not entered:
            return
        self.calls += 1
        if entered not in self.files:
            self.files.append(entered)
        if _caller(frame) not in ("", entered):
            self.hops += 1


def _file(frame: FrameType) -> str:
    """The file of a frame, relative to the package; empty outside of it."""
    name = frame.f_code.co_filename
    if frame.f_code.co_name == "<module>" or not name.startswith(str(PACKAGE)):
        return ""
    return str(Path(name).relative_to(PACKAGE))


def _caller(frame: FrameType) -> str:
    """The file of the nearest caller in the package: libraries between the two are passed over."""
    above = frame.f_back
    while above is not None:
        if found := _file(above):
            return found
        above = above.f_back
    return ""


def trace(statements: list[str], features: lv.Features = ALL) -> Walk:
    """The walk of a transaction of these statements on a lake with two tables, `accounts` and `savings`."""
    with Walk() as walk:
        lake = _filled(lv.Lake("memory://", engine="local"))
        for recording in (False, True):
            walk.recording = recording
            _run(lake, statements, features)
        walk.recording = False
        lake.close()
    return walk


def trace_recovery(root: str) -> Walk:
    """The walk of `lake.recover()` after a client died right after it created its slot."""
    with Walk() as walk:
        lake = _filled(lv.Lake(root, engine="local", lease_seconds=1))
        subprocess.run([sys.executable, "-m", "bench.walk", "--die", root], check=True)
        walk.recording = True
        assert lake.recover().settled
        walk.recording = False
        assert lake.sql("SELECT balance FROM savings WHERE id = 1").collect() == [(110,)]
    return walk


class Dying:
    """A store whose client dies right after it created a slot of the global log."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def create(self, key: str, data: bytes) -> Any:
        answer = self._inner.create(key, data)
        if "global/log/" in key:
            os._exit(0)
        return answer


def die(root: str) -> None:
    """Decide a transfer between the two tables, and die."""
    store: Any = Dying(open_store(root))
    _run(lv.Lake(root, engine="local", store=store), TRANSFER)
    raise AssertionError("a transfer is decided by a slot")


def _filled(lake: lv.Lake) -> lv.Lake:
    for table in ("accounts", "savings"):
        lake.create(table, "id BIGINT, balance BIGINT")
        lake.sql(f"INSERT INTO {table} VALUES (1, 100), (2, 200)")
    return lake


def _run(lake: lv.Lake, statements: list[str], features: lv.Features = ALL) -> None:
    if len(statements) == 1 and features == ALL:
        lake.sql(statements[0])
        return
    with lake.transaction(features) as tx:
        for statement in statements:
            tx.sql(statement)


def main() -> int:
    options = _parse()
    if options.die:
        die(options.die)
    if options.recovery:
        with tempfile.TemporaryDirectory() as root:
            walk = trace_recovery(root)
    else:
        features = lv.NONE
        for name in options.features.split(","):
            features |= lv.Features[name]
        walk = trace(options.statements, features)
    print("\n".join(walk.files))
    rooms = {Path(file).parts[0] for file in walk.files}
    print(f"{len(walk.files)} files in {len(rooms)} rooms, {walk.hops} hops, {walk.calls} calls")
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.walk", description="Trace a transaction's files.")
    parser.add_argument("statements", nargs="*", default=[UPDATE])
    parser.add_argument("--features", default="R,CT,I", help="NONE, or a list such as R,CT,I")
    parser.add_argument("--recovery", action="store_true", help="trace lake.recover() after a client died")
    parser.add_argument("--die", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
