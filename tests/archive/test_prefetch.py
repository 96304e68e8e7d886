"""Items made ahead by a thread: in order, so many at a time, errors where they are seen."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from amqpsniff.archive import Batch
from amqpsniff.archive.prefetch import prefetched
from amqpsniff.archive.task_io import TaskSpec
from tests.waiting import PATIENCE

from .tables import everything


@pytest.mark.parametrize("ahead", [1, 4])
def test_items_come_in_order(ahead: int) -> None:
    with ThreadPoolExecutor(1) as pool:
        assert list(prefetched(iter(range(100)), pool, ahead)) == list(range(100))
        assert list(prefetched(iter(()), pool, ahead)) == []


def test_so_many_are_made_ahead() -> None:
    made = threading.Semaphore(0)

    def items() -> Iterator[int]:
        for number in range(100):
            made.release()
            yield number

    with ThreadPoolExecutor(1) as pool:
        coming = prefetched(items(), pool, 3)
        for _ in range(3):  # before the first is asked for
            assert made.acquire(timeout=PATIENCE)
        assert next(coming) == 0
        assert made.acquire(timeout=PATIENCE)
        assert not made.acquire(timeout=0.05)


def test_what_making_an_item_raises_is_raised_in_its_place() -> None:
    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise OSError(3)

    with ThreadPoolExecutor(1) as pool:
        coming = prefetched(items(), pool, 4)
        assert [next(coming), next(coming)] == [1, 2]
        with pytest.raises(OSError, match="3"):
            next(coming)


def test_a_task_that_is_longer_than_its_part_writes_beside(samples: Path, tmp_path: Path) -> None:
    given: list[bool] = []
    capture = str(samples / "pika_mix.pcap")

    def seen(function: object, orders: list[TaskSpec], watch: object) -> list[object]:
        given.extend(one.beside for one in orders)
        return [function(one) for one in orders]  # type: ignore[operator]

    for cores in (1, 2):
        Batch([capture], str(tmp_path / str(cores))).run(seen, cores=cores)  # type: ignore[arg-type]
    assert given == [False, True]
    assert everything(tmp_path / "1") == everything(tmp_path / "2")
