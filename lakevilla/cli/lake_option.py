"""The lake of a command that moves no rows."""

import argparse

import lakevilla as lv


def open_lake(options: argparse.Namespace) -> "lv.Lake":
    """Without Java, whatever is installed."""
    return lv.Lake(options.lake, engine="local", storage_options=dict(options.option))
