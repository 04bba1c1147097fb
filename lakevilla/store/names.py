"""What a table may be called. The name is the table's folder below the lake, so it must not leave it."""

import unicodedata

from lakevilla.errors import InvalidInput

LONGEST_NAME_BYTES = 200

_RULE = (
    f"a table's name has 1 to {LONGEST_NAME_BYTES} bytes of UTF-8 in Unicode's NFC form, without '/', '\\', "
    "'%' or control characters, and without a blank at either end; it does not begin with '_' or '.' "
    "(db.table, accents and any case are fine)"
)
_OF_TABLES = ("delta", "iceberg")
_OF_FILES = ("parquet", "csv", "json", "orc", "avro", "text")
"""What other engines write before the path of a table, or of files."""


def check_table_name(name: str) -> str:
    """The name itself, if a table may have it; otherwise `InvalidInput` that says what is allowed."""
    if not isinstance(name, str):
        raise InvalidInput(f"the name of a table must be text; found {name!r}")
    fault = _fault(name)
    if fault:
        advice = _to_register(name) + ("" if _is_path(name) else f"; {_RULE}") if "/" in name else _RULE
        error = InvalidInput(f"{name[:80]!r} cannot be the name of a table: it {fault}; {advice}")
        error.fragment = name
        raise error
    return name


def _is_path(name: str) -> bool:
    """Whether this cannot be meant as the name of a table."""
    return name[0] in "/~" or "://" in name or name.partition(".")[0].casefold() in _OF_TABLES + _OF_FILES


def _to_register(name: str) -> str:
    """How to use the table at a path that stands in the place of a name, as in delta.`/data/orders`."""
    kind, dot, path = name.partition(".")
    if dot and kind.casefold() in _OF_FILES:
        return f"Spark reads files in place; on the local engine use lake.append(table, {path!r})"
    path = path if dot and kind.casefold() in _OF_TABLES else name
    own = path.rstrip("/").rpartition("/")[2]
    given = own if may_be_table(own) else "orders"
    return f"a table at a path gets a name by lake.register({given!r}, {path!r}), or by lakevilla register"


def may_be_table(name: str) -> bool:
    """Whether a table may have this name."""
    return not _fault(name)


def _fault(name: str) -> str:
    """Why the name is refused, or nothing."""
    if not name:
        return "is empty"
    if name != name.strip():
        return "begins or ends with a blank"
    # '..' and hidden folders; Delta's readers ignore what begins with '_', and so does our discovery.
    if name[0] in "._":
        return f"begins with {name[0]!r}"
    for character in name:
        # '%' is refused because other clients decode it: '%2F' would become a slash on their side.
        if character in "/\\%":
            return f"contains {character!r}"
        # Cc control, Cf invisible (also direction marks), Cs half of a character, Zl/Zp line ends.
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            return f"contains the control character {character!r}"
    # Two spellings of one visible name would be two tables.
    if not unicodedata.is_normalized("NFC", name):
        return "is not in NFC form"
    if len(name.encode()) > LONGEST_NAME_BYTES:
        return "is too long"
    return ""
