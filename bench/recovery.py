"""What features cost where nobody competes: one-row updates with NONE, R, CT and I, in turns.

In this process deltalake's own update takes its turn too, with the table held open and opened anew. Ratios
near 1 need many interleaved pairs and an interval; the report has both.
"""

import argparse
from collections.abc import Callable, Mapping
from functools import partial

import lakevilla as lv
from bench.data.rows import accounts
from bench.measures.timing import Metrics, interleave, ratio, spread, timed
from bench.stores.places import NAMES, SEAWEEDFS, Place, running_places
from bench.systems.local import DELTALAKE, DELTALAKE_ANEW, Client

FEATURES: Mapping[str, lv.Features] = {
    "NONE": lv.NONE,
    "R": lv.R,
    "R,CT": lv.R | lv.CT,
    "I": lv.I,
    "R,CT,I": lv.R | lv.CT | lv.I,
}
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
    if engine == "local":
        for peer in (DELTALAKE, DELTALAKE_ANEW):
            client = peer.create(place, "accounts", accounts(range(RECORDS)))
            runs[peer.name] = partial(timed, partial(_update_peer, client, _keys()))
    return interleave(runs, pairs, warm_up=3)["seconds"]


def _keys() -> Callable[[], int]:
    """Keys one after the other, the same for every feature set."""
    numbers = iter(range(RECORDS * 1000))
    return lambda: next(numbers) * 7 % RECORDS


def _update(lake: lv.Lake, table: str, features: lv.Features, next_key: Callable[[], int]) -> None:
    with lake.transaction(features) as tx:
        tx.sql(f"UPDATE {table} SET balance = balance + 1 WHERE id = {next_key()}")


def _update_peer(client: Client, next_key: Callable[[], int]) -> None:
    key = next_key()
    client.update_row(key, f"owner {key}")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m bench.recovery", description=__doc__)
    parser.add_argument("--engines", default="local,spark", help="of local and spark (default: %(default)s)")
    parser.add_argument("--place", default=SEAWEEDFS, choices=NAMES)
    parser.add_argument("--pairs", type=int, default=60, help="rounds in turns (default: %(default)s)")
    chosen = parser.parse_args(arguments)
    print("| engine | features | median ms | ratio to NONE (95%) | to deltalake |\n|---|---|---|---|---|")
    with running_places([chosen.place]) as places:
        for engine in chosen.engines.split(","):
            values = measure(engine, places[0], chosen.pairs)
            for name, seconds in values.items():
                median = 1000 * spread(seconds).median
                cells = [_ratio(seconds, values.get(to)) for to in ("NONE", DELTALAKE.name)]
                print(f"| {engine} | {name} | {median:.1f} | {' | '.join(cells)} |", flush=True)


def _ratio(seconds: list[float], to: list[float] | None) -> str:
    if to is None:
        return "-"
    found = ratio(seconds, to)
    return f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"


if __name__ == "__main__":
    main()
