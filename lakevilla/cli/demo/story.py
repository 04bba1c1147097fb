"""The demo: the paper's story on a local directory, with two tables of a small bank."""

import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import lakevilla as lv
from lakevilla.cli.demo.client import TRANSFER
from lakevilla.cli.exits import paint
from lakevilla.environment import SystemEnvironment

_STEPS = 7
_OUT = "UPDATE accounts SET balance = balance - 50 WHERE owner = 'Grace'"
_IN = "UPDATE savings SET balance = balance + 50 WHERE owner = 'Grace'"


def demo(where: str | None = None, engine: str | None = None) -> None:
    """Play the story. A temporary lake is removed afterwards."""
    if where is not None:
        _refuse_full(Path(where))
        _Story(where, engine).tell()
        print(f"\nThe lake is still there. Try:  lakevilla shell {where}")
        return
    with tempfile.TemporaryDirectory(prefix="lakevilla-demo-") as folder:
        _Story(folder, engine).tell()
    print("\nThe demo lake was temporary. Keep one with:  lakevilla demo --lake ./lake")


class _Story:
    """The steps, in order. `_reader` is another client, which only looks."""

    def __init__(self, root: str, engine: str | None) -> None:
        self._root = root
        self._environment = SystemEnvironment()
        self._began = self._environment.elapsed()
        self._lake = lv.Lake(root, engine=engine)
        self._reader = lv.Lake(root, engine="local")
        self._step = 0

    def tell(self) -> None:
        """All steps."""
        engine = self._lake.engine
        self._tables(engine)
        self._plain_transfer()
        self._transaction()
        before = self._killed_client()
        self._conflict()
        self._time_travel(before)
        self._store()
        seconds = self._environment.elapsed() - self._began
        print(f"\nDone in {seconds:.0f} s on the {engine} engine.")
        self._lake.close()

    def _tables(self, engine: str) -> None:
        self._title("Two tables in a lake: plain Delta tables in a directory, with no service")
        print(f"  {self._root}")
        if engine == "spark":
            print(
                "  Spark starts now, which takes about ten seconds (--engine local needs none) ...",
                flush=True,
            )
        for name in ("accounts", "savings"):
            self._lake.create(name, "owner STRING NOT NULL, balance DECIMAL(12, 2)")
        self._sql(self._lake, "INSERT INTO accounts VALUES ('Ada', 100.00), ('Grace', 250.00)")
        self._sql(self._lake, "INSERT INTO savings VALUES ('Ada', 0.00), ('Grace', 0.00)")
        self._look("a reader sees")

    def _plain_transfer(self) -> None:
        self._title("A transfer as the plain format has it: each table has its own commit")
        self._sql(self._lake, _OUT)
        self._look("a reader in between sees", wrong=True)
        print("  50.00 are on neither table. If the client died now, they would stay lost.")
        self._sql(self._lake, _IN)
        self._look("a reader sees")

    def _transaction(self) -> None:
        self._title("The same with LakeVilla: one transaction over both tables")
        with self._lake.transaction() as tx:
            self._sql(tx, _OUT)
            self._look("a reader in between sees")
            self._sql(tx, _IN)
        print(f"  COMMIT is entry {_receipt(tx).seq} of the lake's log, and decides for both tables at once")
        self._look("a reader sees")

    def _killed_client(self) -> int:
        self._title("A client is killed in the middle of its commit (a process of its own, SIGKILL)")
        before = self._lake.history(limit=1)[0].seq
        print("  " + ";\n  ".join(TRANSFER))
        program = [sys.executable, "-m", "lakevilla.cli.demo.client", self._root]
        ended = subprocess.run(program, capture_output=True, text=True, check=False)
        if ended.returncode != -9:
            raise lv.LakeVillaError(f"the client to be killed ended otherwise: {ended.stderr.strip()}")
        print(
            f"  its process ended by signal 9. Entry {before + 1} is decided; on the store the tables have:"
        )
        print(f"    accounts  version {_newest(self._root, 'accounts')}: the transfer")
        print(f"    savings   version {_newest(self._root, 'savings')}: not the transfer")
        print("  The next client, here a reader, finds the entry and completes the transfer:")
        self._look("it sees")
        print(f"    savings   version {_newest(self._root, 'savings')}: the transfer")
        return before

    def _conflict(self) -> None:
        self._title("Two clients change one row at the same time: the second is redone, not aborted")
        first, second = self._reader.transaction(), self._lake.transaction()
        self._sql(first, "UPDATE accounts SET balance = balance + 10 WHERE owner = 'Ada'")
        self._sql(second, "UPDATE accounts SET balance = balance * 2 WHERE owner = 'Ada'")
        first.commit()
        redone = second.commit().redone
        print(f"  both committed; {redone} statement was run again on what the first had left: (60 + 10) * 2")
        self._look("a reader sees")

    def _time_travel(self, before: int) -> None:
        self._title("Time travel: all tables as they were at one instant")
        print(f"  AT (SEQ => {before}) is the instant before the client was killed")
        past = self._reader.at(seq=before)
        print(f"  {_balances(past.read('accounts'), past.read('savings'))}")

    def _store(self) -> None:
        self._title("What the store holds: the tables, and a log that any client can read. No server")
        root = Path(self._root)
        entries = len(list((root / "_lakevilla/global/log").glob("*.json")))
        print(f"  _lakevilla/global/log/   {entries} entries, one for each commit")
        print("  _lakevilla/global/HEAD.json   the newest instant")
        for name in ("accounts", "savings"):
            versions = len(list((root / name / "_delta_log").glob("*.json")))
            files = len(list((root / name).glob("*.parquet")))
            print(
                f"  {name}/   {versions} Delta versions, {files} Parquet files: every Delta client reads it"
            )

    def _title(self, text: str) -> None:
        self._step += 1
        print("\n" + paint(f"{self._step}/{_STEPS}  {text}", "1", sys.stdout), flush=True)

    def _sql(self, client: "lv.Lake | lv.Transaction", statement: str) -> None:
        print(f"  {statement}", flush=True)
        client.sql(statement)

    def _look(self, whom: str, wrong: bool = False) -> None:
        """What another client sees at one instant: both tables, and the money in all."""
        with self._reader.transaction() as tx:
            told = _balances(tx.read("accounts"), tx.read("savings"))
        print(f"  {whom}: {paint(told, '1;31' if wrong else '32', sys.stdout)}", flush=True)


def _balances(accounts: Any, savings: Any) -> str:
    tables = [sorted((row[0], row[1]) for row in table.collect()) for table in (accounts, savings)]
    told = [" ".join(f"{owner} {balance}" for owner, balance in rows) for rows in tables]
    total = sum((balance for rows in tables for _, balance in rows), Decimal())
    return f"accounts {told[0]} | savings {told[1]} | total {total}"


def _newest(root: str, table: str) -> int:
    """The newest version of a table, by the files of its log."""
    return max(int(entry.stem) for entry in (Path(root) / table / "_delta_log").glob("*.json"))


def _receipt(tx: "lv.Transaction") -> "lv.Receipt":
    assert tx.receipt is not None, "committed at the end of the block"
    return tx.receipt


def _refuse_full(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise lv.InvalidInput(
            f"cannot create the demo lake in {str(folder)!r}: it is not an empty directory; choose another "
            "one"
        )
