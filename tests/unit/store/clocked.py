"""An environment whose time passes only when somebody sleeps."""

from lakevilla.environment import SystemEnvironment


class Clocked(SystemEnvironment):
    """Real ids and threads; a clock of its own, and randomness that always answers 0.5."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 1000.0
        self.pauses: list[float] = []

    def elapsed(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.time += seconds

    def random(self) -> float:
        return 0.5
