"""Paths of files that a table records: below its root, or anywhere, as URLs."""

import re
from urllib.parse import unquote

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
