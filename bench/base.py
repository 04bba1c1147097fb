"""`make bench-base`: LakeVilla's statements compared with those of its peers, in one run on the same stores.

`cases.local` and `cases.spark` say what is measured. Each case is a generator of results; to add one, write
it there or in a module of its own and name it here.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.cases import local as local_cases
from bench.cases import spark as spark_cases
from bench.cases.run import FULL, QUICK, Run, Scale
from bench.measures.report import Report, Result
from bench.stores.places import DIRECTORY, NAMES, SLOW, running_places
from bench.systems.local import OURS
from bench.systems.spark import Sparks

RESULTS = Path(__file__).parent / "results"

Case = Callable[[Run], Iterator[Result]]
LOCAL: dict[str, Case] = {
    "read": local_cases.read,
    "update": local_cases.update,
    "insert": local_cases.insert,
    "open": local_cases.open_many,
    "append": local_cases.append,
    "scan": local_cases.scan,
    "iceberg": local_cases.iceberg,
}
SPARK: dict[str, Case] = {
    "spark-read": spark_cases.read,
    "spark-update": spark_cases.update,
    "spark-insert": spark_cases.insert,
    "spark-scan": spark_cases.scan,
    "spark-tpch": spark_cases.tpch_queries,
    "spark-append": spark_cases.append,
    "spark-iceberg": spark_cases.iceberg,
}
CASES = {**LOCAL, **SPARK}
GROUPS = {"local": tuple(LOCAL), "spark": tuple(SPARK)}

# A slow network shows the cost of requests; moving bulk through it would only measure the proxy.
_ON_SLOW = ("read", "update", "insert", "iceberg")


def run_cases(
    report: Report, names: Sequence[str], place_names: Sequence[str], scale: Scale, say: Callable[[str], None]
) -> None:
    """Run these cases at these places, and add what they find to the report."""
    with running_places(place_names) as places, Sparks() as sparks:
        for place in places:
            for name in names:
                if place.name == SLOW and name not in _ON_SLOW:
                    continue
                for result in CASES[name](Run(place, scale, say, sparks)):
                    report.results.append(result)


_EPILOG = f"""cases in this process, compared with deltalake and PyIceberg (all of them: local):
{(local_cases.__doc__ or "").partition(chr(10))[2]}
cases on Spark, compared with Spark + Delta and Spark + Iceberg (all of them: spark):
{(spark_cases.__doc__ or "").partition(chr(10))[2]}
"""


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.base",
        description=__doc__.partition("\n")[0],
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="a short form: few rounds, small tables")
    parser.add_argument("--only", help=f"cases, separated by commas: {', '.join((*GROUPS, *CASES))}")
    parser.add_argument("--places", help=f"places, separated by commas: {', '.join(NAMES)}")
    parser.add_argument("--rounds", type=int, help="rounds of every case, instead of its own number")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for text, JSON and plot")
    given = parser.parse_args(arguments)
    names = _choose(parser, given.only, tuple(CASES), (*GROUPS, *CASES))
    names = [case for name in names for case in GROUPS.get(name, (name,))]
    places = _choose(parser, given.places, (DIRECTORY,) if given.quick else NAMES, NAMES)
    scale = QUICK if given.quick else FULL
    report = Report("base", OURS.name)
    try:
        run_cases(report, names, places, scale.of(given.rounds) if given.rounds else scale, say)
    finally:
        # A long run that breaks off, or is broken off, still tells what it has found.
        report.tell(given.out)


def _choose(
    parser: argparse.ArgumentParser, given: str | None, usual: Sequence[str], known: Sequence[str]
) -> Sequence[str]:
    chosen = given.split(",") if given else usual
    if unknown := set(chosen) - set(known):
        parser.error(f"{', '.join(sorted(unknown))} is not among {', '.join(known)}")
    return chosen


_START = time.monotonic()


def say(text: str) -> None:
    """Progress, on one line that is written over where there is a terminal."""
    line = f"{time.monotonic() - _START:6.0f} s  {text}"
    end = "\x1b[K\r" if sys.stderr.isatty() else "\n"
    print(line, end=end, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
