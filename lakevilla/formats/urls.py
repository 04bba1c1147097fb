"""Paths of files that a table records: below its root, or anywhere, as URLs."""

import re
from collections.abc import Callable
from urllib.parse import unquote

from lakevilla.store.port import Store

Opener = Callable[[str], Store]
"""From the URL of a folder to its store."""

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)


def is_absolute(path: str) -> bool:
    """Whether a path in the log does not start at the table's root."""
    return path.startswith("/") or _URL.fullmatch(path) is not None


def split_url(url: str) -> tuple[str, str]:
    """The folder of a data file's URL, as stores are opened by it, and the name of the file in it.

    The path of a `file:` URL stays encoded, because that is how such URLs are; other stores take keys as
    they are.
    """
    folder, _, name = url.rpartition("/")
    return folder if folder.startswith("file:") else unquote(folder), unquote(name)


def located(key: str, store: Store, opener: Opener) -> tuple[Store, str]:
    """The store and the key there of a file of the table at `store`: relative to its root, or a URL."""
    if not is_absolute(key):
        return store, key
    folder, name = split_url(key)
    return opener(folder), name
