"""The `lakevilla` command. Each command is a small function over a `Lake`; no logic of its own lives here.

Public names are taken from `lv` where they are used, and the demo comes when it is run: `--help` imports no
library of data.
"""

import argparse
import gc
import logging
import os
import signal
import sys
from collections.abc import Sequence

import lakevilla as lv
from lakevilla.cli import completion, doctor, exits, optimize, shell, sql, tables, travel, upkeep
from lakevilla.cli.arguments import command, on_lake, on_store, parse, reporting
from lakevilla.cli.progress_bar import BAR
from lakevilla.engines.hidden_pandas import hide_pandas

EXAMPLES = f"""examples:
  lakevilla demo                                   what LakeVilla does, on a local directory
  lakevilla tables ./lake
  lakevilla sql ./lake "SELECT * FROM accounts"
  lakevilla sql ./lake -f month-end.sql --param month=2026-01 --format csv
  lakevilla shell ./lake                           statements as you type them
  lakevilla register ./lake orders s3://warehouse/orders
  lakevilla register ./lake --all ./data           every table below a folder
  lakevilla history s3://warehouse/bank accounts --option AWS_REGION=eu-central-1
  lakevilla history ./lake                         what was done to the lake, entry by entry
  lakevilla changes ./lake accounts --since 41     the rows that changed after entry 41
  lakevilla tag ./lake month-end                   keep the lake as it is now under a name
  lakevilla restore ./lake --to month-end          bring all tables back, in one commit
  lakevilla export ./lake --at month-end --format duckdb
  lakevilla explain ./lake accounts                which client waits for which, and what happens next
  lakevilla doctor ./lake                          what is wrong, and what to do
  lakevilla optimize ./lake accounts               fewer, larger files, for quick reads
  lakevilla vacuum ./lake                          what could be deleted; add --delete to do it

{exits.TEXT}"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code, see EXAMPLES; wrong arguments exit at once, with 2."""
    parser = build_parser()
    options = parse(parser, sys.argv[1:] if arguments is None else arguments)
    _listen(options.verbose)
    if arguments is None:
        _live_shortly(options)
    try:
        options.run(options)
        sys.stdout.flush()
    except lv.LakeVillaError as error:
        exits.tell(error)
        return exits.code_of(error)
    except BrokenPipeError:
        # The reader of our output has enough, as `head` has; the flush at exit must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        BAR.clear()
        print(
            "lakevilla: interrupted; a statement that was running is either committed or has no effect, and "
            "a transaction that was open is rolled back",
            file=sys.stderr,
        )
        return exits.INTERRUPTED
    except UnicodeEncodeError as error:
        print(
            f"lakevilla: the output is written in {error.encoding}, which cannot hold "
            f"{error.object[error.start]!a}: set PYTHONIOENCODING=utf-8, or write rows to a file by --output",
            file=sys.stderr,
        )
        return 1
    except Exception as error:
        # Spark computes the rows of a query when they are shown, and raises its own exceptions.
        if options.verbose:
            raise
        print(f"lakevilla: {_first_line(error)}\n(lakevilla -v shows where)", file=sys.stderr)
        return 1
    return 0


def _live_shortly(options: argparse.Namespace) -> None:
    """What is right for a process that lives for one command."""
    if options.run is not _demo:
        hide_pandas()
    # Imports make many objects that stay: to look through them again and again takes a tenth of the start.
    gc.set_threshold(100_000, 50, 100)
    signal.signal(signal.SIGTERM, _stop)


def _stop(number: int, frame: object) -> None:  # noqa: ARG001 - the signature of handlers
    """A scheduler stops us: leave as at Ctrl-C, so that an open transaction is rolled back."""
    raise SystemExit(128 + number)


class _Notices(logging.Handler):
    """What users should know while they wait, on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        BAR.clear()
        print(record.getMessage(), file=sys.stderr, flush=True)


def _listen(verbose: bool) -> None:
    notices = logging.getLogger("lakevilla.notices")
    notices.setLevel(logging.INFO)
    if not notices.handlers:
        notices.addHandler(_Notices())
    notices.propagate = False
    if verbose:
        # Ours alone: at this level PySpark logs each call to the JVM, with the secrets that a read needs.
        logging.basicConfig(format="%(asctime)s %(name)s %(message)s")
        logging.getLogger("lakevilla").setLevel(logging.DEBUG)


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
    parser.add_argument("-v", "--verbose", action="store_true", help="log what LakeVilla does")
    commands = parser.add_subparsers(metavar="command", required=True)

    show = command(commands, "demo", "run the demo on a local directory, with explanations")
    show.add_argument("--lake", help="an empty directory for the demo lake (default: a temporary one)")
    show.add_argument(
        "--engine", choices=["spark", "local"], help="the engine (default: spark, if PySpark is installed)"
    )
    show.set_defaults(run=_demo)

    sql.define_sql(on_lake(command(commands, "sql", "run Spark SQL statements")))
    shell.define_shell(on_lake(command(commands, "shell", "run statements as you type them")))
    tables.define_tables(reporting(on_store(command(commands, "tables", "list the tables of a lake"))))
    tables.define_register(
        reporting(on_store(command(commands, "register", "give existing tables names in the lake")))
    )
    tables.define_outcome(
        reporting(on_store(command(commands, "outcome", "show the outcome of a transaction, after a crash")))
    )
    travel.define_history(
        reporting(
            on_store(command(commands, "history", "list the versions of a table, or the entries of the lake"))
        )
    )
    travel.define_changes(on_lake(command(commands, "changes", "show which rows of a table changed")))
    travel.define_tag(
        reporting(on_store(command(commands, "tag", "tag an instant of the lake, or list the tags")))
    )
    travel.define_restore(
        reporting(on_store(command(commands, "restore", "bring tables back to an earlier instant")))
    )
    travel.define_export(
        reporting(
            on_store(command(commands, "export", "print the table versions of an instant, for other engines"))
        )
    )

    upkeep.define_sync(reporting(on_store(command(commands, "sync", "adopt what other clients wrote"))))
    upkeep.define_status(
        reporting(on_store(command(commands, "status", "list the writer queues and the open transactions")))
    )
    upkeep.define_explain(reporting(on_store(command(commands, "explain", "explain a wait or a conflict"))))
    doctor.define_doctor(
        reporting(on_store(command(commands, "doctor", "look for problems of a lake or its store")))
    )
    upkeep.define_recover(reporting(on_store(command(commands, "recover", "release what dead clients hold"))))
    optimize.define_optimize(
        reporting(on_lake(command(commands, "optimize", "rewrite small files of a table as larger ones")))
    )
    upkeep.define_vacuum(
        reporting(on_store(command(commands, "vacuum", "delete files that no version or transaction needs")))
    )
    completion.define_completion(
        command(commands, "completion", "print a script that completes the command in bash, zsh or fish")
    )
    return parser


def _demo(options: argparse.Namespace) -> None:
    from lakevilla.cli.demo.story import demo

    demo(options.lake, options.engine)
