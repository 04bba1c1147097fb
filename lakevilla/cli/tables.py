"""The commands that name tables or a transaction: list, register, and outcome."""

import argparse
import sys
from dataclasses import asdict

from lakevilla.cli.arguments import open_lake
from lakevilla.cli.json_text import print_json


def define_tables(parser: argparse.ArgumentParser) -> None:
    """The options of `lakevilla tables`."""
    parser.set_defaults(run=_tables)


def define_register(parser: argparse.ArgumentParser) -> None:
    """The options of `lakevilla register`."""
    parser.description = (
        "Give an existing Delta or Iceberg table a name in the lake, or every table below a folder. Nothing "
        "of a table is copied or changed."
    )
    parser.add_argument("name", nargs="?", help="its name in the lake")
    parser.add_argument("location", nargs="?", help="a directory, or a URL such as s3://bucket/path/table")
    parser.add_argument(
        "--all",
        metavar="FOLDER",
        help="every table below this directory or URL, up to three levels deep, named after its folders: "
        "sales/orders becomes sales.orders. Tables that cannot be registered, or are already, are skipped",
    )
    parser.add_argument(
        "--prefix", metavar="TEXT", help="with --all: what the names begin with, such as old."
    )
    parser.add_argument(
        "--in-catalog", metavar="NAME", help="the Iceberg catalog that keeps the table, see --catalog"
    )
    parser.add_argument("--table", metavar="NAME", help="its name in the catalog, such as sales.orders")
    parser.set_defaults(run=_register, parser=parser)


def define_outcome(parser: argparse.ArgumentParser) -> None:
    """The options of `lakevilla outcome`."""
    parser.add_argument("txn", help="its id, as errors, receipts and logs name it")
    parser.set_defaults(run=_outcome)


def _tables(options: argparse.Namespace) -> None:
    from lakevilla.tables.names import names_at

    found = names_at(options.lake, dict(options.option))
    if options.json:
        print_json(found.tables)
        return
    for name in found.tables:
        print(name)
    if not found.tables:
        print(f"lakevilla: there are no tables in {found.url}", file=sys.stderr)


def _register(options: argparse.Namespace) -> None:
    if options.all is not None:
        _register_all(options)
        return
    if options.name is None:
        options.parser.error("give the NAME and the LOCATION of a table, or --all FOLDER")
    if options.prefix is not None:
        options.parser.error("--prefix goes with --all")
    lake = open_lake(options)
    lake.register(options.name, options.location, catalog=options.in_catalog, table=options.table)
    if options.json:
        print_json({"registered": options.name})
    else:
        print(f"{options.name} is a table of the lake")


def _register_all(options: argparse.Namespace) -> None:
    if options.name is not None or options.in_catalog is not None or options.table is not None:
        options.parser.error("--all FOLDER names the tables itself: give no other NAME, LOCATION or --table")
    report = open_lake(options).register_all(options.all, prefix=options.prefix or "")
    if options.json:
        print_json(asdict(report))
    else:
        print(report)


def _outcome(options: argparse.Namespace) -> None:
    found = open_lake(options).outcome(options.txn)
    if options.json:
        print_json(asdict(found))
    else:
        print(f"{found.state}: {found.advice}")
