"""The records of the queue: golden bytes, and refusal of nonsense and of newer formats."""

import pytest

from lakevilla.errors import Corrupt, Unsupported
from lakevilla.markers.records import Lease, Marker

MARKER = Marker("txn-1", "attempt-1", "put-1", 1_760_000_000_000, True, ("txn-0", "txn-ö"))
MARKER_BYTES = (
    '{"format":1,"txn":"txn-1","attempt":"attempt-1","put":"put-1","claimed_ms":1760000000000,'
    '"live":true,"precedes":["txn-0","txn-ö"]}'
).encode()
LEASE = Lease("txn-1", "attempt-1", "put-2", 3, 1_760_000_000_500)
LEASE_BYTES = (
    b'{"format":1,"txn":"txn-1","attempt":"attempt-1","put":"put-2","beat":3,"written_ms":1760000000500}'
)


def test_marker_encodes_to_its_golden_bytes_and_back() -> None:
    assert MARKER.encode() == MARKER_BYTES
    assert Marker.decode(MARKER_BYTES, "marker") == MARKER


def test_lease_encodes_to_its_golden_bytes_and_back() -> None:
    assert LEASE.encode() == LEASE_BYTES
    assert Lease.decode(LEASE_BYTES, "lease") == LEASE


def test_tombstone_keeps_the_owner_and_is_not_live() -> None:
    tombstone = MARKER.tombstone("put-9")
    assert tombstone == Marker("txn-1", "attempt-1", "put-9", 1_760_000_000_000, False, ())
    assert Marker.decode(tombstone.encode(), "marker") == tombstone


@pytest.mark.parametrize(("record", "data"), [(Marker, MARKER_BYTES), (Lease, LEASE_BYTES)])
def test_newer_record_format_is_refused(record: type[Marker] | type[Lease], data: bytes) -> None:
    with pytest.raises(Unsupported, match="record format 2"):
        record.decode(data.replace(b'"format":1', b'"format":2'), "it")


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"[]",
        b"{}",
        MARKER_BYTES[:-3],
        MARKER_BYTES.replace(b'"live":true', b'"live":1'),
        MARKER_BYTES.replace(b'"live":true,', b""),
        MARKER_BYTES.replace(b'"precedes":["txn-0"', b'"precedes":[7'),
        MARKER_BYTES.replace(b'"claimed_ms":1760000000000', b'"claimed_ms":"now"'),
        MARKER_BYTES.replace(b'"txn":"txn-1"', b'"txn":null'),
    ],
)
def test_damaged_marker_is_corrupt_and_named(damaged: bytes) -> None:
    with pytest.raises(Corrupt, match=r"markers/7\.json"):
        Marker.decode(damaged, "markers/7.json")


@pytest.mark.parametrize("damaged", [b"x", LEASE_BYTES.replace(b'"beat":3', b'"beat":true')])
def test_damaged_lease_is_corrupt_and_named(damaged: bytes) -> None:
    with pytest.raises(Corrupt, match="the lease"):
        Lease.decode(damaged, "the lease")
