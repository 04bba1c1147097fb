"""Listings in the order of their keys, also from stores that list folder by folder.

S3, GCS and memory list by the bytes of whole keys. Stores that keep a tree of folders behind an S3
door (SeaweedFS, Azure with hierarchical folders) list by one segment after the other: there `a/x`
comes before `a-b`, although `-` sorts before `/`. The two functions here are right for both orders.
Python compares strings by code points, which is the order of their UTF-8 bytes.
"""

import heapq
import itertools
from collections.abc import Iterable, Iterator

from lakevilla.store.port import Meta

_STEPS_BACK = {
    character: before
    for run in ("0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
    for before, character in itertools.pairwise(run)
}


def just_below(folder: str, text: str) -> str:
    """A place to start listing `folder` so that every key >= `text` follows it, in either order.

    As close to `text` as can be had; empty if the listing must start at the folder's beginning. The
    two orders differ only by characters before `/`, so the text is cut at the first of them, and at
    what no key can hold. It never is the name of a folder: SeaweedFS would skip what that folder holds.
    """
    stem = text[len(folder) :].partition("//")[0]
    for place, character in enumerate(stem):
        if character < "/" or character == "\x7f":
            stem = stem[:place]
            break
    while stem and stem[-1] not in _STEPS_BACK:
        stem = stem[:-1]
    return f"{folder}{stem[:-1]}{_STEPS_BACK[stem[-1]]}~" if stem else ""


def in_key_order(folder: str, listing: Iterable[Meta]) -> Iterator[Meta]:
    """The same objects, all below `folder`, by key, whichever of the two orders they come in.

    What lies in a sub-folder `a/` is held back until the listing has passed every name that could
    still sort before it (`a-b`, `a.json`); an object directly in `folder` passes at once.
    """
    held: list[str] = []
    metas: dict[str, Meta] = {}
    for meta in listing:
        if meta.key not in metas:
            heapq.heappush(held, meta.key)
        metas[meta.key] = meta
        here = meta.key[len(folder) :].partition("/")[0]
        while held:
            name, nested, _ = held[0][len(folder) :].partition("/")
            if nested and here <= name + "/":
                break
            yield metas.pop(heapq.heappop(held))
    while held:
        yield metas.pop(heapq.heappop(held))
