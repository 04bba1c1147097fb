"""`lakevilla sql`: run a text, a file or what comes from standard input, in one session."""

import argparse
import sys

import lakevilla as lv
from lakevilla.cli.arguments import in_session, open_lake, open_session, parameter
from lakevilla.cli.output import FORMATS, Output


def define_sql(parser: argparse.ArgumentParser) -> None:
    """The options of `lakevilla sql`."""
    parser.description = (
        "Run statements of Spark SQL, separated by semicolons. Each is a transaction of its own, unless the "
        "script says BEGIN: then all up to COMMIT is done or nothing. The first statement that fails ends "
        "the script, and rolls an open transaction back."
    )
    parser.add_argument("statement", nargs="?", metavar="TEXT", help="the statements; - reads standard input")
    parser.add_argument("-f", "--file", metavar="FILE", help="a file with the statements")
    parser.add_argument(
        "--param",
        action="append",
        default=[],
        type=parameter,
        metavar="NAME=VALUE",
        help="the value of :NAME in the statements: a number, true, false, null or text ('...' is always "
        "text); may be repeated",
    )
    parser.add_argument("--format", choices=FORMATS, default="table", help="how rows are written (table)")
    parser.add_argument(
        "--json", action="store_const", const="json", dest="format", help="the same as --format json"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="where rows are written; else standard output")
    parser.add_argument(
        "-n",
        "--rows",
        type=count,
        default=20,
        help="how many rows a table shows (20); other formats write all",
    )
    parser.add_argument("--no-truncate", action="store_true", help="show long values of a table as a whole")
    in_session(parser)
    parser.set_defaults(run=_sql, parser=parser)


def count(text: str) -> int:
    """A number of things that an option gives."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} is negative")
    return number


def _sql(options: argparse.Namespace) -> None:
    if (options.statement is None) == (options.file is None):
        options.parser.error("give the statements as TEXT, with -f FILE, or as - for standard input")
    output = Output(options.format, options.output, options.rows, not options.no_truncate)
    lake = open_lake(options)
    session = open_session(options, lake)
    for answer in session.script(_text(options), dict(options.param)):
        output.write(answer)
    lake.close()


def _text(options: argparse.Namespace) -> str:
    if options.file is None and options.statement != "-":
        return str(options.statement)
    if options.file is None:
        return sys.stdin.read()
    try:
        with open(options.file, encoding="utf-8") as stream:
            return stream.read()
    except (OSError, UnicodeDecodeError) as error:
        raise lv.InvalidInput(f"the file {options.file!r} cannot be read: {error}") from error
