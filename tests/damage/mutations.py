"""Small changes to the bytes of a file, by chance: some know JSON, so that they get past the parser."""

import json
from random import Random
from typing import Any

_ODD: list[Any] = [
    None, [], {}, "", "null", "\x00", 0, -1, 2**31, 2**63, 2**70, 1.5, 1e308, True, [None], {"a": None},
    "é" * 40, "9999-99-99", "%zz", "../x", [[]], "struct", {"type": "struct"}, "\ud800",
]  # fmt: skip
_TEXTS = [b"null", b"{}", b"[]", b'"', b"\\", b"\x00", b"\xff", b"\n", b"{", b"}", b"1e999", b"NaN", b"-"]


def damaged(data: bytes, chance: Random) -> bytes:
    """The data with one to three small changes."""
    for _ in range(chance.randint(1, 3)):
        change = chance.choice(
            [_flipped, _cut, _replaced, _repeated, _truncated, _in_json, _in_json, _in_json]
        )
        data = change(data, chance)
    return data


def _flipped(data: bytes, chance: Random) -> bytes:
    if not data:
        return b"\0"
    # Footers and headers are where structure is.
    ends = [chance.randrange(len(data)), len(data) - 1 - chance.randrange(min(len(data), 200))]
    place = chance.choice([*ends, chance.randrange(min(len(data), 200))])
    return data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :]


def _cut(data: bytes, chance: Random) -> bytes:
    start = chance.randrange(len(data) + 1)
    return data[:start] + data[start + chance.randint(1, 9) :]


def _replaced(data: bytes, chance: Random) -> bytes:
    start = chance.randrange(len(data) + 1)
    return data[:start] + chance.choice(_TEXTS) + data[start + chance.randint(0, 5) :]


def _repeated(data: bytes, chance: Random) -> bytes:
    start = chance.randrange(len(data) + 1)
    return data[:start] + data[max(0, start - chance.randint(1, 40)) :]


def _truncated(data: bytes, chance: Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _in_json(data: bytes, chance: Random) -> bytes:
    """One value of one line changed; what is not JSON gets a flipped bit."""
    try:
        lines = data.decode().splitlines()
        whole = len(lines) != 1 and _is_json(data)
        at = 0 if whole else chance.randrange(len(lines))
        tree = json.loads(data if whole else lines[at])
    except (ValueError, IndexError):
        return _flipped(data, chance)
    changed = json.dumps(_changed(tree, chance), ensure_ascii=True)
    return changed.encode() if whole else "\n".join([*lines[:at], changed, *lines[at + 1 :]]).encode()


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except ValueError:
        return False
    return True


def _changed(node: Any, chance: Random) -> Any:
    if isinstance(node, str) and node[:1] in "{[" and chance.random() < 0.7:
        try:
            return json.dumps(_changed(json.loads(node), chance))
        except ValueError:
            return chance.choice(_ODD)
    if not isinstance(node, dict | list) or not node or chance.random() < 0.1:
        return chance.choice(_ODD)
    if isinstance(node, list):
        at = chance.randrange(len(node))
        return [*node[:at], _changed(node[at], chance), *node[at + 1 :]]
    name = chance.choice(sorted(node))
    what = chance.random()
    if what < 0.15:
        return {key: value for key, value in node.items() if key != name}
    if what < 0.25:
        return {**node, name: node[chance.choice(sorted(node))]}
    return {**node, name: _changed(node[name], chance)}
