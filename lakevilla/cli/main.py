"""The `lakevilla` command. Each command is a small function over a `Lake`; no logic of its own lives here.

Public names are taken from `lv` where they are used, and the demo comes when it is run: `--help` imports no
library of data.
"""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any

import lakevilla as lv
from lakevilla.cli import doctor, travel, upkeep

EXAMPLES = """examples:
  lakevilla demo                                   what LakeVilla does, on a local directory
  lakevilla tables ./lake
  lakevilla sql ./lake "SELECT * FROM accounts"
  lakevilla history s3://warehouse/bank accounts --option AWS_REGION=eu-central-1
  lakevilla history ./lake                         what was done to the lake, entry by entry
  lakevilla tag ./lake month-end                   keep the lake as it is now under a name
  lakevilla export ./lake --at month-end --format duckdb
  lakevilla explain ./lake accounts                which client waits for which, and what happens next
  lakevilla doctor ./lake                          what is wrong, and what to do
  lakevilla vacuum ./lake                          what could be deleted; add --delete to do it

exit codes: 0 done, 1 failed (the reason is on standard error), 2 wrong arguments, 130 interrupted
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code, see EXAMPLES; wrong arguments exit by themselves."""
    options = build_parser().parse_args(arguments)
    if options.verbose:
        # Ours alone: at this level PySpark logs each call to the JVM, with the secrets that a read needs.
        logging.basicConfig(format="%(asctime)s %(name)s %(message)s")
        logging.getLogger("lakevilla").setLevel(logging.DEBUG)
    try:
        options.run(options)
        sys.stdout.flush()
    except lv.LakeVillaError as error:
        print(f"lakevilla: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of our output has enough, as `head` has; the flush at exit must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("lakevilla: interrupted; a change under way was made as a whole or not at all", file=sys.stderr)
        return 130
    except Exception as error:
        # Spark makes the rows of a query when they are shown, and fails in words of its own.
        if options.verbose:
            raise
        print(f"lakevilla: {_first_line(error)}\n(lakevilla -v shows where)", file=sys.stderr)
        return 1
    return 0


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def build_parser() -> argparse.ArgumentParser:
    """All commands with their options."""
    parser = argparse.ArgumentParser(
        prog="lakevilla",
        description="Transactions over Delta Lake and Iceberg tables, on nothing but the object store.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"LakeVilla {lv.__version__}")
    parser.add_argument("-v", "--verbose", action="store_true", help="tell what happens inside")
    commands = parser.add_subparsers(metavar="command", required=True)

    show = _command(commands, "demo", "run the main job on a local directory and explain it")
    show.add_argument("--lake", help="where to build the demo lake; a temporary directory if left out")
    _with_engine(show)
    show.set_defaults(run=_demo)

    query = _on_lake(_command(commands, "sql", "run one statement of Spark SQL, as a transaction of its own"))
    query.add_argument("statement", help="a query, a change or a definition")
    query.add_argument("-n", "--rows", type=travel.count, default=20, help="how many rows to show (20)")
    query.set_defaults(run=_sql)

    tables = _on_lake(_command(commands, "tables", "list the tables of a lake"))
    tables.set_defaults(run=_tables)

    outcome = _on_lake(_command(commands, "outcome", "tell what became of a transaction, after a crash"))
    outcome.add_argument("txn", help="its id, as errors, receipts and logs name it")
    outcome.set_defaults(run=_outcome)

    travel.define_history(
        _on_lake(_command(commands, "history", "list the versions of a table, or the entries of the lake"))
    )
    travel.define_tag(_on_store(_command(commands, "tag", "name an instant of the lake, or list the names")))
    travel.define_export(
        _on_store(_command(commands, "export", "print an instant of the lake for other engines"))
    )

    upkeep.define_sync(_on_store(_command(commands, "sync", "take in what other clients wrote")))
    upkeep.define_status(
        _on_store(_command(commands, "status", "show which clients wait to write, and for which"))
    )
    upkeep.define_explain(_on_store(_command(commands, "explain", "explain a wait or a conflict")))
    doctor.define_doctor(
        _on_store(_command(commands, "doctor", "look for what is wrong with a lake or its store"))
    )
    upkeep.define_recover(_on_store(_command(commands, "recover", "free what clients left that are gone")))
    upkeep.define_vacuum(_on_store(_command(commands, "vacuum", "delete what no client can need any more")))
    return parser


def _command(commands: Any, name: str, purpose: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}."
    )
    return parser


def _option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        # Not the text itself: it may be a secret.
        raise argparse.ArgumentTypeError("an option is written NAME=VALUE")
    return name, value


def _on_lake(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    _on_store(parser)
    _with_engine(parser)
    return parser


def _on_store(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("lake", help="a directory, or a URL such as s3://bucket/path")
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        type=_option,
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


def _lake(options: argparse.Namespace) -> "lv.Lake":
    return lv.Lake(options.lake, engine=options.engine, storage_options=dict(options.option))


def _demo(options: argparse.Namespace) -> None:
    from lakevilla.cli.demo import demo

    demo(options.lake, options.engine)


def _sql(options: argparse.Namespace) -> None:
    result = _lake(options).sql(options.statement)
    if isinstance(result, lv.Counts):
        print(f"{result.inserted} inserted, {result.updated} updated, {result.deleted} deleted")
    elif result is None:
        print("done")
    else:
        result.show(options.rows)


def _tables(options: argparse.Namespace) -> None:
    lake = _lake(options)
    names = lake.tables()
    for name in names:
        print(name)
    if not names:
        print(f"lakevilla: there are no tables in {lake.url}", file=sys.stderr)


def _outcome(options: argparse.Namespace) -> None:
    found = _lake(options).outcome(options.txn)
    print(f"{found.state}: {found.advice}")
