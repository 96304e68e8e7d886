"""Packets written again: headers and lengths as they were, contents not, checksums right."""

from __future__ import annotations

import struct
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("scapy")

from scapy.layers.inet import ICMP, IP, TCP, UDP, ICMPerror
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6, IPv6ExtHdrHopByHop
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Packet as Layer
from scapy.packet import Raw

from amqpsniff.sanitize.addresses import AddressPseudonyms
from amqpsniff.tcp.packet_writer import PacketRewriter
from tests.fuzz.fuzz_tcp import LINK_TYPES
from tests.tcp.test_headers import CASES, PAYLOAD, PREFIX
from tests.tcp.test_hostile import mutated
from tests.tcp.wire import START_NS, Packet, run
from tests.thorough import rounds

SAFE = b"=" * len(PAYLOAD)


def rewritten(
    octets: bytes, link_type: int = 1, original: int | None = None, *, addresses: bool = False
) -> bytes:
    """A packet without a known place in any stream."""
    rewriter = PacketRewriter(AddressPseudonyms() if addresses else None)
    return bytes(rewriter.rewrite(octets, link_type, original or len(octets), None, -1))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("addresses", [False, True])
def test_payload_is_replaced_wherever_the_segment_is(name: str, addresses: bool) -> None:
    link_type, layers = CASES[name]
    octets = bytes(layers)
    start = octets.index(PAYLOAD)
    rewriter = PacketRewriter(AddressPseudonyms() if addresses else None)
    made = bytes(rewriter.rewrite(octets, link_type, len(octets), SAFE, start))
    assert len(made) == len(octets)
    assert rewriter.is_tcp
    before = run([Packet(octets, START_NS, None, link_type)])
    after = run([Packet(made, START_NS, None, link_type)])
    assert after.stream(0) == [SAFE]
    assert after.kinds() == before.kinds()
    if not addresses:
        assert after.events[0].connection_id == before.events[0].connection_id
    elif "options" not in name or name == "geneve options":
        assert after.events[0].a in ("10.0.0.1:32768", "[fd00::1]:32768", "10.0.1.1:32768",
                                     "10.0.2.1:32768")  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_not_understood_is_filler(name: str) -> None:
    link_type, layers = CASES[name]
    octets = bytes(layers)
    made = rewritten(octets, link_type)
    assert PAYLOAD not in made
    assert PREFIX not in made
    assert run([Packet(made, START_NS, None, link_type)]).stream(0) == [b"x" * len(PAYLOAD)]


@pytest.mark.parametrize("name", CASES)
def test_cut_anywhere(name: str) -> None:
    """The beginning of a packet is rewritten as the whole one is, and says no more of the rest."""
    link_type, layers = CASES[name]
    octets = bytes(layers)
    whole = rewritten(octets, link_type)
    for captured in range(len(octets)):
        made = rewritten(octets[:captured], link_type, len(octets))
        assert len(made) == captured
        assert PAYLOAD[:6] not in made
        other = octets[:captured] + bytes(len(octets) - captured)
        assert rewritten(other[:captured], link_type, len(octets)) == made
        if captured > octets.index(PAYLOAD):
            assert made == whole[:captured]


def checksums_are_right(octets: bytes) -> None:
    """Scapy, left to compute them, comes to the same."""
    layer: Layer = Ether(octets)
    for kind, field in ((IP, "chksum"), (TCP, "chksum"), (UDP, "chksum"), (ICMP, "chksum")):
        each = layer.getlayer(kind)
        if each is not None:
            delattr(each, field)
    if layer.haslayer(ICMPv6EchoRequest):
        del layer[ICMPv6EchoRequest].cksum
    assert bytes(layer) == octets


