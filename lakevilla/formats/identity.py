"""Is the table at a location still the one that was read there (docs/protocol.md, section 1, "Identity")?

A table's folder may be deleted and another table created in it. Log entries of the new table have the same
keys, so a client that goes on from a version that it knows would mix the two, or leave a gap in the new log.
So a client looks at the version that it knows again when its last look is older than `TRUST_SECONDS`: in the
same round as it asks for the next version, and before it publishes. On a local directory, where a look costs
no request to a server, every publish looks. A client may be suspended between the look and its publish, so
one that was answered late looks once more, and deletes its log entry if that lies in another table's log.
"""

from collections.abc import Callable

from lakevilla.environment import Environment
from lakevilla.errors import CommitUnknown, Conflict, Corrupt, Unavailable
from lakevilla.model import Author

TRUST_SECONDS = 1.0
"""How long a table counts as the one that was seen, without another look."""
TRUST_DIRECTORY_SECONDS = 0.0
SLOW_SECONDS = 10.0
"""A publish that is answered so long after the look is looked at again."""


class Recreated(Conflict):
    """The table that was read was deleted, and another one may be in its place."""


class Expired(Conflict):
    """What a version needs that was read long ago was cleaned up."""


def must_look(environment: Environment, seen_at: float) -> bool:
    """Whether what was seen at this time has to be looked at before the table is followed."""
    return environment.elapsed() - seen_at > TRUST_SECONDS


def must_look_before_publish(environment: Environment, seen_at: float, url: str) -> bool:
    """The same before a publish on the table at this URL."""
    trusted = TRUST_DIRECTORY_SECONDS if url.startswith("file:") else TRUST_SECONDS
    return environment.elapsed() - seen_at > trusted


def was_slow(environment: Environment, seen_at: float) -> bool:
    """Whether a publish that rests on a look at this time has to be confirmed."""
    return environment.elapsed() - seen_at > SLOW_SECONDS


def recreated(url: str, version: int) -> Recreated:
    """The error for a table that is not the one that was read any more."""
    return Recreated(
        f"the table at {url} was deleted or recreated after version {version} of it was read. Nothing was "
        "changed; run the transaction again on the table that is there now"
    )


def confirm_published(
    url: str,
    base: int,
    version: int,
    author: Author,
    has_base: Callable[[], bool],
    retract: Callable[[], bool],
) -> None:
    """After a slow publish on version `base` as `version`. Recreated if another table is there by now, and
    our log entry was taken out of its log again; CommitUnknown if it was not there, or was built on, or if
    the store stopped answering before that was clear."""
    try:
        if _is_there(has_base):
            return
        if retract():
            raise recreated(url, base)
    except Unavailable as error:
        raise CommitUnknown(
            f"transaction {author.txn} was published as version {version} of the table at {url}, and the "
            "store stopped answering before it was clear whether that is still the same table. Ask "
            f"lake.outcome({author.txn!r}) when the store answers again; do not rerun it blindly",
            transaction=author.txn,
            version=version,
        ) from error
    raise CommitUnknown(
        f"transaction {author.txn} was published as version {version} of the table at {url}, and the table "
        "was deleted or recreated at that time: look at the data before it is run again",
        transaction=author.txn,
        version=version,
    )


def _is_there(has_base: Callable[[], bool]) -> bool:
    try:
        return has_base()
    except Corrupt:
        # Our log entry is alone there, or the log was damaged below it: no client can read it.
        return False
