"""Every object key, built and parsed in one place (docs/protocol.md section 2, and Delta's log layout).

Pure functions over strings. Keys are relative to a root: the lake's for `_lakevilla/global` and
`_lakevilla/txns`, the table's for everything else. No other module in the package writes a key by hand.
"""

import re

from lakevilla.errors import InvalidInput

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
        raise InvalidInput(f"{prefix!r} is not a folder: it must be empty or end with '/'")
    return f"{check_key(prefix[:-1])}/" if prefix else ""


HEAD = "_lakevilla/global/HEAD.json"
GLOBAL_LOG = "_lakevilla/global/log/"
HEADS = "_lakevilla/global/heads/"
"""Earlier states of the lake."""
_PROBES = "_lakevilla/probe/"
TXNS = "_lakevilla/txns/"
MARKERS = "_lakevilla/markers/"
OWNER = "_lakevilla/owner.json"
"""Which lake a table belongs to, below the table's root."""

DATA_FILE = (
    r"(?:^|/)(?:part|vectors)-(?P<txn>[0-9a-f]{32})"
    r"(?:-[^/]*\.(?:parquet|avro|puffin)|/deletion_vector_[0-9a-f-]{36}\.bin)$"
)
"""The keys of data files, manifests and deletion vectors that LakeVilla wrote, as a pattern that Python and
RE2 understand alike."""


def slot(seq: int) -> str:
    """The entry of the global log with this sequence number."""
    return f"{GLOBAL_LOG}{seq:020d}.json"


def seq_of(key: str) -> int | None:
    """The sequence number of an entry of the global log; None for anything else."""
    return _number_in(key, GLOBAL_LOG)


def past_head(seq: int) -> str:
    """The states of the lake up to this sequence number, from the object before on."""
    return f"{HEADS}{seq:020d}.json"


def past_seq_of(key: str) -> int | None:
    """The sequence number up to which an object holds earlier states; None for anything else."""
    return _number_in(key, HEADS)


def probe(unique: str) -> str:
    """A key that one probe of a store's conditional writes has for itself."""
    return f"{_PROBES}{unique}.json"


def txn_folder(txn: str) -> str:
    """Where a transaction keeps its lease and its sublogs, below the lake's root."""
    return f"{TXNS}{txn}/"


def lease(txn: str) -> str:
    """The lease of a transaction that holds tickets."""
    return f"{txn_folder(txn)}lease.json"


def sublog(txn: str, attempt: str, number: int) -> str:
    """The record of one operation of a transaction's attempt."""
    return f"{txn_folder(txn)}{attempt}/{number:08d}.json"


def txn_of(key: str) -> str | None:
    """The transaction in whose folder this key lies; None for anything else."""
    txn, slash, rest = key.removeprefix(TXNS).partition("/")
    return txn if key.startswith(TXNS) and txn and slash and rest else None


def data_file(txn: str, unique: str) -> str:
    """The name of a data file: it holds the transaction's id, so that vacuum knows whose it was."""
    return f"part-{txn}-{unique}.parquet"


FEED_FOLDER = "_change_data/"
"""Where the files of a table's change data feed lie, below the table's root. Delta fixes the name."""


def delete_file(txn: str, unique: str, suffix: str) -> str:
    """The name of a file of deleted rows of an Iceberg table, which holds the transaction's id too."""
    return f"part-{txn}-{unique}-deletes.{suffix}"


def vector_folder(txn: str) -> str:
    """Where a transaction's deletion vectors lie, below the table's root. Delta fixes the names of the files
    in it, see `DATA_FILE`."""
    return f"vectors-{txn}"


def attempt_of(key: str) -> str | None:
    """The attempt whose sublog lies at this key; None for anything else."""
    parts = key.removeprefix(TXNS).split("/")
    digits = parts[-1].removesuffix(".json")
    if len(parts) != 3 or not digits.isdecimal() or sublog(parts[0], parts[1], int(digits)) != key:
        return None
    return parts[1]


def marker(ticket: int) -> str:
    """A marker outside of a table's log, below the table's root."""
    return f"{MARKERS}{ticket:020d}.json"


def ticket_of(key: str) -> int | None:
    """The ticket whose marker lies at this key; None for anything else."""
    return _number_in(key, MARKERS)


def _number_in(key: str, folder: str) -> int | None:
    """The number that an object of this folder has for a name; None for any other object."""
    digits = key.removeprefix(folder).removesuffix(".json")
    exact = len(digits) == 20 and digits.isdecimal() and digits.isascii()
    return int(digits) if exact and key == f"{folder}{digits}.json" else None
