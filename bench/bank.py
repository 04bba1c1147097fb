"""The bank: transfers and deposits on two tables while clients are killed and paused: `python -m bench.bank`.

Clients are processes. At random they are killed (SIGKILL) and started again, or stopped (SIGSTOP) for some
time, often longer than their lease, and continued. Each writes into a journal what it asks before it asks,
and what it was told. Every now and then all come to rest, what the dead left is recovered, and the books are
checked: the balances add up to the deposits that were acknowledged or are decided, every transaction is in
both tables or in none, nothing that was acknowledged is missing, and no place in a queue is left. The tables'
histories show the outcome of the dead clients' last transactions, and `lake.outcome` has to say the same (of
some of them: it looks through all entries of a day). Meanwhile a reader reads each table in a separate
transaction.
"""

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import lakevilla as lv
from bench.bank_clients import ACCOUNTS, TABLES, Journals, Staff, Teller
from bench.stores.seaweed import running_server
from lakevilla.settle.lost_parts import INVERSE

CLIENTS = 16
LEASE_SECONDS = 2.0
REST_AFTER_SECONDS = 30.0
"""So long the clients work before the books are checked."""
SETTLE_SECONDS = 1.0
"""After this nothing that a dead client had sent is on its way any more."""
OUTCOMES = 3
"""How many of the dead clients' transactions are asked for at each rest."""


@dataclass
class Report:
    """What a run did, and what was wrong."""

    seconds: float = 0.0
    kills: int = 0
    pauses: int = 0
    rests: int = 0
    committed: int = 0
    unanswered: int = 0
    decided: int = 0
    deposits: int = 0
    freed: int = 0
    outcomes: int = 0
    rolled_back: int = 0
    violations: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.committed} transactions committed in {self.seconds:.0f} s "
            f"({self.committed / max(self.seconds, 0.001):.1f}/s), {self.kills} kills, {self.pauses} pauses, "
            f"{self.rests} recoveries; {self.unanswered} transactions were cut off, of which {self.decided} "
            f"were decided; lake.outcome was asked {self.outcomes} times; {self.freed} places of the dead "
            f"freed by recover, {self.rolled_back} commits on a table rolled back and redone; deposits "
            f"{self.deposits}, violations {len(self.violations)}"
        )


def make(lake: lv.Lake) -> None:
    """The two tables, with empty accounts.

    The rows are written without isolation, so the lake's log is told of them: otherwise they would belong
    to its instants only from the first transaction on that names the table.
    """
    columns = "id BIGINT, balance BIGINT, deposited BIGINT, moved BIGINT, changes BIGINT"
    rows = [{"id": n, "balance": 0, "deposited": 0, "moved": 0, "changes": 0} for n in range(ACCOUNTS)]
    for name in TABLES:
        lake.create(name, columns)
        lake.append(name, rows)
    lake.sync()


def run(
    teller: Teller, seconds: float, clients: int = CLIENTS, seed: int = 1, rest_after: float = 30
) -> Report:
    """A bank for so many seconds of work; the time in which the books are checked is not counted."""
    lake, report, random = teller.open(), Report(), Random(seed)
    make(lake)
    books = Books(lake, Journals(teller.folder), report)
    with Staff(teller, clients) as staff:
        left = seconds
        while left > 0 and not report.violations:
            start = time.monotonic()
            disturb(staff, random, min(left, rest_after), report)
            left -= time.monotonic() - start
            report.seconds += time.monotonic() - start
            if not staff.rest(60 + 20 * teller.lease_seconds):
                report.violations.append(f"clients do not come to rest: {staff.busy()}")
                break
            time.sleep(SETTLE_SECONDS)
            books.check(random)
            report.rests += 1
            staff.open()
    return report


