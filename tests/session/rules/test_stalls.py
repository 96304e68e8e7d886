"""Messages that are begun and not ended."""

from __future__ import annotations

import pytest

from tests.conftest import CAPTURES
from tests.session.rules.found import found, of_capture
from tests.session.rules.telling import told_of
from tests.session.script import MS, START_NS, Script
from tests.tcp import wire

OPEN = """
    handshake
    C1: channel.open
    S1: channel.open-ok
"""


def in_two(size: int, sent: int, pause_ms: int, more: str = "", before: str = "") -> Script:
    """A publish of which `sent` bytes are sent at once, and the others after a pause."""
    script = Script(OPEN + before + f"[publish] C1: basic.publish exchange=e | body={size}")
    whole = script.packets.pop()
    script.packets.append(whole._replace(octets=whole.octets[:sent]))
    script.wait(str(pause_ms))
    rest = whole.octets[sent:]
    script.packets.append(whole._replace(octets=rest, ts_ns=whole.ts_ns + pause_ms * MS))
    return script.add(more)


@pytest.mark.parametrize("sent", [22, 60, 70])
def test_a_message_that_stands_still(sent: int) -> None:
    script = in_two(100, sent, 1100)
    row = found(script, "message-stalled")
    assert row is not None
    assert row["packet_number"] == script.labels["publish"]
    assert row["detail"] == "the message of 100 B to exchange 'e' took 1.10 s"


def test_a_short_pause() -> None:
    assert not found(in_two(100, 60, 1000), "message-stalled")


def test_a_large_body_takes_its_time() -> None:
    assert not found(in_two(120_000, 60, 1500), "message-stalled")
    assert found(in_two(120_000, 60, 3000), "message-stalled")


def test_a_message_that_was_never_whole() -> None:
    script = in_two(100, 60, 10)
    script.packets[-1] = script.packets[-1]._replace(octets=b"")
    script.wait("2000")
    row = found(script.add("S: connection.unblocked"), "message-stalled")
    assert row is not None
    assert "on channel 1 of 100 B to exchange 'e' was not whole after 2.01 s" in row["detail"]


def test_a_capture_that_ends_soon_after() -> None:
    script = in_two(100, 60, 10)
    script.packets[-1] = script.packets[-1]._replace(octets=b"")
    assert not found(script.add("S: connection.unblocked"), "message-stalled")


@pytest.mark.parametrize("channel", ["", "1"])
def test_a_broker_that_wants_no_more(channel: str) -> None:
    script = in_two(100, 40, 10)
    script.packets[-1] = script.packets[-1]._replace(octets=b"")
    method = "channel" if channel else "connection"
    script.add(f"S{channel}: {method}.close reply_code=404\n@+9000ms S: connection.unblocked")
    assert not found(script, "message-stalled")


def test_another_frame_in_between_is_another_fault() -> None:
    script = in_two(100, 40, 10)  # method and header
    script.packets[-1] = script.packets[-1]._replace(octets=b"")
    script.add("C1: basic.publish exchange=e\n@+3000ms S: connection.unblocked")
    assert not found(script, "message-stalled")
    assert found(script, "content-interrupted")


def test_a_body_at_the_pace_of_a_slow_network() -> None:
    """100 kB may take a second more, to the millisecond."""
    assert not found(in_two(100_000, 60, 2000), "message-stalled")
    assert found(in_two(100_000, 60, 2001), "message-stalled")
    assert not found(in_two(100_001, 60, 2000), "message-stalled")


def test_a_message_whose_size_is_not_known() -> None:
    script = in_two(100, 20, 10)  # a method without its header
    script.packets[-1] = script.packets[-1]._replace(octets=b"")
    script.wait("2000")
    row = found(script.add("S: connection.unblocked"), "message-stalled")
    assert row is not None
    assert "on channel 1 of exchange 'e' was not whole after" in row["detail"]


@pytest.mark.parametrize("octets", [None, b""])
@pytest.mark.parametrize(
    "before",
    [
        "S: connection.blocked reason=r\n",
        "S: connection.blocked reason=r\nS: connection.unblocked\n",
        "GAP S 30\n",
    ],
)
def test_a_broker_that_did_not_read_or_a_capture_that_lost_something(
    before: str, octets: bytes | None
) -> None:
    script = in_two(100, 60, 1100, before=before)
    if octets is not None:  # it was never whole
        script.packets[-1] = script.packets[-1]._replace(octets=octets)
    assert not found(script.add("@+2000ms S: connection.unblocked"), "message-stalled")


@pytest.mark.parametrize(("channels", "told"), [(16, 16), (18, 16)])
def test_messages_that_stand_still_at_once(channels: int, told: int) -> None:
    script = Script("handshake")
    for number in range(1, channels + 1):
        script.add(f"C{number}: channel.open\nS{number}: channel.open-ok")
        whole = script.add(f"C{number}: basic.publish | body=9").packets[-1]
        script.packets[-1] = whole._replace(octets=whole.octets[:-17])  # no body
    script.add("@+2000ms S: connection.unblocked")
    row = found(script, "message-stalled")
    assert row is not None
    assert row["count"] == told


@pytest.mark.parametrize("shut", [False, True])
def test_a_broker_that_does_not_read(shut: bool) -> None:
    """Its window is closed while the client has something to send."""
    talk = wire.Talk(step_ns=0, start_ns=START_NS).hands()
    *before, whole = Script(OPEN + "C1: basic.publish exchange=e | body=100").packets
    for packet in before:
        talk.put(0 if packet.sender == "client" else 1, packet.octets)
    talk.client(whole.octets[:60])
    talk.put(1)
    if shut:
        closed = talk.packets.pop()
        octets = closed.octets[:34] + b"\0\0" + closed.octets[36:]
        talk.packets.append(closed._replace(octets=octets))
        talk.wait(200 * MS)
        talk.put(0, at=talk.sent[0] - 1)
    talk.wait(2000 * MS)
    talk.put(1)
    talk.client(whole.octets[60:])
    assert bool(told_of(talk.packets, "message-stalled")) is not shut


def test_a_publish_that_was_not_whole_at_the_end_of_tcp() -> None:
    path = CAPTURES / "cases" / "publish_incomplete.pcap.gz"
    (row,) = [one for one in of_capture(path) if one["code"] == "publish-incomplete"]
    assert row["packet_number"] == 18
    assert row["detail"].startswith("40.0 kB of the message of 100 kB to the default exchange")


@pytest.mark.parametrize(("end", "shown"), [("FIN C", True), ("RST S", True), ("", False)])
def test_how_tcp_ended_decides(end: str, shown: bool) -> None:
    script = Script(OPEN + "[publish] C1: basic.publish exchange=e | body=100")
    whole = script.packets.pop()
    script.packets.append(whole._replace(octets=whole.octets[:60]))
    row = found(script.add(end), "publish-incomplete")
    assert (row is not None) is shown
    assert row is None or row["packet_number"] == script.labels["publish"]


@pytest.mark.parametrize("end", ["FIN C", "RST S"])
def test_a_whole_publish_at_the_end_of_tcp(end: str) -> None:
    text = OPEN + "C1: basic.publish exchange=e | body=100\n" + end
    assert not found(text, "publish-incomplete")
