"""Catalogs that refuse a commit only for the moment, or after an earlier copy of it that is still on its way;
that fail to answer a question once; and that never answer."""

from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    CommitStateUnknownException,
    ForbiddenError,
    NoSuchTableError,
    ServerError,
    UnauthorizedError,
)
from pyiceberg.table import CommitTableResponse, Table

import lakevilla as lv
from lakevilla.formats.iceberg.log import catalog_log, catalogs
from tests.support.warehouses import KINDS, SCHEMA, Commit, Commits, Warehouse, client_of, warehouse

ALL = lv.R | lv.CT | lv.I
ONE_MORE = {1: 10, 2: 20, 3: 30, 4: 40}


@pytest.fixture
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Warehouse]:
    with warehouse(getattr(request, "param", "rest"), tmp_path, "orders") as made:
        yield made


@pytest.fixture
def commits(house: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Commits:
    commits, client = Commits(), client_of(house.options["type"])
    monkeypatch.setattr(client, "commit_table", commits.around(client.commit_table))
    monkeypatch.setattr(catalog_log, "_PAUSE_SECONDS", 0.001)
    return commits


@pytest.fixture
def lake(house: Warehouse, commits: Commits) -> lv.Lake:
    lake = house.lake()
    lake.register("orders", catalog="prod", table="sales.orders")
    lake.create("delta", SCHEMA, format="delta")
    return lake


def _raises(error: Exception) -> Callable[[Commit], CommitTableResponse]:
    def step(commit: Commit) -> CommitTableResponse:
        raise error

    return step


_locked = _raises(CommitFailedException("failed to acquire the lock of the table"))
"""As catalogs refuse that lock tables, or that were asked by two clients at the same moment."""


def _append(tx: lv.Transaction, *others: str) -> None:
    for name in ("orders", *others):
        tx.append(name, [{"id": 4, "v": 40}])


@pytest.mark.parametrize("house", KINDS, indirect=True)
@pytest.mark.parametrize("features", [lv.NONE, ALL])
def test_refusal_while_nothing_has_changed_is_asked_again(
    lake: lv.Lake, house: Warehouse, commits: Commits, features: lv.Features
) -> None:
    commits.steps["orders"] = [_locked] * 3
    with lake.transaction(features) as tx:
        _append(tx, *(["delta"] if features else []))
    assert not commits.steps["orders"]
    assert house.rows() == ONE_MORE


def test_catalog_that_stays_locked_changes_nothing(lake: lv.Lake, house: Warehouse, commits: Commits) -> None:
    commits.steps["orders"] = [_locked] * 4
    with pytest.raises(lv.Unavailable, match="acquire the lock"), lake.transaction(lv.NONE) as tx:
        _append(tx)
    assert (house.version(), len(house.rows())) == (1, 3)


def test_locked_table_is_not_given_up_and_the_next_client_completes_the_commit(
    lake: lv.Lake, house: Warehouse, commits: Commits
) -> None:
    commits.steps["orders"] = [_locked] * 12
    with pytest.raises(lv.CommitUnknown, match="completes it"), lake.transaction(ALL) as tx:
        _append(tx, "delta")
    assert lake.outcome(tx.id).state == "undecided"
    commits.steps.clear()
    house.lake().append("delta", [{"id": 5, "v": 50}])
    assert house.rows() == ONE_MORE
    assert {row.id for row in house.lake().read("delta").collect()} == {4, 5}
    assert house.lake().outcome(tx.id).state == "committed"


@pytest.mark.parametrize(
    "refusal",
    [
        CommitFailedException("another request holds the table"),
        BadRequestError("the gateway is confused"),
        ForbiddenError("the token has expired"),
        UnauthorizedError("the token has expired"),
        NoSuchTableError("the gateway is confused"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_refusal_of_a_later_copy_says_nothing_about_the_first(
    lake: lv.Lake, house: Warehouse, commits: Commits, refusal: Exception
) -> None:
    """Else the caller runs it again, and has its rows twice when the first copy arrives."""
    late: list[Commit] = []

    def is_on_its_way(commit: Commit) -> CommitTableResponse:
        late.append(commit)
        raise CommitStateUnknownException("the catalog hung up")

    commits.steps["orders"] = [is_on_its_way, *[_raises(refusal)] * 3]
    with pytest.raises(lv.CommitUnknown), lake.transaction(lv.NONE) as tx:
        _append(tx)
    assert lake.outcome(tx.id).state == "undecided"
    late[0]()
    assert house.rows() == ONE_MORE
    assert lake.outcome(tx.id).state == "committed"


@pytest.mark.parametrize("house", ["rest"], indirect=True)
def test_refused_copy_below_a_change_of_properties_is_sent_again(
    lake: lv.Lake, house: Warehouse, commits: Commits
) -> None:
    """The first copy may still pass over that change, and the change is in the way of a commit made anew."""
    late: list[Commit] = []

    def is_on_its_way(commit: Commit) -> CommitTableResponse:
        late.append(commit)
        raise CommitStateUnknownException("the catalog hung up")

    def locked(commit: Commit) -> CommitTableResponse:
        with house.table().transaction() as change:
            change.set_properties({"theirs": "1"})
        commits.steps["orders"] = [lambda _: late[0]()]
        raise CommitFailedException("another request holds the table")

    commits.steps["orders"] = [is_on_its_way, locked]
    with lake.transaction(lv.NONE) as tx:
        _append(tx)
    assert tx.receipt is not None
    assert house.rows() == ONE_MORE
    assert tx.receipt.versions == {"orders": 3}


def test_permanent_refusal_is_reported_at_once(lake: lv.Lake, house: Warehouse, commits: Commits) -> None:
    commits.steps["orders"] = [_raises(BadRequestError("no such update"))]
    with pytest.raises(lv.Unsupported, match="no such update"), lake.transaction(lv.NONE) as tx:
        _append(tx)
    assert (house.version(), len(house.rows())) == (1, 3)


class _Loads:
    """The next answers of a catalog that is asked for a table are these errors."""

    def __init__(self, client: type[Catalog], monkeypatch: pytest.MonkeyPatch) -> None:
        self.errors: list[Exception] = []
        really = client.load_table

        def load(catalog: Catalog, *arguments: Any) -> Table:
            if self.errors:
                raise self.errors.pop(0)
            return really(catalog, *arguments)

        monkeypatch.setattr(client, "load_table", load)


@pytest.mark.parametrize("features", [lv.NONE, ALL])
def test_question_that_was_not_answered_is_asked_again(
    lake: lv.Lake, house: Warehouse, features: lv.Features, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = _Loads(client_of(house.options["type"]), monkeypatch)
    loads.errors = [ServerError("internal error"), OSError("connection reset"), OSError("again")]
    with house.lake().transaction(features) as tx:
        _append(tx)
    assert not loads.errors
    assert house.rows() == ONE_MORE


def test_question_without_rights_is_asked_once(
    lake: lv.Lake, house: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = _Loads(client_of(house.options["type"]), monkeypatch)
    loads.errors = [ForbiddenError("not yours"), ForbiddenError("not yours")]
    with pytest.raises(lv.Unavailable, match="not yours"):
        house.lake().read("orders")
    assert len(loads.errors) == 1


class _Mute(BaseHTTPRequestHandler):
    """A catalog that says how it is configured, and nothing else."""

    ended: Event

    def do_GET(self) -> None:
        if "/v1/config" not in self.path:
            self.ended.wait(60)
            return
        data = b'{"defaults": {}, "overrides": {}}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """It is never read."""


def test_catalog_that_never_answers_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog_log, "_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(catalogs, "ANSWER_SECONDS", 0.05)
    ended = Event()
    handler = type("Handler", (_Mute,), {"ended": ended})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        options = {"type": "rest", "uri": f"http://127.0.0.1:{server.server_address[1]}"}
        lake = lv.Lake(tmp_path / "lake", engine="local", catalogs={"prod": options})
        with pytest.raises(lv.Unavailable, match="timed out"):
            lake.register("orders", catalog="prod", table="sales.orders")
        ended.set()
        server.shutdown()
