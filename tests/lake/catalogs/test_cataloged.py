"""Iceberg tables that a catalog keeps, with PyIceberg on the same catalog: SQL on SQLite, and REST."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException, ValidationException

import lakevilla as lv
from bench.stores.seaweed import S3Server
from tests.support.clocks import Days
from tests.support.warehouses import ROWS, SCHEMA, Warehouse, warehouse

Outsider = Callable[[Warehouse], None]


@pytest.fixture
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Warehouse]:
    with warehouse(request.param, tmp_path, "orders", "items") as made:
        yield made


@pytest.fixture
def lake(house: Warehouse) -> lv.Lake:
    """The table `orders` of the catalog, a Delta table and an Iceberg table that is kept by files."""
    lake = house.lake()
    lake.register("orders", catalog="prod", table="sales.orders")
    lake.create("delta", SCHEMA, format="delta")
    lake.create("files", SCHEMA, format="iceberg")
    return lake


def _rows(lake: lv.Lake | lv.Transaction, name: str = "orders") -> dict[int, int]:
    return {row.id: row.v for row in lake.read(name).collect()}


def _append(house: Warehouse) -> None:
    house.table().append(pa.table({"id": [2], "v": [200]}, SCHEMA))


def _overwrite(house: Warehouse) -> None:
    house.table().overwrite(pa.table({"id": [2, 7], "v": [200, 70]}, SCHEMA))


def _delete(house: Warehouse) -> None:
    house.table().delete("id = 1")


def test_changes_are_read_by_pyiceberg_and_its_changes_by_us(lake: lv.Lake, house: Warehouse) -> None:
    lake.update("orders", {"v": "v + 1"}, where="id = 2")
    assert house.rows() == _rows(lake) == {1: 10, 2: 21, 3: 30}
    house.table().append(pa.table({"id": [4], "v": [40]}, SCHEMA))
    lake.delete("orders", where="id = 1")
    house.table().delete("id = 3")
    assert house.rows() == _rows(lake) == {2: 21, 4: 40}
    assert house.version() == lake.history("orders")[0].version == 5


def test_one_transaction_changes_delta_files_and_catalog_together(lake: lv.Lake, house: Warehouse) -> None:
    with lake.transaction() as tx:
        tx.sql("UPDATE orders SET v = v - 5 WHERE id = 1")
        tx.sql("INSERT INTO delta SELECT id, v FROM orders WHERE id = 1")
        tx.sql("INSERT INTO files SELECT id, v FROM orders WHERE id = 1")
        assert house.rows()[1] == 10
    assert house.rows()[1] == 5
    assert _rows(lake, "delta") == _rows(lake, "files") == {1: 5}
    assert tx.receipt is not None
    assert tx.receipt.versions == {"orders": 2, "delta": 1, "files": 2}


def test_replaced_table_of_a_catalog_keeps_its_history(lake: lv.Lake, house: Warehouse) -> None:
    before = house.version()
    with lake.transaction() as tx:
        tx.sql("CREATE OR REPLACE TABLE orders PARTITIONED BY (w) AS SELECT v AS w, id AS k FROM orders")
        tx.sql("INSERT INTO delta SELECT k, w FROM orders WHERE k = 1")
    table = house.table()
    found = {(row["k"], row["w"]) for row in table.scan().to_arrow().to_pylist()}
    assert found == {(1, 10), (2, 20), (3, 30)}
    assert [field.name for field in table.spec().fields] == ["w"]
    assert _rows(lake, "delta") == {1: 10}
    assert {row.id for row in lake.read("orders", version=before).collect()} == {1, 2, 3}
    table.append(pa.table({"w": [5], "k": [9]}, table.schema().as_arrow()))
    assert len(lake.read("orders").collect()) == 4


@pytest.mark.parametrize("outsider", [_append, _overwrite, _delete])
def test_transaction_is_redone_when_pyiceberg_came_first(
    lake: lv.Lake, house: Warehouse, outsider: Outsider
) -> None:
    with lake.transaction() as tx:
        tx.sql("UPDATE orders SET v = v + 1 WHERE id = 2")
        tx.sql("INSERT INTO delta SELECT max(id), sum(v) FROM orders")
        outsider(house)
    rows = house.table().scan().to_arrow().to_pylist()
    expected = {_append: [10, 21, 30, 201], _overwrite: [70, 201], _delete: [21, 30]}[outsider]
    assert sorted(row["v"] for row in rows) == expected
    assert list(_rows(lake, "delta").values()) == [sum(expected)]


@pytest.mark.parametrize(
    ("features", "outsider"), [(lv.NONE, _append), (lv.NONE, _delete), (lv.CT, _overwrite)]
)
def test_transaction_without_recovery_gives_way_to_pyiceberg(
    lake: lv.Lake, house: Warehouse, outsider: Outsider, features: lv.Features
) -> None:
    with pytest.raises(lv.Conflict) as caught, lake.transaction(features) as tx:
        tx.sql("UPDATE orders SET v = v + 1 WHERE id = 2")
        outsider(house)
    assert caught.value.table == "orders"
    assert 21 not in house.rows().values()


def test_append_of_pyiceberg_that_concerns_nothing_is_built_on(lake: lv.Lake, house: Warehouse) -> None:
    with lake.transaction(lv.NONE) as tx:
        tx.sql("UPDATE orders SET v = v + 1 WHERE id = 2")
        house.table().append(pa.table({"id": [9], "v": [90]}, SCHEMA))
    assert house.rows() == {1: 10, 2: 21, 3: 30, 9: 90}


def test_pyiceberg_gives_way_to_a_transaction_that_came_first(lake: lv.Lake, house: Warehouse) -> None:
    theirs = house.table()
    lake.update("orders", {"v": "0"}, where="id = 1")
    with pytest.raises((CommitFailedException, ValidationException)):
        theirs.overwrite(ROWS)
    assert house.rows() == {1: 0, 2: 20, 3: 30}


def test_reader_sees_one_instant_while_pyiceberg_goes_on(lake: lv.Lake, house: Warehouse) -> None:
    with lake.transaction(lv.I) as tx:
        before = _rows(tx), _rows(tx, "delta")
        _overwrite(house)
        lake.append("delta", [{"id": 1, "v": 1}])
        assert (_rows(tx), _rows(tx, "delta")) == before
    assert _rows(lake) == {2: 200, 7: 70}


def test_earlier_versions_are_read_by_number_and_time_though_the_log_is_short(
    lake: lv.Lake, house: Warehouse
) -> None:
    lake.sql("ALTER TABLE orders SET TBLPROPERTIES ('write.metadata.previous-versions-max' = '2')")
    for _ in range(5):
        lake.update("orders", {"v": "v + 1"}, where="id = 1")
    assert [entry.version for entry in lake.history("orders")] == list(range(7, -1, -1))
    assert [lake.read("orders", version=n).collect() != [] for n in range(3)] == [False, True, True]
    assert {n: _value_at(lake, n) for n in range(2, 8)} == {n: 8 + n for n in range(2, 8)}
    then = datetime.fromtimestamp(lake.history("orders")[4].timestamp_ms / 1000, UTC)
    assert {row.id: row.v for row in lake.read("orders", at=then).collect()}[1] == 11
    with pytest.raises(lv.InvalidInput) as caught:
        lake.read("orders", version=8)
    assert caught.value.version == 8
    assert _rows(house.lake()) == _rows(lake)


def _value_at(lake: lv.Lake, version: int) -> int:
    rows = {row.id: row.v for row in lake.read("orders", version=version).collect()}
    return rows[1]


def test_columns_and_properties_are_altered_for_everybody(lake: lv.Lake, house: Warehouse) -> None:
    lake.add_column("orders", "note", "STRING")
    lake.sql("ALTER TABLE orders SET TBLPROPERTIES ('owner' = 'us', 'team' = 'x')")
    lake.sql("ALTER TABLE orders UNSET TBLPROPERTIES ('team')")
    lake.sql("INSERT INTO orders VALUES (4, 40, 'new')")
    lake.sql("ALTER TABLE orders RENAME COLUMN note TO remark")
    table = house.table()
    assert [field.name for field in table.schema().fields] == ["id", "v", "remark"]
    assert (table.properties["owner"], "team" in table.properties) == ("us", False)
    rows = {row["id"]: row["remark"] for row in table.scan().to_arrow().to_pylist()}
    assert rows == {1: None, 2: None, 3: None, 4: "new"}
    with table.update_schema() as update:
        update.delete_column("remark")
    assert lake.read("orders").columns == ["id", "v"]


def test_vacuum_expires_snapshots_by_the_catalog_and_then_deletes_files(house: Warehouse) -> None:
    clock = Days()
    lake = house.lake(environment=clock)
    lake.register("orders", catalog="prod", table="sales.orders")
    for _ in range(3):
        lake.update("orders", {"v": "v + 1"}, where="id = 1")
    clock.pass_days(8)
    lake.update("orders", {"v": "v + 1"}, where="id = 1")
    clock.pass_days(8)
    report = lake.vacuum(dry_run=False)
    (table,) = report.tables
    assert (report.failed, table.expired.count > 0) == ({}, True)
    # The newest but one was current when the retention began; the one of the vacuum is the newest.
    assert len(house.table().snapshots()) == 2
    assert house.rows() == _rows(lake) == {1: 14, 2: 20, 3: 30}
    house.table().append(pa.table({"id": [4], "v": [40]}, SCHEMA))
    assert _rows(lake)[4] == 40


def test_many_clients_and_pyiceberg_lose_no_change(lake: lv.Lake, house: Warehouse) -> None:
    def ours(_: int) -> None:
        client = house.lake()
        for _ in range(3):
            with client.transaction() as tx:
                tx.sql("UPDATE orders SET v = v + 1 WHERE id = 1")
                tx.sql("INSERT INTO delta VALUES (1, 1)")

    def theirs(_: int) -> None:
        done = 0
        while done < 3:
            try:
                house.table().append(pa.table({"id": [100], "v": [1]}, SCHEMA))
                done += 1
            except CommitFailedException:
                continue

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: (ours if n else theirs)(n), range(4)))
    assert lake.sql("SELECT v FROM orders WHERE id = 1").collect()[0].v == 19
    assert lake.sql("SELECT count(*) AS n FROM orders WHERE id = 100").collect()[0].n == 3
    assert lake.sql("SELECT count(*) AS n FROM delta").collect()[0].n == 9


def test_table_that_was_made_anew_in_the_catalog_is_not_taken_for_the_old_one(
    lake: lv.Lake, house: Warehouse, tmp_path: Path
) -> None:
    assert _rows(lake)
    house.catalog.drop_table("sales.orders")
    with pytest.raises(lv.Corrupt, match=r"'sales.orders' of the catalog 'prod' disappeared"):
        lake.read("orders")
    sql = load_catalog(
        "prod", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse"
    )
    sql.create_table("sales.orders", SCHEMA)
    with pytest.raises(lv.Corrupt, match="another table"):
        lake.read("orders")


def test_drop_and_rename_leave_the_table_to_its_catalog(lake: lv.Lake, house: Warehouse) -> None:
    lake.rename("orders", "sold")
    lake.append("sold", [{"id": 4, "v": 40}])
    lake.drop("sold")
    assert "sold" not in lake.tables()
    assert house.rows()[4] == 40
    lake.register("orders", catalog="prod", table="sales.orders")
    assert _rows(lake)[4] == 40


def test_markers_in_the_log_are_refused_with_the_reason(lake: lv.Lake, house: Warehouse) -> None:
    with pytest.raises(lv.Unsupported, match=r"in a catalog cannot have its markers in the log"):
        lake.sql("ALTER TABLE orders SET TBLPROPERTIES ('lakevilla.markers' = 'log')")
    with house.table().transaction() as other:
        other.set_properties({"lakevilla.markers": "log"})
    with (
        pytest.raises(lv.Unsupported, match=r"in a catalog cannot have its markers in the log"),
        lake.transaction(lv.R) as tx,
    ):
        tx.append("orders", [{"id": 9, "v": 9}])
    assert lake.status().tickets == ()


def test_new_table_in_a_catalog_is_refused_with_advice(lake: lv.Lake) -> None:
    with pytest.raises(lv.Unsupported, match="another client of the catalog"):
        lake.create("more", SCHEMA, format="iceberg@prod/sales.more")


def test_register_says_what_is_wrong(house: Warehouse, tmp_path: Path) -> None:
    lake = house.lake()
    with pytest.raises(lv.InvalidInput, match=r"unknown table 'sales.nothing' in catalog 'prod'"):
        lake.register("t", catalog="prod", table="sales.nothing")
    with pytest.raises(lv.InvalidInput, match=r"'other' cannot be opened.*catalogs="):
        lake.register("t", catalog="other", table="sales.orders")
    with pytest.raises(lv.InvalidInput, match="either a location, or"):
        lake.register("t", "s3://bucket/t", catalog="prod", table="sales.orders")
    with pytest.raises(lv.InvalidInput, match="catalog="):
        lake.register("t", catalog="pr/od", table="sales.orders")
    with pytest.raises(lv.InvalidInput, match="mapping of names to options"):
        lv.Lake(tmp_path, engine="local", catalogs={"prod": "sqlite:///x"})  # type: ignore[dict-item]
    lake.register("t", catalog="prod", table="sales.orders")
    with pytest.raises(lv.InvalidInput) as caught:
        lake.register("again", catalog="prod", table="sales.orders")
    assert caught.value.table == "t"


def test_table_whose_catalog_a_client_does_not_know_is_named_with_it(lake: lv.Lake, house: Warehouse) -> None:
    stranger = lv.Lake(house.root / "lake", engine="local", storage_options={"fsync": "false"})
    with pytest.raises(lv.InvalidInput, match="catalog 'prod' cannot be opened"):
        stranger.read("orders")
    assert _rows(stranger, "delta") == {}


def test_table_right_below_the_root_of_the_lake_is_refused(tmp_path: Path) -> None:
    with warehouse("sql", tmp_path) as house:
        house.catalog.create_table("sales.inside", SCHEMA, location=f"file://{tmp_path}/lake/inside")
        with pytest.raises(lv.InvalidInput, match="right below the lake's root"):
            house.lake().register("t", catalog="prod", table="sales.inside")


def test_catalog_is_found_in_pyicebergs_own_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyiceberg import catalog
    from pyiceberg.utils.config import Config

    with warehouse("sql", tmp_path, "orders") as house:
        monkeypatch.setenv("PYICEBERG_CATALOG__MINE__TYPE", "sql")
        monkeypatch.setenv("PYICEBERG_CATALOG__MINE__URI", house.options["uri"])
        monkeypatch.setattr(catalog, "_ENV_CONFIG", Config())
        lake = lv.Lake(tmp_path / "lake", engine="local")
        # Tables of a SQL catalog belong to its name.
        with pytest.raises(lv.InvalidInput, match=r"unknown table 'sales.orders' in catalog 'mine'"):
            lake.register("orders", catalog="mine", table="sales.orders")


def test_missing_driver_of_a_catalog_is_named(tmp_path: Path) -> None:
    lake = lv.Lake(
        tmp_path, engine="local", catalogs={"hive": {"type": "hive", "uri": "thrift://localhost:1"}}
    )
    with pytest.raises(lv.Unsupported, match=r"pip install 'pyiceberg\[hive\]'"):
        lake.register("t", catalog="hive", table="sales.orders")


def test_warehouse_on_s3_is_changed_by_both(s3: S3Server, tmp_path: Path) -> None:
    options = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": s3.new_url(),
        "s3.endpoint": s3.endpoint,
        "s3.access-key-id": s3.storage_options["AWS_ACCESS_KEY_ID"],
        "s3.secret-access-key": s3.storage_options["AWS_SECRET_ACCESS_KEY"],
        "s3.region": s3.storage_options["AWS_REGION"],
    }
    house = Warehouse(options, tmp_path, s3.storage_options)
    house.catalog.create_namespace("sales")
    house.catalog.create_table("sales.orders", SCHEMA).append(ROWS)
    lake = lv.Lake(
        s3.new_url(), engine="local", storage_options=s3.storage_options, catalogs={"prod": options}
    )
    lake.register("orders", catalog="prod", table="sales.orders")
    lake.create("delta", SCHEMA)
    with lake.transaction() as tx:
        tx.sql("UPDATE orders SET v = v + 1 WHERE id = 2")
        tx.sql("INSERT INTO delta SELECT id, v FROM orders")
        house.table().append(pa.table({"id": [4], "v": [40]}, SCHEMA))
    assert house.rows() == _rows(lake) == _rows(lake, "delta") == {1: 10, 2: 21, 3: 30, 4: 40}
