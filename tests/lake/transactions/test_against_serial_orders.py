"""Random transactions, interleaved by chance: what committed is what some serial order would have made."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import lakevilla as lv
from tests.lake.transactions.serial_orders import (
    COLUMNS,
    Notes,
    OnLake,
    Ran,
    Row,
    Step,
    Tables,
    explains,
    random_program,
    random_rows,
)

SEEDS = 60
BOTH = lv.R | lv.CT
NAMES = ("x", "y")


@dataclass
class _Client:
    """A transaction on its way through its steps."""

    tx: lv.Transaction
    steps: list[Step]
    done: int = 0
    notes: Notes = field(default_factory=Notes)
    committed: bool = False
    over: bool = False

    def go_on(self) -> None:
        """One step; the one after the last is the commit."""
        try:
            if self.done < len(self.steps):
                self.steps[self.done](OnLake(self.tx), self.notes)
                self.done += 1
                return
            self.tx.commit()
            self.committed = True
        except lv.Conflict:
            pass
        self.over = True


def _make(lake: lv.Lake, random: Random) -> Tables:
    """Two small tables of a few files."""
    before: Tables = {}
    for name in NAMES:
        parts = ("p",) if random.random() < 0.3 else ()
        lake.create(name, COLUMNS, partition_by=parts)
        before[name] = []
        for _ in range(random.randint(1, 3)):
            rows = random_rows(random, 3)
            lake.append(name, [{"id": i, "p": p, "v": v} for i, p, v in rows])
            before[name] += rows
    return before


def _client(lake: lv.Lake, random: Random) -> _Client:
    features = random.choice((lv.R, lv.R, BOTH, BOTH, lv.CT))
    if features == lv.R:
        name = random.choice(NAMES)
        steps = random_program(random, [name], [name])
    else:
        steps = random_program(random, NAMES, NAMES)
        if features == lv.CT:
            steps = [step for step in steps if step.__name__ not in ("_save", "_roll_back")]
    return _Client(lake.transaction(features), steps)


def _rows(lake: lv.Lake, name: str) -> list[Row]:
    return [(row.id, row.p, row.v) for row in lake.read(name).collect()]


def _committed(clients: Sequence[_Client]) -> list[Ran]:
    """Those that changed something. One that did not may have read its tables at different times."""
    wrote = [c for c in clients if c.committed and c.tx.receipt is not None and c.tx.receipt.versions]
    return [Ran(client.steps, client.notes) for client in wrote]


def play(seed: int) -> tuple[bool, int, int]:
    """Whether a run can be explained, how many committed, and how many statements were redone."""
    random = Random(seed)
    lake = lv.Lake("memory://", engine="local")
    before = _make(lake, random)
    clients = [_client(lake, random) for _ in range(random.choice((2, 2, 3)))]
    while running := [client for client in clients if not client.over]:
        random.choice(running).go_on()
    after = {name: _rows(lake, name) for name in NAMES}
    ran = _committed(clients)
    redone = sum(client.tx.receipt.redone for client in clients if client.tx.receipt is not None)
    return explains(before, after, ran), len(ran), redone


def test_random_transactions_do_what_some_serial_order_would_have_done() -> None:
    results = {seed: play(seed) for seed in range(SEEDS)}
    assert [seed for seed, (explained, _, _) in results.items() if not explained] == []
    assert sum(committed for _, committed, _ in results.values()) > SEEDS
    assert sum(redone for _, _, redone in results.values()) > SEEDS / 10
