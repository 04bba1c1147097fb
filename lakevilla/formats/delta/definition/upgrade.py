"""The least protocol that admits a set of features, from the one that a table has."""

from lakevilla.formats.delta.definition.features import reader_features, writer_features
from lakevilla.formats.delta.definition.properties import needed_features
from lakevilla.formats.delta.log.actions import Metadata, Protocol

FIRST = Protocol(1, 2)
"""What a plain table asks: every client in use reads and writes it."""

# Features that readers must know as well; all others concern writers alone.
_FOR_READERS = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
    }
)


def upgraded(protocol: Protocol, metadata: Metadata) -> Protocol:
    """The protocol with all that this metadata needs; the same one if it has it already.

    A table moves to feature lists (reader 3, writer 7) only when a version number cannot say it;
    what its old version numbers stood for is then listed too, as the protocol demands.
    """
    needed = needed_features(metadata)
    missing_readers = (needed & _FOR_READERS) - reader_features(protocol)
    missing_writers = needed - writer_features(protocol)
    if not missing_readers and not missing_writers:
        return protocol
    if missing_writers == {"checkConstraints"} and protocol.min_writer < 3:
        return Protocol(protocol.min_reader, 3)
    readers = reader_features(protocol) | missing_readers
    writers = writer_features(protocol) | missing_writers | readers
    if not readers:
        return Protocol(protocol.min_reader, 7, None, writers)
    return Protocol(3, 7, readers, writers)
