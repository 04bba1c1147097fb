"""The `lakevilla` command. Each command is a small function over a `Lake`; no logic of its own lives here."""

import argparse
import logging
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from lakevilla import Counts, Lake, LakeVillaError, __version__
from lakevilla.cli.demo import demo

EXAMPLES = """examples:
  lakevilla demo                                   what LakeVilla does, on a local directory
  lakevilla tables ./lake
  lakevilla sql ./lake "SELECT * FROM accounts"
  lakevilla history s3://warehouse/bank accounts --option AWS_REGION=eu-central-1
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0, 1 for an error that is explained, 130 after Ctrl-C."""
    options = _parser().parse_args(arguments)
    if options.verbose:
        logging.basicConfig(level=logging.DEBUG, format="%(asctime)s %(name)s %(message)s")
        logging.getLogger("lakevilla").setLevel(logging.DEBUG)
    try:
        options.run(options)
    except LakeVillaError as error:
        print(f"lakevilla: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("lakevilla: interrupted; a change under way was made as a whole or not at all", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lakevilla",
        description="Transactions over Delta Lake tables, on nothing but the object store.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"LakeVilla {__version__}")
    parser.add_argument("-v", "--verbose", action="store_true", help="tell what happens inside")
    commands = parser.add_subparsers(metavar="command", required=True)

    show = commands.add_parser("demo", help="run the main job on a local directory and explain it")
    show.add_argument("--lake", help="where to build the demo lake; a temporary directory if left out")
    _with_engine(show)
    show.set_defaults(run=lambda options: demo(options.lake, options.engine))

    query = _on_lake(commands.add_parser("sql", help="run one statement of Spark SQL"))
    query.add_argument("statement", help="a query, a change or a definition")
    query.add_argument("-n", "--rows", type=int, default=20, help="how many rows to show (20)")
    query.set_defaults(run=_sql)

    tables = _on_lake(commands.add_parser("tables", help="list the tables of a lake"))
    tables.set_defaults(run=_tables)

    history = _on_lake(commands.add_parser("history", help="list the versions of a table"))
    history.add_argument("table")
    history.add_argument("-n", "--limit", type=int, help="only the newest ones")
    history.set_defaults(run=_history)
    return parser


def _on_lake(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("lake", help="a directory, or a URL such as s3://bucket/path")
    _with_engine(parser)
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the store, such as AWS_ENDPOINT_URL=http://localhost:9000; may be repeated. "
        "Give secrets by environment variables instead: others on this machine can read a command line",
    )
    return parser


def _with_engine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--engine",
        choices=["spark", "local"],
        help="what does the data work: spark (needs PySpark and Java), or local (in this process)",
    )


def _lake(options: argparse.Namespace) -> Lake:
    pairs = [option.partition("=") for option in options.option]
    given = {name: value for name, _, value in pairs}
    return Lake(options.lake, engine=options.engine, storage_options=given)


def _sql(options: argparse.Namespace) -> None:
    result = _lake(options).sql(options.statement)
    if isinstance(result, Counts):
        print(f"{result.inserted} inserted, {result.updated} updated, {result.deleted} deleted")
    elif result is None:
        print("done")
    else:
        result.show(options.rows)


def _tables(options: argparse.Namespace) -> None:
    for name in _lake(options).tables():
        print(name)


def _history(options: argparse.Namespace) -> None:
    for entry in _lake(options).history(options.table, options.limit):
        moment = datetime.fromtimestamp(entry.timestamp_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
        print(f"{entry.version:>8}  {moment}Z  {entry.operation:<24} {entry.engine}")
