"""The statistics of chosen live files, as the log has them: for actions that repeat them.

Other members of an `add` are in memory, for each file. Statistics are long: a checkpoint's are read when they
are asked for.
"""

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakevilla.formats.delta.log.entry import VECTOR_MARK, identity_of
from lakevilla.formats.delta.log.replay import LiveBlock, State


def statistics_of(state: State, identities: Collection[str]) -> dict[str, str]:
    """The text of each of these files that has one, by the files' identities."""
    found: dict[str, str] = {}
    blocks = [*state.blocks, state.recent] if state.added else state.blocks
    for block in blocks if identities else ():
        found |= _texts(block, identities)
    return found


def _texts(live: LiveBlock, wanted: Collection[str]) -> dict[str, str]:
    places = _places(live, wanted)
    found: dict[str, str] = {}
    start = 0
    for piece in live.block.texts() if places else ():
        inside = [place for place in places if start <= place < start + len(piece)]
        texts = piece.take(pa.array([place - start for place in inside], pa.int64())).to_pylist()
        known = zip(inside, texts, strict=True)
        found |= {places[place]: text for place, text in known if isinstance(text, str)}
        start += len(piece)
    return found


def _places(live: LiveBlock, wanted: Collection[str]) -> dict[int, str]:
    """Where in the block these files are."""
    paths = pa.array(sorted({identity.partition(VECTOR_MARK)[0] for identity in wanted}), pa.string())
    found: dict[int, str] = {}
    for start, batch, _ in live.batches():
        near = np.flatnonzero(pc.is_in(batch.column("path"), paths).to_numpy(zero_copy_only=False))
        names = [name for name in ("path", "deletionVector") if name in batch.schema.names]
        rows = batch.select(names).take(pa.array(near)).to_pylist()
        identities = [(start + int(at), identity_of(row)) for at, row in zip(near, rows, strict=True)]
        found |= {place: identity for place, identity in identities if identity in wanted}
    return found
