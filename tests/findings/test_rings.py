"""Findings of connections that go on from file to file: a finding names the file of its packet."""

from pathlib import Path

import pytest

import amqpsniff
from tests.archive.splits import packets_of, write_pcap
from tests.conftest import SAMPLES

CAPTURES = Path(__file__).parents[1] / "captures" / "incidents"
NAMES = ["samples/blocked", "samples/pika_mix", "i_dead", "k_poison_mid", "m_rpc", "r_leak"]


@pytest.mark.parametrize("name", NAMES)
def test_a_finding_names_the_file_of_its_packet(name: str, tmp_path: Path) -> None:
    folder = SAMPLES if name.startswith("samples/") else CAPTURES
    path = folder / f"{name.removeprefix('samples/')}.pcap"
    packets = packets_of([path])
    third = len(packets) // 3
    parts = [packets[:third], packets[third : 2 * third], packets[2 * third :]]
    files = [write_pcap(tmp_path / f"{at}.pcap", part) for at, part in enumerate(parts)]
    before = {str(file): at * third for at, file in enumerate(files)}

    columns = ["code", "connection_id", "channel", "capture", "packet_number"]
    whole = amqpsniff.open(path).table("findings").select(columns).to_pylist()
    rows = amqpsniff.open(*files).table("findings").select(columns).to_pylist()
    expected = {tuple(row[name] for name in (*columns[:3], "packet_number")) for row in whole}
    for row in rows:
        if row["packet_number"] is not None:
            number = row["packet_number"] + before[row["capture"]]
            assert (row["code"], row["connection_id"], row["channel"], number) in expected
