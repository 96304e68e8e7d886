"""A thread beside: calls in order, a bound on those that wait, errors where they are seen."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from amqpsniff.archive import Batch
from amqpsniff.archive.task_io import MAX_WAITING, BackgroundWriter, TaskSpec
from tests.waiting import PATIENCE

from .tables import everything


def test_calls_are_made_in_order() -> None:
    made: list[int] = []
    with BackgroundWriter(made.append) as add:
        for number in range(100):
            add(number)
    assert made == list(range(100))


def test_whoever_calls_waits_when_too_many_wait() -> None:
    go = threading.Event()
    made: list[int] = []

    def slow(number: int) -> None:
        go.wait(PATIENCE)
        made.append(number)

    with BackgroundWriter(slow) as add:
        for number in range(MAX_WAITING + 1):  # one is under way
            add(number)
        more = threading.Thread(target=add, args=(99,))
        more.start()
        more.join(0.05)
        assert more.is_alive()
        go.set()
        more.join(PATIENCE)
    assert made[-1] == 99


def test_what_a_call_raises_is_raised() -> None:
    made: list[int] = []

    def failing(number: int) -> None:
        made.append(number)
        raise OSError(number)

    def many() -> None:
        with BackgroundWriter(failing) as add:
            for number in range(1, 50):
                add(number)

    def others() -> None:
        with BackgroundWriter(failing) as add:
            add(7)
            raise KeyError

    with pytest.raises(OSError, match="1"):
        many()
    assert made[0] == 1
    assert len(made) <= MAX_WAITING + 2
    with pytest.raises(KeyError):
        others()


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
