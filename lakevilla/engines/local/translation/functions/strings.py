"""String functions. Positions are code points, as in Spark."""

import re

import pyarrow as pa

from lakevilla.engines.local.translation.functions.scalars import (
    as_integer,
    as_text,
    boolean,
    constant_text,
    function,
    integer,
    string,
)
from lakevilla.engines.local.translation.types.casts import cast
from lakevilla.engines.local.translation.types.typed import (
    Typed,
    fails_unsupported,
    is_binary,
    list_of,
    refuse,
    text,
)
from lakevilla.errors import InvalidInput

# Letters whose upper or lower case takes several letters or depends on the neighbours in Java.
_ODD_UPPER = "[ßŉǰΐΰև\\x{1E96}-\\x{1E9E}\\x{1F50}-\\x{1F57}\\x{1F80}-\\x{1FFC}\\x{FB00}-\\x{FB17}]"
_ODD_LOWER = "[İΣ]"

# What Java and RE2 read alike: no look-around, back references, flags, possessive or lazy extras.
_SAFE_REGEX = re.compile(r"(?:[\w\s<>=!@#%&~`'\",;:/-]|\\[dDwW.*+?()\[\]{}|^$/\\-]|[.*+|()\[\]^${}?])*")
_REGEX_SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}]")


@function("upper", "ucase", arity=(1, 1))
def _upper(value: Typed) -> Typed:
    return _cased("upper", as_text(value, "upper"), _ODD_UPPER)


@function("lower", "lcase", arity=(1, 1))
def _lower(value: Typed) -> Typed:
    return _cased("lower", as_text(value, "lower"), _ODD_LOWER)


def _cased(name: str, sql: str, odd: str) -> Typed:
    refused = fails_unsupported(f"{name} of a letter whose case is not one letter")
    # All-ASCII text, the usual case, needs no look at its letters.
    return string(
        f"CASE WHEN strlen({sql}) = length({sql}) THEN {name}({sql}) "
        f"WHEN regexp_matches({sql}, {text(odd)}) THEN {refused} ELSE {name}({sql}) END"
    )


@function("length", "len", "char_length", "character_length", arity=(1, 1))
def _length(value: Typed) -> Typed:
    if is_binary(value.type):
        return integer(f"octet_length({value.sql})")
    return integer(f"length({as_text(value, 'length')})")


@function("octet_length", arity=(1, 1))
def _octets(value: Typed) -> Typed:
    if is_binary(value.type):
        return integer(f"octet_length({value.sql})")
    return integer(f"strlen({as_text(value, 'octet_length')})")


@function("substring", "substr", arity=(2, 3))
def _substring(value: Typed, position: Typed, length: Typed | None = None) -> Typed:
    """Position 0 is the first character too; a negative one counts from the end."""
    sql, at = as_text(value, "substring"), as_integer(position, "substring")
    count = None if length is None else as_integer(length, "substring")
    if isinstance(position.constant, int) and position.constant >= 0:
        at = str(max(1, position.constant))
        return string(f"substring({sql}, {at}{'' if count is None else f', greatest({count}, 0)'})")
    start = f"CASE WHEN {at} > 0 THEN {at} - 1 WHEN {at} < 0 THEN length({sql}) + {at} ELSE 0 END"
    begin = f"greatest({start}, 0)"
    if count is None:
        return string(f"substring({sql}, {begin} + 1)")
    # CAST, for a count near the largest int must not overflow.
    end = f"(CAST({start} AS BIGINT) + {count})"
    return string(f"substring({sql}, {begin} + 1, greatest({end} - {begin}, 0))")


@function("left", arity=(2, 2))
def _left(value: Typed, count: Typed) -> Typed:
    return string(f"left({as_text(value, 'left')}, greatest({as_integer(count, 'left')}, 0))")


@function("right", arity=(2, 2))
def _right(value: Typed, count: Typed) -> Typed:
    return string(f"right({as_text(value, 'right')}, greatest({as_integer(count, 'right')}, 0))")


@function("ltrim", arity=(1, 2))
def _ltrim(value: Typed, other: Typed | None = None) -> Typed:
    """With two arguments the characters to remove come first."""
    return trim(value, None, "LEADING") if other is None else trim(other, value, "LEADING")


