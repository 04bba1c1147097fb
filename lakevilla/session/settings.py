"""The settings of a session: what its transactions pick."""

from dataclasses import dataclass, replace
from typing import Any

from lakevilla.model import Features
from lakevilla.sql.script.options import features_text


@dataclass(frozen=True, slots=True)
class Settings:
    """Features, isolation and slack of the transactions of a session."""

    features: Features
    isolation: str = "serializable"
    slack: int = 0

    def changed(self, **options: Any) -> "Settings":
        """The settings with some of them changed."""
        return replace(self, **options)

    def as_text(self) -> dict[str, str]:
        """Every setting as SET takes it."""
        return {
            "features": features_text(self.features),
            "isolation": self.isolation,
            "slack": str(self.slack),
        }
