"""`lakevilla doctor`: what is wrong with a lake, its store and this machine."""

import argparse
import sys
from dataclasses import asdict

from lakevilla.cli.arguments import open_lake
from lakevilla.cli.json_text import print_json


def define_doctor(parser: argparse.ArgumentParser) -> None:
    """The options of `lakevilla doctor`."""
    parser.description = (
        "Look at the store (answers, conditional writes, rights, clock), the versions of libraries and Java, "
        "and the lake: unsettled entries, torn tables, dead clients, legacy writers, files for vacuum. Says "
        "what to do, and changes nothing. The exit code is 1 if there is a problem."
    )
    parser.add_argument("--no-probe", action="store_true", help="write no object to try the store")
    parser.add_argument("--no-files", action="store_true", help="do not list the tables' files")
    parser.set_defaults(run=_doctor)


def _doctor(options: argparse.Namespace) -> None:
    found = open_lake(options).doctor(probe=not options.no_probe, files=not options.no_files)
    if options.json:
        print_json({"healthy": found.healthy, **asdict(found)})
    else:
        print(found)
    if not found.healthy:
        sys.stdout.flush()
        sys.exit(1)
