"""Which files of a log may go: the pure rules."""

import pytest

from lakevilla.formats.delta.log.expiry import LogFile, decide_expired, decide_oldest_kept
from lakevilla.formats.delta.log.paths import LOG, checkpoint_key, checkpoint_part_keys, entry_key
from lakevilla.store.port import Meta

OLD, YOUNG, SINCE = 1_000, 9_000, 5_000


def meta(key: str, modified_ms: int = OLD) -> Meta:
    return Meta(key, 1, "", modified_ms)


def commits(until: int, young_from: int) -> dict[int, Meta]:
    return {
        version: meta(entry_key(version), YOUNG if version >= young_from else OLD)
        for version in range(until + 1)
    }


def expired(keys: list[str], base: int, modified_ms: int = OLD) -> list[str]:
    files = [file for key in keys if (file := LogFile.of(meta(key, modified_ms))) is not None]
    return [file.meta.key for file in decide_expired(files, base, SINCE)]


def test_version_that_was_current_when_the_retention_began_is_kept() -> None:
    assert decide_oldest_kept(commits(20, young_from=13), 20, SINCE, ()) == 12


def test_newest_version_is_kept_however_old_it_is() -> None:
    assert decide_oldest_kept(commits(20, young_from=99), 20, SINCE, ()) == 20
    assert decide_oldest_kept(commits(20, young_from=99), 17, SINCE, ()) == 17, "up to a pending marker"


def test_versions_that_the_lake_needs_are_kept() -> None:
    assert decide_oldest_kept(commits(20, young_from=13), 20, SINCE, (15, 4, 9)) == 4


def test_late_entry_under_a_used_number_stops_the_clean_up() -> None:
    late = commits(20, young_from=99) | {3: meta(entry_key(3), YOUNG)}
    assert decide_oldest_kept(late, 20, SINCE, ()) == 2


def test_what_lies_below_the_base_goes_and_the_base_stays() -> None:
    keys = [entry_key(version) for version in range(5)]
    keys += [checkpoint_key(1), checkpoint_key(3), *checkpoint_part_keys(2, 2)]
    keys.append(f"{LOG}{2:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json")
    assert set(keys) - set(expired(keys, 3)) == {entry_key(3), entry_key(4), checkpoint_key(3)}


def test_older_versions_go_first() -> None:
    keys = [entry_key(version) for version in (7, 0, 11, 3)] + [checkpoint_key(3)]
    assert expired(keys, 11) == [entry_key(0), checkpoint_key(3), entry_key(3), entry_key(7)]


@pytest.mark.parametrize(("start", "goes"), [(1, True), (3, True), (4, False)])
def test_compacted_file_goes_with_the_base_within_it(start: int, goes: bool) -> None:
    key = f"{LOG}{start:020}.{6:020}.compacted.json"
    assert expired([key], 3) == ([key] if goes else [])


@pytest.mark.parametrize("name", [f"{2:020}.crc", f".{2:020}.json.crc", f".{2:020}.checkpoint.parquet.crc"])
def test_checksums_go_with_their_version(name: str) -> None:
    assert expired([LOG + name], 3) == [LOG + name]
    assert expired([LOG + name], 2) == []


@pytest.mark.parametrize(
    "name", ["_last_checkpoint", "_commits/00000000000000000001.x.json", "1.json", "x.crc"]
)
def test_other_files_stay(name: str) -> None:
    assert expired([LOG + name], 100) == []


def test_files_younger_than_the_retention_stay() -> None:
    assert expired([entry_key(1), checkpoint_key(1)], 3, YOUNG) == []
