"""The doctor: what it finds of everything that can be wrong, that it says what to do and changes nothing."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.errors import Unavailable
from lakevilla.markers.records import Marker
from lakevilla.store import keys
from lakevilla.store.open import open_store
from lakevilla.store.port import Created, Exists, Meta, Store
from lakevilla.store.prefixed import Prefixed
from lakevilla.transaction.lifecycle import start
from tests.support.hooked import Hooked
from tests.support.left_open import OPTIONS, store_all
from tests.support.outsiders import OUTSIDERS

pytestmark = pytest.mark.formats("delta", "iceberg")

TXN = "0197" + "a" * 28


@pytest.fixture
def lake(tmp_path: Path) -> lv.Lake:
    lake = open_lake(tmp_path)
    lake.create("t", "id BIGINT")
    lake.run(lambda tx: tx.append("t", [{"id": 1}]))
    return lake


def open_lake(root: Path, store: Store | None = None) -> lv.Lake:
    return lv.Lake(root, engine="local", storage_options=OPTIONS, store=store, lease_seconds=0.3)


def found(diagnosis: lv.Diagnosis, subject: str, state: str) -> lv.Check:
    """The one check of this subject and state."""
    (check,) = [one for one in diagnosis.checks if (one.subject, one.state) == (subject, state)]
    assert check.text in str(diagnosis)
    assert check.advice in str(diagnosis)
    return check


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_healthy_lake_has_no_problem_and_stays_as_it_is(lake: lv.Lake, tmp_path: Path) -> None:
    before = contents(tmp_path)
    diagnosis = lake.doctor()
    assert diagnosis.healthy
    assert {check.state for check in diagnosis.checks if check.subject != "Java"} == {"ok"}
    subjects = {check.subject for check in diagnosis.checks}
    assert subjects >= {"store", "conditional writes", "rights", "clock", "versions", "unsettled entries"}
    assert subjects >= {"torn tables", "tables", "contradictions", "dead clients", "legacy writers", "files"}
    assert "lakevilla" in str(diagnosis)
    assert contents(tmp_path) == before


def test_doctor_without_a_probe_only_reads(tmp_path: Path, lake: lv.Lake) -> None:
    store = Hooked(open_store(str(tmp_path), OPTIONS))
    asked: set[str] = set()
    store.hook = lambda kind, _: asked.add(kind)
    diagnosis = open_lake(tmp_path, store).doctor(probe=False, files=False)
    assert diagnosis.healthy
    assert asked <= {"get", "head", "list", "list_folders", "get_range"}
    assert not {"clock", "files"} & {check.subject for check in diagnosis.checks}
    assert lake.tables() == ["t"]


def test_store_that_does_not_answer_is_a_problem(tmp_path: Path) -> None:
    store = Hooked(open_store(str(tmp_path), OPTIONS))

    def hook(_kind: str, _key: str) -> None:
        raise Unavailable("connection refused")

    store.hook = hook
    diagnosis = open_lake(tmp_path, store).doctor()
    assert not diagnosis.healthy
    assert "connection refused" in found(diagnosis, "store", "problem").text


class Careless(Hooked):
    """A store that overwrites what a create finds."""

    def create(self, key: str, data: bytes) -> Created | Exists:
        self.inner.delete(key)
        return self.inner.create(key, data)


def test_store_without_conditional_writes_is_a_problem(tmp_path: Path, lake: lv.Lake) -> None:
    diagnosis = open_lake(tmp_path, Careless(open_store(str(tmp_path), OPTIONS))).doctor()
    assert "do not write" in found(diagnosis, "conditional writes", "problem").advice
    assert lake.doctor().healthy


def test_client_without_rights_to_write_is_told(tmp_path: Path, lake: lv.Lake) -> None:
    store = Hooked(open_store(str(tmp_path), OPTIONS))

    def hook(kind: str, _key: str) -> None:
        if kind in ("put", "create", "replace"):
            raise Unavailable("403 denied")

    store.hook = hook
    diagnosis = open_lake(tmp_path, store).doctor()
    assert diagnosis.healthy
    assert "403" in found(diagnosis, "rights", "warning").text
    assert lake.tables() == ["t"]


class Slow(Hooked):
    """A store whose clock is an hour behind."""

    def head(self, key: str) -> Meta | None:
        found = self.inner.head(key)
        return None if found is None else replace(found, modified_ms=found.modified_ms - 3_600_000)


def test_clock_that_is_away_from_the_store_is_told(tmp_path: Path, lake: lv.Lake) -> None:
    diagnosis = open_lake(tmp_path, Slow(open_store(str(tmp_path), OPTIONS))).doctor(files=False)
    assert "ahead of the store" in found(diagnosis, "clock", "warning").text
    assert "is 0.0 s" in found(lake.doctor(files=False), "clock", "ok").text


def test_entry_that_its_client_left_is_told_and_recover_completes_it(tmp_path: Path, lake: lv.Lake) -> None:
    store = Hooked(open_store(str(tmp_path), OPTIONS))
    tx = open_lake(tmp_path, store).transaction()
    tx.append("t", [{"id": 2}])

    def hook(kind: str, key: str) -> None:
        if kind == "replace" and key == keys.HEAD:
            raise KeyboardInterrupt

    store.hook = hook
    with pytest.raises(KeyboardInterrupt):
        tx.commit()
    check = found(lake.doctor(), "unsettled entries", "warning")
    assert tx.id in check.text
    assert check.tables == ("t",)
    lake.recover()
    found(lake.doctor(files=False), "unsettled entries", "ok")


def test_torn_table_is_a_problem(lake: lv.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    head = lake._catalog.head(lake._view.meter, fresh=True)
    assert head is not None
    torn = replace(head, torn=frozenset({"t"}))
    monkeypatch.setattr(lake._catalog, "head", lambda *_, **__: torn)
    diagnosis = lake.doctor(files=False)
    assert "accept_torn" in found(diagnosis, "torn tables", "problem").advice
    assert not diagnosis.healthy


def test_ticket_and_records_of_dead_clients_are_told(
    tmp_path: Path, lake: lv.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = Marker(TXN, TXN, "put", 0, live=True, predecessors=())
    Prefixed(open_store(str(tmp_path), OPTIONS), "t").put(keys.marker(50), marker.encode())
    monkeypatch.setattr(start, "STORED_AFTER_SECONDS", 0.0)
    other = open_lake(tmp_path)
    left = other.transaction()
    for number in (5, 6):
        left.append("t", [{"id": number}])
    store_all(other, left)
    diagnosis = lake.doctor(files=False)
    assert "ticket 50 of 't'" in found(diagnosis, "dead clients", "warning").text
    assert left.id in found(diagnosis, "dead clients", "note").text


def test_legacy_writer_is_told_and_a_problem_on_an_exclusive_table(
    tmp_path: Path, lake: lv.Lake, table_format: str
) -> None:
    OUTSIDERS[table_format].append(tmp_path / "t", pa.table({"id": pa.array([9], pa.int64())}))
    assert "'t' was written by" in found(lake.doctor(), "legacy writers", "note").text
    lake.sql("ALTER TABLE t SET TBLPROPERTIES ('lakevilla.exclusive' = 'true')")
    diagnosis = lake.doctor(files=False)
    assert "although it is exclusive" in found(diagnosis, "legacy writers", "problem").text


def test_table_that_lost_its_log_or_went_back_is_a_problem(
    tmp_path: Path, lake: lv.Lake, table_format: str
) -> None:
    lake.create("gone", "id BIGINT")
    lake.run(lambda tx: tx.append("t", [{"id": 2}]))
    outsider = OUTSIDERS[table_format]
    newest = tmp_path / "t" / outsider.entry(outsider.version(tmp_path / "t"))
    newest.unlink()
    shutil.rmtree(tmp_path / "gone")
    diagnosis = open_lake(tmp_path).doctor(files=False)
    assert found(diagnosis, "contradictions", "problem").tables == ("t",)
    assert found(diagnosis, "tables", "problem").tables == ("gone",)


def test_files_that_vacuum_would_delete_are_told(tmp_path: Path, lake: lv.Lake, monkeypatch: Any) -> None:
    from tests.support.clocks import Days, date_files

    clock = Days()
    clock.pass_days(-9)
    old = lv.Lake(tmp_path, engine="local", environment=clock, storage_options=OPTIONS)
    old.create("u", "id BIGINT")
    old.append("u", [{"id": 1}])
    old.update("u", {"id": 2})
    date_files(tmp_path, set(), clock.now_ms())
    check = found(lake.doctor(), "files", "note")
    assert check.tables == ("u",)
    assert "vacuum" in check.advice
