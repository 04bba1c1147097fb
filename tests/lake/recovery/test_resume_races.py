"""Clients that resume one transaction, in simulated worlds with faults: it is committed once at most."""

import json
from collections.abc import Callable

import pytest

import lakevilla as lv
from lakevilla.lake import Lake
from sim.world.client import Client, World
from sim.world.faults import Calm, Storm
from sim.world.lakes import open_lake
from sim.world.row_engine import rows_engine

SEEDS = range(60)
ROW = [{"k": 1, "items": "x"}]


class Race:
    """One transaction that its client begins, and others resume."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.txn: str | None = None
        self.acknowledged: list[str] = []
        self.refused: list[str] = []

    def make(self) -> None:
        client = self.world.client("maker")
        lake = open_lake(client, rows_engine)
        lake.create("t", "k BIGINT, items STRING")
        lake.append("t", [{"k": 0, "items": ""}])

    def begin(self, client: Client) -> None:
        lake = open_lake(client, rows_engine)

        def work() -> None:
            tx = lake.transaction(lv.R)
            self.txn = tx.id
            tx.append("t", ROW)
            tx.update("t", {"items": "concat(items, 'a')"}, where="k = 0")
            self._end(client, tx)

        self._try(client, work)

    def go_on(self, client: Client, after: float) -> None:
        lake: Lake = open_lake(client, rows_engine)
        client.environment.sleep(after)

        def work() -> None:
            if self.txn is not None:
                tx = lake.resume(self.txn)
                tx.append("t", ROW)
                self._end(client, tx)

        self._try(client, work)

    def _end(self, client: Client, tx: lv.Transaction) -> None:
        client.environment.sleep(client.environment.random() * 6)
        tx.commit()
        self.acknowledged.append(client.name)

    def _try(self, client: Client, work: Callable[[], None]) -> None:
        try:
            work()
        except lv.LakeVillaError as error:
            self.refused.append(f"{client.name}: {type(error).__name__}")

    def commits(self) -> list[str]:
        """The entries of the table's log that name the transaction."""
        log = {
            key: data for key, data in self.world.bucket.contents().items() if key.startswith("t/_delta_log/")
        }
        infos = [json.loads(data.splitlines()[0])["commitInfo"] for _, data in sorted(log.items())]
        return [info["lakevilla"]["attempt"] for info in infos if info["lakevilla"]["txn"] == self.txn]


def _play(world: World) -> Race:
    race, random = Race(world), world.random
    maker = world.client("maker")
    plan, world.plan = world.plan, Calm(random)
    world.start(maker, race.make)
    world.run()
    world.plan = plan
    world.start(owner := world.client("owner"), lambda: race.begin(owner))
    for name in ("second", "third"):
        other, after = world.client(name), random.random() * 6
        world.start(other, lambda other=other, after=after: race.go_on(other, after))  # type: ignore[misc]
    world.run()
    return race


@pytest.mark.parametrize("calm", [True, False])
def test_transaction_that_several_go_on_with_is_committed_once(calm: bool) -> None:
    both = 0
    for seed in SEEDS:
        plan = Calm if calm else lambda random: Storm(random, mean_gap=25, crashes=1)
        with World(seed, plan) as world:
            race = _play(world)
            commits = race.commits()
            assert len(commits) <= 1, f"seed {seed}: {race.acknowledged} {race.refused}"
            assert len(race.acknowledged) <= len(commits), f"seed {seed}: {race.refused}"
            assert not calm or len(commits) == 1, f"seed {seed}: {race.refused}"
            both += any("Fenced" in refused for refused in race.refused)
    assert both > len(SEEDS) / 10, f"clients met in {both} seeds only"
