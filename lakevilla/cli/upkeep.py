"""The commands that keep a lake in order, and say what goes on in it: no rows are moved, without engines."""

import argparse
import sys
from dataclasses import asdict

from lakevilla.cli.arguments import open_lake
from lakevilla.cli.json_text import print_json


def define_vacuum(parser: argparse.ArgumentParser) -> None:
    """The options of `lakevilla vacuum`."""
    parser.description = (
        "Delete data files that the log removed longer ago than the retention, files that transactions of "
        "LakeVilla left behind, and records of transactions that ended. Without --delete it only says what "
        "it would delete. Versions older than the retention cannot be read afterwards."
    )
    parser.add_argument("table", nargs="?", help="one table (default: all)")
    parser.add_argument("--delete", action="store_true", help="delete; without it nothing is changed")
    parser.add_argument(
        "--retention-hours",
        type=float,
        metavar="N",
        help="how long removed files are kept, 24 or more (default: the table's "
        "delta.deletedFileRetentionDuration, else 168, which is 7 days)",
    )
    parser.add_argument(
        "--foreign",
        action="store_true",
        help="also old files in the tables' folders that no version names, written by any client; not while "
        "another client may upload for longer than the retention",
    )
    parser.add_argument(
        "--dropped", action="store_true", help="also the whole folders of tables that were dropped"
    )
    parser.add_argument("--list", action="store_true", help="list every file")
    parser.set_defaults(run=_vacuum)


def define_recover(parser: argparse.ArgumentParser) -> None:
    """The options of `lakevilla recover`."""
    parser.description = (
        "Release the tickets of dead clients, complete their decided commits, and list the transactions that "
        "they left. Takes about ten seconds if a client holds a ticket: a client counts as dead only after "
        "its lease has expired. Safe at any time; deletes no data."
    )
    parser.add_argument("table", nargs="?", help="one table (default: all)")
    parser.add_argument(
        "--give-up",
        metavar="TABLE",
        help="a table that is lost for good, for example with its bucket, and that a decided transaction "
        "still has to be published on: the transaction is rolled back on its other tables instead, and this "
        "table is marked as torn",
    )
    parser.set_defaults(run=_recover)


def define_sync(parser: argparse.ArgumentParser) -> None:
    """The options of `lakevilla sync`."""
    parser.description = (
        "Adopt what other clients wrote into the lake's instant. Transactions with isolation do this "
        "automatically for the tables that they touch; use it for tables declared exclusive, and before a "
        "tag or an export. Also completes commits that dead clients left half done."
    )
    parser.add_argument("table", nargs="?", help="one table (default: all)")
    parser.add_argument(
        "--accept-torn",
        action="store_true",
        help="accept torn tables (see lakevilla explain) as they are now: they can be changed again",
    )
    parser.set_defaults(run=_sync)


def define_status(parser: argparse.ArgumentParser) -> None:
    """The options of `lakevilla status`."""
    parser.description = (
        "Show which clients wait to write which table, for how long and for which one, and which "
        "transactions are open or were left by dead clients. Ages compare the clocks of several machines, so "
        "they are approximate."
    )
    parser.set_defaults(run=_status)


def define_explain(parser: argparse.ArgumentParser) -> None:
    """The options of `lakevilla explain`."""
    parser.description = (
        "Explain a wait or a conflict: which transaction, which table, which file, since when, and what "
        "happens next. Takes about ten seconds if a client holds a ticket: a client counts as dead only "
        "after its lease has expired. Changes nothing."
    )
    parser.add_argument(
        "what",
        nargs="?",
        help="the id of a transaction (errors and receipts show it), or the name of a table (default: all "
        "that waits or is half done)",
    )
    parser.set_defaults(run=_explain)


def _vacuum(options: argparse.Namespace) -> None:
    report = open_lake(options).vacuum(
        options.table,
        dry_run=not options.delete,
        retention_hours=options.retention_hours,
        foreign=options.foreign,
        dropped=options.dropped,
        progress=_tell,
    )
    if options.json:
        print_json(asdict(report))
        return
    if options.list:
        for table in report.tables:
            for key in table.keys:
                print(f"{table.table}/{key}")
    print(report)
    if report.dry_run and report.files.count:
        print("run it again with --delete to delete them")


def _recover(options: argparse.Namespace) -> None:
    report = open_lake(options).recover(options.table, give_up=options.give_up)
    if options.json:
        print_json(asdict(report))
    else:
        print(report)


def _sync(options: argparse.Namespace) -> None:
    lake = open_lake(options)
    found = lake.sync(options.table, accept_torn=options.accept_torn)
    if options.json:
        print_json(found)
        return
    for name, version in found.items():
        print(f"{name}: version {version}")
    if not found:
        print("nothing to adopt")


def _status(options: argparse.Namespace) -> None:
    status = open_lake(options).status()
    if options.json:
        print_json(asdict(status))
    else:
        print(status)


def _explain(options: argparse.Namespace) -> None:
    found = open_lake(options).explain(options.what)
    if options.json:
        print_json(asdict(found))
    else:
        print(found)


def _tell(line: str) -> None:
    print(line, file=sys.stderr)
