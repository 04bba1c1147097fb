"""The jars that Spark needs beyond its own: Delta and Iceberg as peers and legacy clients, and s3a for S3.

The package itself needs none of them on a directory, and never Delta's or Iceberg's. Ivy, which Spark ships,
fetches them from Maven Central once and keeps them in the user's home. Dependencies that Spark ships
itself are left out: its own classes would win anyway, and a first run fetches a third of the files.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree as Xml

import pyspark

DELTA = ("io.delta:delta-spark_4.1_2.13:4.4.0",)
ICEBERG = ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",)
# hadoop-aws asks for the SDK as one bundle of 760 MB; these three parts of it are enough.
S3A = (
    "org.apache.hadoop:hadoop-aws:3.4.2",
    "software.amazon.awssdk:s3:2.29.52",
    "software.amazon.awssdk:s3-transfer-manager:2.29.52",
    "software.amazon.awssdk:sts:2.29.52",
)
EVERY = (*DELTA, *ICEBERG, *S3A)

_LEFT_OUT = (
    ("software.amazon.awssdk", "bundle"),
    ("org.apache.hadoop", "hadoop-client-.*"),
    ("org.wildfly.openssl", ".*"),
    # What Spark ships.
    ("org.scala-lang", ".*"),
    ("org.slf4j", ".*"),
    ("org.apache.logging.log4j", ".*"),
    ("com.fasterxml.jackson.*", ".*"),
    ("org.apache.parquet", ".*"),
    ("org.roaringbitmap", ".*"),
    ("io.netty", ".*"),
    ("org.apache.httpcomponents", ".*"),
    ("commons-.*", ".*"),
    ("com.google.code.findbugs", ".*"),
)
_CONNECT_MS = 10_000
_READ_MS = 60_000
_RESOLVE_SECONDS = 600


class JarsMissing(RuntimeError):
    """The jars are not in Ivy's cache and could not be fetched."""


def resolve(packages: Iterable[str]) -> list[Path]:
    """The jars of these packages and of what they need, fetched if this is the first time."""
    wanted = sorted(packages)
    if not wanted:
        return []
    digest = hashlib.sha256(repr((wanted, _LEFT_OUT)).encode()).hexdigest()[:16]
    listed = Path.home() / ".ivy2" / "cache" / f"lakevilla-{digest}.jars"
    known = _read(listed)
    if known is None:
        with _alone(listed.parent):
            known = _read(listed)
            if known is None:
                _fetch(wanted, listed)
                known = _read(listed)
    if known is None:
        raise JarsMissing(f"Ivy names jars that are not there: remove {listed} and try again")
    return known


@contextmanager
def _alone(cache: Path) -> Iterator[None]:
    """Let one process at a time fetch into Ivy's cache: two that start with an empty one break each other."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lakevilla.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _read(listed: Path) -> list[Path] | None:
    """The jars in a list that Ivy wrote, if all of them are still there."""
    if not listed.exists():
        return None
    jars = [Path(text) for text in listed.read_text().strip().split(os.pathsep)]
    return jars if all(jar.exists() for jar in jars) else None


def _fetch(packages: list[str], listed: Path) -> None:
    (ivy,) = Path(pyspark.__file__).parent.glob("jars/ivy-*.jar")
    with tempfile.TemporaryDirectory(prefix="lakevilla-ivy-") as name:
        folder = Path(name)
        Xml.ElementTree(_settings()).write(folder / "settings.xml")
        Xml.ElementTree(_module(packages)).write(folder / "ivy.xml")
        command = [
            _java(),
            f"-Dsun.net.client.defaultConnectTimeout={_CONNECT_MS}",
            f"-Dsun.net.client.defaultReadTimeout={_READ_MS}",
            *("-jar", str(ivy), "-settings", str(folder / "settings.xml"), "-ivy", str(folder / "ivy.xml")),
            *("-confs", "default", "-cachepath", str(folder / "jars")),
        ]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_RESOLVE_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise JarsMissing(_unreachable(packages, f"no end after {_RESOLVE_SECONDS} s")) from None
        if done.returncode or not (folder / "jars").exists():
            raise JarsMissing(_unreachable(packages, _reason(done.stdout + done.stderr)))
        # Renamed into place, because other processes read the list without the lock.
        complete = listed.with_suffix(f".{os.getpid()}")
        shutil.copy(folder / "jars", complete)
        complete.rename(listed)


def _settings() -> Xml.Element:
    """Maven Central alone, which is this resolver's own default: look-ups elsewhere fail slowly."""
    settings = Xml.Element("ivysettings")
    Xml.SubElement(settings, "settings", defaultResolver="central")
    resolvers = Xml.SubElement(settings, "resolvers")
    Xml.SubElement(resolvers, "ibiblio", name="central", m2compatible="true")
    return settings


def _module(packages: list[str]) -> Xml.Element:
    module = Xml.Element("ivy-module", version="2.0")
    Xml.SubElement(module, "info", organisation="lakevilla", module="peers")
    dependencies = Xml.SubElement(module, "dependencies")
    for package in packages:
        group, name, version = package.split(":")
        Xml.SubElement(dependencies, "dependency", org=group, name=name, rev=version, conf="*->default")
    for group, name in _LEFT_OUT:
        Xml.SubElement(dependencies, "exclude", org=group, module=name, matcher="regexp")
    return module


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if not found:
        raise JarsMissing("there is no Java to fetch Spark's jars with: install Java 17 or 21")
    return found


def _reason(output: str) -> str:
    told = [line.strip() for line in output.splitlines()]
    failed = [line for line in told if "FAILED" in line or "Exception" in line or "UNRESOLVED" in line]
    return (failed or told or ["no output"])[0]


def _unreachable(packages: list[str], why: str) -> str:
    return (
        f"the jars {', '.join(packages)} are not in Ivy's cache and could not be fetched from Maven Central "
        f"({why}): check the network, or run once where Central can be reached"
    )
