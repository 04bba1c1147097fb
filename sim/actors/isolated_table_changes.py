"""Tables that are made and dropped while others look at the lake with isolation.

Each transaction that makes or drops tables appends its value to a list of the table `left` (see `making`). A
transaction with I that reads that list and the tables sees a table exactly if the list says that it was made
and does not say that it was dropped.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from random import Random

from lakevilla.errors import Unavailable
from sim.actors import table_changes
from sim.actors.isolated import ALL, CT, KEYS, Doing, I, R, Wish, transact
from sim.actors.session import Session
from sim.checkers.history import History, Operation
from sim.checkers.isolation.looks import Deed, items
from sim.checkers.tables.torn import Torn
from sim.world.client import Client, World

LISTS = "left"
WITH_I = (ALL, ALL, CT | I, R | I, I)


def act(session: Session, world: World) -> None:
    """Make or drop tables, or look at them. An outside client may put a table where one of ours is to be."""
    random = world.random
    try:
        names = table_changes.names_of(session.lake)
    except Unavailable:
        return
    if random.random() < 0.4:
        _look(session, random, [name for name in names if _is_made(name)])
        return

    def meanwhile(given: list[str]) -> None:
        for name in [name for name in given if name in table_changes.SHARED]:
            if random.random() < 0.2:
                squatter = world.client(f"squatter{len(session.history.operations)}")
                world.start(squatter, partial(_squat, squatter, name))
        session.client.environment.sleep(random.random() * 0.3)

    features = random.choice((*WITH_I, R | CT))
    again = random.random() < 0.6
    plan, key = table_changes.draw(random, names), random.randrange(KEYS)
    table_changes.transact(session, plan, LISTS, key, features, again, meanwhile)


def _squat(client: Client, name: str) -> None:
    table_changes.place_foreign_table(client, name)


def _is_made(name: str) -> bool:
    return name in (*table_changes.SHARED, *table_changes.VIEWS) or name.startswith(table_changes.OWN)


def _look(session: Session, random: Random, names: Sequence[str]) -> None:
    """The list and some of the tables that are there, or were a moment ago."""
    chosen = random.sample(names, min(len(names), 3))

    def plan(doing: Doing) -> None:
        doing.read(LISTS)
        for name in chosen:
            doing.read_tags(name)

    transact(session, Wish(random.choice(WITH_I), "serializable", again=True), plan, "reader")


def deed_of(op: Operation) -> Deed:
    """What a transaction that makes or drops tables does to lists."""
    return Deed(isolated=False, snapshot=False, across=True, steps=list(table_changes.appends_of(op)))


def judge(
    history: History,
    deeds: Sequence[tuple[Operation, Deed]],
    lists: Mapping[str, tuple[int, ...]],
    torn: Torn,
) -> list[str]:
    """Tables that a look with isolation showed and should not have, or the other way round."""
    committed = table_changes.committed(history, lists, torn)
    violations = []
    for op, deed in deeds:
        seen = _values(deed)
        if not deed.tags or seen is None:
            continue
        there = [maker for maker in committed if _value(maker) in seen]
        gone = {tag for maker in there for tag in maker.key.dropped}
        made = {tag for maker in there for tag in maker.key.made} - gone
        for name, tags in deed.tags.items():
            expected = made & {tag for maker in there for tag in maker.key.tags_of(name)}
            if tags != expected:
                violations.append(
                    f"operation {op.number} saw {tags} in {name}, by the lists it is {expected}"
                )
    return violations


def _value(op: Operation) -> int:
    return table_changes.appends_of(op)[0].value


def _values(deed: Deed) -> set[int] | None:
    """All values of the list that a transaction saw."""
    looks = [look for look in deed.looks if look.table == LISTS and look.key is None]
    return {value for row in looks[0].rows for value in items(row[2])} if looks else None
