"""What a transaction asks for: modules, isolation, slack, and the batch that it commits once."""

from dataclasses import dataclass
from typing import SupportsIndex

from lakevilla.errors import InvalidInput
from lakevilla.model import Batch, Features
from lakevilla.validation.rules import ISOLATIONS, Isolation


@dataclass(frozen=True, slots=True)
class Guarantees:
    """`isolation` and `slack` mean something with I only (see `validation.rules`). `once` is the batch that
    it commits, if that is not committed yet."""

    features: Features
    isolation: Isolation = "serializable"
    slack: int = 0
    once: Batch | None = None

    @property
    def recovers(self) -> bool:
        """R: a conflict is redone."""
        return bool(self.features & Features.R)

    @property
    def isolates(self) -> bool:
        """I: all tables are seen at one instant."""
        return bool(self.features & Features.I)

    @property
    def by_slots(self) -> bool:
        """Whether the global log can decide the commit: several tables, or one instant for all of them."""
        return bool(self.features & (Features.CT | Features.I))

    @property
    def is_alone(self) -> bool:
        """R and nothing else: one table, whose log decides the commit."""
        return self.features == Features.R


def guarantees(features: Features, isolation: str, slack: int, once: object = None) -> Guarantees:
    """What a user asked for; InvalidInput if it is not valid."""
    if not isinstance(features, Features):
        raise InvalidInput(
            f"features must be flags such as lakevilla.R | lakevilla.CT | lakevilla.I; found {features!r}"
        )
    known = ISOLATIONS.get(isolation)
    if known is None:
        raise InvalidInput(f"isolation must be {' or '.join(map(repr, ISOLATIONS))}; found {isolation!r}")
    if not isinstance(slack, int) or slack < 0:
        raise InvalidInput(f"slack must be a number of versions, 0 or more; found {slack!r}")
    batch = None if once is None else batch_of(once)
    if batch is not None and not features & (Features.CT | Features.I):
        raise InvalidInput(
            f"once={once!r} needs lakevilla.CT or lakevilla.I, because the lake's global log keeps which "
            "batches are committed: add one of them to the features, which have both by default"
        )
    return Guarantees(features, known, slack, batch)


APP_LENGTH = 200
_LARGEST = 2**63 - 1


def batch_of(once: object) -> Batch:
    """The batch that a user named; InvalidInput if that is not the name of an app and a number."""
    match once:
        case Batch():
            return once
        case (str(app), number) if app and len(app) <= APP_LENGTH and app.isprintable():
            found = _whole(number)
            if found is not None and 0 <= found <= _LARGEST:
                return Batch(app, found)
    raise InvalidInput(
        f"once cannot be {once!r}: write once=('app', batch), with the name of the pipeline (1 to "
        f"{APP_LENGTH} printable characters) and the number of its batch (0 to {_LARGEST}), which grows from "
        "batch to batch"
    )


def _whole(number: object) -> int | None:
    """A whole number of any kind, NumPy's included; no truth value."""
    if isinstance(number, bool) or not isinstance(number, SupportsIndex):
        return None
    return number.__index__()
