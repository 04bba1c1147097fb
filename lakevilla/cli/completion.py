"""`lakevilla completion`: scripts for bash, zsh and fish, which ask the command itself what can stand next.

The candidates come from the parser, so that no list has to be kept, and from the lake: its tables and tags.
A directory lake answers in a fraction of a second. Mistakes and stores that do not answer give no candidates:
an error would stand in the middle of the user's line.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import lakevilla as lv

BASH = """# lakevilla completion for bash: put this into ~/.bashrc
#   source <(lakevilla completion bash)
_lakevilla() {
    local IFS=$'\\n'
    COMPREPLY=($(lakevilla completion candidates --line "${COMP_LINE:0:COMP_POINT}" \\
        --word "${COMP_WORDS[COMP_CWORD]}" 2>/dev/null))
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/.] ]]; then compopt -o nospace; fi
}
complete -o bashdefault -o default -F _lakevilla lakevilla
"""
ZSH = """#compdef lakevilla
# lakevilla completion for zsh: put this into ~/.zshrc, after compinit
#   source <(lakevilla completion zsh)
_lakevilla() {
    local -a found
    found=("${(@f)$(lakevilla completion candidates --line "${(j: :)words[1,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${found[1]}" ]]; then compadd -a found; else _files; fi
}
compdef _lakevilla lakevilla
"""
FISH = """# lakevilla completion for fish: put this into ~/.config/fish/completions/lakevilla.fish
#   lakevilla completion fish > ~/.config/fish/completions/lakevilla.fish
function __lakevilla_candidates
    lakevilla completion candidates --line (commandline -cp | string collect) 2>/dev/null
end
complete -c lakevilla -a '(__lakevilla_candidates)'
complete -c lakevilla -n 'test (count (__lakevilla_candidates)) -gt 0' -f
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}

_TABLES = {"table", "tables", "what", "give_up"}
_INSTANTS = {"at", "to"}


def define_completion(parser: argparse.ArgumentParser) -> None:
    """The options of `lakevilla completion`."""
    parser.description = (
        "Print a script that completes commands, options, and the tables and tags of a lake. "
        "For bash: source <(lakevilla completion bash). For zsh: source <(lakevilla completion zsh). "
        "For fish: lakevilla completion fish > ~/.config/fish/completions/lakevilla.fish"
    )
    parser.add_argument("shell", choices=[*SCRIPTS, "candidates"], metavar="bash|zsh|fish", help="the shell")
    parser.add_argument("--line", default="", help=argparse.SUPPRESS)
    parser.add_argument("--word", help=argparse.SUPPRESS)
    parser.set_defaults(run=_completion)


def _completion(options: argparse.Namespace) -> None:
    if options.shell != "candidates":
        sys.stdout.write(SCRIPTS[options.shell])
        return
    from lakevilla.cli.main import build_parser

    line = options.line
    try:
        words = shlex.split(line)
    except ValueError:
        return
    word = words.pop() if words and not line[-1:].isspace() else ""
    # bash ends words at : and =, and replaces only what comes after.
    kept = word[: len(word) - len(options.word)] if options.word and word.endswith(options.word) else ""
    kept = word if options.word in (":", "=") else kept
    for found in candidates(build_parser(), words[1:], word):
        if found.startswith(word):
            print(found.removeprefix(kept))


def candidates(parser: argparse.ArgumentParser, words: Sequence[str], word: str) -> list[str]:
    """What can stand for `word` after these words."""
    actions = _own(parser)
    commands = next(one for one in actions if isinstance(one, argparse._SubParsersAction))
    while words and words[0].startswith("-"):
        words = words[1:]
    if not words:
        return _options(actions) if word.startswith("-") else list(commands.choices)
    chosen = commands.choices.get(words[0])
    if chosen is None:
        return []
    actions = _own(chosen)
    given, waiting = _positions(actions, words[1:])
    if waiting is None and word.startswith("--") and "=" in word:
        name, _, _ = word.partition("=")
        option = next((one for one in actions if name in one.option_strings), None)
        return [] if option is None else [f"{name}={one}" for one in _values(option, words, given)]
    if waiting is not None:
        return _values(waiting, words, given)
    if word.startswith("-"):
        return _options(actions)
    positional = [one for one in actions if not one.option_strings]
    action = positional[min(len(given), len(positional) - 1)] if positional else None
    if action is None or (len(given) >= len(positional) and action.nargs != "*"):
        return []
    return _values(action, words, given)


def _own(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [one for one in parser._actions if one.help != argparse.SUPPRESS]


def _positions(
    actions: Iterable[argparse.Action], words: Sequence[str]
) -> tuple[list[str], argparse.Action | None]:
    """The positional words so far, and the option that waits for its value."""
    by_name = {name: one for one in actions for name in one.option_strings}
    given: list[str] = []
    waiting: argparse.Action | None = None
    for one in words:
        if waiting is not None:
            waiting = None
        elif one in by_name:
            waiting = by_name[one] if by_name[one].nargs is None else None
        elif not one.startswith("-") or one == "-":
            given.append(one)
    return given, waiting


def _options(actions: Iterable[argparse.Action]) -> list[str]:
    return [name for one in actions for name in one.option_strings if name.startswith("--")]


def _values(action: argparse.Action, words: Sequence[str], given: Sequence[str]) -> list[str]:
    """The values of an option or a position; none where files and directories can stand."""
    if action.choices is not None:
        return [str(one) for one in action.choices]
    if not given or action.dest not in _TABLES | _INSTANTS:
        return []
    if words[0] == "register":
        return []
    from lakevilla.tables.names import names_at

    try:
        names = names_at(os.path.expanduser(given[0]), dict(_store_options(words)))
    except lv.LakeVillaError:
        return []
    return list(names.tags) if action.dest in _INSTANTS else names.tables


def _store_options(words: Sequence[str]) -> Iterable[tuple[str, Any]]:
    for option, value in pairwise(words):
        name, equals, text = value.partition("=")
        if option == "--option" and equals:
            yield name, text
