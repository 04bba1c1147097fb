"""Jars from Maven Central: one sentence where it cannot be reached, no wait, and one process at a time."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bench.spark.jars import JarsMissing, resolve


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


_BREAKS_SIDE_BY_SIDE = """#!/bin/sh
mkdir "$HOME/busy" || exit 1
sleep 0.2
for list; do :; done
touch "$HOME/nothing-1.jar"
printf %s "$HOME/nothing-1.jar" > "$list"
echo fetched >> "$HOME/fetches"
rmdir "$HOME/busy"
"""
"""Stands in for Ivy, which fails if another one fills the same cache."""


def test_jars_are_fetched_once_by_clients_that_start_side_by_side(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(_BREAKS_SIDE_BY_SIDE)
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    with ThreadPoolExecutor() as threads:
        found = list(threads.map(resolve, [["org.example:nothing:1"]] * 3))
    assert found == [[tmp_path / "nothing-1.jar"]] * 3
    assert (tmp_path / "fetches").read_text().split() == ["fetched"]


def test_no_packages_need_no_jars() -> None:
    assert resolve([]) == []
