"""Publishing a change: what the next version needs is uploaded, then one create of its metadata decides.

If the metadata that is there in the end names our attempt, the change is published, whoever wrote it; if it
names somebody else's, the version is taken. What was uploaded for nothing is left to vacuum.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from lakevilla.environment import Environment
from lakevilla.errors import Corrupt, Unsupported
from lakevilla.formats.creating import create_version
from lakevilla.formats.iceberg.commits import attempt_of, info_of, is_pending
from lakevilla.formats.iceberg.footprint import footprint_of
from lakevilla.formats.iceberg.landing import Landing, land
from lakevilla.formats.iceberg.log import Version, follow
from lakevilla.formats.iceberg.metadata import encode, parse
from lakevilla.formats.iceberg.paths import metadata_key
from lakevilla.formats.iceberg.snapshot import IcebergSnapshot
from lakevilla.formats.port import Published, Taken
from lakevilla.model import Author, Change, Notice
from lakevilla.store.port import Store


def publish(
    store: Store, environment: Environment, base: IcebergSnapshot, change: Change, author: Author
) -> Published | Taken:
    """Create version `base.version + 1` of the table at the store's root."""
    base.refuse_writes()
    landing = land(base, change, author, environment)
    upload(store, environment, landing.objects)
    version = version_of(base, landing)
    in_the_way = create(store, version, author.txn)
    if in_the_way is None:
        return Published(base.advance(version, landing.manifests))
    if is_pending(in_the_way.raw, in_the_way.number):
        raise Unsupported(
            f"version {version.number} of {store.url} is held by a marker in the log, and the table says "
            "that it has none: somebody changed lakevilla.markers; run `lakevilla recover` first"
        )
    after = base.advance(in_the_way)
    if attempt_of(info_of(in_the_way.raw, in_the_way.number)) == author.attempt:
        return Published(after)
    return Taken(footprint_of(base, after), after)


def encode_first(base: IcebergSnapshot, first: Change, author: Author, environment: Environment) -> bytes:
    """Version 0 with all that it needs, as bytes that anybody can publish."""
    landing = land(base, first, author, environment)
    objects = {key: base64.b64encode(data).decode() for key, data in landing.objects.items()}
    return json.dumps({"metadata": landing.raw, "objects": objects}, separators=(",", ":")).encode()


def publish_first(store: Store, environment: Environment, data: bytes, attempt: str) -> bool:
    """Create version 0. True if version 0 is this attempt's, whoever wrote it.

    Iceberg's own writers begin with version 1: where there is one without a version 0, the table is theirs.
    """
    try:
        record = json.loads(data)
        raw: Mapping[str, Any] = record["metadata"]
        objects = {str(key): base64.b64decode(text) for key, text in record["objects"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Corrupt(f"the record of a new table is malformed: {error!r}") from error
    if store.head(metadata_key(1)) is not None and store.head(metadata_key(0)) is None:
        return False
    upload(store, environment, objects)
    in_the_way = create(store, Version(0, metadata_key(0), raw), attempt)
    return in_the_way is None or attempt_of(info_of(in_the_way.raw, 0)) == attempt


def publish_notice(
    store: Store, environment: Environment, base: IcebergSnapshot, notice: Notice, author: Author
) -> None:
    """Tell of a new name, or of none any more, by an empty version at the first free number above `base`.

    Every version on the way is read; one that names this attempt ends the walk. Whatever else happened to
    the table since does not matter: what became of its name is decided already.
    """
    change = Change("DROP TABLE" if notice.dropped else "RENAME TABLE", notice=notice)
    while True:
        for version in follow(store, environment, base.at):
            if attempt_of(info_of(version.raw, version.number)) == author.attempt:
                return
            base = base.advance(version)
        author = replace(author, put=environment.new_id())
        landing = land(base, change, author, environment)
        in_the_way = create(store, version_of(base, landing), author.txn)
        if in_the_way is None:
            return
        if attempt_of(info_of(in_the_way.raw, in_the_way.number)) == author.attempt:
            return
        base = base.advance(in_the_way)


def upload(store: Store, environment: Environment, objects: Mapping[str, bytes]) -> None:
    """Write what a version needs before it is there. Nobody else knows these keys."""
    environment.fan_out([partial(store.put, key, data) for key, data in objects.items()])


def version_of(base: IcebergSnapshot, landing: Landing) -> Version:
    """The version after `base` that a landing makes."""
    number = base.version + 1
    key = metadata_key(number, base.at.compressed)
    return Version(number, key, landing.raw, compressed=base.at.compressed)


def create(store: Store, version: Version, txn: str) -> Version | None:
    """None if we created this version, else the one that is there: perhaps our own."""
    data = encode(version.raw, version.compressed)
    found = create_version(store, version.key, data, version.number, txn)
    if found is None:
        return None
    return replace(version, raw=parse(found, f"{store.url}/{version.key}"))