@pytest.mark.parametrize("odd", [b"", b"y"])
@pytest.mark.parametrize(
    "layers",
    [
        IP(src="10.0.0.1", dst="10.0.0.2") / TCP(sport=40000, dport=5672) / Raw(b"payload"),
        IPv6(src="2001:db8::1", dst="2001:db8::2") / TCP(sport=40000, dport=5672) / Raw(b"load"),
        IP(src="10.0.0.1", dst="10.0.0.2", options=b"\x44\x08\x09\0abcd") / TCP() / Raw(b"payload"),
        IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=53, dport=4000) / Raw(b"host.example"),
        IPv6(src="2001:db8::1", dst="2001:db8::2") / UDP(sport=53, dport=4000) / Raw(b"host"),
        IP(src="10.0.0.1", dst="10.0.0.2") / ICMP(type=8) / Raw(b"ping of a host"),
        IPv6(src="2001:db8::1", dst="2001:db8::2") / ICMPv6EchoRequest(data=b"ping of a host"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("addresses", [False, True])
def test_checksums(layers: Layer, odd: bytes, addresses: bool) -> None:
    octets = bytes(Ether(src="02:aa:bb:cc:dd:ee", dst="02:aa:bb:cc:dd:ef") / layers / odd)
    checksums_are_right(octets)
    damaged = bytearray(octets)
    if IP in layers:
        damaged[24:26] = b"\x12\x34"
    for each in (octets, bytes(damaged)):
        made = rewritten(each, addresses=addresses)
        checksums_are_right(made)
        for secret in (b"payload", b"host", b"load", b"abcd"):
            assert secret not in made


def test_the_checksum_of_what_a_snap_length_cut() -> None:
    """It is that of the packet with filler for the rest, and so does not tell what the rest was."""
    begin = IP(src="10.0.0.1", dst="10.0.0.2") / TCP(sport=40000, dport=5672)
    one, other = (bytes(Ether() / begin / Raw(b"known " + rest)) for rest in (b"1234", b"5678"))
    cut = len(one) - 4
    assert rewritten(one[:cut], 1, len(one)) == rewritten(other[:cut], 1, len(other))
    assert rewritten(one[:cut], 1, len(one)) == rewritten(one)[:cut]


def test_nothing_stands_behind_the_end_of_the_packet() -> None:
    octets = bytes(Ether() / IP() / TCP()) + b"left over"
    assert rewritten(octets)[-9:] == bytes(9)


def test_options() -> None:
    """Of TCP's options those are kept that TCP needs; a signature is none of them."""
    options = [("MSS", 1460), (19, b"signature-of-md5"), ("Timestamp", (1, 2)), ("NOP", None)]
    made = rewritten(bytes(Ether() / IP() / TCP(options=options)))
    assert b"signature" not in made
    kept = Ether(made)[TCP].options
    assert ("MSS", 1460) in kept
    assert ("Timestamp", (1, 2)) in kept
    extension = bytes(Ether() / IPv6() / IPv6ExtHdrHopByHop(options=[]) / TCP())
    assert run([Packet(rewritten(extension), START_NS, None, 1)]).counters["segments"] == 1


def test_what_an_error_quotes() -> None:
    quoted = IP(src="10.9.9.9") / TCP() / Raw(b"secret")
    made = rewritten(bytes(Ether() / IP() / ICMP(type=3, code=1) / quoted))
    assert b"secret" not in made
    assert b"\x0a\x09\x09\x09" not in made
    assert Ether(made)[ICMP].type == 3
    assert not Ether(made).haslayer(ICMPerror) or Ether(made)[ICMPerror].code == 0


@pytest.mark.parametrize("addresses", [False, True])
def test_address_resolution(addresses: bool) -> None:
    octets = bytes(
        Ether(src="aa:bb:cc:dd:ee:02", dst="ff:ff:ff:ff:ff:ff")
        / ARP(hwsrc="aa:bb:cc:dd:ee:02", psrc="192.168.7.2", pdst="192.168.7.1")
        / Raw(b"padding that says something")
    )
    made = rewritten(octets, addresses=addresses)
    assert b"padding" not in made
    shown = Ether(made)
    if addresses:
        assert (shown.src, shown[ARP].hwsrc) == ("02:00:00:00:00:01",) * 2
        assert (shown[ARP].psrc, shown[ARP].pdst) == ("10.0.0.1", "10.0.0.2")
        assert shown.dst == "ff:ff:ff:ff:ff:ff"
    else:
        assert made[:42] == octets[:42]


@pytest.mark.parametrize(
    ("octets", "link_type", "kept"),
    [
        (b"\x01\x80\xc2\0\0\x0e" + bytes(6) + b"\x88\xcc" + b"system name", 1, 14),
        (bytes(Ether() / Dot1Q() / Raw(b"system name")), 1, 14),
        (b"a radio header and more", 127, 0),
        (bytes(14) + b"\x88\xcc" + b"system name", 113, 16),
    ],
)
def test_what_is_no_ip(octets: bytes, link_type: int, kept: int) -> None:
    made = rewritten(octets, link_type)
    assert made[:kept] == octets[:kept]
    assert made[kept:] == bytes(len(octets) - kept)


def test_fragments() -> None:
    """Nothing of them is kept but the IP header."""
    whole = bytes(UDP(sport=1, dport=2) / Raw(b"a secret that is longer than one fragment"))
    for offset, part in ((0, whole[:24]), (3, whole[24:])):
        octets = bytes(Ether() / IP(proto=17, frag=offset, flags=0 if offset else 1) / Raw(part))
        made = rewritten(octets)
        assert made[34:] == bytes(len(part))
        assert made[14:34] == octets[14:34]


@settings(max_examples=rounds(300))
@given(mutated(), st.booleans())
def test_damaged_packets(packet: Packet, addresses: bool) -> None:
    original = packet.original or 0
    made = rewritten(packet.octets, packet.link_type, original, addresses=addresses)
    assert len(made) == len(packet.octets)
    assert PAYLOAD not in made


@settings(max_examples=rounds(300))
@given(st.binary(max_size=200), st.sampled_from(LINK_TYPES), st.booleans())
def test_garbage(octets: bytes, link_type: int, addresses: bool) -> None:
    assert len(rewritten(octets, link_type, addresses=addresses)) == len(octets)


def test_place_that_is_not_the_segments() -> None:
    """Payload for another place than where the walk ends is not believed."""
    octets = bytes(Ether() / IP() / TCP() / Raw(b"12345678"))
    rewriter = PacketRewriter()
    for payload, start in ((b"abcdefgh", 53), (b"abcdefg", 54), (b"abcdefghi", 54)):
        made = bytes(rewriter.rewrite(octets, 1, len(octets), payload, start))
        assert made[54:] == b"x" * 8
    assert struct.unpack(">H", bytes(rewriter.rewrite(octets, 1, 62, b"abcdefgh", 54))[50:52])
    assert rewriter.ends() == frozenset(((b"\x7f\0\0\1", 20), (b"\x7f\0\0\1", 80)))


def test_a_length_that_no_packet_has() -> None:
    """A record says what it likes of a packet that does not say itself how long it was."""
    octets = bytearray(
        bytes(IP(src="10.0.0.1", dst="10.0.0.2") / TCP(sport=1, dport=5672) / b"AMQP")
    )
    octets[2:4] = b"\0\0"  # no length of its own
    tracemalloc.start()
    made = rewritten(bytes(octets), 228, 0xFFFFFFF0)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert made[40:] == b"xxxx"
    assert most < 1 << 24