@function("rtrim", arity=(1, 2))
def _rtrim(value: Typed, other: Typed | None = None) -> Typed:
    return trim(value, None, "TRAILING") if other is None else trim(other, value, "TRAILING")


@function("btrim", arity=(1, 2))
def _btrim(value: Typed, characters: Typed | None = None) -> Typed:
    return trim(value, characters, "BOTH")


def trim(value: Typed, characters: Typed | None, side: str) -> Typed:
    """Spark trims blanks and nothing else, DuckDB every kind of space."""
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side, "trim")
    removed = "' '" if characters is None else as_text(characters, "trim")
    return string(f"{name}({as_text(value, 'trim')}, {removed})")


@function("concat", arity=(0, -1))
def concat(*values: Typed) -> Typed:
    """NULL if one part is; parts of another type are cast."""
    if any(pa.types.is_nested(value.type) or is_binary(value.type) for value in values):
        refuse("concat of arrays or binary values")
    if not values:
        return string("''")
    return string("(" + " || ".join(cast(value, pa.string()).sql for value in values) + ")")


@function("concat_ws", arity=(1, -1))
def _concat_ws(separator: Typed, *values: Typed) -> Typed:
    if any(pa.types.is_nested(value.type) or is_binary(value.type) for value in values):
        refuse("concat_ws of arrays or binary values")
    parts = [as_text(separator, "concat_ws"), *(cast(value, pa.string()).sql for value in values)]
    if len(parts) == 1:
        return string(f"CASE WHEN {parts[0]} IS NOT NULL THEN '' END")
    return string(f"concat_ws({', '.join(parts)})")


@function("replace", arity=(2, 3))
def _replace(value: Typed, search: Typed, by: Typed | None = None) -> Typed:
    new = "''" if by is None else as_text(by, "replace")
    return string(f"replace({as_text(value, 'replace')}, {as_text(search, 'replace')}, {new})")


@function("instr", arity=(2, 2))
def _instr(value: Typed, part: Typed) -> Typed:
    return integer(f"instr({as_text(value, 'instr')}, {as_text(part, 'instr')})")


@function("locate", "position", arity=(2, 2))
def _locate(part: Typed, value: Typed) -> Typed:
    return _instr(value, part)


def _pad(name: str) -> None:
    @function(name, arity=(2, 3))
    def pad(value: Typed, length: Typed, filling: Typed | None = None) -> Typed:
        fill = " " if filling is None else constant_text(filling, name, "padding")
        if not fill:
            refuse(f"{name} with an empty padding")
        width = f"greatest({as_integer(length, name)}, 0)"
        return string(f"{name}({as_text(value, name)}, {width}, {text(fill)})")


_pad("lpad")
_pad("rpad")


@function("repeat", arity=(2, 2))
def _repeat(value: Typed, count: Typed) -> Typed:
    return string(f"repeat({as_text(value, 'repeat')}, greatest({as_integer(count, 'repeat')}, 0))")


@function("reverse", arity=(1, 1))
def _reverse(value: Typed) -> Typed:
    if pa.types.is_list(value.type):
        return Typed(f"list_reverse({value.sql})", value.type)
    sql = as_text(value, "reverse")
    # DuckDB keeps a letter and its accents together, Spark does not.
    return string(
        f"CASE WHEN strlen({sql}) = length({sql}) THEN reverse({sql}) "
        f"WHEN {sql} IS NOT NULL THEN {fails_unsupported('reverse of text beyond ASCII')} END"
    )


@function("startswith", arity=(2, 2))
def _startswith(value: Typed, part: Typed) -> Typed:
    return boolean(f"starts_with({as_text(value, 'startswith')}, {as_text(part, 'startswith')})")


@function("endswith", arity=(2, 2))
def _endswith(value: Typed, part: Typed) -> Typed:
    return boolean(f"ends_with({as_text(value, 'endswith')}, {as_text(part, 'endswith')})")


@function("contains", arity=(2, 2))
def _contains(value: Typed, part: Typed) -> Typed:
    return boolean(f"contains({as_text(value, 'contains')}, {as_text(part, 'contains')})")


@function("translate", arity=(3, 3))
def _translate(value: Typed, old: Typed, new: Typed) -> Typed:
    sources = [as_text(one, "translate") for one in (value, old, new)]
    return string(f"translate({', '.join(sources)})")


