"""Commits on a real S3 server whose answers are lost until the client gives up, and what it is told then.

Each round loses one decisive write (a log entry, a slot of the global log, HEAD): the server carried it out,
never received it, or carries it out when the client has given up; until then it answers nothing. Every
sentence of the error and of `lake.outcome` is followed: what is said to be committed is there once, what may
be run again is absent, and there once when it was.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import lakevilla as lv
from bench.stores.seaweed import S3Server
from lakevilla.environment import SystemEnvironment
from lakevilla.errors import Aborted, CommitUnknown, Unavailable
from tests.support.lossy_proxy import Fate, LossyProxy, running_lossy_proxy

SITES = {
    "log entry": ("create", "/_delta_log/"),
    "metadata": ("create", "/metadata/v"),
    "slot": ("create", "/_lakevilla/global/log/"),
    "HEAD": ("replace", "/_lakevilla/global/HEAD.json"),
}


class Impatient(SystemEnvironment):
    """Waits between its tries are short: what is tested here is not how long they are."""

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds / 20)


@dataclass
class Outage:
    """From the first request of a kind on nothing is answered; the first was carried out, or was not."""

    kind: str
    part: str
    first: Fate
    since: bool = False

    def __call__(self, kind: str, key: str) -> Fate:
        if self.since:
            return "drop"
        if kind == self.kind and self.part in key:
            self.since = True
            return self.first
        return "pass"


@pytest.fixture
def proxy(s3: S3Server) -> Iterator[LossyProxy]:
    with running_lossy_proxy(s3.endpoint) as running:
        yield running


@pytest.mark.sampled(3)
@pytest.mark.parametrize("first", ["lose", "drop", "delay"])
@pytest.mark.parametrize(
    ("site", "features", "format_name"),
    [
        ("log entry", lv.R, "delta"),
        ("log entry", lv.R | lv.CT | lv.I, "delta"),
        ("slot", lv.R | lv.CT | lv.I, "delta"),
        ("slot", lv.CT, "delta"),
        ("HEAD", lv.R | lv.CT | lv.I, "delta"),
        ("metadata", lv.R, "iceberg"),
        ("metadata", lv.R | lv.CT, "iceberg"),
    ],
)
def test_commit_that_stays_unanswered_is_what_its_advice_says(
    s3: S3Server, proxy: LossyProxy, site: str, features: lv.Features, format_name: str, first: Fate
) -> None:
    url = s3.new_url()
    calm = lv.Lake(url, engine="local", storage_options=s3.storage_options)
    tables = ("a",) if features == lv.R else ("a", "b")
    for name in tables:
        calm.create(name, "id BIGINT", format=format_name)
        calm.append(name, [{"id": 0}])
    options = {**s3.storage_options, "AWS_ENDPOINT_URL": proxy.endpoint}
    lake = lv.Lake(url, engine="local", storage_options=options, environment=Impatient(), lease_seconds=1.0)
    assert lake.read("a").count() == 1

    told, txn = _commit(lake, proxy, tables, features, Outage(*SITES[site], first))
    proxy.fate = lambda _kind, _key: "pass"
    proxy.release()

    assert told == "unknown"
    told = _follow(calm, txn)
    there = [_ids(calm, name).count(1) for name in tables]
    assert there == [1 if told == "committed" else 0] * len(tables)
    if told == "absent":
        assert _commit(lake, proxy, tables, features, None)[0] == "committed"
    assert [_ids(calm, name).count(1) for name in tables] == [1] * len(tables)


def _commit(
    lake: lv.Lake, proxy: LossyProxy, tables: tuple[str, ...], features: lv.Features, outage: Outage | None
) -> tuple[str, str]:
    """What the client is told, and the transaction's id."""
    tx = lake.transaction(features)
    for name in tables:
        tx.append(name, [{"id": 1}])
    if outage is not None:
        proxy.fate = outage
    told = "committed"
    try:
        tx.commit()
    except CommitUnknown as error:
        told = "unknown" if tx.id in str(error) else f"unknown, and not of which transaction: {error}"
    except (Aborted, Unavailable):
        told = "absent"
    return told, tx.id


def _follow(lake: lv.Lake, txn: str) -> str:
    """Whether the transaction is committed, as somebody is told who asks when the store answers again."""
    found = lake.outcome(txn)
    if found.state == "undecided" and found.seq is not None:
        # An entry that is not settled yet: the next client that writes completes it, or `recover` does.
        lake.recover()
        found = lake.outcome(txn)
    if found.state == "committed":
        return "committed"
    assert found.state == "aborted" or "may be run again" in found.advice
    return "absent"


def _ids(lake: lv.Lake, name: str) -> list[int]:
    return [row[0] for row in lake.read(name).collect()]
