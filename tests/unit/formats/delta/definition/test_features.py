"""Features of the protocol: what is read, what is written, what is refused, and what the message says."""

import json
from typing import Any

import pytest

from lakevilla.errors import Corrupt, Unsupported
from lakevilla.formats.delta.definition.features import (
    FEATURES,
    Stance,
    in_commit_timestamps,
    mapping_mode,
    refuse_read,
    refuse_write,
)
from lakevilla.formats.delta.log.actions import Metadata, Protocol


def described(notes: dict[str, Any] | None = None, kind: Any = "long", **configuration: str) -> Metadata:
    field = {"name": "a", "type": kind, "nullable": True, "metadata": notes or {}}
    return Metadata("i", json.dumps({"type": "struct", "fields": [field]}), configuration=configuration)


def protocol(*features: str, readers: tuple[str, ...] | None = None) -> Protocol:
    return Protocol(3, 7, frozenset(features if readers is None else readers), frozenset(features))


@pytest.mark.parametrize("version", [(1, 1), (1, 2), (1, 3), (1, 4), (2, 5), (2, 6)])
def test_plain_table_of_any_legacy_version_is_read_and_written(version: tuple[int, int]) -> None:
    refuse_write(Protocol(*version), described())


@pytest.mark.parametrize("name", sorted(FEATURES))
def test_feature_that_is_only_listed_is_treated_as_the_table_says(name: str) -> None:
    feature = FEATURES[name]
    for stance, refuse in ((feature.read, refuse_read), (feature.write, refuse_write)):
        if stance is Stance.REFUSED:
            with pytest.raises(Unsupported, match=name):
                refuse(protocol(name), described())
        elif refuse is refuse_read or feature.read is not Stance.REFUSED:
            refuse(protocol(name), described())


ARRAY_OF_VARIANT = {"type": "array", "elementType": "variant", "containsNull": True}


@pytest.mark.parametrize(
    ("name", "metadata"),
    [
        ("generatedColumns", described({"delta.generationExpression": "1"})),
        ("identityColumns", described({"delta.identity.start": 1})),
        ("allowColumnDefaults", described({"CURRENT_DEFAULT": "1"})),
        ("icebergCompatV2", described(**{"delta.enableIcebergCompatV2": "true"})),
        ("collations-preview", described({"__COLLATIONS": {"a": "UNICODE"}})),
        ("variantType", described(kind=ARRAY_OF_VARIANT)),
        ("inCommitTimestamp-preview", described(**{"delta.enableInCommitTimestamps-preview": "true"})),
    ],
)
def test_feature_in_use_stops_writers(name: str, metadata: Metadata) -> None:
    with pytest.raises(Unsupported, match=name):
        refuse_write(protocol(name, readers=() if name != "variantType" else None), metadata)


def test_legacy_version_brings_its_features() -> None:
    refuse_read(Protocol(1, 4), described({"delta.generationExpression": "1"}))
    with pytest.raises(Unsupported, match="generatedColumns"):
        refuse_write(Protocol(1, 4), described({"delta.generationExpression": "1"}))
    # Writer version 7 lists its features: what it does not list is not in force.
    refuse_write(Protocol(1, 7, None, frozenset()), described({"delta.generationExpression": "1"}))


def test_unknown_feature_stops_the_side_that_lists_it() -> None:
    with pytest.raises(Unsupported, match="'news'"):
        refuse_read(protocol("news"), described())
    refuse_read(protocol("news", readers=()), described())
    with pytest.raises(Unsupported, match="'news'"):
        refuse_write(protocol("news", readers=()), described())


@pytest.mark.parametrize("version", [Protocol(4, 7), Protocol(1, 8)])
def test_version_of_the_future_is_not_written(version: Protocol) -> None:
    with pytest.raises(Unsupported, match="version"):
        refuse_write(version, described())


def test_data_files_of_another_format_are_not_read() -> None:
    with pytest.raises(Unsupported, match="orc"):
        refuse_read(Protocol(1, 2), Metadata("i", "{}", format_provider="orc"))


def test_column_mapping_counts_where_the_protocol_supports_it() -> None:
    by_name = described(**{"delta.columnMapping.mode": "name"})
    assert mapping_mode(Protocol(1, 2), by_name) == "none"
    assert mapping_mode(Protocol(2, 5), by_name) == "name"
    assert mapping_mode(protocol("columnMapping"), by_name) == "name"
    assert mapping_mode(protocol("deletionVectors"), by_name) == "none"
    assert mapping_mode(protocol("columnMapping", readers=()), by_name) == "name"
    assert mapping_mode(Protocol(1, 5), by_name) == "none"
    with pytest.raises(Corrupt):
        mapping_mode(Protocol(2, 5), described(**{"delta.columnMapping.mode": "both"}))


def test_in_commit_timestamps_need_feature_and_property() -> None:
    enabled = described(**{"delta.enableInCommitTimestamps": "true"})
    assert in_commit_timestamps(protocol("inCommitTimestamp"), enabled)
    assert not in_commit_timestamps(protocol("inCommitTimestamp"), described())
    assert not in_commit_timestamps(Protocol(1, 2), enabled)
