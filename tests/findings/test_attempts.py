"""Connections that are refused or not answered: one finding for a client host and a server."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import ICMPv6DestUnreach, IPv6

from amqpsniff import Engine
from amqpsniff.findings.attempts import MAX_PAIRS, Attempts
from tests.archive.splits import Packet as Captured
from tests.archive.splits import by_one_engine, by_tasks, deal, packets_of
from tests.conftest import REPO
from tests.tcp import wire
from tests.tcp.wire import ACK, RST, SYN, Packet, tcp

INCIDENTS = REPO / "tests" / "captures" / "incidents"
CODES = ("connect-refused", "connect-unanswered")
SECOND = 1_000_000_000
CLIENT, OTHER, SERVER = b"\x0a\0\0\1", b"\x0a\0\0\3", b"\x0a\0\0\2"
IPV6_LINK = 229
TLS = b"\x16\x03\x01\x00\x01\x01"
HELLO = b"AMQP\0\0\x09\x01"


def attempt(
    at: float, answer: int | None = RST | ACK, ports: tuple[int, int] = (40000, 5672),
    client: bytes = CLIENT, isn: int = 1000, times: int = 1, server: bytes = SERVER,
) -> list[Packet]:  # fmt: skip
    """A SYN, sent `times` times a second apart, and an answer to each."""
    now = wire.START_NS + int(at * SECOND)
    packets = []
    for again in range(times):
        then = now + again * SECOND
        packets.append(Packet(tcp(isn, b"", SYN, 0, ports, (client, server)), then))
        if answer is not None:
            seq = 9000 if answer & SYN else 0
            octets = tcp(seq, b"", answer, isn + 1, ports[::-1], (server, client))
            packets.append(Packet(octets, then + 1000))
    return packets


def connected(
    at: float, port: int = 5672, source: int = 50000, octets: bytes = HELLO, answer: bytes = HELLO
) -> list[Packet]:
    """A connection on which both sides say something."""
    talk = wire.Talk(ports=(source, port), start_ns=wire.START_NS + int(at * SECOND)).hands()
    talk.client(octets)
    talk.server(answer)
    return talk.goodbye().packets


def found(
    packets: Iterable[Packet], codes: tuple[str, ...] = CODES, **options: Any
) -> list[dict[str, Any]]:
    engine = Engine(**options)
    for packet in sorted(packets, key=lambda one: one.ts_ns):
        engine.feed_packet(packet.octets, packet.ts_ns, packet.link_type)
    engine.finish()
    rows = engine.take("findings").to_pylist()
    return [row for row in rows if row["code"] in codes]


def details(packets: Iterable[Packet], **options: Any) -> list[str]:
    return [row["detail"] for row in found(packets, **options)]


def test_what_is_refused_again_and_again_is_one_finding() -> None:
    packets = [one for n in range(5) for one in attempt(n, ports=(40000 + n, 5672))]
    (row,) = found(packets)
    assert row["detail"] == (
        "10.0.0.1 was refused by 10.0.0.2:5672 5 times in 4.00 s; "
        "nobody connected to it in that time"
    )
    assert (row["severity"], row["count"]) == ("error", 5)
    assert (row["packet_number"], row["last_packet_number"]) == (1, 10)
    assert (row["client"], row["server"]) == ("10.0.0.1:40000", "10.0.0.2:5672")
    assert row["ts_ns"] == wire.START_NS
    assert details(attempt(0)) == ["10.0.0.1 was refused by 10.0.0.2:5672 once"]


def test_others_could_connect() -> None:
    packets = attempt(0) + attempt(4, ports=(40001, 5672))
    between = details([*packets, *connected(2)])
    assert between == ["10.0.0.1 was refused by 10.0.0.2:5672 2 times in 4.00 s"]
    before = details([*packets, *connected(-2)])
    assert before[0].endswith("nobody connected to it in that time")


def test_a_server_whose_process_ended() -> None:
    packets = attempt(0) + attempt(4, ports=(40001, 5672))
    lives = wire.Talk(ports=(50000, 5672), start_ns=wire.START_NS - SECOND // 2).hands()
    lives.client(HELLO)
    lives.server(HELLO)
    packets += connected(9, source=50001)
    near = details([*packets, *lives.packets])
    lives.now = wire.START_NS - SECOND // 4
    lives.server(flags=RST | ACK)
    shown = details([*packets, *lives.packets])
    assert "had ended" not in near[0]
    assert shown[0].endswith(
        " in 4.00 s, 250 ms after it had ended 1 connection; nobody connected to it in that time; "
        "it took the next one 5.00 s after"
    )


def test_a_server_that_ended_several_connections_at_once() -> None:
    """Their clients wait before they connect again, and nobody else connects meanwhile."""
    packets, ended = attempt(4), []
    for source in (50000, 50002):
        lives = wire.Talk(ports=(source, 5672), start_ns=wire.START_NS).hands()
        lives.client(HELLO)
        lives.server(HELLO)
        lives.now = wire.START_NS + 2 * SECOND
        lives.server(flags=RST | ACK)
        ended += lives.packets
    said = ", 2.00 s after it had ended 2 connections"
    assert said in details([*ended, *packets])[0].partition(";")[0]
    assert "had ended" not in details([*ended, *packets, *connected(3, source=50003)])[0]


def _stopped(*sources: int) -> list[Packet]:
    """Connections that the server ends, each a second after it began and 10 ms after the last."""
    ended = []
    for place, source in enumerate(sources):
        lives = wire.Talk(ports=(source, 5672), start_ns=wire.START_NS).hands()
        lives.client(HELLO)
        lives.server(HELLO)
        lives.now = wire.START_NS + SECOND + 10_000_000 * place
        lives.server(flags=RST | ACK)
        ended += lives.packets
    return ended


def test_a_broker_that_was_stopped() -> None:
    """It brought about the ends of its connections and the refusals; nobody may connect between."""
    packets = [*attempt(4), *attempt(5, client=OTHER)]
    codes = ("broker-stopped", "disconnect-unclean", "connect-refused")
    stopped, *others = found([*_stopped(50000, 50002), *packets], codes=codes)
    assert stopped["detail"] == (
        "10.0.0.2:5672 ended 2 connections in 10.0 ms and refused the next attempts, 2 times, the "
        "first 3.00 s after; it took no other connection in the capture"
    )
    assert (stopped["client"], stopped["server"]) == (None, "10.0.0.2:5672")
    assert {row["cause_code"] for row in others} <= {"broker-stopped", "disconnect-unclean"}
    assert len(others) == 2
    (back,) = found(
        [*_stopped(50000, 50002), *packets, *connected(9, source=50009)], codes=codes[:1]
    )
    assert back["detail"].endswith("; it took the next connection 8.00 s after")
    assert not found([*_stopped(50000), *packets], codes=codes[:1])
    assert not found(
        [*_stopped(50000, 50002), *packets, *connected(3, source=50009)], codes=codes[:1]
    )
    assert not found([*_stopped(50000, 50002), *attempt(12)], codes=codes[:1])


def test_what_is_not_answered() -> None:
    (row,) = found(attempt(0, None, times=4))
    assert row["code"] == "connect-unanswered"
    assert row["detail"] == (
        "10.0.0.1 sent 4 SYN packets to 10.0.0.2:5672 in 3.00 s, without an answer; "
        "nobody connected to it in that time"
    )
    rejected = attempt(0, None) + attempt(1, None, (40001, 5672))  # by ICMP: no SYN comes again
    assert [row["count"] for row in found(rejected)] == [2]
    assert not found(attempt(0, None))  # the answer may come after the capture
    assert not found(attempt(0, SYN | ACK, times=4))


def test_lost_refusals() -> None:
    """Where others were refused, a SYN that came once was too: the capture has lost the RST."""
    refused = attempt(0) + attempt(4, ports=(40001, 5672))
    lost = attempt(1, None, (40002, 5672)) + attempt(3, None, (40003, 5672))
    assert [row["code"] for row in found(refused + lost)] == ["connect-refused"]
    again = attempt(2, None, (40004, 5672), times=2)
    rows = found(refused + lost + again)
    assert [row["code"] for row in rows] == ["connect-refused", "connect-unanswered"]


@pytest.mark.parametrize("times", [1, 2])
def test_answers_of_a_server_that_was_not_captured(times: int) -> None:
    """Its packets are missing everywhere: a SYN that came once may have been refused."""
    talk = wire.Talk(ports=(50000, 5672), start_ns=wire.START_NS).hands()
    talk.client(HELLO)
    heard = [packet for packet in talk.goodbye().packets if packet.octets[12:16] == CLIENT]
    assert 0 < len(heard) < len(talk.packets)
    again = attempt(1, None, times=times) + attempt(3, None, (40001, 5672), times=times)
    codes = ["connect-unanswered"]
    assert [row["code"] for row in found(heard + again)] == codes * (times > 1)
    assert [row["code"] for row in found(talk.packets + again)] == codes


def unreachable(
    at: float, code: int, ports: tuple[int, int] = (40000, 5672), kind: int = 3, cut: int = 28,
    isn: int = 1000, fragment: int = 0,
) -> list[Packet]:  # fmt: skip
    """A SYN, and ICMP that quotes so much of it."""
    (syn,) = attempt(at, None, ports)
    quoted = bytearray(tcp(isn, b"", SYN, 0, ports, (CLIENT, SERVER)))
    quoted[6:8] = fragment.to_bytes(2, "big")
    payload = bytes([kind, code]) + bytes(6) + quoted[:cut]
    header = b"\x45\0" + (20 + len(payload)).to_bytes(2, "big") + bytes(5) + b"\1\0\0"
    icmp = header + b"\x0a\0\0\x09" + CLIENT + payload
    return [syn, Packet(icmp, syn.ts_ns + 1000)]


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (0, ("connect-unanswered", "network unreachable")),
        (1, ("connect-unanswered", "host unreachable")),
        (3, ("connect-refused", "port unreachable")),
        (13, ("connect-refused", "administratively prohibited")),
    ],
)
def test_what_icmp_says(code: int, told: tuple[str, str]) -> None:
    (row,) = found(unreachable(0, code))
    assert (row["code"], row["detail"].rpartition("; ICMP said: ")[2]) == told
    again = unreachable(0, code) + unreachable(2, 1, (40001, 5672))
    assert {one["code"] for one in found(again)} == {told[0], "connect-unanswered"}


@pytest.mark.parametrize(("code", "told"), [(3, "address unreachable"), (4, "port unreachable")])
def test_what_icmp_says_in_ipv6(code: int, told: str) -> None:
    syn = IPv6(src="2001:db8::1", dst="2001:db8::2") / TCP(sport=40000, dport=5672, flags="S")
    answer = IPv6(src="2001:db8::9", dst="2001:db8::1") / ICMPv6DestUnreach(code=code) / syn
    packets = [Packet(bytes(one), wire.START_NS + n) for n, one in enumerate((syn, answer))]
    (detail,) = details(one._replace(link_type=IPV6_LINK) for one in packets)
    assert detail.endswith(f"ICMP said: {told}")


@pytest.mark.parametrize(
    "other", [{"kind": 11}, {"code": 4}, {"cut": 27}, {"isn": 1001}, {"fragment": 1}]
)
def test_what_icmp_does_not_say(other: dict[str, int]) -> None:
    """Another type, a packet too large, too little quoted, another SYN, a fragment."""
    assert not found(unreachable(0, **{"code": 3} | other))


def test_icmp_about_a_connection() -> None:
    """Packets of one that is established were lost, which TCP knows to mend."""
    talk = wire.Talk().hands()
    assert not found([*talk.packets, *unreachable(1, 1)[1:]])


def localhost(at: float, source: int, answer: str, host: str = "::1") -> list[Packet]:
    """A SYN to an address of localhost, and the answer; an established connection says hello."""
    kind = IP if "." in host else IPv6
    link = 228 if kind is IP else IPV6_LINK
    there = kind(src=host, dst=host) / TCP(sport=source, dport=5672, flags="S", seq=1)
    back = kind(src=host, dst=host) / TCP(sport=5672, dport=source, flags=answer, seq=9, ack=2)
    hello = kind(src=host, dst=host) / TCP(sport=source, dport=5672, flags="PA", seq=2, ack=10)
    talk = [there, back] if answer == "RA" else [there, back, hello / HELLO]
    now = wire.START_NS + int(at * SECOND)
    return [Packet(bytes(one), now + n * 1000, link_type=link) for n, one in enumerate(talk)]


def test_localhost_has_two_addresses(tmp_path: Path) -> None:
    """Who is refused at ::1 and then connects to 127.0.0.1 has no fault."""
    first = localhost(0, 40000, "RA") + localhost(0.002, 40001, "SA", "127.0.0.1")
    again = localhost(3, 40002, "RA") + localhost(3.002, 40003, "SA", "127.0.0.1")
    assert not found(first + again)
    alone = localhost(6, 40004, "RA")
    (detail,) = details(first + again + alone)
    assert detail.startswith("[::1] was refused by [::1]:5672 3 times in 6.00 s")
    late = localhost(7.001, 40005, "SA", "127.0.0.1")
    assert len(found(alone + late)) == 1
    assert len(found(localhost(0, 40000, "RA", "127.0.0.1") + localhost(0.002, 40001, "SA"))) == 1
    chance = random.Random(1)
    for packets in (first + again, first + again + alone):
        folder = tmp_path / str(len(packets))
        folder.mkdir()
        paths = deal(captured(packets), folder, chance)
        rows = by_one_engine(paths, ("findings",))
        assert by_tasks(paths, ("findings",), task_bytes=200, max_reads=4) == rows


def test_a_storm() -> None:
    packets = [one for n in range(30) for one in attempt(n / 10, ports=(40000 + n, 5672))]
    (detail,) = details(packets)
    assert detail.endswith("in 2.90 s; nobody connected to it in that time; 10 attempts a second")


def test_each_client_and_server_has_its_own() -> None:
    packets = attempt(0) + attempt(0, client=OTHER) + attempt(0, server=OTHER)
    assert sorted((row["client"], row["server"]) for row in found(packets)) == [
        ("10.0.0.1:40000", "10.0.0.2:5672"),
        ("10.0.0.1:40000", "10.0.0.3:5672"),
        ("10.0.0.3:40000", "10.0.0.2:5672"),
    ]


def test_which_ports_matter() -> None:
    """Those of brokers, those asked for, those with AMQP; without any AMQP all of them."""
    web = attempt(0, ports=(40000, 8080))
    assert len(found(web)) == 1
    assert (
        len(
            found(
                [
                    *web,
                    *connected(
                        1, 80, octets=b"GET / HTTP/1.1\r\n\r\n", answer=b"HTTP/1.1 200 OK\r\n"
                    ),
                ]
            )
        )
        == 1
    )
    assert not found([*web, *connected(1)])
    assert not found([*web, *connected(1, octets=TLS, answer=TLS)])  # sealed, on 5672
    assert len(found(attempt(0, ports=(40000, 5671)) + connected(1))) == 1
    assert len(found(attempt(0, ports=(40000, 7777)) + connected(1, 7777))) == 1
    asked = frozenset((7777, 5672))
    assert len(found(attempt(0, ports=(40000, 7777)) + connected(1), ports=asked)) == 1


@pytest.mark.parametrize("answer", [RST | ACK, None])
def test_a_port_scan_is_one_finding(answer: int | None) -> None:
    packets = [
        one for port in range(1, 1000) for one in attempt(0, answer, (40000, 5672 + port), times=2)
    ]
    (row,) = found(packets)
    assert "at 999 ports of 10.0.0.2, as by a port scan" in row["detail"]
    assert not found([*packets, *connected(3)])


def test_a_flood_is_bounded() -> None:
    """Clients beyond a bound take no memory, and have no rows."""

    def flood(count: int) -> tuple[int, int]:
        tracemalloc.start()
        attempts = Attempts()
        attempts.ports = {5672}
        for n in range(count):
            attempts.failed(
                SimpleNamespace(
                    a=f"11.{n >> 16}.{n >> 8 & 255}.{n & 255}:4000", b="10.0.0.2:5672",
                    connection_id=f"{n:016x}", version=4, unreachable=None, packets=(1, 1),
                    ports=(4000, 5672), start_ns=n, end_ns=n, first_packet_number=n,
                    last_packet_number=n,
                ),
                "x.pcap",
            )  # fmt: skip
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return sum(1 for _ in attempts.report()), peak

    few, many = flood(3 * MAX_PAIRS), flood(6 * MAX_PAIRS)
    assert few[0] == many[0] == 2 * MAX_PAIRS
    assert many[1] < few[1] + 1_000_000


def captured(packets: Iterable[Packet]) -> list[Captured]:
    return [
        Captured(one.ts_ns, one.octets, len(one.octets), one.link_type)
        for one in sorted(packets, key=lambda one: one.ts_ns)
    ]


def some_traffic(chance: random.Random) -> list[Packet]:
    """Attempts at random places, with or without AMQP."""
    packets = []
    for n in range(60):
        answer = chance.choice([RST | ACK, RST | ACK, None, SYN | ACK])
        port = chance.choice([5672, 5673, 5673, 8080])
        client = chance.choice([CLIENT, OTHER])
        times = chance.choice([1, 1, 3])
        packets += attempt(chance.random() * 60, answer, (41000 + n, port), client, 1000 + n, times)
        if n % 4 == 0:
            packets += unreachable(chance.random() * 60, chance.choice([1, 3]), (42000 + n, port))
    for n in range(chance.randrange(3)):
        packets += connected(chance.random() * 60, chance.choice([5672, 5673, 80]), 50000 + n)
    return packets


@pytest.mark.parametrize("seed", range(6))
def test_an_archive_has_the_same(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    paths = deal(captured(some_traffic(chance)), tmp_path, chance)
    alone = by_one_engine(paths, ("findings",))
    together = by_tasks(paths, ("findings",), task_bytes=chance.choice([500, 5000]), max_reads=4)
    assert together == alone
    assert any(code in row for row in alone["findings"] for code in CODES)


@pytest.mark.parametrize("name", ["o_refused", "t_excl", "z_cancel", "p_tls", "m_rpc"])
def test_incidents_in_an_archive(name: str, tmp_path: Path) -> None:
    chance = random.Random(name)
    paths = deal(packets_of([INCIDENTS / f"{name}.pcap"]), tmp_path, chance, 4)
    alone = by_one_engine(paths, ("findings",))
    assert by_tasks(paths, ("findings",), task_bytes=2_000, max_reads=4) == alone


def test_a_broker_that_is_away() -> None:
    """One finding, brought about by the shutdown."""
    from tests.session.rules.found import of_capture

    rows = [row for row in of_capture(INCIDENTS / "o_restart.pcap") if row["code"] in CODES]
    assert [(row["count"], row["cause_code"]) for row in rows] == [
        (6481, "connection-forced-closed")
    ]
    assert "15 connections; nobody connected" in rows[0]["detail"]
