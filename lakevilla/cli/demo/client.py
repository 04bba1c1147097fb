"""A client of the demo that is killed in the middle of its commit: a process of its own, ended by SIGKILL.

Its transfer is decided as soon as its entry of the global log exists. It dies when it is about to publish the
transfer on the second table, at the request itself, so that each run shows the same.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import TypeVar

import lakevilla as lv
from lakevilla.environment import SystemEnvironment
from lakevilla.store.faulty import Faulty
from lakevilla.store.open import open_store
from lakevilla.store.port import Store

T = TypeVar("T")
TRANSFER = (
    "UPDATE accounts SET balance = balance - 40 WHERE owner = 'Ada'",
    "UPDATE savings SET balance = balance + 40 WHERE owner = 'Ada'",
)


class _Dying(Faulty):
    """Ends this process by SIGKILL instead of publishing on `savings`, once `accounts` has its version."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, lambda _kind, _key, _number: None)
        self._plain = store
        self._environment = SystemEnvironment()

    def _do(self, kind: str, key: str, request: Callable[[], T]) -> T:
        if kind == "create" and key.startswith("savings/_delta_log/"):
            # Both tables are published at the same time, and at equal versions here. A plan of faults must
            # not wait, because other requests wait for it.
            while self._plain.head(key.replace("savings/", "accounts/", 1)) is None:
                self._environment.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)
        return super()._do(kind, key, request)


def main(root: str) -> None:
    """Transfer, and die."""
    store = open_store(root)
    lake = lv.Lake(root, engine="local", store=_Dying(store))
    with lake.transaction() as tx:
        for statement in TRANSFER:
            tx.sql(statement)
    raise SystemExit("the demo's client was to die in its commit, and lives")


if __name__ == "__main__":
    main(sys.argv[1])
