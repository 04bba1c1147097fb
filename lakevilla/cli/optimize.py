"""The command that rewrites the files of tables."""

import argparse
from dataclasses import asdict

from lakevilla.cli.arguments import open_lake
from lakevilla.cli.json_text import print_json


def define_optimize(parser: argparse.ArgumentParser) -> None:
    """The options of `lakevilla optimize`."""
    parser.description = (
        "Rewrite a table's files so that it is quick to read: small files of one partition become larger "
        "ones, and rows that are only marked as deleted go. All rows stay as they are. Safe while others "
        "read and write. The old files stay until vacuum deletes them."
    )
    parser.add_argument("table", help="the table")
    parser.add_argument("--where", metavar="CONDITION", help="only files that may hold such rows")
    parser.add_argument(
        "--zorder-by",
        metavar="COLUMNS",
        help="cluster the rows by these columns, with commas between them; rewrites all chosen files",
    )
    parser.add_argument(
        "--target-size",
        metavar="SIZE",
        help="the size of new files, such as 256MB (default: the table's own target size, else 128MB)",
    )
    parser.add_argument(
        "--full", action="store_true", help="rewrite all chosen files, not only those in need"
    )
    parser.set_defaults(run=_optimize)


def _optimize(options: argparse.Namespace) -> None:
    order = [name.strip() for name in (options.zorder_by or "").split(",") if name.strip()]
    report = open_lake(options).optimize(
        options.table, options.where, order, target_size=options.target_size, full=options.full
    )
    if options.json:
        print_json(asdict(report))
    else:
        print(report)
