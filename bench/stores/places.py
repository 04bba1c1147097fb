"""Where tables lie while they are measured: a directory, SeaweedFS, and SeaweedFS behind a slow network."""

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bench.stores.proxy import Proxy, running_proxy
from bench.stores.seaweed import running_server


@dataclass(frozen=True)
class Place:
    """A root under which every system keeps its tables, and how a client reaches it.

    With a `proxy` between client and store, requests can be counted.
    """

    name: str
    root: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    proxy: Proxy | None = None

    def url(self, path: str) -> str:
        return f"{self.root}/{path}"


# The network that a client of S3 in the same region has.
SLOW_MS = 20

DIRECTORY = "directory"
SEAWEEDFS = "seaweedfs"
SLOW = f"seaweedfs+{SLOW_MS}ms"
NAMES = (DIRECTORY, SEAWEEDFS, SLOW)


@contextlib.contextmanager
def running_places(names: Sequence[str]) -> Iterator[list[Place]]:
    """The places of these names, with their servers running for as long as the block does."""
    with contextlib.ExitStack() as stack:
        places = []
        if DIRECTORY in names:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="lakevilla-bench-"))
            places.append(Place(DIRECTORY, folder))
        if SEAWEEDFS in names or SLOW in names:
            server = stack.enter_context(running_server())
            options = server.storage_options
            if SEAWEEDFS in names:
                places.append(Place(SEAWEEDFS, server.url("near"), options))
            if SLOW in names:
                proxy = stack.enter_context(running_proxy(server.endpoint, SLOW_MS))
                through = {**options, "AWS_ENDPOINT_URL": proxy.endpoint}
                places.append(Place(SLOW, server.url("far"), through, proxy))
        yield places
