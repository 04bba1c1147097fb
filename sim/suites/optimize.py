"""The suites of tables and of isolation, with one more client, which rewrites files between all others.

What is judged is what these suites judge: values in lists, sums, reads at one instant. A commit that only
rewrites files must not show in any of that.
"""

from sim.suites import isolation, tables
from sim.suites.base import Report
from sim.world.formats import PLAIN, Formats
from sim.world.lakes import EngineOf
from sim.world.row_engine import rows_engine


def images(engine: EngineOf, formats: Formats) -> None:
    """Make the stores from which seeds begin."""
    tables.images(engine, formats)
    isolation.images(engine, formats)


def play(seed: int, *, engine: EngineOf = rows_engine, formats: Formats = PLAIN) -> Report:
    """Run one seed: of one suite, or of the other."""
    if seed % 3 == 0:
        return tables.play(seed, engine=engine, formats=formats, optimizing=True)
    return isolation.play(seed, engine=engine, formats=formats, optimizing=True)
