"""Jars from Maven Central: one sentence where it cannot be reached, and no wait."""

from pathlib import Path

import pytest

from bench.jars import JarsMissing, resolve


def test_jars_that_cannot_be_fetched_are_named_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Nothing listens at the discard port.
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(
        JarsMissing, match=r"org.example:nothing:1 are not .* from Maven Central .*check the network"
    ):
        resolve(["org.example:nothing:1"])
    assert not list(tmp_path.rglob("*.jars"))


def test_no_packages_need_no_jars() -> None:
    assert resolve([]) == []
