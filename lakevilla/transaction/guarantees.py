"""What a transaction asks for: modules, isolation, slack."""

from dataclasses import dataclass

from lakevilla.errors import InvalidInput
from lakevilla.model import Features
from lakevilla.validation.rules import ISOLATIONS, Isolation


@dataclass(frozen=True, slots=True)
class Guarantees:
    """`isolation` and `slack` mean something with I only (see `validation.rules`)."""

    features: Features
    isolation: Isolation = "serializable"
    slack: int = 0

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


def guarantees(features: Features, isolation: str, slack: int) -> Guarantees:
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
    return Guarantees(features, known, slack)
