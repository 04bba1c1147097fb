"""Values that an immutable object computes when they are first asked for.

`functools.cached_property` holds one lock for all instances while it computes (before Python 3.12): a
value that reads from the store would make every other thread wait for that request. Here no thread waits;
two threads may compute the same value, and both get the same.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class lazy_property(Generic[T]):
    """Like `functools.cached_property`, without its lock."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "lazy_property[T]": ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> "T | lazy_property[T]":
        if instance is None:
            return self
        # An entry in the instance's own dictionary is found before this descriptor the next time.
        value = instance.__dict__[self._name] = self._compute(instance)
        return value
