"""Which isolation anomalies a history of lists shows (Adya's classes, found as Elle finds them).

Every key holds a list; transactions append unique values and read whole lists. A list tells the order of
its writers, so the dependencies between transactions are known, not guessed:
- ww: T2 appended the value right after T1's; wr: T2 read a list that ends with T1's value;
- rw: T1 read a list that T2's value then extended; rt: T1 ended before T2 began.
A cycle is an anomaly, named by the weakest edges that close it: G0 (ww), G1c (ww, wr), G-single (one rw),
G2 (more rw); with a real-time edge the name ends in `-realtime`. With snapshot isolation a cycle needs two rw
edges in a row, and one of them leaves a transaction that has it and writes: any other is an anomaly too.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

Edge = tuple[int, int]
Graph = dict[int, set[int]]


@dataclass(frozen=True, slots=True)
class Append:
    key: str
    value: int


@dataclass(frozen=True, slots=True)
class Read:
    key: str
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Txn:
    """One transaction: `outcome` is ok, failed or unknown; the steps stand in their order."""

    id: int
    steps: tuple[Append | Read, ...]
    outcome: str = "ok"
    invoked: float = 0.0
    completed: float = float("inf")


@dataclass(frozen=True, slots=True)
class Anomaly:
    """`kind` is the class, `detail` says who and where."""

    kind: str
    detail: str


Precedes = Callable[[Txn, Txn], bool]
"""Whether the order of two transactions, of which the first ended before the second began, is promised."""


def all_precede(_: Txn, __: Txn) -> bool:
    return True


def find_anomalies(
    history: Sequence[Txn],
    *,
    real_time: bool = True,
    precedes: Precedes = all_precede,
    snapshot: Collection[int] = (),
) -> list[Anomaly]:
    """All anomalies that need no cycle, and one cycle for each class that shows.

    `snapshot` are the transactions with snapshot isolation.
    """
    writers = {(s.key, s.value): txn for txn in history for s in txn.steps if isinstance(s, Append)}
    found = [*_internal(history), *_bad_reads(history, writers)]
    orders, disorder = _orders(history)
    found.extend(disorder)
    if found:
        # The orders are not to be trusted: cycles built on them would say nothing.
        return found
    ww, wr, rw = _dependencies(history, writers, orders)
    rt = _real_time(history, precedes) if real_time else set()
    if not snapshot:
        return _classify(ww, wr, rw, rt)
    writing = {txn.id for txn in history if any(isinstance(step, Append) for step in txn.steps)}
    skewed = writing.intersection(snapshot)
    firm = {(a, b) for a, b in rw if a not in skewed}
    return _classify(ww, wr, firm, rt) or _unskewed(ww | wr | rt, rw)


def _internal(history: Sequence[Txn]) -> Iterable[Anomaly]:
    """A transaction sees its own appends, and otherwise reads a key alike each time."""
    for txn in history:
        known: dict[str, tuple[int, ...]] = {}
        own: dict[str, tuple[int, ...]] = {}
        for step in txn.steps:
            if isinstance(step, Append):
                own[step.key] = (*own.get(step.key, ()), step.value)
                if step.key in known:
                    known[step.key] = (*known[step.key], step.value)
                continue
            mine = own.get(step.key, ())
            if step.key in known and known[step.key] != step.values:
                yield Anomaly("internal", f"T{txn.id} expected {known[step.key]} at {step.key}, read {step}")
            elif mine and step.values[-len(mine) :] != mine:
                yield Anomaly("internal", f"T{txn.id} does not see its own appends {mine} in {step}")
            known[step.key] = step.values


def _bad_reads(history: Sequence[Txn], writers: dict[tuple[str, int], Txn]) -> Iterable[Anomaly]:
    for txn in history:
        for read in (step for step in txn.steps if isinstance(step, Read)):
            if len(set(read.values)) != len(read.values):
                yield Anomaly("duplicate", f"T{txn.id} read {read}")
            for value in read.values:
                writer = writers.get((read.key, value))
                if writer is None:
                    yield Anomaly("garbage", f"T{txn.id} read {value} at {read.key}, which nobody wrote")
                elif writer.outcome == "failed":
                    yield Anomaly(
                        "G1a", f"T{txn.id} read {value} at {read.key} of T{writer.id}, which failed"
                    )
            last = writers.get((read.key, read.values[-1])) if read.values else None
            if last is not None and last.id != txn.id and _written(last, read.key)[-1] != read.values[-1]:
                yield Anomaly("G1b", f"T{txn.id} read {read}, an intermediate state of T{last.id}")


def _written(txn: Txn, key: str) -> list[int]:
    return [step.value for step in txn.steps if isinstance(step, Append) and step.key == key]


def _orders(history: Sequence[Txn]) -> tuple[dict[str, tuple[int, ...]], list[Anomaly]]:
    """The order of values by key: the longest read, of which every other read is a prefix."""
    longest: dict[str, tuple[int, ...]] = {}
    anomalies: list[Anomaly] = []
    reads = [(txn, step) for txn in history for step in txn.steps if isinstance(step, Read)]
    for _, read in reads:
        if len(read.values) > len(longest.get(read.key, ())):
            longest[read.key] = read.values
    for txn, read in reads:
        order = longest.get(read.key, ())
        if order[: len(read.values)] != read.values:
            anomalies.append(
                Anomaly("incompatible-order", f"T{txn.id} read {read}, another read gave {order}")
            )
    return longest, anomalies


def _dependencies(
    history: Sequence[Txn], writers: dict[tuple[str, int], Txn], orders: dict[str, tuple[int, ...]]
) -> tuple[set[Edge], set[Edge], set[Edge]]:
    ww: set[Edge] = set()
    wr: set[Edge] = set()
    rw: set[Edge] = set()
    for key, order in orders.items():
        ww.update((writers[key, a].id, writers[key, b].id) for a, b in pairwise(order))
    for txn in history:
        for read in (step for step in txn.steps if isinstance(step, Read)):
            order = orders.get(read.key, ())
            if read.values:
                wr.add((writers[read.key, read.values[-1]].id, txn.id))
            if len(read.values) < len(order):
                rw.add((txn.id, writers[read.key, order[len(read.values)]].id))
    return _proper(ww), _proper(wr), _proper(rw)


def _proper(edges: set[Edge]) -> set[Edge]:
    return {(a, b) for a, b in edges if a != b}


def _real_time(history: Sequence[Txn], precedes: Precedes) -> set[Edge]:
    done = [txn for txn in history if txn.outcome == "ok"]
    seen = [txn for txn in history if txn.outcome != "failed"]
    return {(a.id, b.id) for a in done for b in seen if a.completed < b.invoked and precedes(a, b)}


def _classify(ww: set[Edge], wr: set[Edge], rw: set[Edge], rt: set[Edge]) -> list[Anomaly]:
    found: list[Anomaly] = []
    for suffix, extra in (("", set[Edge]()), ("-realtime", rt)):
        if suffix and (found or not rt):
            break
        strong = _graph(ww | extra)
        if cycle := _cycle(strong):
            found.append(_anomaly("G0" + suffix, cycle))
        informed = _graph(ww | wr | extra)
        if not found and (cycle := _cycle(informed)):
            found.append(_anomaly("G1c" + suffix, cycle))
        if found:
            continue
        single = (_path(informed, b, a) for a, b in sorted(rw))
        if cycle := next((path for path in single if path), None):
            found.append(_anomaly("G-single" + suffix, cycle))
        elif cycle := _cycle(_graph(ww | wr | rw | extra)):
            found.append(_anomaly("G2" + suffix, cycle))
    return found


def _unskewed(others: set[Edge], rw: set[Edge]) -> list[Anomaly]:
    """A cycle without two rw edges in a row: each transaction twice, by whether an rw edge led there."""
    graph: Graph = {}
    for a, b in others:
        for last in (0, 1):
            graph.setdefault(2 * a + last, set()).add(2 * b)
    for a, b in rw:
        graph.setdefault(2 * a, set()).add(2 * b + 1)
    cycle = _cycle(graph)
    return [_anomaly("G-single", [node // 2 for node in cycle])] if cycle else []


def _anomaly(kind: str, cycle: list[int]) -> Anomaly:
    return Anomaly(kind, " -> ".join(f"T{node}" for node in [*cycle, cycle[0]]))


def _graph(edges: set[Edge]) -> Graph:
    graph: Graph = {}
    for a, b in edges:
        graph.setdefault(a, set()).add(b)
    return graph


def _cycle(graph: Graph) -> list[int] | None:
    """Some cycle, or None. Nodes without a way back are peeled off first, so a clean graph is cheap."""
    incoming: dict[int, int] = {}
    for targets in graph.values():
        for target in targets:
            incoming[target] = incoming.get(target, 0) + 1
    free = [node for node in graph if node not in incoming]
    while free:
        for target in graph.get(free.pop(), ()):
            incoming[target] -= 1
            if incoming[target] == 0:
                del incoming[target]
                free.append(target)
    for node in sorted(incoming):
        for target in sorted(graph.get(node, ())):
            if path := _path(graph, target, node):
                return path
    return None


def _path(graph: Graph, start: int, goal: int) -> list[int] | None:
    """The shortest path, both ends included."""
    previous: dict[int, int] = {start: start}
    queue = [start]
    for node in queue:
        if node == goal:
            path = [node]
            while path[-1] != start:
                path.append(previous[path[-1]])
            return path[::-1]
        for target in sorted(graph.get(node, ())):
            if target not in previous:
                previous[target] = node
                queue.append(target)
    return None
