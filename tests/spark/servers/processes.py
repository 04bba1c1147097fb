"""Spark in processes of its own: servers that pip's PySpark can start, ended by their own handles."""

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyspark

from bench.stores.seaweed import die_with_parent

SPARK = Path(pyspark.__file__).parent
START_SECONDS = 60


@contextlib.contextmanager
def running(command: Sequence[str], log: Path, variables: Mapping[str, str]) -> Iterator[None]:
    """A program of Spark's `bin`, which writes this log."""
    surroundings = {**os.environ, "SPARK_HOME": str(SPARK), **variables}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(SPARK / "bin" / command[0]), *command[1:]],
            env=surroundings,
            stdout=out,
            stderr=out,
            preexec_fn=die_with_parent,
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait()


def wait_for(log: Path, words: str) -> None:
    """Until the log has these words."""
    end = time.monotonic() + START_SECONDS
    while words not in log.read_text(errors="replace"):
        assert time.monotonic() < end, f"Spark did not start:\n{log.read_text(errors='replace')[-3000:]}"
        time.sleep(0.1)


def free_ports(count: int) -> list[int]:
    """Free ports of the loopback address."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
