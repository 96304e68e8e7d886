"""Findings of connections that go on from file to file: a finding names the file of its packet."""

from pathlib import Path

import pytest

import amqpsniff
from amqpsniff.archive import Batch
from tests.archive.splits import packets_of, write_pcap
from tests.archive.tables import written
from tests.conftest import SAMPLES

CAPTURES = Path(__file__).parents[1] / "captures"
INCIDENTS = ["ab_after", "d_unroutable", "i_dead", "k_poison_mid", "m_rpc", "r_leak"]
PATHS = [
    *(SAMPLES / f"{name}.pcap" for name in ("blocked", "pika_mix")),
    *(CAPTURES / "incidents" / f"{name}.pcap" for name in INCIDENTS),
    CAPTURES / "own/rabbitmq43_changes.pcap",
    CAPTURES / "amqp10/erlang_shovel.pcap",
]


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_finding_names_the_file_of_its_packet(path: Path, count: int, tmp_path: Path) -> None:
    packets = packets_of([path])
    size = -(-len(packets) // count)
    parts = [packets[at : at + size] for at in range(0, len(packets), size)]
    files = [write_pcap(tmp_path / f"{at}.pcap", part) for at, part in enumerate(parts)]
    before = {str(file): at * size for at, file in enumerate(files)}

    columns = ["code", "connection_id", "channel", "capture", "packet_number"]
    whole = amqpsniff.open(path).table("findings").select(columns).to_pylist()
    rows = amqpsniff.open(*files).table("findings").select(columns).to_pylist()
    output = tmp_path / "tables"
    Batch([str(file) for file in files], str(output), tables=["findings"]).run()
    rows += written(output, "findings").select(columns).to_pylist()
    expected = {tuple(row[name] for name in (*columns[:3], "packet_number")) for row in whole}
    for row in rows:
        if row["packet_number"] is not None:
            number = row["packet_number"] + before[row["capture"]]
            assert (row["code"], row["connection_id"], row["channel"], number) in expected
