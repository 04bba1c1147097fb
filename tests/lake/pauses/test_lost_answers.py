"""A commit that was sent after vacuum deleted its uploads, and whose answer was lost."""

from pathlib import Path

import pytest

import lakevilla as lv
from lakevilla.maintenance.vacuum import Vacuum
from lakevilla.store.open import open_store
from lakevilla.store.port import Ambiguous, Created, Exists
from tests.lake.pauses.test_age_of_uploads import DAY, OPTIONS, Clock
from tests.support.hooked import Hooked

THIRD = {"delta": "_delta_log/00000000000000000002.json", "iceberg": "metadata/v3.metadata.json"}


class LosesAnswer(Hooked):
    """Loses the answer to the first create of this key."""

    lost = ""

    def create(self, key: str, data: bytes) -> Created | Exists:
        answer = super().create(key, data)
        if key == self.lost:
            self.lost = ""
            raise Ambiguous("timeout")
        return answer


@pytest.mark.parametrize("table_format", THIRD)
def test_commit_without_its_uploads_is_rolled_back_after_a_lost_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table_format: str
) -> None:
    """The vacuum of an earlier release, which takes no number, has deleted them."""
    monkeypatch.setattr(Vacuum, "_occupy_next", lambda *_: None)
    clock = Clock()
    store = LosesAnswer(open_store(str(tmp_path), OPTIONS, environment=clock))
    lake = lv.Lake(tmp_path, engine="local", store=store, environment=clock, lease_seconds=0.2)
    lake.create("t", "id BIGINT", format=table_format)
    lake.append("t", [{"id": 1}])
    other = lv.Lake(tmp_path, engine="local", storage_options=OPTIONS, environment=clock, lease_seconds=0.2)
    tx = lake.transaction(lv.NONE)
    tx.append("t", [{"id": 2}])
    tx._workspace.uploads.finish()

    def hook(kind: str, key: str) -> None:
        if kind == "create" and key == f"t/{THIRD[table_format]}":
            store.hook, store.lost = None, key
            clock.ahead = 10 * DAY
            other.vacuum(dry_run=False)

    store.hook = hook
    with pytest.raises(lv.Conflict):
        tx.commit()
    assert not store.lost
    fresh = lv.Lake(tmp_path, engine="local", storage_options=OPTIONS, environment=clock)
    assert [row["id"] for row in fresh.read("t").collect()] == [1]
    assert fresh.history("t", limit=1)[0].operation == "ROLLBACK"
