"""Tables that other engines wrote: each behaves as its kind in the manifest demands."""

from typing import Any

import pytest

from lakevilla.errors import LakeVillaError
from lakevilla.formats.port import Snapshot
from lakevilla.predicates import ANYTHING
from tests.golden.canonical import checksum
from tests.golden.tables import Golden, needed, tables

pytestmark = needed


def identities(snapshot: Snapshot) -> list[str]:
    return sorted(file.identity for file in snapshot.files(ANYTHING))


@pytest.mark.parametrize("entry", tables("read"))
def test_readable_table_gives_the_known_rows_at_every_version(entry: dict[str, Any]) -> None:
    golden = Golden(entry)
    latest = golden.latest
    assert latest.version == entry.get("latest_version", latest.version)
    assert len(latest.files(ANYTHING)) == entry["active_data_files"]
    assert checksum(golden.rows(latest)) == entry["expected"]["sha256"]
    for name, (snapshot, known) in golden.past().items():
        assert checksum(golden.rows(snapshot)) == known, name


@pytest.mark.parametrize("entry", tables("read", "log-only", formats=("delta",)))
def test_log_followed_entry_by_entry_ends_in_the_same_files(entry: dict[str, Any]) -> None:
    golden = Golden(entry)
    latest = golden.latest
    try:
        earlier = golden.table.at_version(max(0, latest.version - 3))
    except LakeVillaError:
        pytest.skip("older versions are gone or cannot be read")
    followed = golden.table.latest(earlier)
    assert followed is not None
    assert followed.version == latest.version
    assert identities(followed) == identities(latest)
    assert len(latest.files(ANYTHING)) == entry["active_data_files"]


@pytest.mark.parametrize("entry", tables("negative"))
def test_broken_table_raises(entry: dict[str, Any]) -> None:
    golden = Golden(entry)
    with pytest.raises(LakeVillaError):
        golden.rows(golden.latest)


@pytest.mark.parametrize("entry", tables("unsupported-by-all", "needs-test-prefix"))
def test_table_that_nobody_reads_is_refused(entry: dict[str, Any]) -> None:
    golden = Golden(entry)
    with pytest.raises(LakeVillaError):
        golden.rows(golden.latest)


@pytest.mark.parametrize("entry", tables("one-reader", "rejected", "disputed"))
def test_doubtful_table_gives_rows_that_a_reader_gave_or_an_error(entry: dict[str, Any]) -> None:
    golden = Golden(entry)
    try:
        found = checksum(golden.rows(golden.latest))
    except LakeVillaError:
        return
    results = [*entry["readers"].values(), *entry.get("disputed", {}).values()]
    assert found in [result.get("sha256") for result in results if isinstance(result, dict)]
