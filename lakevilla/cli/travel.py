"""The commands about instants of the lake: its history, tags and exports. No rows are moved."""

import argparse
import sys
from dataclasses import asdict

import lakevilla as lv
from lakevilla.cli.arguments import open_lake
from lakevilla.cli.json_text import print_json
from lakevilla.cli.output import FORMATS, Output
from lakevilla.cli.sql import count
from lakevilla.timestamps import utc_text

_AT = "the number of an entry (see `lakevilla history`), a tag, or a time such as 2026-01-31T12:00Z"


def define_history(parser: argparse.ArgumentParser) -> None:
    """The options of `lakevilla history`."""
    parser.description = (
        "List the versions of a table, newest first; without a table, the entries of the lake, each of which "
        "left all tables at one instant."
    )
    parser.add_argument("table", nargs="?", help="the name of the table, see `lakevilla tables`")
    parser.add_argument("-n", "--limit", type=count, help="show only so many, newest first")
    parser.set_defaults(run=_history)


def define_tag(parser: argparse.ArgumentParser) -> None:
    """The options of `lakevilla tag`."""
    parser.description = (
        "Tag an instant of the lake: vacuum keeps what it needs until the tag is deleted. Without a name, "
        "list the tags."
    )
    parser.add_argument("name", nargs="?", help="such as month-end; not a number, and not a time")
    parser.add_argument("--at", metavar="INSTANT", help=f"{_AT} (default: now)")
    parser.add_argument("--delete", action="store_true", help="delete the tag")
    parser.set_defaults(run=_tag)


def define_restore(parser: argparse.ArgumentParser) -> None:
    """The options of `lakevilla restore`."""
    parser.description = (
        "Bring tables back to an earlier instant of the lake, or one table to an earlier version, in one "
        "commit. Versions since then stay readable."
    )
    parser.add_argument("tables", nargs="*", metavar="table", help="which ones; all of them if left out")
    to = parser.add_mutually_exclusive_group(required=True)
    to.add_argument("--to", metavar="INSTANT", help=_AT)
    to.add_argument("--version", type=count, metavar="N", help="a version of the one table that is named")
    parser.set_defaults(run=_restore)


def define_export(parser: argparse.ArgumentParser) -> None:
    """The options of `lakevilla export`."""
    parser.description = (
        "Print which version of which table belongs to an instant of the lake, so that readers without "
        "LakeVilla see all tables at one instant: as JSON, or as SQL that creates a view of each table."
    )
    parser.add_argument("--at", metavar="INSTANT", help=f"{_AT} (default: the newest instant)")
    parser.add_argument(
        "--format", choices=["json", "duckdb", "spark", "trino"], default="json", help="default: json"
    )
    parser.set_defaults(run=_export)


def define_changes(parser: argparse.ArgumentParser) -> None:
    """The options of `lakevilla changes`."""
    parser.description = (
        "Show the rows of a table that changed between two instants of the lake, each with the version, the "
        "entry and the transaction that changed it."
    )
    parser.add_argument("table", help="the name of the table, see `lakevilla tables`")
    parser.add_argument("--since", metavar="INSTANT", help=f"{_AT} (default: the table begins empty)")
    parser.add_argument("--until", metavar="INSTANT", help=f"{_AT} (default: the newest instant)")
    parser.add_argument("--format", choices=FORMATS, default="table", help="how rows are written (table)")
    parser.add_argument(
        "--json", action="store_const", const="json", dest="format", help="the same as --format json"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="where rows are written; else standard output")
    parser.add_argument("-n", "--rows", type=count, default=20, help="how many rows a table shows (20)")
    parser.set_defaults(run=_changes)


def _changes(options: argparse.Namespace) -> None:
    from lakevilla.session.answer import Answer

    found = open_lake(options).changes(options.table, options.since, options.until)
    Output(options.format, options.output, options.rows, truncate=True).write(Answer("", found))


def _history(options: argparse.Namespace) -> None:
    lake = open_lake(options)
    if options.json:
        found = lake.history(options.table, options.limit)
        print_json([asdict(entry) for entry in found])
        return
    if options.table is None:
        for entry in lake.history(limit=options.limit):
            print(f"{entry.seq:>8}  {utc_text(entry.time_ms)}  {_kind(entry):<10} {_about(entry)}")
        return
    for version in lake.history(options.table, options.limit):
        moment = utc_text(version.timestamp_ms)
        print(f"{version.version:>8}  {moment}  {version.operation:<24} {version.engine}")


def _tag(options: argparse.Namespace) -> None:
    lake = open_lake(options)
    if options.name is None and options.json:
        print_json(lake.tags())
    elif options.name is None:
        for name, seq in lake.tags().items():
            print(f"{seq:>8}  {name}")
    elif options.delete:
        lake.untag(options.name)
        if options.json:
            print_json({options.name: None})
    else:
        seq = lake.tag(options.name, options.at)
        if options.json:
            print_json({options.name: seq})
        else:
            print(f"{options.name} is entry {seq} of the lake")


def _restore(options: argparse.Namespace) -> None:
    report = open_lake(options).restore(at=options.to, version=options.version, tables=options.tables or None)
    if options.json:
        print_json(asdict(report))
    else:
        print(report)


def _export(options: argparse.Namespace) -> None:
    export = open_lake(options).export(options.at)
    print(export.json() if options.json or options.format == "json" else export.sql(options.format).rstrip())
    if export.unknown:
        told = ", ".join(export.unknown)
        print(f"lakevilla: the instant has no version of {told}; run `lakevilla sync` first", file=sys.stderr)


def _kind(entry: "lv.LakeEntry") -> str:
    return entry.kind if entry.published else "rolled back"


def _about(entry: "lv.LakeEntry") -> str:
    tables = [f"{name} {'' if v is None else v}".rstrip() for name, v in sorted(entry.tables.items())]
    tags = [name if seq is None else f"{name} = {seq}" for name, seq in entry.tags.items()]
    return ", ".join(tables + tags)
