"""Locations of tables: one spelling for one place, and whether two locations are the same place.

A place has many URLs: `s3a://` and `s3://`, `FILE:`, `file://localhost`, `%74` for `t`, doubled slashes and
dot segments in a path, a symbolic link and its target. Two names for one place would be two tables to a
commit, and one of its writes would be lost. So new locations are stored in one spelling
(`canonical_location`), and locations are compared by what they lead to (`real_location`), because registries
of earlier releases hold any spelling.

A URL means here what `open` makes of it: the path of a `file:` URL is encoded, and dot segments in it are
folded before links are followed; other stores take keys as they are, so that in them `%74` is not `t`.
"""

import os
import re
from urllib.parse import quote, unquote

from lakevilla.errors import InvalidInput
from lakevilla.store.keys import check_key

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)(.*)", re.DOTALL)
_SAME_SCHEMES = {"s3a": "s3", "s3n": "s3"}


def canonical_location(url: str) -> str:
    """The URL in the one spelling in which it is stored. InvalidInput if it cannot be the URL of a folder."""
    scheme, authority, path = _parts(url)
    if scheme == "file":
        return _file_url(_local_path(authority, path))
    folder = path.strip("/")
    return f"{scheme}://{authority}/{check_key(folder)}" if folder else f"{scheme}://{authority}"


def is_local_path(location: str) -> bool:
    """Whether this can only be a path on this machine: absolute, below a home, or relative with a dot."""
    return location.startswith(("/", "~", "./", "../")) or location in (".", "..")


def local_url(path: str) -> str:
    """The URL of a path on this machine; a relative one is relative to the working directory."""
    return _file_url(os.path.abspath(os.path.expanduser(path)))


def real_location(url: str) -> str:
    """The place that a URL leads to: equal for all its spellings, and for a symbolic link and its target.

    Not stored: a link may be changed to lead elsewhere, and some formats record the path that was used.
    """
    scheme, authority, path = _parts(url)
    if scheme != "file":
        return canonical_location(url)
    return _file_url(os.path.realpath(_local_path(authority, path)))


def stored_location(root: str, location: str) -> str:
    """A location as the registry of the lake at `root` stores it: relative to the root for what lies below
    it, else a URL."""
    if "://" not in location:
        return location.rstrip("/")
    below = _below(root, location)
    return canonical_location(location) if below is None else below


def real_place(root: str, location: str) -> str:
    """What a location in the registry leads to: equal for two locations that are the same place.

    Not an error for a URL that cannot be opened, which is only itself.
    """
    if "://" not in location:
        return location
    try:
        below = _below(root, location)
        return real_location(location) if below is None else below
    except InvalidInput:
        return location


def _below(root: str, location: str) -> str | None:
    """The key of a location below the root, both of them URLs; None if it does not lie there."""
    folder, place = f"{real_location(root).removesuffix('/')}/", real_location(location)
    if not place.startswith(folder) or place == folder:
        return None
    below = place[len(folder) :]
    return unquote(below) if place.startswith("file:") else below


def _parts(url: str) -> tuple[str, str, str]:
    """Scheme, authority and path of a URL."""
    found = _URL.fullmatch(url)
    if found is None:
        raise InvalidInput("a location is not a URL: write file:///path or s3://bucket/path")
    scheme = found[1].lower()
    # What comes before '@' is the container of an abfss URL; the name of a host has no case.
    container, at, host = found[2].rpartition("@")
    return _SAME_SCHEMES.get(scheme, scheme), f"{container}{at}{host.lower() if at else host}", found[3]


def _local_path(authority: str, path: str) -> str:
    if authority.lower() not in ("", "localhost") or not path:
        raise InvalidInput("a file:// URL names an absolute path on this machine, as in file:///data/lake")
    plain = unquote(path)
    if "\0" in plain:
        raise InvalidInput(f"{plain!r} cannot be a path: it contains a zero character")
    return os.path.normpath("/" + plain.lstrip("/"))


def _file_url(path: str) -> str:
    return f"file://{quote(path)}"
