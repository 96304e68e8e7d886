"""Items that a thread reads or decodes ahead, while earlier ones are used."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor
from typing import TypeVar

Item = TypeVar("Item")


def prefetched(items: Iterator[Item], pool: Executor, count: int = 1) -> Iterator[Item]:
    """The same items, made by `pool` from now on, `count` of them ahead; none of them may be None.

    More than one are made ahead by a pool of one thread only. What making an item raises is raised
    in its place.
    """
    coming = deque(pool.submit(next, items, None) for _ in range(count))

    def rest() -> Iterator[Item]:
        while (item := coming.popleft().result()) is not None:
            coming.append(pool.submit(next, items, None))
            yield item

    return rest()
