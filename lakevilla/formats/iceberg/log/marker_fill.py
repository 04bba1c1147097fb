"""Filling a marker in the log of an Iceberg table: its metadata file becomes that of the commit.

This is the one place where a version is rewritten, so it is looked at first whether any client could have
built on what the marker showed: a version above it that is not a marker. An outside writer that comes between
the look and the replace is not seen: tables with markers in the log are for LakeVilla clients alone.
"""

from lakevilla.environment import Environment
from lakevilla.formats.authorship import attempt_of
from lakevilla.formats.conditional_commit import displaced, fill_version
from lakevilla.formats.iceberg.log.next_version import make_next
from lakevilla.formats.iceberg.log.numbered_files import read_up, understand
from lakevilla.formats.iceberg.log.publish import upload
from lakevilla.formats.iceberg.log.versions import Version
from lakevilla.formats.iceberg.metadata.document import encode
from lakevilla.formats.iceberg.metadata.paths import metadata_key
from lakevilla.formats.iceberg.snapshot import IcebergSnapshot
from lakevilla.formats.port import Displaced, Published
from lakevilla.model import Author, Change
from lakevilla.store.port import Store


def fill(
    store: Store, environment: Environment, base: IcebergSnapshot, change: Change, author: Author, etag: str
) -> Published | Displaced:
    """Replace the marker with this tag, the metadata file after `base`, by the change."""
    base.refuse_writes()
    number, compressed = base.at.next_number, base.at.compressed
    key = metadata_key(number, compressed)
    following = make_next(base, change, author, environment)
    upload(store, environment, following.objects)
    # Last, so that the time between the read and the replace is short.
    for found in read_up(store, environment, number + 1, compressed):
        if found.version.marker is None:
            above = found.version.number
            return Displaced(
                f"version {above}, above our marker {number}, was written by a client that did not wait"
            )
    met = fill_version(store, key, encode(following.raw, compressed), etag, number, author.txn)
    if met is None:
        made = Version(number, key, following.raw, compressed=compressed)
        return Published(base.advance(made, following.manifests))
    version = understand(store, number, met, compressed)
    if attempt_of(version.info) == author.attempt:
        return Published(base.advance(version))
    return Displaced(displaced(number, version.is_pending))
