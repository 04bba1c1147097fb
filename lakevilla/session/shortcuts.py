"""Short commands of the shell, and the statements that they stand for."""

from dataclasses import dataclass

from lakevilla.errors import InvalidInput
from lakevilla.sql.words.suggestions import did_you_mean


@dataclass(frozen=True, slots=True)
class Shortcut:
    """`template` is the statement, with {} for what follows; `alone` the one if nothing follows."""

    name: str
    about: str
    template: str = ""
    alone: str = ""


SHORTCUTS = (
    Shortcut("\\d", "tables, or the columns of one table", "DESCRIBE {}", "SHOW TABLES"),
    Shortcut("\\d+", "all about a table", "DESCRIBE EXTENDED {}"),
    Shortcut(
        "\\h", "what was done to the lake, or to one table", "SHOW HISTORY FOR {}", "SHOW HISTORY LIMIT 20"
    ),
    Shortcut("\\tags", "the tags of the lake", alone="SHOW TAGS"),
    Shortcut("\\tx", "open transactions", alone="SHOW TRANSACTIONS"),
    Shortcut("\\set", "the settings of the session", alone="SHOW SETTINGS"),
    Shortcut("\\timing", "show times, or stop it"),
    Shortcut("\\?", "this help"),
    Shortcut("\\q", "leave"),
)
"""Those without a statement are the shell's own."""


def expand(line: str) -> tuple[str, str]:
    """The name of a shortcut that a line starts with, and its statement; InvalidInput if there is none."""
    name, _, rest = line.strip().rstrip(";").partition(" ")
    rest = rest.strip()
    found = next((shortcut for shortcut in SHORTCUTS if shortcut.name == name.lower()), None)
    if found is None:
        hint = did_you_mean(name, [shortcut.name for shortcut in SHORTCUTS], "\\? lists them")
        raise InvalidInput(f"unknown shortcut {name}: {hint.replace(chr(92) * 2, chr(92))}")
    if found.template and rest:
        return found.name, found.template.format(rest)
    if found.template and not found.alone:
        raise InvalidInput(f"{found.name} needs the name of a table")
    return found.name, found.alone


def help_text() -> str:
    """All shortcuts, one in a line."""
    lines = [f"  {shortcut.name:<9} {shortcut.about}" for shortcut in SHORTCUTS]
    return "\n".join(
        [*lines, "End a statement with a semicolon; Ctrl-C clears it or stops it, Ctrl-D leaves."]
    )
