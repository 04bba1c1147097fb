"""From a URL to a store: which adapter, with which options, and the decorators that all of them get.

    /data/lake, ./lake, file:///data/lake    a local directory (relative paths become absolute)
    memory://                                a new store in this process
    memory://name                            the store of that name in this process
    s3://bucket/prefix, s3a://...            S3 and its like
    gs://bucket/prefix                       Google Cloud Storage (wired, not tested against the real one)
    az://container/prefix, abfss://container@account.dfs.core.windows.net/prefix
                                             Azure (wired, not tested against the real one)

Environment variables of the clouds' SDKs work as obstore reads them; `storage_options` come first. No
URL, representation or message of what is opened here holds a secret.
"""

import os
import re
from collections.abc import Callable, Mapping
from threading import Lock
from types import ModuleType
from typing import Any
from urllib.parse import unquote
from weakref import WeakValueDictionary

import obstore
from obstore.store import MemoryStore

from lakevilla.environment import Environment, SystemEnvironment
from lakevilla.errors import InvalidInput
from lakevilla.store.adapters import native
from lakevilla.store.adapters.directory import Directory
from lakevilla.store.adapters.remote import Remote
from lakevilla.store.keys import check_key
from lakevilla.store.metered import Meter, Metered
from lakevilla.store.options import Options, sort_options, unknown
from lakevilla.store.port import Store
from lakevilla.store.retry import Retrying

Credentials = Callable[[], Any]

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_UNKNOWN_OPTION = re.compile(r"Configuration key: '([^']*)' is not valid")
_SCHEMES = {"s3": "s3", "s3a": "s3", "gs": "gs", "az": "az", "abfss": "az"}


class _Memory:
    """A store in this process; obstore's own object cannot be referred to weakly."""

    def __init__(self) -> None:
        self.client = MemoryStore()


_memory_lock = Lock()
_named: dict[str, _Memory] = {}
# Unnamed stores live as long as they are used.
_nameless: WeakValueDictionary[str, _Memory] = WeakValueDictionary()


def open_store(
    url: str,
    storage_options: Mapping[str, object] | None = None,
    environment: Environment | None = None,
    credentials: Credentials | None = None,
    meter: Meter | None = None,
) -> Store:
    """The store at `url`, with retries, and counted by `meter` if there is one (retries count too).

    `credentials` is called for fresh credentials (a dictionary as obstore's credential providers give
    it) when the last ones have expired or are refused. Nothing is asked of the store here.
    """
    environment = environment or SystemEnvironment()
    adapter = open_adapter(url, storage_options, environment, credentials)
    return Retrying(Metered(adapter, meter) if meter else adapter, environment)


def open_adapter(
    url: str,
    storage_options: Mapping[str, object] | None,
    environment: Environment,
    credentials: Credentials | None = None,
) -> Store:
    """The bare store at `url`: what it cannot answer is `Unanswered`. For tests and for `open_store`."""
    found = _URL.fullmatch(url)
    scheme, rest = (found[1].lower(), found[2]) if found else ("file", "")
    if scheme == "file":
        path = _file_path(rest) if found else url
        return Directory(path, environment, fsync=sort_options("file", storage_options).fsync)
    if scheme == "memory":
        sort_options("memory", storage_options)
        return _open_memory(rest, environment)
    if scheme not in _SCHEMES:
        raise InvalidInput(
            f"unknown kind of store {scheme + '://'!r}; available: a path, file://, memory://, s3://, gs://, "
            "az:// and abfss://"
        )
    return _open_cloud(scheme, rest, storage_options, credentials)


def _file_path(rest: str) -> str:
    host, slash, path = rest.partition("/")
    if host not in ("", "localhost") or not slash:
        raise InvalidInput("a file:// URL names an absolute path on this machine, as in file:///data/lake")
    return unquote("/" + path)


def _open_memory(rest: str, environment: Environment) -> Store:
    name, _, path = rest.partition("/")
    root = _root(path)
    with _memory_lock:
        if name:
            memory = _nameless.get(name) or _named.setdefault(name, _Memory())
        else:
            name = environment.new_id()
            memory = _nameless.setdefault(name, _Memory())
    url = f"memory://{name}/{root}".rstrip("/")
    # The original library also in a forked child: what is in memory was made by it and needs no threads.
    library: Any = obstore._obstore
    return Remote(url, root, lambda: (library, memory.client), byte_ordered=True)


def _open_cloud(
    scheme: str, rest: str, storage_options: Mapping[str, object] | None, credentials: Credentials | None
) -> Store:
    place, _, path = rest.partition("/")
    # The URL is not repeated in these messages: what is wrong with it may be a secret.
    if "?" in rest:
        raise InvalidInput(f"a {scheme}:// URL has no query: give credentials in storage_options")
    if not place or ("@" in place) != (scheme == "abfss"):
        raise InvalidInput(
            f"a {scheme}:// URL looks like s3://bucket/prefix, or abfss://container@account.host/prefix; "
            "credentials belong in storage_options"
        )
    kind = _SCHEMES[scheme]
    root = _root(path)
    shown = f"{kind if scheme == 's3a' else scheme}://{place}/{root}".rstrip("/")
    options = sort_options(kind, storage_options)

    def connect() -> tuple[ModuleType, Any]:
        library = native.library()
        return library, _client(library, kind, place, options, credentials)

    store = Remote(
        shown,
        root,
        connect,
        byte_ordered=kind == "gs" or (kind == "s3" and not _other_endpoint(options)),
        renewable=credentials is not None,
        tag="version" if kind == "gs" else "e_tag",
    )
    connect()  # Options are checked now; the connection itself is made by the first request.
    return store


def _client(library: Any, kind: str, place: str, options: Options, credentials: Credentials | None) -> Any:
    """obstore's client. Its own retries are off: see `remote`."""
    common = {
        "client_options": options.client,
        "retry_config": {"max_retries": 0},
        "credential_provider": credentials,
    }
    stores = library._store
    try:
        if kind == "s3":
            # The bulk delete of S3 is missing in stores like it, and a single key gains nothing.
            config = {"disable_bulk_delete": "true", **options.config}
            return stores.S3Store(place, config=config, **common)
        if kind == "gs":
            return stores.GCSStore(place, config=options.config, **common)
        if "@" in place:
            return stores.AzureStore.from_url(f"abfss://{place}", config=options.config, **common)
        return stores.AzureStore(place, config=options.config, **common)
    except (library.exceptions.BaseError, ValueError) as failure:
        text = str(failure).partition("\n")[0]
        if name := _UNKNOWN_OPTION.search(text):
            raise unknown(name[1]) from None
        raise InvalidInput(f"storage_options cannot be used: {options.hide(text)}") from None


def _other_endpoint(options: Options) -> bool:
    """Whether the store may be another than Amazon's own, and list in another order."""
    names = (*options.config, *os.environ)
    return any(name.lower().startswith(("aws_endpoint", "endpoint")) for name in names)


def _root(path: str) -> str:
    root = path.strip("/")
    return check_key(root) if root else ""
