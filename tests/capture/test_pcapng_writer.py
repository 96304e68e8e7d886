"""What is written as pcapng is what a reader finds, ours and others'."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path

import pytest

from amqpsniff.capture import open_capture
from amqpsniff.capture.packets import NO_TIME
from amqpsniff.capture.pcapng_interface import InterfaceStatistics
from amqpsniff.capture.pcapng_writer import Interfaces, PcapngWriter
from amqpsniff.sanitize.run import safe_options
from tests.capture import build


def written(folder: Path) -> Path:
    """Two interfaces, packets with and without a time, a record that is none, statistics."""
    path = folder / "written.pcapng"
    with path.open("wb") as file:
        writer = PcapngWriter(file)
        first, second = writer.interface(1, 0), writer.interface(113, 68, "eth0")
        writer.packet(first, 1_700_000_000_123_456_789, b"a" * 60, 60)
        writer.packet(second, 5, b"b" * 68, 1500)
        writer.packet(first, NO_TIME, b"c" * 61, 61)
        writer.packet(first, NO_TIME, b"d" * 61, 62)
        writer.packet(second, NO_TIME, b"e" * 61, 61)
        writer.record()
        writer.packet(second, -5, b"", 0)
        writer.statistics(second, InterfaceStatistics("eth0", 10, 3, None))
        assert writer.octets == file.tell()
    return path


def test_rows(tmp_path: Path) -> None:
    capture = open_capture(written(tmp_path))
    assert build.rows(capture) == [
        (1, 1_700_000_000_123_456_789, b"a" * 60, 60, 1),
        (2, 5, b"b" * 68, 1500, 113),
        (3, NO_TIME, b"c" * 61, 61, 1),
        (4, NO_TIME, b"d" * 61, 62, 1),
        (5, NO_TIME, b"e" * 61, 61, 113),
        (7, 0, b"", 0, 113),
    ]
    _, finding = capture.findings  # the first says that times step back
    assert finding.code == "interface-dropped"
    assert finding.detail == (
        "eth0: 3 packets dropped by the interface, 0 by the operating system, 10 received"
    )
    (section,) = capture.sections
    assert [each.name for each in section.interfaces] == ["interface 0", "eth0"]


@pytest.mark.tshark
@pytest.mark.skipif(shutil.which("tshark") is None, reason="no tshark")
def test_tshark_reads_it(tmp_path: Path) -> None:
    fields = ("frame.number", "frame.interface_id", "frame.cap_len", "frame.len")
    command = ["tshark", "-n", "-r", str(written(tmp_path)), "-T", "fields"]
    done = subprocess.run(
        [*command, *(word for field in fields for word in ("-e", field))],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert [line for line in lines if line[1] and line[0] != "6"] == [  # tshark 4.6: "6", "1"
        ["1", "0", "60", "60"], ["2", "1", "68", "1500"], ["3", "0", "61", "61"],
        ["4", "0", "61", "62"], ["5", "1", "61", "61"], ["7", "1", "0", "0"],
    ]  # fmt: skip
    assert len(lines) == 7


def sections(order: str) -> bytes:
    """Two sections, the second with interfaces described after its first packet."""
    return (
        build.section(order)
        + build.interface(order, (2, b"eth0"))
        + build.enhanced(order, 1, b"x" * 60)
        + build.section(order)
        + build.interface(order, (2, b"wg-secret-place"))
        + build.enhanced(order, 2, b"y" * 60)
        + build.interface(order, (2, b"any"), link=113)
        + build.enhanced(order, 3, b"z" * 60, index=1)
    )


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("block_bytes", [64, 1 << 20])
def test_interfaces_of_sections(order: str, block_bytes: int, tmp_path: Path) -> None:
    path = tmp_path / "sections.pcapng"
    path.write_bytes(sections(order))
    sink = io.BytesIO()
    interfaces = Interfaces(PcapngWriter(sink), safe_options)
    numbers = []
    with open_capture(path, block_bytes=block_bytes) as capture:
        for batch in capture:
            interfaces.look(capture)
            numbers += [
                interfaces.number(capture, batch, row) for row in range(batch.begin, batch.end)
            ]
        interfaces.look(capture)
    interfaces.finish()
    assert numbers == [0, 1, 2]
    assert b"eth0" in sink.getvalue()
    assert b"any" in sink.getvalue()
    assert b"secret" not in sink.getvalue()
