"""The tests of Hermitage that the paper takes over, row by row.

https://github.com/ept/hermitage describes the anomalies. Steps are in the order in which Hermitage has them.
"""

from tests.hermitage.outcome import Outcome
from tests.hermitage.scripts.script import Script


def _observed_two_states(outcome: Outcome) -> bool:
    """Whether T3 of otv, which reads 1, 2, 2 and 1, saw more than one instant."""
    one, two, two_again, one_again = outcome.values("T3") or (10, 20, 20, 10)
    instants = {(10, 20), (11, 19), (12, 18)}
    return (one, two) not in instants or (one, two) != (one_again, two_again)


SCRIPTS = (
    Script(
        "g0",
        "T1 w1=11; T2 w1=12; T1 w2=21,c; T2 w2=22,c",
        "the final state mixes T1 and T2",
        seen=lambda o: len({v % 10 for _, v in o.final}) > 1,
    ),
    Script(
        "g1a",
        "T1 w1=101; T2 r*; T1 a; T2 r*,c",
        "T2 sees 101, which T1 rolls back",
        seen=lambda o: 101 in o.values("T2"),
    ),
    Script(
        "g1b",
        "T1 w1=101; T2 r*; T1 w1=11,c; T2 r*,c",
        "T2 sees 101, which T1 replaces itself",
        seen=lambda o: 101 in o.values("T2"),
    ),
    Script(
        "g1c",
        "T1 w1=11; T2 w2=22; T1 r2; T2 r1; T1 c; T2 c",
        "each sees the other's write",
        seen=lambda o: 22 in o.values("T1") and 11 in o.values("T2"),
    ),
    Script(
        "otv",
        "T1 w1=11,w2=19; T2 w1=12; T1 c; T3 r1; T2 w2=18; T3 r2; T2 c; T3 r2,r1,c",
        "T3 sees T2 in part, or T1 vanish",
        seen=_observed_two_states,
        readers_differ=True,
    ),
    Script(
        "pmp",
        "T1 p(v=30); T2 insert(3,30),c; T1 p(v%3=0),c",
        "T1 sees row 3 at the second look",
        seen=lambda o: o.reads("T1") == ((), ((3, 30),)),
    ),
    Script(
        "pmp-write",
        "T1 v+=10 all; T2 delete v=20; T1 c; T2 p(v=20),c",
        "T2 commits, and a row with 20 survives",
        seen=lambda o: o.committed("T2") and 20 in [v for _, v in o.final],
    ),
    Script(
        "p4",
        "T1 r1; T2 r1; T1 w1=11; T2 w1=11; T1 c; T2 c",
        "an update is lost: both read 10 and commit",
        seen=lambda o: o.values("T1") == o.values("T2") == [10],
    ),
    Script(
        "g-single",
        "T1 r1; T2 r1,r2,w1=12,w2=18,c; T1 r2,c",
        "T1 gets 10, then 18",
        seen=lambda o: o.values("T1") == [10, 18],
        readers_differ=True,
    ),
    Script(
        "g-single-dependencies",
        "T1 p(v%5=0); T2 set v=12 where v=10; T2 c; T1 p(v%3=0),c",
        "T1 sees 10, then 12",
        seen=lambda o: {10, 12} <= set(o.values("T1")),
        readers_differ=True,
    ),
    Script(
        "g-single-write-1",
        "T1 r1; T2 r*,w1=12,w2=18,c; T1 delete v=20; T1 c",
        "T1 commits although what it read has changed",
        seen=lambda o: o.values("T1") == [10],
    ),
    Script(
        "g-single-write-2",
        "T1 r1; T2 r*,w1=12; T1 delete v=20; T2 w2=18; T1 a; T2 c",
        "T2 is stuck, or lost, by what T1 rolls back",
        seen=lambda o: not o.committed("T2") or o.final != ((1, 12), (2, 18)),
    ),
    Script(
        "g2-item",
        "T1 r1,r2; T2 r1,r2; T1 w1=11; T2 w2=21; T1 c; T2 c",
        "write skew: both commit on what the other changes",
        seen=lambda o: o.values("T1") == o.values("T2") == [10, 20],
    ),
    Script(
        "g2",
        "T1 p(v%3=0); T2 p(v%3=0); T1 insert(3,30); T2 insert(4,42); T1 c; T2 c",
        "both commit, having seen no such row",
        seen=lambda o: o.reads("T1") == o.reads("T2") == ((),),
    ),
    Script(
        "g2-two-edges",
        "T1 r*; T2 w2+=5; T2 c; T3 r*,c; T1 w1=0; T1 c",
        "T1 commits before T2 by what it read, after T3 by what T3 read",
        seen=lambda o: o.values("T1") == [10, 20] and o.values("T3") == [10, 25],
        readers_differ=True,
    ),
)

ACROSS_TABLES = (
    *SCRIPTS,
    Script(
        "concurrent-reads",
        "T1 w1=11,w2=21; T2 r1; T1 c; T2 r2,c",
        "T2 sees one table new and one old",
        seen=lambda o: sorted(o.values("T2")) in ([10, 21], [11, 20]),
        readers_differ=True,
    ),
)
"""The same with the rows in two tables (-MT), and one more that the paper has only there."""
