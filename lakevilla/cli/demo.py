"""The demo: a small bank on a local directory, explained step by step to a newcomer."""

import tempfile
from pathlib import Path

import pyarrow as pa

from lakevilla import CT, InvalidInput, Lake, R


def demo(where: str | None = None, engine: str | None = None) -> None:
    """Build a lake, work on it, and say what happens. A temporary lake is removed afterwards."""
    if where is not None:
        _refuse_full(Path(where))
        _tell(Lake(where, engine=engine), where)
        print(f"\nThe lake is still there: try  lakevilla sql {where} 'SELECT * FROM accounts'")
        return
    with tempfile.TemporaryDirectory(prefix="lakevilla-demo-") as folder:
        _tell(Lake(folder, engine=engine), folder)
    print("\nThe demo lake was temporary. Keep one with:  lakevilla demo --lake ./lake")


def _tell(lake: Lake, where: str) -> None:
    print(f"A lake is a place for tables: a directory here, or a bucket of an object store.\n  {where}")
    print(f"Engine: {lake.engine}\n")

    _say("Create a table. It is a plain Delta table; every Delta client can read it.")
    lake.create("accounts", "id BIGINT NOT NULL, owner STRING, balance DECIMAL(12, 2)")
    lake.sql("INSERT INTO accounts VALUES (1, 'Ada', 100.00), (2, 'Grace', 250.00), (3, 'Edsger', 75.50)")
    lake.sql("SELECT * FROM accounts ORDER BY id").show()

    _say("Change rows with SQL, or with verbs. Each statement is a transaction of its own.")
    counts = lake.sql("UPDATE accounts SET balance = balance - 50 WHERE owner = :who", who="Ada")
    print(f"  {counts.updated} row updated")
    lake.append("accounts", pa.table({"id": [4], "owner": ["Barbara"], "balance": [310]}))
    counts = lake.merge(
        "accounts",
        [{"id": 2, "amount": 25}, {"id": 9, "amount": 10}],
        on="target.id = source.id",
        matched={"balance": "target.balance + source.amount"},
        not_matched={"id": "source.id", "owner": "'new'", "balance": "source.amount"},
    )
    print(f"  merge: {counts.updated} row updated, {counts.inserted} row inserted")
    lake.sql("SELECT * FROM accounts ORDER BY id").show()

    _say("A CHECK constraint holds for every writer. A statement that violates it changes nothing.")
    lake.sql("ALTER TABLE accounts ADD CONSTRAINT no_debt CHECK (balance >= 0)")
    try:
        lake.sql("UPDATE accounts SET balance = balance - 1000 WHERE id = 1")
    except InvalidInput as error:
        print(f"  refused: {error}")

    _say("Two clients change the same row at the same time: the second is redone on what the first left.")
    first, second = lake.transaction(), lake.transaction()
    first.sql("UPDATE accounts SET balance = balance + 1 WHERE id = 1")
    second.sql("UPDATE accounts SET balance = balance + 2 WHERE id = 1")
    first.commit()
    receipt = second.commit()
    balance = lake.sql("SELECT balance FROM accounts WHERE id = 1").collect()[0].balance
    print(f"  {receipt.redone} statement redone, the balance is {balance}: nothing was lost")

    _say("Several statements on several tables, all or nothing.")
    lake.create("savings", "id BIGINT NOT NULL, balance DECIMAL(12, 2)")
    with lake.transaction(R | CT) as tx:
        tx.sql("UPDATE accounts SET balance = balance - 100 WHERE id = 2")
        tx.sql("INSERT INTO savings VALUES (2, 100)")
        tx.savepoint("a gift")
        tx.sql("INSERT INTO savings VALUES (3, 1000000)")
        tx.rollback_to("a gift")
    print(f"  committed as entry {tx.receipt.seq if tx.receipt else None} of the lake, in one instant:")
    lake.sql("SELECT id, a.balance, s.balance AS saved FROM accounts a JOIN savings s USING (id)").show()

    _say("Every version stays readable.")
    for entry in lake.history("accounts"):
        print(f"  version {entry.version}: {entry.operation}")
    before = lake.sql("SELECT sum(balance) AS total FROM accounts VERSION AS OF 1").collect()[0].total
    now = lake.sql("SELECT sum(balance) AS total FROM accounts").collect()[0].total
    print(f"  all balances together: {before} at version 1, {now} now")


def _say(sentence: str) -> None:
    print(f"\n* {sentence}")


def _refuse_full(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(
            f"cannot create the demo lake in {str(folder)!r}: it is not an empty directory; choose another "
            "one"
        )
