"""The proxy passes requests on unchanged, counts each and adds its delay."""

import time

import pyarrow as pa
import pytest

from bench.stores.proxy import kind_of, running_proxy
from bench.stores.seaweed import S3Server
from lakevilla.store.open import open_store


def test_requests_through_the_proxy_are_counted_by_kind_and_slower(s3: S3Server) -> None:
    large = bytes(pa.array(range(2_000_000)).buffers()[1])
    with running_proxy(s3.endpoint, delay_ms=30) as proxy:
        options = {**s3.storage_options, "AWS_ENDPOINT_URL": proxy.endpoint}
        store = open_store(s3.new_url(), options)
        store.create("a", b"1")
        store.put("large", large)
        found = store.get("large")
        start = time.perf_counter()
        store.get("a")
        seconds = time.perf_counter() - start
        list(store.list(""))
        counts = proxy.counts()

    assert found is not None
    assert found.data == large
    assert seconds > 0.03
    assert (counts["create"], counts["get"], counts["list"]) == (1, 2, 1)
    assert counts["part"] > 2


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        ("GET /lake/a HTTP/1.1\r\nhost: x\r\n\r\n", "get"),
        ("GET /lake/a HTTP/1.1\r\nRange: bytes=0-1\r\n\r\n", "get_range"),
        ("GET /lake?list-type=2&prefix=a HTTP/1.1\r\n\r\n", "list"),
        ("HEAD /lake/a HTTP/1.1\r\n\r\n", "head"),
        ("PUT /lake/a HTTP/1.1\r\nIf-None-Match: *\r\n\r\n", "create"),
        ('PUT /lake/a HTTP/1.1\r\nif-match: "x"\r\n\r\n', "replace"),
        ("PUT /lake/a HTTP/1.1\r\n\r\n", "put"),
        ("PUT /lake/a?partNumber=1&uploadId=x HTTP/1.1\r\n\r\n", "part"),
        ("POST /lake/a?uploads HTTP/1.1\r\n\r\n", "part"),
        ("POST /lake?delete HTTP/1.1\r\n\r\n", "delete"),
        ("DELETE /lake/a HTTP/1.1\r\n\r\n", "delete"),
    ],
)
def test_request_is_told_by_its_kind(head: str, kind: str) -> None:
    assert kind_of(head) == kind
