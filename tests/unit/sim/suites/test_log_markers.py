"""Seeds on tables whose markers lie in the log are clean, and the judges of such tables can be trusted."""

import json
from functools import partial

import pytest

from sim.checkers.tables.log_markers import (
    check_log_markers,
    hidden_commits,
    pending_markers,
    without_markers,
)
from sim.planted.commits import replaced
from sim.suites.log_markers import play
from sim.world.bucket import Write
from sim.world.formats import FORMATS
from tests.support.planted import catch

LEASE = 1.0
ICEBERG = "lakevilla.formats.iceberg"

both = pytest.mark.parametrize("made", ["delta", "iceberg"])


@pytest.mark.parametrize(("made", "seeds"), [("delta", 12), ("iceberg", 3)])
def test_first_seeds_show_no_violation(made: str, seeds: int):
    for seed in range(seeds):
        replay = f"replay with: python -m sim.suites.log_markers --format {made} --seed {seed}"
        assert play(seed, formats=FORMATS[made]).violations == [], replay


def _put(store, entries, read) -> bool:
    store.put(entries.key(read.ticket), entries.encode(read.ticket, read.marker.tombstone("p").record()))
    return True


@pytest.mark.long
@pytest.mark.parametrize(
    ("made", "targets", "wrong"),
    [
        ("delta", ["lakevilla.formats.delta.log.load.is_pending"], lambda _: False),
        (
            "delta",
            ["lakevilla.markers.log.write_tombstone"],
            lambda store, _environment, entries, read: _put(store, entries, read),
        ),
        ("delta", ["lakevilla.markers.lease.Leases.is_stale"], lambda *_: True),
        ("iceberg", [f"{ICEBERG}.log.versions.Version.after"], lambda version, _: version),
        (
            "iceberg",
            [f"{ICEBERG}.log.file_log.show_above", f"{ICEBERG}.log.markers.show_above"],
            lambda *_: None,
        ),
    ],
    ids=[
        "readers go past markers",
        "freed whatever it became",
        "no client is alive",
        "freed markers are taken at their word",
        "freed markers are left as they are",
    ],
)
def test_planted_bug_is_caught(made: str, targets: list[str], wrong, capsys, request):
    bug = replaced(targets, wrong)
    catch(bug, partial(play, formats=FORMATS[made]), range(20), request.node.callspec.id, capsys)


def entry(
    made: str,
    at: float,
    version: int,
    marker: bool | None,
    txn: str = "a",
    client: str = "c",
    shows: int = 0,
    content: int | None = None,
) -> Write:
    """A write of a log entry; in Iceberg's, `shows` is the version whose state a marker claims to show, and
    `content` the one whose state it has. Versions are numbered from 0 here, in both formats."""
    ours = {"txn": txn} if marker is None else {"txn": txn, "marker": marker}
    key = {"delta": f"t/_delta_log/{version:020d}.json", "iceberg": f"t/metadata/v{version}.metadata.json"}
    if made == "delta":
        return Write(
            at, client, "create", key[made], json.dumps({"commitInfo": {"lakevilla": ours}}).encode()
        )
    state = version if marker is None else shows if content is None else content
    ours |= {"version": version} if marker is None else {"version": version, "state_of": shows}
    raw = {
        "metadata-log": [{"metadata-file": f"t/metadata/v{state}.metadata.json"}],
        "properties": {"lakevilla.commit": json.dumps(ours)},
    }
    return Write(at, client, "create", key[made], json.dumps(raw).encode())


CHECKPOINT = Write(3.0, "c", "create", f"t/_delta_log/{1:020d}.checkpoint.parquet", b"")


@both
def test_markers_that_are_filled_and_freed_in_order_pass(made: str):
    def on(*arguments, **given) -> Write:
        return entry(made, *arguments, **given)

    writes = [on(0, 0, None), on(1, 1, True), on(1, 2, True, "b"), on(2, 1, None)]
    assert check_log_markers(writes, LEASE) == []
    assert pending_markers(writes) == [("t", 2)]
    writes.append(on(2, 2, False, "b"))
    assert check_log_markers(writes, LEASE) == []
    kept, numbers = without_markers([*writes, on(3, 3, True), on(4, 3, None)])
    digits = [write.key.removesuffix(".json").removesuffix(".metadata")[-1] for write in kept]
    assert (digits, numbers.of("t", 3)) == (["0", "1", "2"], 2)


def test_freed_marker_hides_a_commit_until_it_shows_it():
    def on(*arguments, **given) -> Write:
        return entry("iceberg", *arguments, **given)

    writes = [on(0, 0, None), on(1, 1, True), on(1, 2, True, "b"), on(2, 2, False, "b"), on(3, 1, None)]
    assert hidden_commits(writes) == [("t", 1)]
    writes.append(on(4, 2, False, "b", shows=1))
    assert check_log_markers(writes, LEASE) == []
    assert hidden_commits(writes) == []


@both
@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ([(1, 1, None)], "begins filled"),
        ([(1, 1, True), (2, 1, None), (3, 1, None)], "was filled, and changes"),
        ([(1, 1, True), (2, 1, False), (3, 1, None)], "was freed, and changes"),
        ([(1, 1, True), (2, 1, None, "b")], "was held by a"),
        ([(1, 1, True), (1.5, 1, False, "a", "d")], "is freed 0.50 seconds after"),
        ([(1, 1, True), (1, 2, True), (2, 2, None)], "filled above the pending markers [1]"),
    ],
)
def test_rule_that_is_broken_is_named(made: str, entries: list[tuple], problem: str):
    writes = [entry(made, 0, 0, None), *(entry(made, *arguments) for arguments in entries)]
    (found,) = check_log_markers(writes, LEASE)
    assert problem in found


def test_checkpoint_over_a_pending_marker_is_named():
    writes = [entry("delta", 0, 0, None), entry("delta", 1, 1, True), CHECKPOINT]
    (found,) = check_log_markers(writes, LEASE)
    assert "covers the pending markers [1]" in found


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ([entry("iceberg", 1, 1, True, shows=1)], "which is not a commit below it"),
        (
            [entry("iceberg", 1, 1, True), entry("iceberg", 1, 2, True, shows=1)],
            "which is not a commit below it",
        ),
        ([entry("iceberg", 1, 1, True, content=7)], "and shows another"),
        (
            [entry("iceberg", 1, 1, True), entry("iceberg", 2, 1, False), entry("iceberg", 3, 1, False)],
            "showed 0 before",
        ),
    ],
)
def test_marker_that_shows_what_it_must_not_is_named(entries: list[Write], problem: str):
    (found,) = check_log_markers([entry("iceberg", 0, 0, None), *entries], LEASE)
    assert problem in found
