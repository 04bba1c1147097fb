"""The simulated catalogs: whose commit they take, and how their tables are judged."""

from collections.abc import Callable

import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.update import AssertRefSnapshotId, SetPropertiesUpdate

from sim.actors import one_table
from sim.checkers.lake.published import check_published
from sim.checkers.tables.cataloged import judged
from sim.checkers.tables.versions import table_versions
from sim.world.bucket import Bucket
from sim.world.catalogs import catalog_of, number_of
from sim.world.client import Client, World
from sim.world.faults import Calm
from sim.world.formats import FORMATS
from sim.world.lakes import first_image
from sim.world.row_engine import rows_engine

KINDS = {"rest": "lists", "metastore": "registers"}


def run(body: Callable[[Client], None]) -> Bucket:
    """What judges see when a client did this in a world with catalogs."""
    formats = FORMATS["cataloged"]
    with World(0, Calm, formats=formats) as world:
        world.bucket.load(first_image(rows_engine, formats))
        client = world.client("outsider")
        world.start(client, lambda: body(client))
        world.run()
        return judged(world)


@pytest.mark.parametrize("table", KINDS.values(), ids=KINDS)
def test_version_is_there_when_the_pointer_names_it_and_what_was_refused_is_not(table: str) -> None:
    def body(client: Client) -> None:
        catalog, update = catalog_of(client, table), SetPropertiesUpdate(updates={"a": "b"})
        with pytest.raises(CommitFailedException):
            catalog.commit(table, (AssertRefSnapshotId(ref="main", **{"snapshot-id": 7}),), (update,))
        assert number_of(catalog.load_table(table).metadata_location) == 1
        assert number_of(catalog.commit(table, (), (update,)).metadata_location) == 2
        assert catalog.load_table(table).properties["a"] == "b"

    bucket = run(body)
    assert check_published(bucket.writes) == []
    versions = table_versions(bucket.writes, table)
    assert [len(version.rows) for version in versions] == [0, one_table.KEYS, one_table.KEYS]
    assert [version.txn is not None for version in versions] == [False, True, False]


@pytest.mark.parametrize(("kind", "taken"), [("rest", 2), ("metastore", 1)])
def test_of_two_commits_at_once_a_metastore_takes_one_and_a_server_takes_both(kind: str, taken: int) -> None:
    """Where neither asks for anything that the other changes."""
    made, table = list[int](), KINDS[kind]

    def body(client: Client) -> None:
        def commit() -> None:
            update = SetPropertiesUpdate(updates={"a": client.environment.new_id()})
            done = catalog_of(client, table).commit(table, (), (update,))
            made.append(number_of(done.metadata_location))

        first, second = (client.environment.background(commit) for _ in range(2))
        for join in (first, second):
            try:
                join()
            except CommitFailedException:
                assert kind == "metastore"

    assert check_published(run(body).writes) == []
    assert sorted(made) == list(range(2, 2 + taken))
