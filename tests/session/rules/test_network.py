"""What TCP says: retransmissions, sides that are missing, silence, encryption; small frames."""

from __future__ import annotations

from pathlib import Path

import pytest

import amqpsniff
from tests.cli.running import run, write_capture
from tests.conftest import CAPTURES
from tests.encoder import HEARTBEAT_FRAME, PROTOCOL_HEADERS
from tests.session.rules.damage import packets_in
from tests.session.rules.found import of_capture
from tests.session.rules.telling import one, told, told_of
from tests.session.script import Script
from tests.tcp.wire import ACK, FIN, RST, SYN, Packet, Talk

MS = 1_000_000


def spoken(lines: str, again: int = 0) -> Talk:
    """A script as packets of a talk; the client's last `again` packets are sent twice."""
    talk = Talk(step_ns=MS).hands()
    packets = Script(lines).packets
    for place, packet in enumerate(packets):
        side = 0 if packet.sender == "client" else 1
        at = talk.sent[side]
        talk.put(side, packet.octets)
        if place >= len(packets) - again:
            talk.wait(300 * MS)
            talk.put(side, packet.octets, at=at)
    return talk


PUBLISHES = "handshake\nC1: channel.open\n" + "C1: basic.publish routing_key=q | body=9\n" * 50


def test_packets_sent_again() -> None:
    packets = spoken(PUBLISHES, again=12).packets
    (row,) = told_of(packets, "tcp-retransmissions")
    first = len(packets) - 24 + 2  # each of the last twelve stands before its copy
    assert (row["packet_number"], row["last_packet_number"]) == (first, len(packets))
    assert row["detail"] == "12 of 69 packets of the client (17.4 %) were sent again"
    assert not told_of(spoken(PUBLISHES, again=9).packets, "tcp-retransmissions")
    assert not told_of(spoken(PUBLISHES).packets, "tcp-retransmissions")


@pytest.mark.parametrize("times", [1, 2, 3])
def test_copies_of_packets_are_no_packets_of_their_own(times: int) -> None:
    """Those without payload neither, which the client sends between the publishes here."""
    talk = Talk(step_ns=MS).hands()
    for packet in Script(PUBLISHES).packets:
        side = 0 if packet.sender == "client" else 1
        at = talk.sent[side]
        talk.put(side, packet.octets)
        for _ in range(9):
            talk.put(side)
        if len(talk.packets) > 400:
            talk.wait(300 * MS)
            talk.put(side, packet.octets, at=at)
    numbered = [
        packet._replace(octets=packet.octets[:4] + number.to_bytes(2, "big") + packet.octets[6:])
        for number, packet in enumerate(talk.packets, 1)
    ]
    seen = [packet for packet in numbered for _ in range(times)]
    (row,) = told_of(seen, "tcp-retransmissions")
    assert row["detail"] == "19 of 571 packets of the client (3.3 %) were sent again"


def test_packets_that_were_lost_before_the_capture() -> None:
    """Of what is sent again only the second copy is seen, a round trip after what follows it."""
    packets = spoken(PUBLISHES).packets
    lost = range(len(packets) - 40, len(packets), 4)
    late = [packets[place]._replace(ts_ns=packets[place + 1].ts_ns + 20 * MS) for place in lost]
    kept = [packet for place, packet in enumerate(packets) if place not in lost]
    seen = sorted([*kept, *late], key=lambda packet: packet.ts_ns)
    (row,) = told_of(seen, "tcp-retransmissions")
    assert row["detail"] == "10 of 57 packets of the client (17.5 %) were sent again"


def test_a_broker_that_does_not_read_loses_nothing() -> None:
    text = PUBLISHES.replace(
        "C1: channel.open\n", "C1: channel.open\nS: connection.blocked reason=r\n"
    )
    talk = spoken(
        text + "S: connection.unblocked\n" + "C1: basic.publish | body=1\n" * 12, again=12
    )
    assert not told_of(talk.packets, "tcp-retransmissions")


