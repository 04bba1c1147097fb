"""A REST catalog of Iceberg on loopback, over a SQL catalog. For tests: it can load, change and drop tables.

Commits are judged as the catalogs of others judge them: by their requirements alone, against whatever the
table is at that moment.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from urllib.parse import unquote

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.table import CommitTableRequest, Table

_ENDPOINTS = [
    f"{verb} /v1/{{prefix}}/namespaces/{{namespace}}/tables/{{table}}" for verb in ("GET", "POST", "DELETE")
]


@contextmanager
def serving(catalog: Catalog) -> Iterator[str]:
    """The URI of a server for as long as the block runs."""
    lock = Lock()

    class Handler(_Handler):
        tables, one_at_a_time = catalog, lock

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    tables: Catalog
    one_at_a_time: Lock
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        if self.path.startswith("/v1/config"):
            self._answer(200, {"defaults": {}, "overrides": {}, "endpoints": _ENDPOINTS})
        else:
            self._on_table(lambda table: self._answer(200, _described(table)))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._on_table(lambda table: self._commit(table, body))

    def do_DELETE(self) -> None:
        self._on_table(lambda table: self._drop(table))

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: what goes wrong is answered."""

    def _commit(self, table: Table, body: bytes) -> None:
        asked = CommitTableRequest.model_validate_json(body)
        try:
            self.tables.commit_table(table, asked.requirements, asked.updates)
        except CommitFailedException as error:
            self._refuse(409, "CommitFailedException", error)
        except ValueError as error:
            self._refuse(400, "BadRequestException", error)
        else:
            self._answer(200, _described(self.tables.load_table(table.name())))

    def _drop(self, table: Table) -> None:
        self.tables.drop_table(table.name())
        self.send_response(204)
        self.end_headers()

    def _on_table(self, do: object) -> None:
        """One request after the other, each on the table as it is then."""
        assert callable(do)
        namespace, _, name = unquote(self.path.partition("/namespaces/")[2]).partition("/tables/")
        with self.one_at_a_time:
            try:
                table = self.tables.load_table(f"{namespace}.{name.partition('?')[0]}")
            except NoSuchTableError as error:
                self._refuse(404, "NoSuchTableException", error)
            else:
                do(table)

    def _refuse(self, code: int, kind: str, error: Exception) -> None:
        self._answer(code, {"error": {"message": str(error), "type": kind, "code": code}})

    def _answer(self, code: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _described(table: Table) -> dict[str, object]:
    return {
        "metadata-location": table.metadata_location,
        "metadata": json.loads(table.metadata.model_dump_json()),
        "config": {},
    }
