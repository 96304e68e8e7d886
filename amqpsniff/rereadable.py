"""Results that can be read any number of times."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Rereadable(ABC, Generic[Item]):
    """What a loop reads from its beginning every time, without keeping any of it.

    `next()` goes through one reading of its own, as an iterator would. An input that can be read
    only once (standard input) raises UsageError when it is read again.
    """

    _own: Iterator[Item] | None = None

    @abstractmethod
    def __iter__(self) -> Iterator[Item]:
        """A new reading."""

    def __next__(self) -> Item:
        if self._own is None:
            self._own = iter(self)
        return next(self._own)


class Rows(Rereadable[Item]):
    """Rows that a function reads anew."""

    def __init__(self, read: Callable[[], Iterator[Item]]) -> None:
        self._read = read

    def __iter__(self) -> Iterator[Item]:
        return self._read()
