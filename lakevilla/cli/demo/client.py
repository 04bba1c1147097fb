"""A client of the demo that is killed in the middle of its commit: a process of its own, ended by SIGKILL.

Its transfer is decided as soon as its entry of the global log exists. It dies when it is about to publish the
transfer on the second table, at the request itself, so that each run shows the same.
"""

import os
import signal
import sys

import lakevilla as lv
from lakevilla.environment import SystemEnvironment
from lakevilla.store.faulty import Fault, Faulty
from lakevilla.store.open import open_store
from lakevilla.store.port import Store

TRANSFER = (
    "UPDATE accounts SET balance = balance - 40 WHERE owner = 'Ada'",
    "UPDATE savings SET balance = balance + 40 WHERE owner = 'Ada'",
)


class _Death:
    """A plan of faults: SIGKILL instead of publishing on `savings`, as soon as `accounts` has its version."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._environment = SystemEnvironment()

    def __call__(self, kind: str, key: str, number: int) -> Fault | None:  # noqa: ARG002 - the plan's signature
        if kind == "create" and key.startswith("savings/_delta_log/"):
            # Both tables are published at the same time, and at equal versions here.
            while self._store.head(key.replace("savings/", "accounts/", 1)) is None:
                self._environment.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)
        return None


def main(root: str) -> None:
    """Transfer, and die."""
    store = open_store(root)
    lake = lv.Lake(root, engine="local", store=Faulty(store, _Death(store)))
    with lake.transaction() as tx:
        for statement in TRANSFER:
            tx.sql(statement)
    raise SystemExit("the demo's client was to die in its commit, and lives")


if __name__ == "__main__":
    main(sys.argv[1])
