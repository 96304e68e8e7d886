"""What a task leaves: files by day, however many days its rows are of."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amqpsniff.archive import Batch, task_io
from amqpsniff.archive.filesystem import Folder
from amqpsniff.archive.task_io import TaskResult
from amqpsniff.limits import Limits
from amqpsniff.options import Options

from .splits import by_one_engine, packets_of, write_pcap
from .tables import files_there, manifest, written_rows

DAY_NS = 86_400_000_000_000

DAYS = 150
"""In which packets of a capture lie, over and over."""


@pytest.mark.parametrize("links", [False, True])
def test_a_task_holds_few_files_open(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    packets = packets_of([samples / "node.pcap"])
    capture = write_pcap(
        tmp_path / "days.pcap",
        [one._replace(ts_ns=one.ts_ns + at // 4 % DAYS * DAY_NS) for at, one in enumerate(packets)],
    )
    held: list[int] = [0]
    most: list[int] = []
    create = Folder.create

    @contextlib.contextmanager
    def counted(folder: Folder, name: str) -> Iterator[Any]:
        held[0] += 1
        most.append(held[0])
        with create(folder, name) as file:
            yield file
        held[0] -= 1

    monkeypatch.setattr(Folder, "create", counted)
    tables = tmp_path / "tables"
    options = Options(limits=Limits(rows_per_batch=50))
    Batch([str(capture)], str(tables), options, links=links).run()
    assert max(most) <= task_io.MAX_OPEN + 4  # sightings, links, the note
    alone = by_one_engine([capture], links=links)
    for table, rows in alone.items():
        assert written_rows(tables, table) == rows
    names = manifest(tables)["tables"]
    assert files_there(tables) == {name for some in names.values() for name in some}
    days = {name.split("/")[1] for name in names["frames"]}
    assert len(days) == DAYS


def test_a_full_disk_at_the_end_of_a_file_leaves_nothing(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyarrow import parquet

    whole = parquet.ParquetWriter.close

    def close(writer: Any) -> None:
        whole(writer)
        raise OSError("No space left on device")

    task = Batch([str(samples / "pika_mix.pcap")], str(tmp_path), tables=["findings"])
    task.look(100)
    monkeypatch.setattr(parquet.ParquetWriter, "close", close)
    with pytest.raises(OSError, match="No space") as raised:
        task.run()
    assert raised.value.__traceback__  # it holds all that was under way
    assert not list(tmp_path.rglob("*.part"))


def test_a_damaged_result_counts_for_nothing(samples: Path, tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    given = ([str(samples / "node.pcap")], str(tables))
    Batch(*given).run()
    (path,) = tables.glob("_work/tasks/*.result")
    whole = path.read_bytes()
    read = TaskResult.from_bytes(whole)
    assert read.found
    again = TaskResult.from_bytes(read.to_bytes())
    assert (again.found, again.rows, again.files) == (read.found, read.rows, read.files)
    for end in (0, 5, len(whole) // 2, len(whole) - 1):
        with pytest.raises(ValueError, match="not what an archive has written"):
            TaskResult.from_bytes(whole[:end])
    at = len(whole) - 40
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    assert Batch(*given).run().done_before == 0
    assert Batch(*given).run().done_before == 1
