"""Locations: one spelling for one place."""

from pathlib import Path

import pytest

from lakevilla.errors import InvalidInput
from lakevilla.store.locations import canonical_location, real_location, real_place, stored_location


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("file:///data/t", "file:///data/t"),
        ("file:///data/t/", "file:///data/t"),
        ("file:///data//t", "file:///data/t"),
        ("file:////data/t", "file:///data/t"),
        ("file:///data/./t", "file:///data/t"),
        ("file:///data/x/../t", "file:///data/t"),
        ("file:///../data/t", "file:///data/t"),
        ("FILE:///data/t", "file:///data/t"),
        ("file://localhost/data/t", "file:///data/t"),
        ("file://LOCALHOST/data/t", "file:///data/t"),
        ("file:///data/%74", "file:///data/t"),
        ("file:///data/%2e/t", "file:///data/t"),
        ("file:///", "file:///"),
        ("file:///a b/ü", "file:///a%20b/%C3%BC"),
        ("file:///a%20b/%c3%bc", "file:///a%20b/%C3%BC"),
        ("file:///a%2520b", "file:///a%2520b"),
        ("s3://bucket/a/t", "s3://bucket/a/t"),
        ("s3a://bucket/a/t/", "s3://bucket/a/t"),
        ("S3N://bucket/a/t", "s3://bucket/a/t"),
        ("s3://bucket/%74", "s3://bucket/%74"),
        ("s3://bucket/", "s3://bucket"),
        ("abfss://c@Account.dfs.core.windows.net/t", "abfss://c@account.dfs.core.windows.net/t"),
        ("GS://Bucket/T", "gs://Bucket/T"),
    ],
)
def test_location_has_one_spelling(url: str, canonical: str) -> None:
    assert canonical_location(url) == canonical
    assert canonical_location(canonical) == canonical


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket/a//t",
        "s3://bucket/a/./t",
        "s3://b/../t",
        "file://host/t",
        "file://",
        "file:///a%00b",
        "t",
    ],
)
def test_location_that_is_no_folder_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        canonical_location(url)


def test_link_and_its_target_are_the_same_place_in_two_spellings(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    link, target = f"file://{tmp_path}/link/t", f"file://{tmp_path}/target/t"
    assert canonical_location(link) == link
    assert real_location(link) == real_location(target)


def test_location_below_the_root_is_relative_also_through_links(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    for root in (f"file://{tmp_path}/lake", f"file://{tmp_path}/link"):
        for url in ("lake/a b", "link/a%20b", "lake//./a b/"):
            assert stored_location(root, f"FILE://{tmp_path}/{url}") == "a b"
        assert stored_location(root, f"file://{tmp_path}/lake-2/t") == f"file://{tmp_path}/lake-2/t"
    assert stored_location("s3://bucket/lake", "s3a://bucket/lake/t/") == "t"
    assert stored_location("file:///", "file:///data/t") == "data/t"
    assert stored_location("s3://bucket", "s3a://bucket/t") == "t"
    assert stored_location("s3://bucket/lake", "sub/t/") == "sub/t"


def test_stored_location_that_cannot_be_opened_is_only_itself() -> None:
    assert real_place("s3://bucket/lake", "s3://bucket/a//t") == "s3://bucket/a//t"
