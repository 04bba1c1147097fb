"""Every part that a node of a parsed tree can have: which of them change what comes of the tree."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from sqlglot import exp

from lakevilla.errors import LakeVillaError
from lakevilla.sql.parser import parse
from lakevilla.sql.statements import Query

_TIMES = 3

Part = tuple[str, str]
"""The class of a node, and the name of one of its parts."""

Written = Callable[[exp.Expr], str]
"""What an engine makes of a tree; LakeVillaError if it refuses it."""


def few_trees(texts: Iterable[str]) -> list[exp.Expr]:
    """The trees of some of these queries, so many that they have every part that a query has, three times."""
    known = Counter[tuple[Part, object]]()
    chosen = []
    for tree in _queries(texts):
        marks = {(part, mark) for node in tree.walk() for part, mark in _marks(node)}
        if any(known[mark] < _TIMES for mark in marks):
            chosen.append(tree)
            known.update(marks)
    return chosen


def overlooked_parts(trees: Iterable[exp.Expr], written: Written) -> set[Part]:
    """Parts that stand in a tree, and could be left out of it without a difference."""
    seen, read = set[Part](), set[Part]()
    for tree in trees:
        before = written(tree)
        for node in tree.walk():
            for part in _set_parts(node):
                seen.add(part)
                if part not in read and _differs(tree, node, part[1], None, before, written):
                    read.add(part)
    return seen - read


def accepted_parts(trees: Iterable[exp.Expr], written: Written) -> set[Part]:
    """Parts that no tree has, and that can be put into one without a refusal or a difference."""
    chosen = list(trees)
    done = {part for tree in chosen for node in tree.walk() for part in _set_parts(node)}
    accepted = set[Part]()
    for tree in chosen:
        before = written(tree)
        for node in tree.walk():
            for key in node.arg_types:
                part = (type(node).__name__, key)
                if part not in done:
                    done.add(part)
                    if not _differs(tree, node, key, exp.Literal.number(1), before, written):
                        accepted.add(part)
    return accepted


def _queries(texts: Iterable[str]) -> Iterator[exp.Expr]:
    for text in texts:
        try:
            statement = parse(text)
        except LakeVillaError:
            continue
        if isinstance(statement, Query):
            yield statement.tree


def _set_parts(node: exp.Expr) -> Iterator[Part]:
    yield from ((type(node).__name__, key) for key, value in node.args.items() if value)


def _marks(node: exp.Expr) -> Iterator[tuple[Part, object]]:
    """The parts of the node, those apart that have other keywords."""
    for part in _set_parts(node):
        value = node.args[part[1]]
        yield part, value if isinstance(value, str) and part[1] != "this" else None


def _differs(
    tree: exp.Expr, node: exp.Expr, key: str, value: exp.Expr | None, before: str, written: Written
) -> bool:
    """Whether another value of a node's part is refused, or makes a difference."""
    place = next(number for number, other in enumerate(tree.walk()) if other is node)
    copy = tree.copy()
    twin = next(other for number, other in enumerate(copy.walk()) if number == place)
    twin.set(key, value)
    try:
        return written(copy) != before
    except LakeVillaError:
        return True
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError):
        # The grammar never makes such a tree. What fails on it has looked at the part.
        return True
