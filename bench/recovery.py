"""What recovery costs where nobody competes: one-row updates with NONE and with R, in turns.

Ratios near 1 need many interleaved pairs and an interval; the report has both.
"""

import argparse
from collections.abc import Callable, Mapping
from functools import partial

import lakevilla as lv
from bench.data import accounts
from bench.stores import NAMES, SEAWEEDFS, Place, running_places
from bench.timing import Metrics, interleave, ratio, spread, timed

FEATURES: Mapping[str, lv.Features] = {"NONE": lv.NONE, "R": lv.R, "R,CT": lv.R | lv.CT}
RECORDS = 1000


def measure(engine: str, place: Place, pairs: int) -> dict[str, list[float]]:
    """Seconds of one-row updates by feature set, each set on a table of its own."""
    lake = lv.Lake(
        place.url(engine), storage_options=dict(place.storage_options), engine=engine, features=lv.R
    )
    runs: dict[str, Callable[[], Metrics]] = {}
    for name, features in FEATURES.items():
        table = f"accounts_{name}".replace(",", "_").lower()
        lake.create(table, accounts(range(RECORDS)))
        runs[name] = partial(timed, partial(_update, lake, table, features, _keys()))
    return interleave(runs, pairs, warm_up=3)["seconds"]


def _keys() -> Callable[[], int]:
    """Keys one after the other, the same for every feature set."""
    numbers = iter(range(RECORDS * 1000))
    return lambda: next(numbers) * 7 % RECORDS


def _update(lake: lv.Lake, table: str, features: lv.Features, next_key: Callable[[], int]) -> None:
    with lake.transaction(features) as tx:
        tx.sql(f"UPDATE {table} SET balance = balance + 1 WHERE id = {next_key()}")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m bench.recovery", description=__doc__)
    parser.add_argument("--engines", default="local,spark", help="of local and spark (default: %(default)s)")
    parser.add_argument("--place", default=SEAWEEDFS, choices=NAMES)
    parser.add_argument("--pairs", type=int, default=60, help="rounds in turns (default: %(default)s)")
    chosen = parser.parse_args(arguments)
    print("| engine | features | median ms | ratio to NONE (95%) |\n|---|---|---|---|")
    with running_places([chosen.place]) as places:
        for engine in chosen.engines.split(","):
            values = measure(engine, places[0], chosen.pairs)
            for name, seconds in values.items():
                found = ratio(seconds, values["NONE"])
                median = 1000 * spread(seconds).median
                interval = f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"
                print(f"| {engine} | {name} | {median:.1f} | {interval} |", flush=True)


if __name__ == "__main__":
    main()
