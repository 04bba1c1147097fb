"""Every object key, built and parsed in one place (docs/protocol.md section 2, and Delta's log layout).

Pure functions over strings. Keys are relative to a root: the lake's for `_lakevilla/global` and
`_lakevilla/txns`, the table's for everything else. Nobody else in the package writes a key by hand.
"""

import re
from dataclasses import dataclass

from lakevilla.errors import InvalidInput

# The widest number that a 20-digit name can hold and that Delta's signed 64-bit versions allow.
LARGEST_NUMBER = 2**63 - 1

_UNUSABLE_KEY = re.compile(r"(^|/)\.{0,2}(/|$)|[\x00-\x1f\x7f\ud800-\udfff]")


def check_key(key: str) -> str:
    """The key itself, if every store can hold it exactly as it is.

    No empty, `.` or `..` segments (a directory would leave its root, obstore would drop them), no
    control characters, nothing that UTF-8 cannot say.
    """
    if _UNUSABLE_KEY.search(key):
        raise InvalidInput(
            f"{key!r} cannot be the key of an object: segments between '/' must not be empty, '.' or "
            "'..', and control characters are not allowed"
        )
    return key


def check_folder(prefix: str) -> str:
    """The prefix itself, if it is empty (the root) or a folder's key and a slash."""
    if prefix and not prefix.endswith("/"):
        raise InvalidInput(f"{prefix!r} is no folder: it must be empty or end with '/'")
    return f"{check_key(prefix[:-1])}/" if prefix else ""


# The lake's own objects.

HEAD = "_lakevilla/global/HEAD.json"
GLOBAL_LOG = "_lakevilla/global/log/"
TRANSACTIONS = "_lakevilla/txns/"
PROBES = "_lakevilla/probe/"
OWNER = "_lakevilla/owner.json"
MARKERS = "_lakevilla/markers/"

_SLOT = re.compile(r"_lakevilla/global/log/([0-9]{20})\.json")
_MARKER = re.compile(r"_lakevilla/markers/([0-9]{20})\.json")
_TRANSACTION = re.compile(r"_lakevilla/txns/([^/]+)/(.+)")


def slot(seq: int) -> str:
    """The entry of the global log with this sequence number."""
    return f"{GLOBAL_LOG}{_number(seq)}.json"


def parse_slot(key: str) -> int | None:
    """The sequence number of a global log entry, or None for any other key."""
    found = _SLOT.fullmatch(key)
    return int(found[1]) if found else None


def transaction(txn: str, part: str) -> str:
    """One object of a transaction, such as its lease or a sublog record."""
    return f"{TRANSACTIONS}{txn}/{part}"


def parse_transaction(key: str) -> tuple[str, str] | None:
    """The transaction's id and the part, or None for any other key."""
    found = _TRANSACTION.fullmatch(key)
    return (found[1], found[2]) if found else None


def marker(ticket: int) -> str:
    """The marker with this ticket, below a table's root."""
    return f"{MARKERS}{_number(ticket)}.json"


def parse_marker(key: str) -> int | None:
    """The ticket of a marker, or None for any other key."""
    found = _MARKER.fullmatch(key)
    return int(found[1]) if found else None


def probe(unique: str) -> str:
    """A key that one probe of a store's conditional writes has for itself."""
    return f"{PROBES}{unique}.json"


# Delta's log.

DELTA_LOG = "_delta_log/"
LAST_CHECKPOINT = "_delta_log/_last_checkpoint"
SIDECARS = "_delta_log/_sidecars/"

_DELTA_FILE = re.compile(
    r"_delta_log/(?P<version>[0-9]{20})\."
    r"(?:(?P<commit>json)"
    r"|(?P<last>[0-9]{20})\.compacted\.json"
    r"|checkpoint(?:"
    r"\.(?P<part>[0-9]{10})\.(?P<parts>[0-9]{10})\.parquet"
    r"|\.(?P<uuid>[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})\.(?P<kind>parquet|json)"
    r"|\.parquet))"
)


@dataclass(frozen=True, slots=True)
class Commit:
    """`<version>.json`: the actions of one version."""

    version: int


@dataclass(frozen=True, slots=True)
class Compacted:
    """`<first>.<last>.compacted.json`: the actions of versions first to last, reconciled."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One file of a checkpoint: classic (one part, no uuid), one of several parts, or V2 (a uuid)."""

    version: int
    part: int = 1
    parts: int = 1
    uuid: str = ""
    kind: str = "parquet"


def commit(version: int) -> str:
    """The log entry of a version."""
    return f"{DELTA_LOG}{_number(version)}.json"


def delta_log_from(version: int) -> str:
    """A `start_after` for listings of the log: every file of `version` or later sorts after it."""
    return f"{DELTA_LOG}{_number(version)}"


def compacted(first: int, last: int) -> str:
    """The log compaction file that covers the versions first to last."""
    return f"{DELTA_LOG}{_number(first)}.{_number(last)}.compacted.json"


def checkpoint(version: int) -> str:
    """The classic checkpoint of a version, in one file."""
    return f"{DELTA_LOG}{_number(version)}.checkpoint.parquet"


def checkpoint_part(version: int, part: int, parts: int) -> str:
    """One of the files of a multi-part checkpoint; parts count from 1."""
    return f"{DELTA_LOG}{_number(version)}.checkpoint.{part:010d}.{parts:010d}.parquet"


def checkpoint_v2(version: int, uuid: str, kind: str = "parquet") -> str:
    """The top-level file of a V2 checkpoint; `kind` is parquet or json."""
    return f"{DELTA_LOG}{_number(version)}.checkpoint.{uuid}.{kind}"


def sidecar(name: str) -> str:
    """A sidecar file of a V2 checkpoint, from the name that the checkpoint gives."""
    return f"{SIDECARS}{name}"


def parse_delta_file(key: str) -> Commit | Compacted | Checkpoint | None:
    """What a key below `_delta_log/` is, or None: readers ignore names that they do not know."""
    found = _DELTA_FILE.fullmatch(key)
    if found is None:
        return None
    version = int(found["version"])
    if found["commit"]:
        return Commit(version)
    if found["last"]:
        return Compacted(version, int(found["last"]))
    if found["part"]:
        return Checkpoint(version, int(found["part"]), int(found["parts"]))
    if found["uuid"]:
        return Checkpoint(version, uuid=found["uuid"], kind=found["kind"])
    return Checkpoint(version)


def _number(value: int) -> str:
    if not 0 <= value <= LARGEST_NUMBER:
        raise ValueError(f"{value} is not a version or sequence number")
    return f"{value:020d}"
