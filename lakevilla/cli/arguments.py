"""Arguments that several commands share, and the lake that they name."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from typing import Any

import lakevilla as lv
from lakevilla.cli.progress_bar import BAR

_WORDS = {"null": None, "true": True, "false": False}


def command(commands: Any, name: str, purpose: str) -> argparse.ArgumentParser:
    """A parser for one command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}."
    )
    return parser


def on_lake(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """A command on a lake that may need an engine."""
    on_store(parser)
    parser.add_argument(
        "--engine",
        choices=["auto", "local", "spark"],
        default="auto",
        help="what does the data work: local (in this process), spark (needs PySpark and Java), or auto, the "
        "default: spark for statements that local cannot run, and over tables of more than 1 GiB together; "
        "local for all others",
    )
    return parser


def on_store(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """A command on a lake that moves no rows."""
    parser.add_argument("lake", help="a directory, or a URL such as s3://bucket/path")
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        type=pair,
        metavar="NAME=VALUE",
        help="an option of the store, such as AWS_ENDPOINT_URL=http://localhost:9000; may be repeated. "
        "Give secrets by environment variables instead: others on this machine can read a command line",
    )
    parser.add_argument(
        "--catalog",
        action="append",
        default=[],
        type=catalog_option,
        metavar="NAME.OPTION=VALUE",
        help="an option of a catalog that keeps Iceberg tables, such as prod.uri=http://localhost:8181; may "
        "be repeated. Without it PyIceberg's own configuration counts",
    )
    return parser


def reporting(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """A command whose answer programs may read."""
    parser.add_argument("--json", action="store_true", help="as JSON, for programs")
    return parser


def in_session(parser: argparse.ArgumentParser) -> None:
    """A command that runs statements in a session."""
    parser.add_argument(
        "--features", metavar="LIST", help="the features of transactions: some of R,CT,I, or NONE (R,CT,I)"
    )
    parser.add_argument(
        "--isolation",
        choices=["serializable", "snapshot"],
        help="the isolation of transactions (serializable)",
    )


def in_order(parser: argparse.ArgumentParser, words: Sequence[str]) -> list[str]:
    """The words of a command with its options first.

    argparse gives a position that may be left out nothing as soon as an option follows the ones before it:
    `sql LAKE --format csv TEXT` would be refused.
    """
    start = next((i for i, word in enumerate(words) if not word.startswith("-")), len(words))
    chosen = _commands(parser).get(words[start]) if start < len(words) else None
    if chosen is None:
        return list(words)
    options: list[str] = []
    positions: list[str] = []
    rest = list(words[start + 1 :])
    while rest:
        word = rest.pop(0)
        if word == "--":
            positions += rest
            break
        if not _is_option(word):
            positions.append(word)
            continue
        options.append(word)
        if rest and _takes_value(chosen, word):
            options.append(rest.pop(0))
    return [*words[: start + 1], *options, "--", *positions] if positions else list(words)


def _is_option(word: str) -> bool:
    """Whether a word is an option and not a text, such as one that begins with a comment of SQL."""
    name = word.partition("=")[0]
    return word.startswith("-") and word != "-" and not any(letter.isspace() for letter in name)


def parse(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    """The arguments of a command. An unknown option is refused by the command that it was given to."""
    options, unknown = parser.parse_known_args(in_order(parser, words))
    if unknown:
        chosen = next((_commands(parser)[word] for word in words if word in _commands(parser)), parser)
        if not _is_option(unknown[0]):
            chosen.error("too many arguments: put a text with blanks in quotes")
        name = unknown[0].partition("=")[0]
        known = [text for action in chosen._actions for text in action.option_strings]
        close = get_close_matches(name, known, n=1)
        chosen.error(f"unknown option {name}; {f'did you mean {close[0]}?' if close else 'see --help'}")
    return options


def _commands(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    action = next(one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    commands: Mapping[str, argparse.ArgumentParser] = action.choices
    return commands


def _takes_value(parser: argparse.ArgumentParser, word: str) -> bool:
    """Whether the value of this option is the next word; argparse takes beginnings of long names too."""
    if "=" in word or (len(word) > 2 and not word.startswith("--")):
        return False
    found = [
        action
        for action in parser._actions
        if any(name == word or (len(word) > 2 and name.startswith(word)) for name in action.option_strings)
    ]
    return bool(found) and found[0].nargs is None


def pair(text: str) -> tuple[str, str]:
    """NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        # Not the text itself: it may be a secret.
        raise argparse.ArgumentTypeError("an option is written NAME=VALUE")
    return name, value


def catalog_option(text: str) -> tuple[str, str, str]:
    """NAME.OPTION=VALUE."""
    name, _, option = text.partition(".")
    option, equals, value = option.partition("=")
    if not (name and option and equals) or "=" in name:
        raise argparse.ArgumentTypeError("an option of a catalog is written NAME.OPTION=VALUE")
    return name, option, value


def parameter(text: str) -> tuple[str, Any]:
    """NAME=VALUE, with the value that SQL would read: a number, true, false, null, or else text."""
    name, value = pair(text)
    if len(value) > 1 and value[0] == value[-1] == "'":
        return name, value[1:-1]
    if value.lower() in _WORDS:
        return name, _WORDS[value.lower()]
    leading_zero = value.lstrip("+-")[:1] == "0" and value.lstrip("+-")[1:2].isdigit()
    if leading_zero or not value[-1:].isdigit():
        return name, value
    try:
        return name, int(value)
    except ValueError:
        pass
    try:
        return name, Decimal(value)
    except InvalidOperation:
        return name, value


def open_lake(options: argparse.Namespace) -> "lv.Lake":
    """The lake of a command; without Java, if it moves no rows."""
    catalogs: dict[str, dict[str, str]] = {}
    for name, option, value in options.catalog:
        catalogs.setdefault(name, {})[option] = value
    return lv.Lake(
        options.lake,
        engine=getattr(options, "engine", "local"),
        storage_options=dict(options.option),
        catalogs=catalogs or None,
        progress=BAR.show if sys.stderr.isatty() else None,
    )


def open_session(options: argparse.Namespace, lake: "lv.Lake") -> "lv.Session":
    """A session with the settings of the command."""
    session = lake.session()
    for name in ("features", "isolation"):
        if getattr(options, name) is not None:
            session.set(name, getattr(options, name))
    return session