def test_nor_one_that_did_not_read_when_the_capture_began() -> None:
    """The block's end alone is captured."""
    lines = "C1: basic.publish routing_key=q | body=9\n" * 12
    lines += "S: connection.unblocked\n" + "C1: basic.publish | body=1\n" * 12
    talk = Talk(step_ns=MS)
    for side, octets in ((1, HEARTBEAT_FRAME * 3), (0, HEARTBEAT_FRAME * 3)):
        talk.put(side, octets)
    for packet in Script("midstream\n" + lines).packets:
        side = 0 if packet.sender == "client" else 1
        at = talk.sent[side]
        talk.put(side, packet.octets)
        talk.wait(300 * MS)
        talk.put(side, packet.octets, at=at)
    assert not told_of(talk.packets, "tcp-retransmissions")
    lossy = [packet for packet in talk.packets if b"\0\x0a\0\x3d" not in packet.octets]
    assert told_of(lossy, "tcp-retransmissions")


def test_one_side_only() -> None:
    packets = spoken(PUBLISHES).packets
    client = [packet for packet in packets if packet.octets[12:16] == b"\x0a\0\0\1"]
    (row,) = told_of(client, "capture-inconclusive")
    assert row["detail"] == (
        "no packet from the broker was captured: findings that need the whole connection are left "
        "out"
    )
    assert not told_of(packets, "capture-inconclusive")
    assert not told_of(client, "tcp-gap")


LOGIN = """handshake client='{"product": "p"}'\nC1: channel.open\nS1: channel.open-ok"""


def _translated(isn: int = 0, wait_ns: int = 9_000) -> list[Packet]:
    """A connection, and each packet again with another address of the server."""
    packets = spoken(LOGIN).packets
    if isn:
        other = Talk(step_ns=MS, isn=(isn, 2000)).hands()
        for packet in Script(LOGIN).packets:
            other.put(0 if packet.sender == "client" else 1, packet.octets)
        copies = other.packets
    else:
        copies = packets
    for packet in list(copies):
        octets = packet.octets
        at = 16 if octets[12:16] == b"\n\0\0\1" else 12
        octets = octets[:at] + b"\xac\x11\0\2" + octets[at + 4 :]
        packets.append(packet._replace(octets=octets, ts_ns=packet.ts_ns + wait_ns))
    return sorted(packets, key=lambda packet: packet.ts_ns)


def test_both_sides_of_address_translation() -> None:
    (row,) = told_of(_translated(), "proxy-on-both-sides")
    assert row["detail"] == (
        "10.0.0.1:40000 to 10.0.0.2:5672 and 10.0.0.1:40000 to 172.17.0.2:5672 are one connection, "
        "before and after address translation: client's port, first TCP sequence number and login "
        "are the same"
    )
    assert not told_of(_translated(isn=77), "proxy-on-both-sides")
    assert not told_of(_translated(wait_ns=1001 * MS), "proxy-on-both-sides")


def _at_two_addresses(behind_ns: int, server_ns: int) -> list[Packet]:
    """A proxy with an address on each side; what is behind it comes later by these times."""
    moved = []
    for packet in packets_in(CAPTURES / "cases" / "haproxy_two_sides.pcap.gz"):
        source, target = packet.octets[32:36], packet.octets[36:40]
        wait_ns = 0
        if b"\x0a\x19\x01\x0a" in (source, target):  # 10.25.1.10, the broker
            wait_ns = server_ns if source[3] == 10 else behind_ns
        moved.append(packet._replace(ts_ns=packet.ts_ns + wait_ns))
    return sorted(moved, key=lambda packet: packet.ts_ns)


def test_both_sides_of_a_proxy_with_two_addresses() -> None:
    rows = told_of(_at_two_addresses(0, 0), "proxy-on-both-sides", "publish-repeated")
    assert [row["detail"] for row in rows] == [
        (
            "10.25.1.1:34298 passes on to 10.25.1.10:5672 what 192.168.25.2:35108 sends to "
            "192.168.25.1:5680"
        ),
        (
            "10.25.1.1:34310 passes on to 10.25.1.10:5672 what 192.168.25.2:35124 sends to "
            "192.168.25.1:5680"
        ),
    ]


@pytest.mark.parametrize(("late", "number"), [((0, 0), 2), ((30 * MS, 0), 0)])
def test_answers_say_what_is_counted_twice(
    late: tuple[int, int], number: int, tmp_path: Path
) -> None:
    path = write_capture(tmp_path / "sides.pcap", _at_two_addresses(*late))
    capture = amqpsniff.open(path)
    assert capture.summary()["quality"]["doubled_connections"] == number
    assert capture.diagnose().quality["doubled_connections"] == number
    assert capture.topology()["doubled_connections"] == number
    assert capture.topology(to=1)["doubled_connections"] == number
    said = f"{number} connections captured twice, on both sides of a proxy or NAT"
    assert (said in run("summary", path).out) == (number > 0)
    assert (f"\n{said}: all numbers count them twice\n" in run("topology", path).out) == (
        number > 0
    )


