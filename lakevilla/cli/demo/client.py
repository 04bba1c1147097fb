"""A client of the demo that is killed in the middle of its commit: a process of its own, ended by SIGKILL.

Its transfer is decided as soon as its entry of the global log exists. It dies when it is about to publish the
transfer on the second table, at the request itself, so that each run shows the same.
"""

import os
import signal
import sys

import lakevilla as lv
from lakevilla.environment import SystemEnvironment
from lakevilla.store.faulty import Faulty
from lakevilla.store.open import open_store
from lakevilla.store.port import Store

TRANSFER = (
    "UPDATE accounts SET balance = balance - 40 WHERE owner = 'Ada'",
    "UPDATE savings SET balance = balance + 40 WHERE owner = 'Ada'",
)


def _dying(store: Store) -> Store:
    """A store that ends this process by SIGKILL instead of publishing on `savings`, once `accounts` has its
    version."""
    environment = SystemEnvironment()

    def plan(kind: str, key: str, _number: int) -> None:
        if kind == "create" and key.startswith("savings/_delta_log/"):
            # Both tables are published at the same time, and at equal versions here.
            while store.head(key.replace("savings/", "accounts/", 1)) is None:
                environment.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)

    return Faulty(store, plan)


def main(root: str) -> None:
    """Transfer, and die."""
    lake = lv.Lake(root, engine="local", store=_dying(open_store(root)))
    with lake.transaction() as tx:
        for statement in TRANSFER:
            tx.sql(statement)
    raise SystemExit("the demo's client was to die in its commit, and lives")


if __name__ == "__main__":
    main(sys.argv[1])
