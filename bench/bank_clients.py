"""The clients of the bank (see `bench.bank`): what they do, what they write down, and what kills them.

A client's journal is a file to which it appends lines: `B` before a transaction is asked for, with its id,
what it deposits and the tables that it changes; `A` if it was acknowledged, `F` if it failed; `I` when it
rests, with the number of the rest; `X` for what should not be. A line is one write, so a client that is
killed leaves whole lines.
"""

import logging
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self

import lakevilla as lv
from bench.stores.seaweed import die_with_parent

TABLES = ("left", "right")
ACCOUNTS = 6
BOTH = lv.R | lv.CT
RETRIES = 1000
READER = "reader"

_CLOSED = "closed"
_MOST_PAUSED = 4


@dataclass(frozen=True)
class Teller:
    """How a client reaches the bank, and the folder of the journals."""

    url: str
    storage_options: Mapping[str, str]
    folder: Path
    lease_seconds: float

    def open(self) -> lv.Lake:
        options = dict(self.storage_options)
        return lv.Lake(
            self.url, storage_options=options, engine="local", features=lv.R, lease_seconds=self.lease_seconds
        )

    @property
    def rest(self) -> str:
        """The number of the rest to which all are to come; empty while they are to work.

        A file, because a process that is killed could keep a lock.
        """
        try:
            return (self.folder / _CLOSED).read_text()
        except FileNotFoundError:
            return ""


