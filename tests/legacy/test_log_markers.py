"""Legacy clients of a table with markers in its log, between any two of our requests.

A client that opens the table sees a prefix of the commits, in whatever way it finds the newest version; when
we are done all clients see all of them, also where the topmost marker was freed before one below it was
filled.
"""

from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.environment import SystemEnvironment
from lakevilla.store.delayed import Delayed
from lakevilla.store.open import open_store
from tests.legacy.clients.lookers import LOOKERS, Other, Rows, Warm
from tests.legacy.test_between_requests import Watch

COMMITS: list[Rows] = [
    [(1, 0), (2, 0)],
    [(1, 100), (2, 0)],
    [(1, 100), (2, 0), (10, 5)],
    [(1, 110), (2, 0), (10, 5)],
]


class Prefixes(Watch):
    """Every client sees some prefix of the commits, also of a version that was held when it saw it before."""

    def _note(self, table: str, other: Other) -> None:
        rows = other.look(str(self._root / table))[1]
        assert rows in COMMITS, f"{type(other).__name__} sees {rows}"
        self.unnumbered.append((type(other).__name__, rows))


def _work(lake: lv.Lake) -> None:
    first, second, third = (lake.transaction(lv.R) for _ in range(3))
    first.update("t", {"v": "v + 100"}, where="id = 1")
    second.append("t", [{"id": 10, "v": 5}])
    third.append("t", [{"id": 11, "v": 5}])
    third.abort()
    first.commit()
    second.commit()
    with lake.transaction(lv.R) as tx:
        tx.update("t", {"v": "v + 10"}, where="id = 1")


@pytest.mark.parametrize("table_format", LOOKERS)
def test_readers_between_any_two_requests_see_prefixes_of_the_commits(
    tmp_path: Path, table_format: str
) -> None:
    plain = open_store(str(tmp_path), {"fsync": "false"}, environment=SystemEnvironment())
    made = lv.Lake(tmp_path, engine="local", store=plain, features=lv.R, default_format=table_format)
    made.create("t", "id BIGINT, v BIGINT", properties={"lakevilla.markers": "log"})
    made.append("t", [{"id": 1, "v": 0}, {"id": 2, "v": 0}])
    # A client that keeps the table open has read the empty entry and does not read it again
    # (docs/guarantees.md).
    others = [make() for make in LOOKERS[table_format] if make is not Warm]
    watch = Prefixes(tmp_path, ["t"], others)
    _work(lv.Lake(tmp_path, engine="local", store=Delayed(plain, watch, 1.0)))
    watch.look()
    assert watch.requests > 20
    assert dict(watch.unnumbered) == {type(other).__name__: COMMITS[-1] for other in others}


@pytest.mark.parametrize("table_format", LOOKERS)
def test_marker_that_was_freed_above_a_commit_hides_it_from_nobody(tmp_path: Path, table_format: str) -> None:
    lake = lv.Lake(tmp_path, engine="local", features=lv.R, default_format=table_format)
    lake.create("t", "id BIGINT, v BIGINT", properties={"lakevilla.markers": "log"})
    first, second = lake.transaction(lv.R), lake.transaction(lv.R)
    first.append("t", [{"id": 1, "v": 1}])
    second.append("t", [{"id": 2, "v": 2}])
    second.abort()
    first.commit()
    for make in LOOKERS[table_format]:
        assert make().look(str(tmp_path / "t"))[1] == [(1, 1)]