@pytest.mark.parametrize("late", [(MS // 2, MS // 2), (30 * MS, 0)])
def test_programs_that_say_the_same(late: tuple[int, int]) -> None:
    """Of two that start together neither waits for the other's broker."""
    rows = told_of(_at_two_addresses(*late), "proxy-on-both-sides", "publish-repeated")
    assert {row["code"] for row in rows} == {"publish-repeated"}


def test_packets_that_are_too_large_for_the_path() -> None:
    """The broker gets small packets alone; the same at the client, where all were captured."""
    for name, detail in (
        ("mtu_at_broker", "for 29.5 s 26.1 kB that the client had sent did not reach the broker"),
        (
            "mtu_at_client",
            (
                "for 29.5 s the client sent the same bytes again, 7 times, in a packet of 1448 "
                "bytes: it did not reach the broker"
            ),
        ),
    ):
        rows = of_capture(CAPTURES / "cases" / f"{name}.pcap.gz")
        found = {row["code"]: row for row in rows}
        said = f"{detail}, though small packets did, as where the MTU of the path is smaller"
        assert found["path-interrupted"]["detail"].startswith(said)
        assert found["disconnect-unclean"]["cause_code"] == "path-interrupted"
        assert not {"heartbeat-missed", "message-stalled", "tcp-gap"} & set(found)


def test_frames_in_holes() -> None:
    row = one("handshake\nC1: channel.open\nGAP C 100\nC1: basic.qos", "capture-inconclusive")
    assert row["detail"].startswith("frames are missing, in 1 hole of 100 B")


@pytest.mark.parametrize("octets", [b"", b"AMQP", b"GET"])
def test_connections_that_say_nothing(octets: bytes) -> None:
    first, second = (Talk(ports=(port, 5672)).hands() for port in (40000, 40001))
    for talk in (first, second):
        if octets:
            talk.client(octets)
        talk.goodbye()
    (row,) = told_of([*first.packets, *second.packets], "connection-silent")
    assert row["count"] == 2
    assert row["connection_id"]


def test_a_client_that_says_nothing_until_the_server_ends_tcp() -> None:
    talk = Talk().hands()
    talk.wait(10_000_000_000)
    talk.server(flags=RST | ACK)
    (row,) = told_of(talk.packets, "connection-silent")
    assert row["detail"] == (
        "the client connected and said nothing; the server ended TCP after 10.0 s"
    )


ASKED = "hello\nS: connection.start version_minor=9 mechanisms=PLAIN\n"


@pytest.mark.parametrize("end", ["RST C", "FIN C\nFIN S"])
def test_clients_that_leave_without_a_login(end: str) -> None:
    row = one(ASKED + end, "connection-silent")
    assert row["detail"] == (
        "the client sent a protocol header and left 1.00 ms after the broker's connection.start, "
        "which offers the login mechanisms PLAIN"
    )
    assert not told(ASKED + end, "disconnect-unclean")


@pytest.mark.parametrize(
    "text",
    [
        ASKED + "FIN S\nFIN C",
        ASKED + "@+999ms RST C",
        ASKED + "C: connection.start-ok mechanism=PLAIN\nRST C",
        "midstream\nS: connection.start version_minor=9\nRST C",
    ],
)
def test_clients_that_begin_to_log_in_or_wait(text: str) -> None:
    assert not told(text, "connection-silent")


def test_health_checks_do_not_hide_what_failed() -> None:
    rows = of_capture(CAPTURES / "cases" / "haproxy_backend.pcap.gz")
    (row,) = (row for row in rows if row["code"] == "connection-silent")
    assert (row["count"], row["packet_number"]) == (3, 6)
    assert "disconnect-unclean" not in {row["code"] for row in rows}


def test_connections_that_are_refused_elsewhere_or_open() -> None:
    refused = Talk()
    refused.client(flags=SYN)
    refused.server(flags=RST | ACK)
    elsewhere = Talk(ports=(40000, 80)).hands().goodbye()
    still = Talk(ports=(40001, 5672)).hands()
    spoke = Talk(ports=(40002, 5672)).hands()
    spoke.server(b"220 mail")
    spoke.client(flags=FIN | ACK)
    for talk in (refused, elsewhere, still, spoke):
        assert not told_of(talk.packets, "connection-silent")


SMALL = """
    hello
    S: connection.start version_minor=9
    C: connection.start-ok mechanism=PLAIN
    S: connection.tune frame_max=131072
    C: connection.tune-ok frame_max=4096
    C: connection.open
    S: connection.open-ok
    C1: channel.open
    C1: basic.publish | body=SIZE
    C1: channel.close
    S1: channel.close-ok
"""


def test_bodies_in_small_frames() -> None:
    still = SMALL.replace("SIZE", "4089").partition("    C1: channel.close")[0]
    assert one(still, "frame-max-small")["packet_number"] == 8
    row = one(SMALL.replace("SIZE", "4089"), "frame-max-small")
    assert row["detail"] == "frame-max 4096; bodies of 4089 bytes on average in 1 message"
    assert not told(SMALL.replace("SIZE", "4000"), "frame-max-small")
    assert not told(SMALL.replace("SIZE", "60000").replace("=4096", "=131072"), "frame-max-small")


@pytest.mark.parametrize(("side", "others", "told"), [
    ("client", 990, "10 of 1000 packets of the client (1.0 %) were sent again"),
    ("client", 991, ""),
    ("broker", 990, "10 of 1000 packets of the broker (1.0 %) were sent again"),
])  # fmt: skip
def test_one_packet_in_a_hundred(side: str, others: int, told: str) -> None:
    talk = Talk(step_ns=MS).hands()
    sender = 0 if side == "client" else 1
    talk.client(PROTOCOL_HEADERS["0-9-1"])
    for packet in Script("handshake\nC1: channel.open").packets[1:]:
        talk.put(0 if packet.sender == "client" else 1, packet.octets)
    address = bytes((10, 0, 0, 1 + sender))
    begun = sum(packet.octets[12:16] == address for packet in talk.packets)
    for _ in range(others - begun):
        talk.put(sender, HEARTBEAT_FRAME)
    for _ in range(10):
        talk.wait(300 * MS)
        talk.put(sender, HEARTBEAT_FRAME, at=talk.sent[sender] - len(HEARTBEAT_FRAME))
    rows = told_of(talk.packets, "tcp-retransmissions")
    assert [row["detail"] for row in rows] == ([told] if told else [])


def test_the_other_side_only() -> None:
    packets = spoken(PUBLISHES).packets
    server = [packet for packet in packets if packet.octets[12:16] == b"\x0a\0\0\2"]
    (row,) = told_of(server, "capture-inconclusive")
    assert row["detail"].startswith("no packet from the client was captured")


def test_a_broker_that_does_not_read_until_the_end() -> None:
    blocked = "C1: channel.open\nS: connection.blocked reason=r\n"
    talk = spoken(PUBLISHES.replace("C1: channel.open\n", blocked), again=12)
    assert not told_of(talk.packets, "tcp-retransmissions")


def test_what_is_lost_of_a_broker_that_does_not_read() -> None:
    talk = spoken("handshake\nC1: channel.open\nS: connection.blocked reason=r")
    for _ in range(10):
        talk.put(1, HEARTBEAT_FRAME)
        talk.wait(300 * MS)
        talk.put(1, HEARTBEAT_FRAME, at=talk.sent[1] - len(HEARTBEAT_FRAME))
    (row,) = told_of(talk.packets, "tcp-retransmissions")
    assert row["detail"] == "10 of 25 packets of the broker (40.0 %) were sent again"


def test_small_frames_are_said_once_of_a_connection() -> None:
    """Of what is published and delivered, on average, and of the first channel."""
    second = (
        "C2: channel.open\nC2: basic.publish | body=9000\nC2: channel.close\nS2: channel.close-ok"
    )
    row = one(SMALL.replace("SIZE", "9000") + second, "frame-max-small")
    assert (row["count"], row["channel"]) == (1, 1)
    both = "C1: basic.publish | body={}\n    S1: basic.deliver delivery_tag=1 | body={}"
    for sizes, small in (((8000, 177), True), ((8000, 176), False), ((177, 8000), True)):
        text = SMALL.replace("C1: basic.publish | body=SIZE", both.format(*sizes))
        assert bool(told(text, "frame-max-small")) is small