class Client:
    """One process at work."""

    def __init__(self, teller: Teller, name: str, seed: int) -> None:
        self._teller = teller
        self._lake = teller.open()
        self._random = Random(seed)
        self._journal = os.open(teller.folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def work(self) -> None:
        """For ever: a transaction, and the next; rests while the bank is closed."""
        kinds = [self._deposit, self._deposit_twice, *[self._transfer] * 3, self._audit]
        while True:
            if rest := self._teller.rest:
                self._lake.close()
                self._note("I", rest)
                while self._teller.rest:
                    time.sleep(0.05)
            self._random.choice(kinds)()

    def read(self) -> None:
        """For ever: look at both tables at one instant. (Without isolation a reader may see a commit that is
        later rolled back because another one was in its way.)"""
        before: dict[str, dict[int, Any]] = {name: {} for name in TABLES}
        while True:
            with self._lake.transaction(lv.I) as tx:
                seen = {name: tx.read(name).collect() for name in TABLES}
            for name, rows in seen.items():
                for complaint in find_wrong(rows, before[name]):
                    self._note("X", f"{name}: {complaint}")
                before[name] = {row.id: row for row in rows}
            moved = sum(row.moved for rows in seen.values() for row in rows)
            if moved:
                self._note("X", f"at one instant transfers add up to {moved}")
            time.sleep(0.2)

    def _deposit(self) -> None:
        amount, table = self._random.randint(1, 100), self._random.choice(TABLES)
        self._run(amount, (table,), lambda tx: self._add(tx, table, amount, "deposited"))

    def _deposit_twice(self) -> None:
        amount = self._random.randint(1, 50)

        def work(tx: lv.Transaction) -> None:
            for table in self._random.sample(TABLES, 2):
                self._add(tx, table, amount, "deposited")

        self._run(2 * amount, TABLES, work)

    def _transfer(self) -> None:
        """Never more than there is: what was read has to hold."""
        wish, (source, target) = self._random.randint(1, 100), self._random.sample(TABLES, 2)
        account = self._random.randrange(ACCOUNTS)

        def work(tx: lv.Transaction) -> None:
            there = tx.sql(f"SELECT balance FROM {source} WHERE id = {account}").collect()[0].balance
            amount = min(wish, there)
            self._add(tx, source, -amount, "moved", account)
            self._add(tx, target, amount, "moved")

        self._run(0, TABLES, work)

    def _audit(self) -> None:
        """A transaction that writes sees both tables at one instant."""
        seen: list[int] = []
        table = self._random.choice(TABLES)

        def work(tx: lv.Transaction) -> None:
            seen[:] = [sum(row.moved for row in tx.read(name).collect()) for name in TABLES]
            self._add(tx, table, 0, "moved")

        if self._run(0, (table,), work) and sum(seen) != 0:
            self._note("X", f"a committed audit saw transfers that add up to {sum(seen)}")

    def _add(
        self, tx: lv.Transaction, table: str, amount: int, column: str, account: int | None = None
    ) -> None:
        account = self._random.randrange(ACCOUNTS) if account is None else account
        changed = {"balance": f"balance + {amount}", column: f"{column} + {amount}", "changes": "changes + 1"}
        tx.update(table, changed, where=f"id = {account}")

    def _run(self, deposit: int, tables: tuple[str, ...], work: Callable[[lv.Transaction], None]) -> bool:
        """Whether the transaction was acknowledged."""
        begun: list[str] = []

        def noted(tx: lv.Transaction) -> None:
            if not begun:
                begun.append(tx.id)
                self._note("B", tx.id, str(deposit), ",".join(tables))
            work(tx)

        try:
            self._lake.run(noted, RETRIES, BOTH)
        except lv.CommitUnknown:
            return False
        except lv.Unavailable:
            self._note("F", *begun)
            return False
        except lv.LakeVillaError as error:
            self._note("F", *begun)
            self._note("X", f"gave up: {error}")
            return False
        self._note("A", *begun)
        return True

    def _note(self, *words: str) -> None:
        os.write(self._journal, (" ".join(words).replace("\n", " ") + "\n").encode())


def find_wrong(rows: list[Any], before: Mapping[int, Any]) -> list[str]:
    """What is wrong with one table as it is seen, after it was seen as `before`."""
    wrong = []
    if sorted(row.id for row in rows) != list(range(ACCOUNTS)):
        wrong.append(f"its accounts are {sorted(row.id for row in rows)}")
    for row in rows:
        if row.balance != row.deposited + row.moved or row.balance < 0:
            wrong.append(f"account {row.id} does not add up: {row}")
        old = before.get(row.id)
        if old is not None and (row.changes < old.changes or row.deposited < old.deposited):
            wrong.append(f"account {row.id} went back from {old} to {row}")
    return wrong


@dataclass(frozen=True)
class Asked:
    """A transaction that a client asked for."""

    deposit: int
    tables: tuple[str, ...]


@dataclass
class Told:
    """All journals together."""

    asked: dict[str, Asked] = field(default_factory=dict)
    acknowledged: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    complaints: list[str] = field(default_factory=list)

    @property
    def unanswered(self) -> set[str]:
        return self.asked.keys() - self.acknowledged - self.failed


@dataclass(frozen=True)
class Journals:
    """What the clients wrote down."""

    folder: Path

    def read(self) -> Told:
        told = Told()
        for path in sorted(self.folder.glob("client-*")) + sorted(self.folder.glob(READER)):
            for line in path.read_text().splitlines():
                kind, _, rest = line.partition(" ")
                match kind:
                    case "B":
                        txn, deposit, tables = rest.split(" ", 2)
                        told.asked[txn] = Asked(int(deposit), tuple(tables.split(",")))
                    case "A":
                        told.acknowledged.add(rest)
                    case "F" if rest:
                        told.failed.add(rest)
                    case "X":
                        told.complaints.append(f"{path.name}: {rest}")
        return told

    def rests(self, name: str, number: int) -> bool:
        """Whether the last that a client wrote is that it has come to this rest."""
        path = self.folder / name
        return path.exists() and path.read_text().splitlines()[-1:] == [f"I {number}"]


class Staff:
    """The processes: clients, and one reader who is left alone. Ends them all when the block is left."""

    def __init__(self, teller: Teller, clients: int) -> None:
        self._teller = teller
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["bench.bank_clients", "lakevilla.engines.local.engine"])
        self._names = [f"client-{number}" for number in range(clients)]
        self._processes: dict[str, BaseProcess] = {}
        self._paused: dict[str, float] = {}
        self._starts = 0
        self._rests = 0

    def __enter__(self) -> Self:
        for name in [*self._names, READER]:
            self._start(name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes.values():
            process.kill()
            process.join()

    def kill(self, random: Random) -> int:
        """Kill one client, paused or not, and start it again; how many were killed."""
        name = random.choice(self._names)
        process = self._processes[name]
        process.kill()
        process.join()
        self._paused.pop(name, None)
        self._start(name)
        return 1

    def pause(self, random: Random) -> int:
        """Stop one client for up to three lease times; how many were stopped."""
        name = random.choice(self._names)
        if name in self._paused or len(self._paused) >= _MOST_PAUSED:
            return 0
        self._send(name, signal.SIGSTOP)
        self._paused[name] = time.monotonic() + random.uniform(0.1, 3 * self._teller.lease_seconds)
        return 1

    def wake_up(self, everybody: bool = False) -> None:
        """Continue those whose pause is over."""
        for name, until in list(self._paused.items()):
            if everybody or until < time.monotonic():
                del self._paused[name]
                self._send(name, signal.SIGCONT)

    def rest(self, patience_seconds: float) -> bool:
        """Close the bank and wait until all rest. False if some do not."""
        self._rests += 1
        closed = self._teller.folder / _CLOSED
        closed.with_suffix(".new").write_text(str(self._rests))
        closed.with_suffix(".new").rename(closed)
        self.wake_up(everybody=True)
        end = time.monotonic() + patience_seconds
        while self.busy():
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True

    def busy(self) -> list[str]:
        """Those who do not rest."""
        journals = Journals(self._teller.folder)
        return [name for name in self._names if not journals.rests(name, self._rests)]

    def open(self) -> None:
        """Let all go on."""
        (self._teller.folder / _CLOSED).unlink()

    def _start(self, name: str) -> None:
        self._starts += 1
        process = self._context.Process(target=_work, args=(self._teller, name, self._starts), daemon=True)
        process.start()
        self._processes[name] = process

    def _send(self, name: str, what: signal.Signals) -> None:
        pid = self._processes[name].pid
        assert pid is not None, "it was started"
        os.kill(pid, what)


def _work(teller: Teller, name: str, seed: int) -> None:
    die_with_parent()
    logging.disable(logging.WARNING)
    client = Client(teller, name, seed)
    if name == READER:
        client.read()
    else:
        client.work()
