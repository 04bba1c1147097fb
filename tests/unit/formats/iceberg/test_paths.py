"""Recorded paths of an Iceberg table, in the spellings that its writers have, and where they lie."""

import pytest

from lakevilla.formats.iceberg.metadata.paths import Places
from lakevilla.formats.urls import split_url


@pytest.mark.parametrize(
    "location", ["/lake/a b/t", "file:/lake/a b/t", "file:///lake/a b/t", "file:///lake/a b/t/"]
)
@pytest.mark.parametrize("file", ["data/x.parquet", "data/p=c%2Fd/x.parquet", "data/p=50%/ü #?.parquet"])
def test_file_below_the_table_is_found_in_every_spelling(location: str, file: str) -> None:
    places = Places(location, "file:///lake/a%20b/t")
    assert not places.moved
    for folder in ("/lake/a b/t", "file:/lake/a b/t", "file:///lake/a b/t"):
        assert places.key_of(f"{folder}/{file}") == file
    assert places.key_of(places.path_of(file)) == file


def test_percent_sign_in_the_name_of_a_folder_is_one() -> None:
    places = Places("/lake/a%20b/t", "file:///lake/a%2520b/t")
    assert not places.moved
    assert places.key_of("/lake/a%20b/t/data/x") == "data/x"
    assert Places("/lake/a%20b/t", "file:///lake/a%20b/t").moved


def test_moved_table_finds_what_lay_below_its_old_place() -> None:
    places = Places("s3a://old/t", "s3://new/t")
    assert places.moved
    assert (places.key_of("s3://old/t/data/x"), places.key_of("s3a://new/t/data/x")) == ("data/x", "data/x")


@pytest.mark.parametrize(
    ("path", "folder", "name"),
    [
        ("/far/p=c%2Fd/x y", "file:///far/p%3Dc%252Fd", "x y"),
        ("file:/far/p=c%2Fd/x%y", "file:///far/p%3Dc%252Fd", "x%y"),
        ("s3a://bucket/p=c%2Fd/x", "s3://bucket/p=c%2Fd", "x"),
        ("abfss://c@a.net/p=c%2Fd/x", "abfss://c@a.net/p=c%2Fd", "x"),
    ],
)
def test_file_elsewhere_is_opened_by_the_names_that_were_recorded(path: str, folder: str, name: str) -> None:
    """The folder of a file: URL is encoded, others are keys as they are."""
    assert split_url(Places("file:///lake/t", "file:///lake/t").key_of(path)) == (folder, name)
