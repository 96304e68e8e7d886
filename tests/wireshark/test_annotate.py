"""`amqpsniff annotate` writes what was found out into packet comments, and changes nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import amqpsniff
from amqpsniff.capture import open_capture
from amqpsniff.errors import UsageError
from tests.capture import build
from tests.cli.running import run
from tests.conftest import REPO, SAMPLES

PIKA = SAMPLES / "pika_mix.pcap"
CAPTURES = REPO / "tests" / "captures"


def comments(path: Path) -> dict[int, list[str]]:
    """The comments of packets, read by us."""
    found: dict[int, list[str]] = {}
    with open_capture(path) as capture:
        for batch in capture:
            (section,) = capture.sections
            for row in range(batch.begin, batch.end):
                place = batch.octets, batch.start[row], batch.captured[row]
                texts = [value.decode() for code, value in section.packet_options(*place)]
                if texts:
                    found[batch.number[row]] = texts
    return found


def test_what_comments_say(tmp_path: Path) -> None:
    told = tmp_path / "told.pcapng"
    code, out, err = run("annotate", PIKA, "-o", told)
    assert (code, out) == (0, "")
    assert err == f"amqpsniff: 568 packets, 315 with comments, 178 kB, in {told}\n"
    assert build.rows(open_capture(told)) == build.rows(open_capture(PIKA))
    said = comments(told)
    assert said[42][-1] == (
        "basic.publish orders order.new.eu message m0: confirmed in packet 46 after 3.85 ms"
    )
    assert said[46] == ["confirmed: what was sent in packet 42"]
    assert said[40] == ["confirm.select: answered in packet 41 after 66.0 µs"]
    for finding in amqpsniff.open(PIKA).findings():
        texts = said[finding.packet_number]
        (text,) = (one for one in texts if one.startswith(f"{finding.severity} {finding.code}: "))
        assert finding.title in text
    delivery = next(
        row for row in amqpsniff.open(PIKA).messages() if row.published_packet_number == 42
    )
    assert "published in packet 42" in " ".join(said[delivery.packet_number])
    assert "s3cret" not in str(said)


def test_many_messages_that_one_packet_settles(tmp_path: Path) -> None:
    path, told = CAPTURES / "incidents" / "b_block_mid.pcap", tmp_path / "told.pcapng"
    amqpsniff.open(path).annotate(told)
    texts = [text for texts in comments(told).values() for text in texts]
    assert any(text.startswith("acked: ") and text.count(",") == 4 for text in texts)
    assert any(text.startswith("acked: ") and text.endswith(" more") for text in texts)
    assert max(map(len, comments(told).values())) <= 21


def test_deliveries_of_amqp10(tmp_path: Path) -> None:
    """A queue stands in the place of a route; messages of one packet are counted."""
    told = tmp_path / "told.pcapng"
    amqpsniff.open(CAPTURES / "amqp10" / "rabbit_outcomes.pcap").annotate(told)
    texts = [text for texts in comments(told).values() for text in texts]
    assert any(text.startswith("receive orders message m-orders-64: acked") for text in texts)
    assert any(re.search(r"^confirmed: .* packet \d+ \(\d+ messages\)$", text) for text in texts)
    assert not any(text.startswith("receive (default)") for text in texts)


def test_numbers_stay_where_records_are_no_packets(tmp_path: Path) -> None:
    path, told = tmp_path / "gaps.pcapng", tmp_path / "told.pcapng"
    custom = build.block(0xBAD, bytes(4))
    octets = [packet for _, _, packet, *_ in build.rows(open_capture(SAMPLES / "bunny.pcapng"))]
    made = [build.enhanced("<", 10**15 + at, one) + custom for at, one in enumerate(octets)]
    path.write_bytes(build.section() + build.interface("<") + b"".join(made))
    amqpsniff.open(path).annotate(told)
    assert build.rows(open_capture(told)) == build.rows(open_capture(path))


@pytest.mark.tshark
@pytest.mark.skipif(shutil.which("tshark") is None, reason="no tshark")
def test_tshark_shows_them(tmp_path: Path) -> None:
    told = tmp_path / "told.pcapng"
    amqpsniff.open(PIKA).annotate(told)
    done = subprocess.run(
        ["tshark", "-r", told, "-Y", "frame.comment", "-T", "fields", "-E", "separator=/t",
         "-E", "aggregator=|", "-e", "frame.number", "-e", "frame.comment"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    shown = dict(line.split("\t") for line in done.stdout.splitlines())
    assert shown == {str(number): "|".join(texts) for number, texts in comments(told).items()}


def test_what_cannot_be(tmp_path: Path) -> None:
    two = amqpsniff.open(PIKA, SAMPLES / "bunny.pcapng")
    with pytest.raises(UsageError, match="one capture"):
        two.annotate(tmp_path / "told.pcapng")
    assert run("annotate", "-", "-o", tmp_path / "told.pcapng").code == 2
