"""Publishing a change: what the next version needs is uploaded, then the table's log makes that version.

If the metadata that is there in the end names our attempt, the change is published, no matter which client
wrote it; if it names another client's, the version is taken. What was uploaded for nothing is left to vacuum.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from lakevilla.environment import Environment
from lakevilla.errors import Corrupt, Unsupported
from lakevilla.formats.authorship import attempt_of, put_of
from lakevilla.formats.conditional_commit import Damaged, held
from lakevilla.formats.iceberg.log.footprint import footprint_of
from lakevilla.formats.iceberg.log.markers import free_next
from lakevilla.formats.iceberg.log.next_version import make_next
from lakevilla.formats.iceberg.log.versions import Log, Made, Version
from lakevilla.formats.iceberg.metadata.document import current_snapshot
from lakevilla.formats.iceberg.snapshot import IcebergSnapshot
from lakevilla.formats.port import Published, Taken
from lakevilla.model import Author, Change, Footprint, Notice
from lakevilla.store.port import Store


def publish(
    log: Log, store: Store, environment: Environment, base: IcebergSnapshot, change: Change, author: Author
) -> Published | Taken:
    """Make the version after `base` of the table at the store's root."""
    base.refuse_writes()
    following = make_next(base, change, author, environment)
    upload(store, environment, following.objects)
    try:
        in_the_way = log.create(base.at, following.raw, author.txn)
    except Damaged as error:
        return Taken(Footprint.of_damaged(base.version + 1, str(error)), error)
    if isinstance(in_the_way, Made):
        made = in_the_way
        before = base if made.before is base.at else base.advance(made.before)
        return Published(base.advance(made.version, following.manifests), before, made.doubtful)
    if in_the_way.is_pending:
        raise held(store, in_the_way.number)
    if attempt_of(in_the_way.info) == author.attempt:
        # What we wrote is known, though vacuum may have deleted it before its create applied.
        is_ours = current_snapshot(in_the_way.raw) == current_snapshot(following.raw)
        return Published(base.advance(in_the_way, following.manifests if is_ours else None), base)
    try:
        after = base.advance(in_the_way)
        return Taken(footprint_of(base, after), after)
    except (Unsupported, Corrupt) as error:
        return Taken(Footprint.of_damaged(in_the_way.number, str(error)), error)


def encode_first(base: IcebergSnapshot, first: Change, author: Author, environment: Environment) -> bytes:
    """The first version with all that it needs, as bytes that any client can publish."""
    following = make_next(base, first, author, environment)
    objects = {key: base64.b64encode(data).decode() for key, data in following.objects.items()}
    return json.dumps({"metadata": following.raw, "objects": objects}, separators=(",", ":")).encode()


def publish_first(log: Log, store: Store, environment: Environment, data: bytes, attempt: str) -> bool:
    """Create the first version, and leave its hint. True if it is this attempt's, no matter which client
    wrote it."""
    try:
        record = json.loads(data)
        raw: Mapping[str, Any] = record["metadata"]
        objects = {str(key): base64.b64decode(text) for key, text in record["objects"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Corrupt(f"the record of a new table is malformed: {error!r}") from error
    upload(store, environment, objects)
    try:
        in_the_way = log.create(Version.not_made(raw), raw, attempt)
    except Damaged:
        return False
    if isinstance(in_the_way, Made):
        log.leave_hint(in_the_way.version)
        return True
    if attempt_of(in_the_way.info) != attempt:
        return False
    log.renew_hint(in_the_way)
    return True


def publish_notice(
    log: Log, store: Store, environment: Environment, base: IcebergSnapshot, notice: Notice, author: Author
) -> tuple[int, str] | None:
    """Announce a rename or a drop by an empty version at the first free number above `base`.

    Every version on the way is read; one that names this attempt ends the walk. Whatever else happened to the
    table since does not matter: its name is decided already. Versions that are held on the way are freed: as
    this one is the whole state of the table, what is filled below it would be lost.
    """
    change = Change("DROP TABLE" if notice.dropped else "RENAME TABLE", notice=notice)
    while True:
        for version in log.follow(base.at):
            if attempt_of(version.info) == author.attempt:
                return None
            base = base.advance(version)
        author = replace(author, put=environment.new_id())
        following = make_next(base, change, author, environment)
        upload(store, environment, following.objects)
        in_the_way = log.create(base.at, following.raw, author.txn)
        if isinstance(in_the_way, Made):
            return in_the_way.version.number, author.put
        if put_of(in_the_way.info) == author.put:
            return in_the_way.number, author.put
        if attempt_of(in_the_way.info) == author.attempt:
            return None
        if in_the_way.is_pending:
            free_next(store, environment, base.at)
        else:
            base = base.advance(in_the_way)


def upload(store: Store, environment: Environment, objects: Mapping[str, bytes]) -> None:
    """Write what a version needs before it is there. No other client knows these keys."""
    environment.fan_out([partial(store.put, key, data) for key, data in objects.items()])
