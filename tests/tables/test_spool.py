"""Rows that wait until all were made: the same, in memory or in a file, and gone afterwards."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from amqpsniff.tables import spool


def made(log: list[str]) -> Iterator[pa.RecordBatch]:
    """Encoded batches, each with words of its own; `log` says how far their maker is."""
    for number in range(5):
        log.append("made")
        words = pa.array([f"{number}-{row % 3}" for row in range(100)]).dictionary_encode()
        yield pa.record_batch({"word": words, "row": pa.array(range(100))})
    log.append("done")


@pytest.mark.parametrize("most", [1, 1 << 20])
def test_the_same_batches_come_when_all_were_made(tmp_path: Path, most: int) -> None:
    log: list[str] = []
    batches = spool.spooled(made(log), str(tmp_path), in_memory=most)
    first = next(batches)
    assert log == ["made"] * 5 + ["done"]
    given = [first, *batches]
    assert [one.to_pydict() for one in given] == [one.to_pydict() for one in made([])]
    assert pa.types.is_dictionary(given[-1].schema.field("word").type)
    assert list(tmp_path.iterdir()) == []


def test_the_maker_is_gone_when_the_first_batch_comes(tmp_path: Path) -> None:
    """That is what rows wait for, also where it is part of a cycle."""

    class Maker:
        alive = 0

        def __init__(self) -> None:
            self.itself = self
            Maker.alive += 1

        def __del__(self) -> None:
            Maker.alive -= 1

        def batches(self) -> Iterator[pa.RecordBatch]:
            yield from made([])

    batches = spool.spooled(Maker().batches(), str(tmp_path))
    assert Maker.alive == 1
    next(batches)
    assert Maker.alive == 0


def test_nothing_comes_of_nothing(tmp_path: Path) -> None:
    assert list(spool.spooled(iter(()), str(tmp_path))) == []
