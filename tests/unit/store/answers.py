"""A server that answers every request as a test wants: with a status, by hanging up, or late."""

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class AnsweringServer(ThreadingHTTPServer):
    """Set `status` and `code`; look at `seen` and `conditions` for what was asked."""

    daemon_threads = True
    status = 200
    code = ""
    hangs_up = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[tuple[str, str]] = []
        self.conditions: list[dict[str, str]] = []

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: AnsweringServer

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.seen.append((self.command, self.path))
        conditions = {name.lower(): value for name, value in self.headers.items() if "match" in name.lower()}
        self.server.conditions.append(conditions)
        if self.server.hangs_up:
            self.close_connection = True
            return
        body = f"<Error><Code>{self.server.code}</Code></Error>".encode() if self.server.code else b""
        self.send_response(self.server.status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = answer

    def log_message(self, format: str, *args: object) -> None:
        """Silence: the tests look at `seen`."""


@contextlib.contextmanager
def answering_server() -> Iterator[AnsweringServer]:
    server = AnsweringServer()
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
