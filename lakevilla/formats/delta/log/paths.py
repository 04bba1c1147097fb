"""Names in a Delta table: files of the log, paths of data files. Every such name is built and parsed here."""

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote

from lakevilla.formats.urls import is_absolute

LOG = "_delta_log/"
SIDECARS = "_delta_log/_sidecars/"
LAST_CHECKPOINT = "_delta_log/_last_checkpoint"

_NAME = re.compile(
    r"(?P<version>\d{20})"
    r"(?:(?P<commit>\.json)"
    r"|(?P<classic>\.checkpoint\.parquet)"
    r"|\.checkpoint\.(?P<part>\d{10})\.(?P<parts>\d{10})\.parquet"
    r"|(?P<uuid>\.checkpoint\.[0-9a-fA-F-]{36}\.(?:json|parquet))"
    r"|\.(?P<end>\d{20})\.compacted\.json)"
)
_COMPANION = re.compile(r"(?P<version>\d{20})\.crc|\.(?P<of>\d{20})\..*\.crc")

LogKind = Literal["commit", "classic", "multipart", "uuid", "compacted"]


@dataclass(frozen=True, slots=True)
class LogName:
    """What the name of a log file says. `end` is the last version of a compacted range."""

    kind: LogKind
    version: int
    end: int
    part: int = 1
    parts: int = 1


def entry_key(version: int) -> str:
    """The key of the log entry that makes this version."""
    return f"{LOG}{version:020}.json"


def version_prefix(version: int) -> str:
    """Sorts before every log file of this version and after all of the versions before it."""
    return f"{LOG}{version:020}"


def checkpoint_key(version: int) -> str:
    """The key of a classic checkpoint."""
    return f"{LOG}{version:020}.checkpoint.parquet"


def checkpoint_part_keys(version: int, parts: int) -> tuple[str, ...]:
    """The keys of a checkpoint in several parts."""
    return tuple(
        f"{LOG}{version:020}.checkpoint.{part:010}.{parts:010}.parquet" for part in range(1, parts + 1)
    )


def checkpoint_v2_key(version: int, uuid: str) -> str:
    """The key of the top-level file of a V2 checkpoint."""
    return f"{LOG}{version:020}.checkpoint.{uuid}.parquet"


def parse_log_key(key: str) -> LogName | None:
    """What a key in the log's folder is; None for files that are not part of the log."""
    found = _NAME.fullmatch(key.removeprefix(LOG))
    if found is None:
        return None
    version = int(found["version"])
    if found["commit"]:
        return LogName("commit", version, version)
    if found["classic"]:
        return LogName("classic", version, version)
    if found["uuid"]:
        return LogName("uuid", version, version)
    if found["end"]:
        end = int(found["end"])
        return LogName("compacted", version, end) if end > version else None
    part, parts = int(found["part"]), int(found["parts"])
    return LogName("multipart", version, version, part, parts) if 1 <= part <= parts else None


def parse_companion(key: str) -> int | None:
    """The version of a checksum: Spark's of a version, or Hadoop's of another file of the log."""
    found = _COMPANION.fullmatch(key.removeprefix(LOG))
    return None if found is None else int(found["version"] or found["of"])


def data_key(path: str, root: str) -> str:
    """The key of a data file from its path in the log: relative to the table's root, or a URL.

    Paths in the log are percent-encoded once. URLs stay encoded, because they are still to be split.
    """
    if not is_absolute(path):
        return unquote(path)
    whole = _url(path, root)
    base = _url(root, root).rstrip("/") + "/"
    return unquote(whole.removeprefix(base)) if whole.startswith(base) else whole


def _url(path: str, root: str) -> str:
    """An absolute path as a URL; one without a scheme belongs to the file system of the table's root."""
    if path.startswith("/"):
        scheme, separator, rest = root.partition("://")
        if separator and scheme != "file":
            return f"{scheme}://{rest.split('/', 1)[0]}{path}"
        return f"file://{path}"
    # `file:/a` and `file:///a` are the same.
    return "file:///" + path[5:].lstrip("/") if path[:5].lower() == "file:" else path
