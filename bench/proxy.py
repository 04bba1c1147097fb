"""A proxy on loopback before an S3 server: it counts requests by kind, and makes each one slower.

Every client pays and is counted alike, whatever library or language it is made of. It runs as a process of
its own, so that it takes no turn from the Python code that is measured, and it ends when its standard input
does, so that it never outlives whoever started it. Requests are parsed only as far as their framing asks
for (HTTP/1.1, no pipelining); answers pass untouched. `GET /-/counts` gives the counts as JSON.
"""

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

_CONTROL = "/-/counts"
_CHUNK = 256 * 1024


@dataclass(frozen=True)
class Proxy:
    """A running proxy, as whoever started it sees it."""

    endpoint: str
    delay_ms: float

    def counts(self) -> dict[str, int]:
        """Requests so far by kind: get, get_range, head, list, put, create, replace, delete, part."""
        with urllib.request.urlopen(self.endpoint + _CONTROL) as answer:
            counts: dict[str, int] = json.load(answer)
            return counts

    def total(self) -> int:
        """All requests so far."""
        return sum(self.counts().values())


@contextlib.contextmanager
def running_proxy(endpoint: str, delay_ms: float) -> Iterator[Proxy]:
    """A proxy before the server at `endpoint`, for as long as the block runs."""
    upstream = endpoint.removeprefix("http://")
    command = [sys.executable, "-m", "bench.proxy", upstream, "--delay-ms", str(delay_ms)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield Proxy(f"http://127.0.0.1:{int(process.stdout.readline())}", delay_ms)
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


class _Server:
    """One listening proxy."""

    def __init__(self, host: str, port: int, delay_ms: float) -> None:
        self._upstream = (host, port)
        self._delay_seconds = delay_ms / 1000
        self._counts: Counter[str] = Counter()

    async def serve(self, client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        """One client's connection, until either side closes it."""
        server, requests = await asyncio.open_connection(*self._upstream)
        back = asyncio.create_task(_copy(server, answers))
        try:
            while head := await _head(client):
                if head.startswith(f"GET {_CONTROL} ".encode()):
                    answers.write(_control_answer(self._counts))
                    break
                self._counts[kind_of(head.decode("latin-1"))] += 1
                if self._delay_seconds:
                    await asyncio.sleep(self._delay_seconds)
                requests.write(head)
                await _forward_body(head.decode("latin-1").lower(), client, requests)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # A client may leave whenever it likes; what it had asked is counted.
        finally:
            requests.close()
            await asyncio.wait([back])
            answers.close()


def kind_of(head: str) -> str:
    """Which kind of request this is, in the words of our own store port."""
    line, _, fields = head.partition("\r\n")
    method, target, _ = line.split(" ", 2)
    names = {field.partition(":")[0].strip().lower() for field in fields.split("\r\n")}
    query = target.partition("?")[2]
    if "uploadid=" in query.lower() or query.startswith("uploads"):
        return "part"
    if method == "GET":
        if "list-type=" in query or "prefix=" in query:
            return "list"
        return "get_range" if "range" in names else "get"
    if method == "PUT":
        return "create" if "if-none-match" in names else "replace" if "if-match" in names else "put"
    # The only POST that is no part of an upload is S3's bulk delete.
    return {"HEAD": "head", "DELETE": "delete", "POST": "delete"}.get(method, method.lower())


async def _head(client: asyncio.StreamReader) -> bytes:
    """A request's line and fields with the empty line after them; nothing if the client has left."""
    try:
        return await client.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""


async def _forward_body(head: str, client: asyncio.StreamReader, requests: asyncio.StreamWriter) -> None:
    fields = dict(line.split(":", 1) for line in head.split("\r\n")[1:] if ":" in line)
    if "chunked" in fields.get("transfer-encoding", ""):
        while True:
            line = await client.readuntil(b"\r\n")
            size = int(line.split(b";")[0], 16)
            requests.write(line + await client.readexactly(size + 2))
            await requests.drain()
            if size == 0:
                return
    left = int(fields.get("content-length", "0"))
    while left:
        part = await client.read(min(left, _CHUNK))
        if not part:
            raise ConnectionResetError
        left -= len(part)
        requests.write(part)
        await requests.drain()


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while part := await source.read(_CHUNK):
            sink.write(part)
            await sink.drain()


def _control_answer(counts: Counter[str]) -> bytes:
    body = json.dumps(counts).encode()
    return b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


async def _main(host: str, port: int, delay_ms: float) -> None:
    server = await asyncio.start_server(_Server(host, port, delay_ms).serve, "127.0.0.1", 0, limit=_CHUNK)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    # Clients keep idle connections open; they end with the process, without a word about each.
    os._exit(0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Count requests to an S3 server, and delay them.")
    parser.add_argument("upstream", help="HOST:PORT of the server")
    parser.add_argument("--delay-ms", type=float, default=0, help="how much longer each request takes")
    given = parser.parse_args()
    upstream_host, _, upstream_port = given.upstream.partition(":")
    asyncio.run(_main(upstream_host, int(upstream_port), given.delay_ms))
