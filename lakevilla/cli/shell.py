"""The options of `lakevilla shell`."""

import argparse
import sys

import lakevilla as lv
from lakevilla.cli.arguments import in_session, open_lake, open_session
from lakevilla.cli.sql import count


def define_shell(parser: argparse.ArgumentParser) -> None:
    """The options of `lakevilla shell`."""
    parser.description = (
        "Run statements of Spark SQL as you type them, in one session. The prompt shows an open transaction "
        "(lake*>) and an aborted one (lake!>). Tab completes; Ctrl-C clears a line or stops a statement; "
        "Ctrl-D leaves."
    )
    parser.add_argument("-n", "--rows", type=count, default=20, help="how many rows a table shows (20)")
    parser.add_argument("--no-truncate", action="store_true", help="show long values as a whole")
    in_session(parser)
    parser.set_defaults(run=_shell)


def _shell(options: argparse.Namespace) -> None:
    if not sys.stdin.isatty():
        raise lv.InvalidInput(
            "lakevilla shell needs a terminal: use lakevilla sql LAKE - for statements from a pipe"
        )
    from lakevilla.cli.terminal import Shell

    lake = open_lake(options)
    shell = Shell(lake, open_session(options, lake), options.rows, not options.no_truncate)
    try:
        shell.loop()
    finally:
        lake.close()
