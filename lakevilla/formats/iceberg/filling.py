"""Filling a marker in the log of an Iceberg table: its metadata file becomes that of the commit.

This is the one place where a version is rewritten, so it is looked at first whether anybody could have built
on what the marker showed: a version above it that is no marker. An outside writer that comes between the look
and the replace is not seen: tables with markers in the log are for LakeVilla clients alone.
"""

from lakevilla.environment import Environment
from lakevilla.formats.authorship import attempt_of
from lakevilla.formats.creating import gone, read_back, unknown
from lakevilla.formats.iceberg.landing import land
from lakevilla.formats.iceberg.log import Version
from lakevilla.formats.iceberg.metadata import encode
from lakevilla.formats.iceberg.numbered import read_up, understand
from lakevilla.formats.iceberg.paths import metadata_key
from lakevilla.formats.iceberg.publish import upload
from lakevilla.formats.iceberg.snapshot import IcebergSnapshot
from lakevilla.formats.port import Displaced, Published
from lakevilla.model import Author, Change
from lakevilla.store.port import Ambiguous, Replaced, Store


def fill(
    store: Store, environment: Environment, base: IcebergSnapshot, change: Change, author: Author, etag: str
) -> Published | Displaced:
    """Replace the marker with this tag, the metadata file after `base`, by the change."""
    base.refuse_writes()
    number, compressed = base.at.next_number, base.at.compressed
    key = metadata_key(number, compressed)
    landing = land(base, change, author, environment)
    upload(store, environment, landing.objects)
    # Last, so that as little as possible lies between the look and the replace.
    for found in read_up(store, environment, number + 1, compressed):
        if found.version.marker is None:
            above = found.version.number
            return Displaced(
                f"version {above}, above our marker {number}, is of somebody who does not wait for it"
            )
    try:
        answer = store.replace(key, encode(landing.raw, compressed), etag)
    except Ambiguous as ambiguous:
        there = read_back(store, key, number, author.txn)
        if there is not None and there.etag == etag:
            # The marker is still there: the write may still be on its way.
            raise unknown(store, number, author.txn) from ambiguous
        return _met(store, base, author)
    if isinstance(answer, Replaced):
        made = Version(number, key, landing.raw, compressed=compressed)
        return Published(base.advance(made, landing.manifests))
    return _met(store, base, author)


def _met(store: Store, base: IcebergSnapshot, author: Author) -> Published | Displaced:
    """What it means that the metadata file is no longer our marker. Nobody rewrites what is none."""
    number, compressed = base.at.next_number, base.at.compressed
    found = read_back(store, metadata_key(number, compressed), number, author.txn)
    if found is None:
        raise gone(store, number)
    version = understand(store, number, found.data, compressed)
    if attempt_of(version.info) == author.attempt:
        return Published(base.advance(version))
    held = "somebody else goes on at" if version.is_pending else "somebody freed"
    return Displaced(f"{held} our marker, version {number}, because we showed no sign of life")
