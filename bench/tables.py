"""One row into each of 1, 2, 4, … 32 tables, in one commit, begin to receipt: what one more table costs.

For comparison the plain way, which is not atomic: one commit for each table after the other, by LakeVilla
without features and by deltalake. Every client goes through a proxy that counts requests and adds a fixed
time to each. Tables of each number and system are their own, so that they meet their tenth versions, which
write checkpoints, in the same commit.
"""

import argparse
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count

import deltalake
import pyarrow as pa

import lakevilla as lv
from bench.data.rows import accounts
from bench.measures.timing import Metrics, Ratio, interleave, ratio, spread, timed
from bench.stores.proxy import Proxy, running_proxy
from bench.stores.seaweed import S3Server, running_server

COUNTS = (1, 2, 4, 8, 16, 32)
ONE_COMMIT, ISOLATED = "one commit", "one commit with isolation"
COMMIT_EACH, DELTALAKE = "one commit each", "deltalake, one commit each"
SYSTEMS = (ONE_COMMIT, ISOLATED, COMMIT_EACH, DELTALAKE)
ATOMIC = {ONE_COMMIT: lv.R | lv.CT, ISOLATED: lv.R | lv.CT | lv.I}

Values = Mapping[str, Mapping[str, list[float]]]
"""By metric, then by system and number of tables, round by round."""


@dataclass(frozen=True)
class Stage:
    """A server with a proxy before it, and a bucket's folder for this stage alone."""

    server: S3Server
    proxy: Proxy
    folder: str

    @property
    def options(self) -> dict[str, str]:
        return {**self.server.storage_options, "AWS_ENDPOINT_URL": self.proxy.endpoint}

    def url(self, path: str) -> str:
        return f"{self.server.url(self.folder)}/{path}"


@contextlib.contextmanager
def running_stage(server: S3Server, delay_ms: float) -> Iterator[Stage]:
    with running_proxy(server.endpoint, delay_ms) as proxy:
        yield Stage(server, proxy, f"tables-{delay_ms:g}")


def label(system: str, tables: int) -> str:
    return f"{system}, {tables}"


def prepare(stage: Stage, system: str, tables: int) -> Callable[[pa.Table], None]:
    """Make the tables, without the proxy's delay, and give what adds a row to each of them."""
    names = [f"{system.replace(', ', '_').replace(' ', '_')}_{tables}_{number}" for number in range(tables)]
    if system == DELTALAKE:
        direct = dict(stage.server.storage_options)
        for name in names:
            deltalake.write_deltalake(stage.url(name), accounts(range(1)), storage_options=direct)
        kept = [deltalake.DeltaTable(stage.url(name), storage_options=stage.options) for name in names]
        return partial(_append_with_deltalake, kept)
    maker = lv.Lake(
        stage.url("lake"), engine="local", features=lv.R, storage_options=stage.server.storage_options
    )
    for name in names:
        maker.create(name, accounts(range(1)))
    lake = lv.Lake(stage.url("lake"), engine="local", features=lv.R, storage_options=stage.options)
    if system in ATOMIC:
        return partial(_append_in_one_commit, lake, names, ATOMIC[system])
    return partial(_append_one_by_one, lake, names)


def _append_in_one_commit(lake: lv.Lake, names: Sequence[str], features: lv.Features, row: pa.Table) -> None:
    with lake.transaction(features) as tx:
        for name in names:
            tx.append(name, row)


def _append_one_by_one(lake: lv.Lake, names: Sequence[str], row: pa.Table) -> None:
    for name in names:
        with lake.transaction(lv.NONE) as tx:
            tx.append(name, row)


def _append_with_deltalake(tables: Sequence[deltalake.DeltaTable], row: pa.Table) -> None:
    for table in tables:
        deltalake.write_deltalake(table, row, mode="append")


def measure(stage: Stage, systems: Sequence[str], counts: Sequence[int], rounds: int) -> Values:
    """Seconds and requests, of all systems and numbers of tables in turns."""
    runs: dict[str, Callable[[], Metrics]] = {}
    for system in systems:
        for tables in counts:
            runs[label(system, tables)] = partial(_timed, stage, prepare(stage, system, tables), count(1))
    return interleave(runs, rounds, warm_up=2)


def _timed(stage: Stage, append: Callable[[pa.Table], None], keys: Iterator[int]) -> Metrics:
    key = next(keys)
    return timed(partial(append, accounts(range(key, key + 1))), {"requests": stage.proxy.total})


def rows(values: Values, systems: Sequence[str], counts: Sequence[int]) -> Iterator[str]:
    """The findings as lines of a table in Markdown; ratios are to one table of the same system."""
    yield "| tables | way | median | slowest tenth | to one table (95%) | one commit to it (95%) | requests |"
    yield "|---|---|---|---|---|---|---|"
    seconds, requests = values["seconds"], values["requests"]
    for tables in counts:
        for system in systems:
            own = seconds[label(system, tables)]
            growth = ratio(own, seconds[label(system, counts[0])])
            over = ratio(seconds[label(ONE_COMMIT, tables)], own) if ONE_COMMIT in systems else None
            told = "" if over is None or system == ONE_COMMIT else _interval(over)
            slow = sorted(own)[-max(1, len(own) // 10) :][0]
            yield (
                f"| {tables} | {system} | {1000 * spread(own).median:.1f} ms | {1000 * slow:.0f} ms | "
                f"{_interval(growth)} | {told} | {spread(requests[label(system, tables)]).median:g} |"
            )


def _interval(found: Ratio) -> str:
    return f"{found.value:.2f} ({found.low:.2f} - {found.high:.2f})"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m bench.tables", description=__doc__)
    parser.add_argument("--delays", default="0,20", help="ms more for each request (default: %(default)s)")
    parser.add_argument("--counts", default=",".join(map(str, COUNTS)), help="numbers of tables")
    parser.add_argument("--rounds", type=int, default=30, help="rounds in turns (default: %(default)s)")
    parser.add_argument(
        "--alone", action="store_true", help="only the commit on all tables, not the plain way"
    )
    chosen = parser.parse_args(arguments)
    counts = [int(number) for number in chosen.counts.split(",")]
    systems = SYSTEMS[:2] if chosen.alone else SYSTEMS
    with running_server() as server:
        for delay in chosen.delays.split(","):
            with running_stage(server, float(delay)) as stage:
                print(f"\n{delay} ms added, {chosen.rounds} rounds\n", flush=True)
                values = measure(stage, systems, counts, chosen.rounds)
                for line in rows(values, systems, counts):
                    print(line, flush=True)


if __name__ == "__main__":
    main()
