"""Sides that do not read: closed TCP windows."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpsniff import Engine
from tests.session.rules.found import of_capture
from tests.session.script import MS, START_NS
from tests.tcp import wire

SAMPLES = Path(__file__).parents[3] / "samples"
HELLO = b"AMQP\0\0\x09\x01"


def closed(packet: wire.Packet) -> wire.Packet:
    """The packet with a window of 0."""
    return packet._replace(octets=packet.octets[:34] + b"\0\0" + packet.octets[36:])


def shut(reader: int, lasted_ms: int, *, probes: bool = True, ends: bool = False) -> list[str]:
    """Codes of what is found when a side's window is closed for a while."""
    talk = wire.Talk(step_ns=MS, start_ns=START_NS)
    talk.hands()
    talk.put(0, HELLO)
    talk.put(reader)
    talk.packets.append(closed(talk.packets.pop()))
    writer = 1 - reader
    talk.now += 400 * MS
    if probes:
        talk.put(writer, at=talk.sent[writer] - 1)
    talk.now = talk.packets[4].ts_ns + lasted_ms * MS
    if ends:
        talk.put(writer, flags=wire.RST | wire.ACK)
    else:
        talk.put(reader)
    engine = Engine()
    for packet in talk.packets:
        engine.feed_packet(packet.octets, packet.ts_ns, packet.link_type)
    engine.finish()
    return [row["code"] for row in engine.take("findings").to_pylist() if "-reading" in row["code"]]


@pytest.mark.parametrize(("reader", "code"), [(0, "client-not-reading"), (1, "broker-not-reading")])
def test_a_window_that_is_closed_for_long(reader: int, code: str) -> None:
    assert shut(reader, 1100) == [code]
    assert shut(reader, 1100, ends=True) == [code]


@pytest.mark.parametrize("reader", [0, 1])
def test_a_window_that_is_soon_open_again_or_for_which_nothing_waits(reader: int) -> None:
    assert shut(reader, 900) == []
    assert shut(reader, 900, ends=True) == []
    assert shut(reader, 5000, probes=False) == []


def test_a_window_that_is_closed_twice() -> None:
    talk = wire.Talk(step_ns=MS, start_ns=START_NS)
    talk.hands()
    talk.put(0, HELLO)
    for lasted_ms in (700, 900):
        talk.packets.append(closed(talk.put(1)))
        del talk.packets[-2]
        talk.now += lasted_ms * MS - 2 * MS
        talk.put(0, b"\x08")
        talk.put(1)
    engine = Engine()
    for packet in talk.packets:
        engine.feed_packet(packet.octets, packet.ts_ns, packet.link_type)
    engine.finish()
    rows = {row["code"]: row for row in engine.take("findings").to_pylist()}
    row = rows["broker-not-reading"]
    assert (row["packet_number"], row["count"]) == (5, 2)
    assert row["detail"] == ("the broker's window was closed for 1.60 s in 2 times, 900 ms at most")


@pytest.mark.parametrize("lost", [{7, 8, 9}, {7, 9, 11}, {7, 9}])
def test_a_window_that_was_opened_in_what_is_missing(lost: set[int]) -> None:
    """The opening, and with it what was sent then, or all that the reader says."""
    talk = wire.Talk(step_ns=MS, start_ns=START_NS)
    talk.hands()
    talk.put(0, HELLO)
    talk.put(1)
    talk.packets.append(closed(talk.packets.pop()))
    talk.put(0, at=talk.sent[0] - 1)
    talk.put(1)
    for pause_ms in (0, 5000):
        talk.now += pause_ms * MS
        talk.put(0, b"\x08\0\0\0\0\0\0\xce")
        talk.put(1)
    engine = Engine()
    for number, packet in enumerate(talk.packets, 1):
        if number not in lost:
            engine.feed_packet(packet.octets, packet.ts_ns, packet.link_type)
    engine.finish()
    assert "broker-not-reading" not in {row["code"] for row in engine.take("findings").to_pylist()}


def test_both_in_a_real_capture() -> None:
    rows = {row["code"]: row for row in of_capture(SAMPLES / "zerowindow.pcap")}
    assert rows["client-not-reading"]["detail"] == "the client's window was closed for 29.8 s"
    assert rows["client-not-reading"]["cause_code"] == "prefetch-unlimited"
    assert rows["broker-not-reading"]["detail"] == "the broker's window was closed for 4.56 s"