@function("split_part", arity=(3, 3))
def _split_part(value: Typed, separator: Typed, part: Typed) -> Typed:
    if not isinstance(part.constant, int) or not constant_text(separator, "split_part", "separator"):
        refuse("split_part whose separator is empty or whose number is not a literal")
    if part.constant == 0:
        raise InvalidInput("split_part counts from 1")
    return string(f"split_part({as_text(value, 'split_part')}, {separator.sql}, {part.sql})")


@function("split", arity=(2, 2))
def _split(value: Typed, pattern: Typed) -> Typed:
    """The separator is a regular expression; one without special characters means itself."""
    separator = re.sub(r"\\([^\w])", r"\1", constant_text(pattern, "split", "pattern"))
    special = _REGEX_SPECIAL.search(re.sub(r"\\[^\w]", "", constant_text(pattern, "split", "pattern")))
    if not separator or special:
        refuse("split by a regular expression")
    return Typed(f"string_split({as_text(value, 'split')}, {text(separator)})", list_of(pa.string()))


def regex(pattern: Typed, name: str) -> str:
    """A pattern that means the same to Java and to RE2."""
    written = constant_text(pattern, name, "pattern")
    if not _SAFE_REGEX.fullmatch(written) or re.search(r"\(\?|[*+?}][+?]|\[[^\]]*(\[|&&)", written):
        refuse(f"{name} with the pattern {written!r}")
    return text(written)


@function("rlike", "regexp", "regexp_like", arity=(2, 2))
def rlike(value: Typed, pattern: Typed) -> Typed:
    return boolean(f"regexp_matches({as_text(value, 'rlike')}, {regex(pattern, 'rlike')})")


@function("regexp_extract", arity=(2, 3))
def _regexp_extract(value: Typed, pattern: Typed, group: Typed | None = None) -> Typed:
    number = 1 if group is None else group.constant
    groups = len(re.findall(r"(?<!\\)\(", constant_text(pattern, "regexp_extract", "pattern")))
    if not isinstance(number, int):
        refuse("regexp_extract whose group is not a literal")
    if not 0 <= number <= groups:
        raise InvalidInput(f"regexp_extract: unknown group {number}; the pattern has {groups} groups")
    return string(
        f"regexp_extract({as_text(value, 'regexp_extract')}, {regex(pattern, 'regexp_extract')}, {number})"
    )


@function("regexp_replace", arity=(3, 3))
def _regexp_replace(value: Typed, pattern: Typed, by: Typed) -> Typed:
    new = constant_text(by, "regexp_replace", "replacement")
    if "\\" in new or re.search(r"\$(?![1-9](?!\d))", new):
        refuse(f"regexp_replace with the replacement {new!r}")
    new = re.sub(r"\$([1-9])", r"\\\1", new)
    sql = as_text(value, "regexp_replace")
    return string(f"regexp_replace({sql}, {regex(pattern, 'regexp_replace')}, {text(new)}, 'g')")


def like(value: Typed, pattern: Typed, escape: Typed | None, operator: str) -> Typed:
    """LIKE and ILIKE; the backslash escapes unless the statement says otherwise."""
    sign = "\\" if escape is None else constant_text(escape, operator, "escape character")
    if len(sign) != 1:
        raise InvalidInput("ESCAPE takes one character")
    if isinstance(pattern.constant, str):
        rest = re.sub(re.escape(sign) + "[%_" + re.escape(sign) + "]", "", pattern.constant)
        if sign in rest:
            raise InvalidInput(f"the pattern {pattern.constant!r} escapes a character that is not special")
    left, right = as_text(value, operator), as_text(pattern, operator)
    return boolean(f"({left} {operator} {right} ESCAPE {text(sign)})")


@function("md5", arity=(1, 1))
def _md5(value: Typed) -> Typed:
    return string(f"md5({value.sql if is_binary(value.type) else as_text(value, 'md5')})")


@function("sha2", arity=(2, 2))
def _sha2(value: Typed, bits: Typed) -> Typed:
    if bits.constant not in (0, 256):
        refuse("sha2 of other than 256 bits")
    return string(f"sha256({value.sql if is_binary(value.type) else as_text(value, 'sha2')})")
