"""Is the table at a location still the one that was read there (docs/protocol.md, section 1, "Identity")?

A table's folder may be deleted and another table created in it. Log entries of the new table have the same
keys, so a client that goes on from a version that it knows would mix the two, or leave a gap in the new log.
So a client looks at the version that it knows again when its last look is older than `TRUST_SECONDS`: in the
same round as it asks for the next version, and before it publishes. On a local directory, where a look costs
no request to a server, every publish looks.
"""

from lakevilla.environment import Environment
from lakevilla.errors import Conflict

TRUST_SECONDS = 1.0
"""How long a table counts as the one that was seen, without another look."""
TRUST_DIRECTORY_SECONDS = 0.0


class Recreated(Conflict):
    """The table that was read was deleted, and another one may lie in its place."""


def must_look(environment: Environment, seen_at: float) -> bool:
    """Whether what was seen at this time has to be looked at before the table is followed."""
    return environment.elapsed() - seen_at > TRUST_SECONDS


def must_look_before_publish(environment: Environment, seen_at: float, url: str) -> bool:
    """The same before a publish on the table at this URL."""
    trusted = TRUST_DIRECTORY_SECONDS if url.startswith("file:") else TRUST_SECONDS
    return environment.elapsed() - seen_at > trusted


def recreated(url: str, version: int) -> Recreated:
    """The error for a table that is not the one that was read any more."""
    return Recreated(
        f"the table at {url} was deleted or recreated after version {version} of it was read. Nothing was "
        "changed; run the transaction again on the table that is there now"
    )
