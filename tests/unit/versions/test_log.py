"""HEAD on a store: it rolls, stays small whatever the number of tables, and costs one GET when warm."""

from dataclasses import replace

import pytest

from lakevilla.environment import SystemEnvironment
from lakevilla.errors import CommitUnknown, Corrupt, Unavailable
from lakevilla.model import TableRef
from lakevilla.store import keys
from lakevilla.store.metered import KINDS, Meter, Metered
from lakevilla.store.open import open_store
from lakevilla.store.port import Created, Exists, Store
from lakevilla.versions import registry
from lakevilla.versions.commits import Settled
from lakevilla.versions.head_encoding import HEAD_BYTES, INLINE_BYTES, STEPS_KEPT
from lakevilla.versions.log import GlobalLog, ReadHead, States
from lakevilla.versions.records import DropTable, Entry, Head, RegisterTable
from tests.support.hooked import Hooked

ENVIRONMENT = SystemEnvironment()
MANY = 3_000


@pytest.fixture
def store() -> Store:
    return open_store("memory://")


class Sleeper(SystemEnvironment):
    """A machine that can be suspended."""

    slept = 0.0

    def elapsed(self) -> float:
        return super().elapsed() + self.slept


def _ref(number: int) -> TableRef:
    return TableRef(f"table_{number:05d}", f"s3://somewhere/lake/table_{number:05d}", "delta")


def _register(log: GlobalLog, read: ReadHead, ref: TableRef) -> ReadHead:
    seq = read.head.seq + 1
    return _move(log, read, Entry(seq, f"t{seq}", "a", "p", 1000 + seq, RegisterTable(ref)))


def _move(log: GlobalLog, read: ReadHead, entry: Entry) -> ReadHead:
    settled = Settled(True, {entry.tables[0].location: entry.seq})
    head = registry.apply(read.head, entry, settled, ENVIRONMENT.new_id())
    moved = log.replace_head(read, head, entry, True)
    assert moved is not None
    return moved


def _large(store: Store) -> ReadHead:
    """A lake of many tables, as the first release would have written it."""
    tables = ",".join(
        f'"{ref.name}":{{"location":"{ref.location}","format":"delta"}}' for ref in map(_ref, range(MANY))
    )
    versions = ",".join(f'"{_ref(number).location}":7' for number in range(MANY))
    owned = ",".join(f'"{_ref(number).location}"' for number in range(MANY))
    text = (
        f'{{"format":1,"lake":"l","seq":{MANY},"put":"p","tables":{{{tables}}},"dropped":[],'
        f'"versions":{{{versions}}},"torn":[],"owned":[{owned}]}}'
    )
    store.create(keys.HEAD, text.encode())
    read = GlobalLog(store, ENVIRONMENT).read_head()
    assert read is not None
    return read


def _size(store: Store, key: str) -> int:
    meta = store.head(key)
    assert meta is not None
    return meta.size


def _sent(meter: Meter) -> dict[str, int]:
    counts = meter.snapshot()
    return {kind: counts[kind] for kind in KINDS if counts[kind]}


def test_head_reads_as_it_was_written_and_each_earlier_state_is_in_one_object(store: Store) -> None:
    log = GlobalLog(store, ENVIRONMENT)
    read, states = log.first_head(), dict[int, Head]()
    for number in range(2 * STEPS_KEPT + 9):
        states[read.head.seq] = replace(read.head, put="")
        if number % 7 == 6:
            gone = DropTable(_ref(number - 3), None)
            read = _move(log, read, Entry(read.head.seq + 1, "t", "a", "p", 5, gone))
        else:
            read = _register(log, read, _ref(number))
        found = GlobalLog(store, ENVIRONMENT).read_head()
        assert found is not None
        assert (found.head, found.packed, found.inline) == (read.head, read.packed, read.inline)
    numbers = list(log.past_numbers(0))
    assert numbers == [STEPS_KEPT + 1, 2 * (STEPS_KEPT + 1)]
    for seq in range(numbers[-1] + 1):
        past = log.read_past(next(number for number in numbers if number >= seq))
        assert past is not None
        assert past.at(seq) == states[seq]


