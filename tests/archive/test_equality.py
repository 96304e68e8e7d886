"""Tasks of a plan give the rows that one engine gives, however an archive is cut."""

import random
from pathlib import Path

import pytest

from .splits import TABLES, by_one_engine, by_tasks, deal, packets_of

NAMES = ["pika_mix", "php_churn", "node", "aiopika_rpc", "blocked", "lost", "midstream", "snapped"]


@pytest.mark.parametrize("name", NAMES)
def test_rows_do_not_depend_on_the_cuts(samples: Path, tmp_path: Path, name: str) -> None:
    packets = packets_of([samples / f"{name}.pcap"])
    for turn in range(4):
        folder = tmp_path / str(turn)
        folder.mkdir()
        paths = deal(packets, folder, random.Random(f"{name}{turn}"))
        alone = by_one_engine(paths)
        together = by_tasks(paths, task_octets=20_000, max_reads=4)
        for table in TABLES:
            assert together[table] == alone[table], (turn, table)
