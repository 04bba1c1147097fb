"""Which kind of object a request is about: the places at which a client may die."""

import re
from functools import lru_cache

_KINDS = (
    ("HEAD", re.compile(r"(^|/)_lakevilla/global/HEAD\.json$")),
    ("slot", re.compile(r"(^|/)_lakevilla/global/log/")),
    ("past HEAD", re.compile(r"(^|/)_lakevilla/global/heads/")),
    ("probe", re.compile(r"(^|/)_lakevilla/probe/")),
    ("lease", re.compile(r"(^|/)_lakevilla/txns/[^/]+/lease\.json$")),
    ("sublog", re.compile(r"(^|/)_lakevilla/txns/")),
    ("marker", re.compile(r"/_lakevilla/markers/")),
    ("last checkpoint", re.compile(r"/_delta_log/_last_checkpoint$")),
    ("checkpoint", re.compile(r"/_delta_log/.*\.parquet$")),
    ("log entry", re.compile(r"/_delta_log/")),
    ("metadata", re.compile(r"/metadata/v\d+\.metadata\.json$")),
    ("pointer", re.compile(r"^_catalogs/")),
    ("named metadata", re.compile(r"/metadata/\d+-[^/]*\.metadata\.json$")),
    ("hint", re.compile(r"/metadata/version-hint\.text$")),
    ("manifest list", re.compile(r"/metadata/[^/]*snap-.*\.avro$")),
    ("manifest", re.compile(r"/metadata/.*\.avro$")),
    ("data", re.compile(r"\.parquet$")),
)


def site(kind: str, key: str) -> str:
    """The request and what it is about, such as `create marker`; a listing is about what lies there."""
    return f"{kind} {_object(key)}"


@lru_cache(maxsize=4096)
def _object(key: str) -> str:
    return next((name for name, pattern in _KINDS if pattern.search(key)), "folder")
