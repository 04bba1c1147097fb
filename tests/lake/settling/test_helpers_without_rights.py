"""Clients that find a decided commit which they are not allowed to complete."""

from pathlib import Path

import pyarrow as pa
import pytest

import lakevilla as lv
from lakevilla.errors import Unavailable
from lakevilla.store import keys
from lakevilla.store.open import open_store
from tests.support.hooked import Hooked
from tests.support.outsiders import OUTSIDERS

pytestmark = pytest.mark.formats("delta", "iceberg")

BOTH = lv.R | lv.CT
HINT = "metadata/version-hint.text"


def client(place: Path, refused: tuple[str, ...] = (), hints_refused: tuple[str, ...] = ()) -> lv.Lake:
    """A client that may not create log entries of these tables, and leave no hints of those."""
    store = Hooked(open_store(str(place), {"fsync": "false"}))

    def step(kind: str, key: str) -> None:
        table, _, rest = key.partition("/")
        entry = kind == "create" and rest.startswith(("_delta_log/", "metadata/v"))
        hint = rest == HINT and kind in ("put", "create", "replace")
        if (entry and table in refused) or (hint and table in hints_refused):
            raise Unavailable(f"access denied: {key}")

    store.hook = step
    return lv.Lake(place, engine="local", features=lv.R, store=store)


@pytest.fixture
def decided(tmp_path: Path) -> str:
    """A transaction on a and b that is decided and not published; c has nothing to do with it."""
    lake = client(tmp_path)
    for name in ("a", "b", "c"):
        lake.create(name, "id BIGINT, v BIGINT")
        lake.append(name, [{"id": 1, "v": 0}])
    tx = client(tmp_path, ("a", "b")).transaction(BOTH)
    tx.update("a", {"v": "1"})
    tx.update("b", {"v": "1"})
    with pytest.raises(lv.CommitUnknown):
        tx.commit()
    return tx.id


def values(lake: lv.Lake, *names: str) -> list[int]:
    return [lake.read(name).collect()[0].v for name in names]


def test_helper_without_a_right_says_on_which_table(decided: str, tmp_path: Path) -> None:
    helper = client(tmp_path, ("b",))
    with (
        pytest.raises(lv.Unavailable, match=f"(?s){decided} is decided.*table 'b': access denied"),
        helper.transaction(BOTH) as tx,
    ):
        tx.update("a", {"v": "v + 10"})
        tx.update("c", {"v": "v + 10"})
    assert values(helper, "c") == [0]


def test_others_read_and_change_tables_that_it_does_not_concern(decided: str, tmp_path: Path) -> None:
    other = client(tmp_path, ("a", "b"))
    assert values(other, "a", "b", "c") == [0, 0, 0]
    other.update("c", {"v": "5"})
    assert values(other, "c") == [5]
    assert decided


def test_reports_of_a_blocked_lake_name_the_transaction_and_lead_to_the_way_out(
    decided: str, tmp_path: Path
) -> None:
    helper = client(tmp_path, ("b",))
    status = helper.status()
    assert (status.unsettled, status.transactions) == ((decided,), ())
    (check,) = [c for c in helper.doctor(files=False).checks if c.subject == "unsettled entries"]
    (finding,) = [f for f in helper.explain().findings if f.kind == "unsettled"]
    for report in (str(status), f"{check.text} {check.advice}", f"{finding.text} {finding.next}"):
        assert decided in report
        assert "recover" in report
        assert "or says what prevents it" in report
    with pytest.raises(lv.Unavailable, match="recover --give-up"):
        helper.recover()
    assert client(tmp_path).recover().settled
    assert str(helper.status()) == "no client waits to write, and no transaction left records"


def complete(lake: lv.Lake) -> None:
    """A commit that finds the decided one in its way."""
    with lake.transaction(BOTH) as tx:
        tx.update("a", {"v": "v + 10"})
        tx.update("c", {"v": "v + 10"})


def test_whoever_has_all_rights_completes_it(decided: str, tmp_path: Path) -> None:
    whole = client(tmp_path)
    complete(whole)
    assert values(whole, "a", "b", "c") == [11, 1, 10]
    assert whole.outcome(decided).state == "committed"


def hint(folder: Path) -> str:
    return (folder / HINT).read_text()


@pytest.mark.formats("iceberg")
def test_who_completes_a_commit_leaves_the_hints_that_its_client_did_not(
    decided: str, tmp_path: Path, begin: int
) -> None:
    assert (hint(tmp_path / "b"), bool(decided)) == (str(begin + 1), True)
    complete(client(tmp_path))
    assert hint(tmp_path / "b") == str(begin + 2)


@pytest.mark.formats("iceberg")
def test_hint_of_what_others_built_on_a_commit_is_not_set_back_by_who_completes_it(
    decided: str, tmp_path: Path, begin: int, table_format: str
) -> None:
    """The commit was published by a client that died, and others wrote since; then somebody settles it."""
    publish_as_a_client_that_dies(tmp_path)
    outside = OUTSIDERS[table_format]
    outside.append(tmp_path / "b", pa.table({"id": [5], "v": [5]}))
    outside.append(tmp_path / "b", pa.table({"id": [6], "v": [6]}))
    assert hint(tmp_path / "b") == str(begin + 4)
    complete(client(tmp_path))
    assert hint(tmp_path / "b") == str(begin + 4)
    assert client(tmp_path).outcome(decided).state == "committed"


@pytest.mark.formats("iceberg")
def test_who_may_not_leave_a_hint_completes_a_published_commit(decided: str, tmp_path: Path) -> None:
    publish_as_a_client_that_dies(tmp_path)
    complete(client(tmp_path, hints_refused=("b",)))
    whole = client(tmp_path)
    assert values(whole, "a", "b", "c") == [11, 1, 10]
    assert whole.outcome(decided).state == "committed"


def publish_as_a_client_that_dies(place: Path) -> None:
    """Publish the decided commit, without hints and without HEAD."""
    store = Hooked(open_store(str(place), {"fsync": "false"}))

    def step(kind: str, key: str) -> None:
        if (kind == "put" and key.endswith(HINT)) or (kind == "replace" and key == keys.HEAD):
            raise Unavailable("the client died")

    store.hook = step
    with pytest.raises(lv.Unavailable):
        complete(lv.Lake(place, engine="local", features=lv.R, store=store))