def test_times_of_entries_never_go_back(store: Store) -> None:
    log = GlobalLog(store, ENVIRONMENT)
    first = log.first_head()
    late = _move(log, first, Entry(1, "t", "a", "p", first.head.time_ms + 1000, RegisterTable(_ref(1))))
    early = _move(log, late, Entry(2, "t", "a", "p", 17, RegisterTable(_ref(2))))
    assert (late.head.time_ms, early.head.time_ms) == (first.head.time_ms + 1000,) * 2


def test_head_of_a_large_lake_stays_small_and_is_read_with_one_get_when_warm(store: Store) -> None:
    meter, states = Meter(), States()
    log = GlobalLog(Metered(store, meter), ENVIRONMENT, states)
    read = _large(store)
    assert _size(store, keys.HEAD) > 4 * HEAD_BYTES
    for number in range(MANY, MANY + 2 * STEPS_KEPT):
        read = _register(log, read, _ref(number))
        assert _size(store, keys.HEAD) < HEAD_BYTES // 4
    rolls = len(list(log.past_numbers(0)))
    assert rolls == 2
    assert _sent(meter) == {"replace": 2 * STEPS_KEPT, "put": rolls, "list": 1}
    warm, cold = Meter(), Meter()
    found = GlobalLog(Metered(store, warm), ENVIRONMENT, states).read_head()
    anew = GlobalLog(Metered(store, cold), ENVIRONMENT).read_head()
    assert found is not None
    assert anew is not None
    assert found.head == anew.head == read.head
    assert len(found.head.tables) == MANY + 2 * STEPS_KEPT
    assert (_sent(warm), _sent(cold)) == ({"get": 1}, {"get": 2})


def test_one_entry_about_everything_does_not_make_head_large(store: Store) -> None:
    log = GlobalLog(store, ENVIRONMENT)
    read = log.first_head()
    entry = Entry(1, "t", "a", "p", 1, RegisterTable(_ref(0)))
    many = {_ref(number).location: 1 for number in range(MANY)}
    head = registry.apply(read.head, entry, Settled(True, many), "put")
    moved = log.replace_head(read, head, entry, True)
    assert moved is not None
    assert _size(store, keys.HEAD) < 1000
    assert list(log.past_numbers(0)) == [1]
    assert log.read_head() == moved


def test_small_state_stays_in_head_when_it_rolls(store: Store) -> None:
    log, meter = GlobalLog(store, ENVIRONMENT), Meter()
    read = log.first_head()
    for number in range(STEPS_KEPT + 2):
        read = _register(log, read, _ref(number))
    assert list(log.past_numbers(0)) == [STEPS_KEPT + 1]
    assert _size(store, keys.HEAD) < INLINE_BYTES
    assert GlobalLog(Metered(store, meter), ENVIRONMENT).read_head() == read
    assert _sent(meter) == {"get": 1}


def test_who_rolls_and_loses_the_race_has_put_what_the_winner_puts(store: Store) -> None:
    log = GlobalLog(store, ENVIRONMENT)
    read = log.first_head()
    for number in range(STEPS_KEPT):
        read = _register(log, read, _ref(number))
    entry = Entry(read.head.seq + 1, "t", "a", "p", 1, RegisterTable(_ref(99)))
    heads = [registry.apply(read.head, entry, Settled(True), put) for put in ("mine", "theirs")]
    assert log.replace_head(read, heads[0], entry, True) is not None
    first = store.get(keys.past_head(entry.seq))
    assert log.replace_head(read, heads[1], entry, True) is None
    second = store.get(keys.past_head(entry.seq))
    assert first is not None
    assert second is not None
    assert first.data == second.data


def test_state_that_head_is_built_on_and_that_is_gone_is_corrupt_and_named(store: Store) -> None:
    read = _register(GlobalLog(store, ENVIRONMENT), _large(store), _ref(MANY))
    store.delete(keys.past_head(read.head.seq))
    with pytest.raises(Corrupt, match=rf"heads/0*{read.head.seq}\.json, which HEAD is built on, is missing"):
        GlobalLog(store, ENVIRONMENT).read_head()


