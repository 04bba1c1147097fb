"""The lake of a command that moves no rows."""

import argparse

from lakevilla import Lake


def open_lake(options: argparse.Namespace) -> Lake:
    """Without Java, whatever is installed."""
    return Lake(options.lake, engine="local", storage_options=dict(options.option))