def disturb(staff: Staff, random: Random, seconds: float, report: Report) -> None:
    """Kill and pause clients for so long; those that were killed are started again."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(min(random.uniform(0.2, 1.2), max(0.0, end - time.monotonic())))
        staff.wake_up()
        if random.random() < 0.5:
            report.kills += staff.kill(random)
        else:
            report.pauses += staff.pause(random)


class Books:
    """What the clients were told, held against the tables."""

    def __init__(self, lake: lv.Lake, journals: Journals, report: Report) -> None:
        self._lake = lake
        self._journals = journals
        self._report = report
        self._attempts: dict[str, dict[str, set[str]]] = {name: {} for name in TABLES}
        """The attempts of each transaction that are published and not rolled back, by table."""
        self._newest = dict.fromkeys(TABLES, -1)
        self._asked: set[str] = set()

    def check(self, random: Random) -> None:
        """All clients have ended: recover what dead ones left, and compare."""
        report = self._report
        report.freed += len(self._lake.recover().freed)
        report.violations += [f"live place after recover: {t}" for t in self._lake.status().tickets]
        for name in TABLES:
            self._read_history(name)
        told = self._journals.read()
        report.violations += told.complaints
        deposits = 0
        report.committed = report.decided = 0
        for txn, asked in told.asked.items():
            there = [name for name in asked.tables if self._is_in(txn, name)]
            if there and len(there) != len(asked.tables):
                report.violations.append(f"{txn} is in {there} and not in all of {asked.tables}")
            if txn in told.acknowledged and not there:
                report.violations.append(f"{txn} was acknowledged and is in no table")
            if txn in told.failed and there:
                report.violations.append(f"{txn} failed and is in {there}")
            if there:
                deposits += asked.deposit
                report.committed += 1
                report.decided += txn not in told.acknowledged
        report.deposits, report.unanswered = deposits, len(told.unanswered)
        self._check_balances(deposits)
        self._ask_outcomes(sorted(told.unanswered - self._asked), random)

    def _check_balances(self, deposits: int) -> None:
        rows = [row for name in TABLES for row in self._lake.read(name).collect()]
        sums = [sum(getattr(row, column) for row in rows) for column in ("balance", "deposited", "moved")]
        if sums != [deposits, deposits, 0]:
            self._report.violations.append(
                f"balances, deposits and transfers add up to {sums}, and {deposits} were deposited"
            )

    def _read_history(self, name: str) -> None:
        """The versions since the last look.

        A commit on both tables that met a deposit between its decision and its publishing is rolled back by
        an inverse commit, and done again as another attempt.
        """
        newest, attempts = self._lake.history(name, 1)[0].version, self._attempts[name]
        for entry in reversed(self._lake.history(name, newest - self._newest[name])):
            if entry.txn is None or entry.attempt is None:
                continue
            standing = attempts.setdefault(entry.txn, set())
            if entry.attempt.endswith(INVERSE):
                standing.remove(entry.attempt.removesuffix(INVERSE))
                self._report.rolled_back += 1
                continue
            if standing:
                self._report.violations.append(f"{entry.txn} is in {name} twice")
            standing.add(entry.attempt)
        self._newest[name] = newest

    def _is_in(self, txn: str, name: str) -> bool:
        return bool(self._attempts[name].get(txn))

    def _ask_outcomes(self, unanswered: list[str], random: Random) -> None:
        """`lake.outcome` says about the dead clients' transactions what the tables show."""
        for txn in random.sample(unanswered, min(OUTCOMES, len(unanswered))):
            self._asked.add(txn)
            self._report.outcomes += 1
            found = self._lake.outcome(txn)
            there = any(self._is_in(txn, name) for name in TABLES)
            if found.state not in (("committed",) if there else ("undecided", "aborted")):
                self._report.violations.append(f"{txn} is {'there' if there else 'not there'}, and {found}")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m bench.bank", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300, help="of work (default: %(default)s)")
    parser.add_argument("--clients", type=int, default=CLIENTS, help="processes (default: %(default)s)")
    parser.add_argument("--rest-after", type=float, default=REST_AFTER_SECONDS, help="seconds between checks")
    parser.add_argument("--seed", type=int, default=1, help="of who is killed and paused when")
    chosen = parser.parse_args(arguments)
    with running_server() as server, tempfile.TemporaryDirectory(prefix="lakevilla-bank-") as folder:
        teller = Teller(server.url("bank"), server.storage_options, Path(folder), LEASE_SECONDS)
        report = run(teller, chosen.seconds, chosen.clients, chosen.seed, chosen.rest_after)
    print(report, flush=True)
    for violation in report.violations:
        print(f"  WRONG: {violation}", flush=True)
    sys.exit(1 if report.violations else 0)


if __name__ == "__main__":
    main()