def test_head_that_moved_while_its_base_was_asked_for_is_read_again(store: Store) -> None:
    log = GlobalLog(store, ENVIRONMENT)
    read = _register(log, _large(store), _ref(MANY))
    old = store.get(keys.HEAD)
    assert old is not None
    for number in range(MANY + 1, MANY + STEPS_KEPT + 2):
        read = _register(log, read, _ref(number))
    new = store.get(keys.HEAD)
    assert new is not None
    assert len(list(log.past_numbers(0))) == 2
    store.delete(keys.past_head(next(log.past_numbers(0))))
    store.put(keys.HEAD, old.data)

    class Moving:
        """HEAD moves right after it was read."""

        def __getattr__(self, name: str) -> object:
            return getattr(store, name)

        def get(self, key: str) -> object:
            found = store.get(key)
            if key == keys.HEAD:
                store.put(keys.HEAD, new.data)
            return found

    found = GlobalLog(Moving(), ENVIRONMENT).read_head()  # type: ignore[arg-type]
    assert found is not None
    assert found.head == read.head


def test_past_of_another_lake_is_corrupt(store: Store) -> None:
    read = _register(GlobalLog(store, ENVIRONMENT), _large(store), _ref(MANY))
    found = store.get(keys.HEAD)
    assert found is not None
    store.put(keys.HEAD, found.data.replace(b'"lake":"l"', b'"lake":"m"'))
    with pytest.raises(Corrupt, match="belongs to another lake"):
        GlobalLog(store, ENVIRONMENT).read_head()
    assert read.head.lake == "l"


def test_slot_that_was_cleaned_away_is_not_taken_by_who_slept(store: Store) -> None:
    sleeper = Sleeper()
    mine, theirs = GlobalLog(store, sleeper), GlobalLog(store, ENVIRONMENT)
    theirs.first_head()
    old = mine.read_head()
    assert old is not None
    read = old
    for number in range(STEPS_KEPT + 5):
        read = _register(theirs, read, _ref(number))
    sleeper.slept = 8 * 24 * 3600.0
    entry = Entry(old.head.seq + 1, "mine", "a", "p", 1, RegisterTable(_ref(99)))
    assert isinstance(mine.create_slot(entry), Exists)
    assert store.get(keys.slot(entry.seq)) is None


@pytest.mark.parametrize("further", [0, 1, STEPS_KEPT + 3])
def test_slot_of_who_slept_that_another_settled_meanwhile_is_its_own(store: Store, further: int) -> None:
    sleeper = Sleeper()
    mine, theirs = GlobalLog(store, sleeper), GlobalLog(store, ENVIRONMENT)
    read = theirs.first_head()
    assert mine.read_head() is not None
    entry = Entry(1, "mine", "a", "p", 1, RegisterTable(_ref(99)))
    sleeper.slept = 8 * 24 * 3600.0
    plain = store.create

    def create(key: str, data: bytes) -> object:
        answer = plain(key, data)
        moved = _move(theirs, read, entry)
        for number in range(further):
            moved = _register(theirs, moved, _ref(number))
        return answer

    store.create = create  # type: ignore[method-assign, assignment]
    assert isinstance(mine.create_slot(entry), Created)


def test_slot_is_created_with_one_request_by_who_has_just_read_head(store: Store) -> None:
    meter = Meter()
    log = GlobalLog(Metered(store, meter), ENVIRONMENT)
    log.first_head()
    assert isinstance(log.create_slot(Entry(1, "t", "a", "p", 1, RegisterTable(_ref(1)))), Created)
    assert _sent(meter) == {"list": 1, "create": 2}


def test_slot_of_who_slept_is_of_unknown_fate_if_the_store_goes_away_then(store: Store) -> None:
    sleeper, hooked = Sleeper(), Hooked(store)
    log = GlobalLog(hooked, sleeper)
    log.first_head()
    entry = Entry(1, "t", "a", "p", 1, RegisterTable(_ref(1)))
    sleeper.slept = 2 * 3600
    sent: list[str] = []

    def hook(kind: str, _: str) -> None:
        sent.append(kind)
        if kind == "create":
            # Suspended once more, right before it is sent.
            sleeper.slept += 2 * 3600
        if kind == "get" and "create" in sent:
            raise Unavailable("no route")

    hooked.hook = hook
    with pytest.raises(CommitUnknown, match="do not rerun"):
        log.create_slot(entry)
    assert GlobalLog(store, ENVIRONMENT).read_slot(1) == entry
