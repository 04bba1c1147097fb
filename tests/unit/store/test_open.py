"""From URL to store."""

from pathlib import Path

import pytest

from lakevilla.errors import InvalidInput
from lakevilla.store.metered import Meter
from lakevilla.store.open import open_store


def test_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("./my lake")
    monkeypatch.chdir("/")
    store.put("k", b"x")
    assert (tmp_path / "my lake" / "k").read_bytes() == b"x"


def test_url_of_a_directory_opens_it_again(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "ü 100%"))
    store.put("k", b"x")
    assert store.url.startswith("file:///")
    again = open_store(store.url).get("k")
    assert again is not None
    assert again.data == b"x"


def test_memory_without_a_name_is_new_and_its_url_opens_it_again() -> None:
    first, second = open_store("memory://"), open_store("memory://")
    first.put("k", b"x")
    assert second.get("k") is None
    assert open_store(first.url).get("k") is not None


def test_memory_with_a_name_is_shared() -> None:
    open_store("memory://shared-by-name").put("a/k", b"x")
    assert open_store("memory://shared-by-name/a").get("k") is not None
    assert open_store("memory://another-name").get("a/k") is None


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("s3://bucket/a/b/", "s3://bucket/a/b"),
        ("s3a://bucket", "s3://bucket"),
        ("gs://bucket/x", "gs://bucket/x"),
        ("az://container/x", "az://container/x"),
        ("abfss://c@acc.dfs.core.windows.net/x", "abfss://c@acc.dfs.core.windows.net/x"),
    ],
)
def test_clouds_open_by_url_with_options_of_every_cloud(url: str, shown: str) -> None:
    options = {
        "AWS_ACCESS_KEY_ID": "a",
        "aws_secret_access_key": "b",
        "AWS_REGION": "eu-west-1",
        "AWS_S3_ALLOW_UNSAFE_RENAME": "true",
        "GOOGLE_SKIP_SIGNATURE": "true",
        "AZURE_STORAGE_ACCOUNT_NAME": "acc",
        "AZURE_STORAGE_ACCOUNT_KEY": "c2VjcmV0",
        "timeout": "60s",
        "fsync": "false",
    }
    assert open_store(url, options).url == shown


def test_unknown_option_is_named() -> None:
    with pytest.raises(InvalidInput, match="aws_regoin"):
        open_store("s3://bucket", {"aws_regoin": "x"})


def test_meter_counts_requests_and_bytes() -> None:
    meter = Meter()
    store = open_store("memory://", meter=meter)
    store.put("a", b"12345")
    store.create("b", b"123")
    store.get("a")
    store.get_range("a", 1, 2)
    store.head("a")
    store.get("none")
    list(store.list(""))
    store.list_folders("")
    store.delete("a")
    counts = meter.snapshot()
    assert counts["get"] == 2
    assert counts["list"] == 2
    assert [counts[kind] for kind in ("get_range", "head", "put", "create", "delete")] == [1] * 5
    assert (counts["bytes_out"], counts["bytes_in"], meter.total) == (8, 7, 9)
