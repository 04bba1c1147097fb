"""A proxy on loopback before an S3 server: it counts requests by kind, and makes each one slower.

Every client pays and is counted alike, whatever library or language it is made of. It runs as a separate
process, so that it takes no time from the Python code that is measured. It ends when its standard input does,
so that it never outlives the process that started it. Requests are parsed only as far as their framing asks
for (HTTP/1.1, no pipelining); answers pass untouched. `GET /-/counts` gives the counts as JSON.
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

_CONTROL = "/-/counts"
_LENGTH = re.compile(r"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(r"\r\ntransfer-encoding:[^\r]*chunked", re.IGNORECASE)


@dataclass(frozen=True)
class Proxy:
    """A running proxy, as seen by the process that started it."""

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
    command = [sys.executable, "-m", "bench.stores.proxy", upstream, "--delay-ms", str(delay_ms)]
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
    """What all connections share."""

    def __init__(self, host: str, port: int, delay_ms: float) -> None:
        self.upstream = (host, port)
        self.delay_seconds = delay_ms / 1000
        self.counts: Counter[str] = Counter()


class _Client(asyncio.Protocol):
    """A client's connection: each request is counted, waits, and goes on over a connection of its own.

    Plain protocols and no streams: a request must not cost the proxy more than the server.
    """

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._waits = True
        """Whether what has come stays in the buffer for now."""
        self._left = 0
        self._chunked = False
        self.upstream: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._connecting = self._loop.create_task(self._connect())

    async def _connect(self) -> None:
        try:
            await self._loop.create_connection(lambda: _Upstream(self), *self._server.upstream)
        except OSError:
            self.transport.close()
            return
        self._waits = False
        self._advance()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        # A client may leave whenever it likes; what it had asked is counted.
        self._connecting.cancel()
        if self.upstream is not None:
            self.upstream.close()

    def pause_writing(self) -> None:
        if self.upstream is not None:
            self.upstream.pause_reading()

    def resume_writing(self) -> None:
        if self.upstream is not None:
            self.upstream.resume_reading()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._waits:
            self._advance()

    def _advance(self) -> None:
        """Pass on what can be: bodies at once, the head of a request after its delay."""
        while self._buffer and not self._waits:
            if self._left:
                self._send(self._left)
            elif self._chunked:
                if not self._begin_chunk():
                    return
            elif not self._begin_request():
                return

    def _send(self, length: int) -> None:
        assert self.upstream is not None
        part = bytes(self._buffer[:length])
        del self._buffer[:length]
        self._left -= len(part)
        self.upstream.write(part)

    def _begin_chunk(self) -> bool:
        end = self._buffer.find(b"\r\n")
        if end < 0:
            return False
        size = int(self._buffer[:end].split(b";")[0], 16)
        # Its line, its bytes, and the end of the line after them.
        self._left = end + 2 + size + 2
        self._chunked = size > 0
        return True

    def _begin_request(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = self._buffer[: end + 4].decode("latin-1")
        if head.startswith(f"GET {_CONTROL} "):
            self._waits = True
            self.transport.write(_control_answer(self._server.counts))
            self.transport.close()
            return False
        self._server.counts[kind_of(head)] += 1
        length = _LENGTH.search(head)
        self._chunked = _CHUNKED.search(head) is not None
        self._left = end + 4 + (int(length[1]) if length and not self._chunked else 0)
        if self._server.delay_seconds:
            self._waits = True
            self._loop.call_later(self._server.delay_seconds, self._go_on)
        return True

    def _go_on(self) -> None:
        self._waits = False
        if self.upstream is not None and not self.upstream.is_closing():
            self._advance()


class _Upstream(asyncio.Protocol):
    """The connection to the server for one client: answers pass untouched."""

    def __init__(self, client: _Client) -> None:
        self._client = client

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._client.upstream = transport

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._client.transport.close()

    def pause_writing(self) -> None:
        self._client.transport.pause_reading()

    def resume_writing(self) -> None:
        self._client.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        self._client.transport.write(data)


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
    # The only POST outside of an upload is S3's bulk delete.
    return {"HEAD": "head", "DELETE": "delete", "POST": "delete"}.get(method, method.lower())


def _control_answer(counts: Counter[str]) -> bytes:
    body = json.dumps(counts).encode()
    return b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


async def _main(host: str, port: int, delay_ms: float) -> None:
    shared, loop = _Server(host, port, delay_ms), asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Client(shared), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    # Clients keep idle connections open; they end with the process, without a word about each.
    os._exit(0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Count requests to an S3 server, and delay them.")
    parser.add_argument("upstream", help="HOST:PORT of the server")
    parser.add_argument("--delay-ms", type=float, default=0, help="how much longer each request takes")
    given = parser.parse_args()
    upstream_host, _, upstream_port = given.upstream.partition(":")
    asyncio.run(_main(upstream_host, int(upstream_port), given.delay_ms))
