"""A proxy before an S3 server that loses what a test tells it to lose.

It runs in threads of the test. `fate` is asked for each request: `pass` it, `lose` its answer after the
server has carried it out, `drop` it before the server hears of it, or `delay` it until `release`. Of all but
the first the client sees a lost connection.
"""

import http.client
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Literal
from urllib.parse import unquote

from bench.stores.proxy import kind_of

Fate = Literal["pass", "lose", "drop", "delay"]
Decide = Callable[[str, str], Fate]
"""From the kind of a request and its key, as `bench.stores.proxy` names kinds."""


class LossyProxy:
    """A running proxy; `fate` may be changed at any time."""

    def __init__(self, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"
        self.fate: Decide = lambda _kind, _key: "pass"
        self.delayed: list[Callable[[], object]] = []

    def release(self) -> None:
        """Let the server carry out what was delayed."""
        for request in self.delayed:
            request()
        self.delayed.clear()


@contextmanager
def running_lossy_proxy(endpoint: str) -> Iterator[LossyProxy]:
    """A proxy before the server at `endpoint`, for as long as the block runs."""
    upstream = endpoint.removeprefix("http://")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """It is never read."""

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            fields = (f"{name}: {value}" for name, value in self.headers.items())
            kind = kind_of("\r\n".join((self.requestline, *fields)))
            fate = proxy.fate(kind, unquote(self.path.partition("?")[0].lstrip("/")))
            if fate in ("drop", "delay"):
                if fate == "delay":
                    proxy.delayed.append(partial(self._forward, body))
                self.close_connection = True
                return
            answer, data = self._forward(body)
            if fate == "lose":
                self.close_connection = True
                return
            self.send_response_only(answer.status, answer.reason)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                    self.send_header(name, value)
            told = answer.getheader("content-length") if self.command == "HEAD" else None
            self.send_header("content-length", told or str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _forward(self, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
            connection = http.client.HTTPConnection(upstream)
            try:
                connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    connection.putheader(name, value)
                connection.endheaders(body)
                answer = connection.getresponse()
                return answer, answer.read()
            finally:
                connection.close()

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        proxy = LossyProxy(server.server_port)
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            server.shutdown()
            thread.join()
