"""Uploads behind the caller: what did not arrive is never forgotten."""

import pytest

from lakevilla.environment import SystemEnvironment
from lakevilla.errors import Unavailable
from lakevilla.transaction.lifecycle.uploads import Uploads
from sim.world.bucket import Bucket


class Unreachable:
    """Refuses puts while it is down."""

    url = "memory://"

    def __init__(self) -> None:
        self.bucket = Bucket()
        self.down = True

    def put(self, key: str, data: bytes) -> None:
        if self.down:
            raise Unavailable(key)
        self.bucket.put(0.0, "client", key, data)


def test_upload_that_failed_is_sent_again_before_anything_can_name_it():
    store, uploads = Unreachable(), Uploads(SystemEnvironment())
    uploads.through(store).put("a", b"1")
    for _ in range(2):
        with pytest.raises(Unavailable):
            uploads.finish()
    store.down = False
    uploads.finish()
    assert store.bucket.contents() == {"a": b"1"}
