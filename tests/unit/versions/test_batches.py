"""Which batches of apps are committed, and how many apps HEAD keeps."""

import pytest

from lakevilla.errors import InvalidInput
from lakevilla.model import Batch
from lakevilla.versions import batches
from lakevilla.versions.batches import Done, check_room, find_done, with_batch
from lakevilla.versions.commits import Commit, Settled
from lakevilla.versions.records import Entry, Head
from lakevilla.versions.registry import apply

KEPT = {"etl": Done(5, 40), "old": Done(9, 3)}


@pytest.mark.parametrize(("number", "done"), [(4, True), (5, True), (6, False)])
def test_batch_up_to_the_newest_is_committed(number: int, done: bool) -> None:
    assert (find_done(KEPT, Batch("etl", number)) is not None) == done


def test_entry_of_the_newest_batch_alone_is_known() -> None:
    assert [KEPT["etl"].seq_of(Batch("etl", number)) for number in (4, 5)] == [None, 40]


def test_app_that_expired_longest_ago_goes_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "APPS_KEPT", 2)
    new = Batch("new", 0)
    check_room(KEPT, 10, new)
    assert with_batch(KEPT, 10, new, 50) == {"etl": Done(5, 40), "new": Done(0, 50)}


def test_app_within_the_horizon_stays_and_one_more_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "APPS_KEPT", 2)
    with pytest.raises(InvalidInput, match="'new' would be one more"):
        check_room(KEPT, 3, Batch("new", 0))
    check_room(KEPT, 3, Batch("etl", 6))


@pytest.mark.parametrize("published", [True, False])
def test_batch_is_kept_only_if_its_commit_is_published(published: bool) -> None:
    head = Head("lake", 6, "put", batches=KEPT)
    entry = Entry(7, "t", "a", "p", 0, Commit((), once=Batch("etl", 6)))
    after = apply(head, entry, Settled(published), "put-2")
    assert after.batches["etl"] == (Done(6, 7) if published else KEPT["etl"])
