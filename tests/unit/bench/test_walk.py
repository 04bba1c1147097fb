"""The walk names the files that a transaction passes, in order."""

from pathlib import Path

from bench.walk import UPDATE, trace


def test_update_passes_the_rooms_in_the_order_of_the_protocol() -> None:
    walk = trace([UPDATE])
    rooms = [Path(file).parts[0] for file in walk.files]
    assert rooms.index("sql") < rooms.index("engines") < rooms.index("settle")
    assert walk.hops > len(walk.files) > 50
