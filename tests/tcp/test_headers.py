"""Every link type and encapsulation leads to the same segment (packets built by scapy)."""

import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from scapy.contrib.geneve import GENEVE
from scapy.contrib.mpls import MPLS
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption, fragment
from scapy.layers.inet6 import (
    ICMPv6DestUnreach,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    fragment6,
)
from scapy.layers.ipsec import AH
from scapy.layers.l2 import GRE, LLC, SNAP, CookedLinux, Dot1AD, Dot1Q, Ether, Loopback
from scapy.layers.ppp import HDLC, PPP, PPPoE
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet as Layer
from scapy.packet import Raw
from scapy.utils import wrpcap

from amqpsniff.tcp import Limits, Reassembler
from amqpsniff.tcp.headers import unread_tunnels
from tests.tcp.wire import MILLISECOND, START_NS, Packet, Result, alike_in_any_batches, batch, run

PAYLOAD = b"AMQP\0\0\x09\x01 and more"


def segment() -> Layer:
    return TCP(sport=40000, dport=5672, seq=7, ack=9, flags="PA") / Raw(PAYLOAD)


def four(payload: Layer | None = None) -> Layer:
    return IP(src="10.0.0.1", dst="10.0.0.2") / (payload or segment())


def six(payload: Layer | None = None) -> Layer:
    return IPv6(src="2001:db8::1", dst="2001:db8::2") / (payload or segment())


def outer(payload: Layer) -> Layer:
    return IP(src="192.0.2.1", dst="192.0.2.2") / payload


def ether(payload: Layer) -> Layer:
    return Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / payload


def erspan_3(packet: bytes, flags: int = 0, platform: bytes = b"") -> Layer:
    """ERSPAN III over GRE; `flags`: the last two bytes of its header."""
    header = struct.pack(">HHIHH", 2 << 12 | 5, 7, 12345, 0, flags)
    return outer(GRE(proto=0x22EB, seqnum_present=1) / Raw(header + platform + packet))


def nsh(number: int, packet: bytes, context: int = 0) -> bytes:
    """A network service header, type 1 with four contexts or type 2 with `context` of them."""
    kind, words = (2, context) if context else (1, 4)
    return (
        struct.pack(">HBBI", 63 << 6 | 2 + words, kind, number, 0x2AFF) + bytes(4 * words) + packet
    )


def vxlan_gpe(number: int, packet: bytes) -> Layer:
    return outer(
        UDP(sport=40000, dport=4790) / Raw(struct.pack(">BHBI", 0x0C, 0, number, 3 << 8) + packet)
    )


def gtp(packet: bytes, flags: int = 0x30, more: bytes = b"") -> Layer:
    length = len(more) + len(packet)
    header = struct.pack(">BBHI", flags, 255, length, 0x1234)
    return outer(UDP(sport=2152, dport=2152) / Raw(header + more + packet))


def family(value: int, order: str) -> Callable[[Layer], bytes]:
    return lambda packet: struct.pack(order + "I", value) + bytes(packet)


def nflog(order: str, packet: bytes) -> bytes:
    """A packet that a rule of netfilter logged: attributes, the packet among them."""
    attributes = ((1, b"\x86\xdd\0\0"), (10, PREFIX + b"\0"), (8, bytes(12)), (9, packet))
    return b"\2\0\0\5" + b"".join(
        struct.pack(order + "HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)
        for kind, value in attributes
    )


def pktap(link: int, packet: bytes, header: int = 108) -> bytes:
    """A packet as tcpdump on macOS writes it: interface, direction, process, then the packet."""
    head = struct.pack("<III24sII", header, 1, link, PREFIX, 2, 2) + bytes(8)
    return (head + struct.pack("<I20s", 4711, PREFIX)).ljust(header, b"\0") + packet


PREFIX = b"secret name"
CASES = {
    "ethernet": (1, ether(four())),
    "ethernet 6": (1, ether(six())),
    "null little": (0, family(2, "<")(four())),
    "null big": (0, family(2, ">")(four())),
    "null 6 linux": (0, family(10, "<")(six())),
    "null 6 openbsd": (0, family(24, ">")(six())),
    "null 6 freebsd": (0, family(28, "<")(six())),
    "null 6 macos": (0, family(30, "<")(six())),
    "null scapy": (0, Loopback(type=2) / four()),
    "loop": (108, family(2, ">")(four())),
    "raw": (101, four()),
    "raw 6": (101, six()),
    "raw 12": (12, four()),
    "raw 14": (14, six()),
    "ipv4": (228, four()),
    "ipv6": (229, six()),
    "cooked": (113, CookedLinux(proto=0x0800) / four()),
    "cooked 6": (113, CookedLinux(proto=0x86DD) / six()),
    "cooked vlan": (113, CookedLinux(proto=0x8100) / Dot1Q(vlan=5) / four()),
    "cooked 2": (276, struct.pack(">HHIHBB8s", 0x0800, 0, 3, 1, 0, 6, bytes(8)) + bytes(four())),
    "cooked 2, 6": (276, struct.pack(">HHIHBB8s", 0x86DD, 0, 3, 1, 0, 6, bytes(8)) + bytes(six())),
    "ppp": (9, HDLC() / PPP(proto=0x0021) / four()),
    "ppp short": (9, b"\x21" + bytes(four())),
    "ppp plain": (9, b"\x00\x57" + bytes(six())),
    "ppp hdlc": (50, HDLC() / PPP(proto=0x0057) / six()),
    "ppp cisco": (50, b"\x0f\0\x08\0" + bytes(four())),
    "ppp mpls": (9, HDLC() / PPP(proto=0x0281) / MPLS(label=3, s=1) / four()),
    "cisco hdlc": (104, b"\x0f\0\x86\xdd" + bytes(six())),
    "pppoe": (1, ether(PPPoE(sessionid=3) / PPP(proto=0x0021) / four())),
    "pppoe 6": (1, ether(PPPoE(sessionid=3) / PPP(proto=0x0057) / six())),
    "pppoe link": (51, PPPoE(sessionid=3) / PPP(proto=0x0021) / four()),
    "pppd": (166, b"\0\3\0\x21" + bytes(four())),
    "ppp direction": (204, b"\1\xff\3\0\x57" + bytes(six())),
    "mpls link": (219, MPLS(label=3, s=0) / MPLS(label=4, s=1) / four()),
    "nflog little": (239, nflog("<", bytes(four()))),
    "nflog big": (239, nflog(">", bytes(six()))),
    "pktap": (258, pktap(1, bytes(ether(four())))),
    "pktap loopback": (258, pktap(0, family(30, "<")(six()))),
    "pktap longer": (258, pktap(1, bytes(ether(Dot1Q(vlan=5) / four())), 156)),
    "vlan": (1, ether(Dot1Q(vlan=5) / four())),
    "vlan in vlan": (1, ether(Dot1Q(vlan=5) / Dot1Q(vlan=6) / six())),
    "802.1ad": (1, ether(Dot1AD(vlan=5) / Dot1Q(vlan=6) / four())),
    "many vlans": (1, ether(_many := Dot1Q() / Dot1Q() / Dot1Q() / Dot1Q() / Dot1Q() / four())),
    "snap": (1, Ether(type=60) / LLC() / SNAP(OUI=0, code=0x0800) / four()),
    "mpls": (1, ether(MPLS(label=3, s=0) / MPLS(label=4, s=1) / four())),
    "mpls 6": (1, ether(MPLS(label=4, s=1) / six())),
    "mpls wire": (1, ether(MPLS(label=4, s=1) / Raw(bytes(4) + bytes(ether(four()))))),
    "options": (1, ether(IP(options=[IPOption(b"\x44\x08\x09\0abcd")]) / segment())),
    "tcp options": (1, ether(IP() / TCP(options=[("Timestamp", (1, 2))]) / Raw(PAYLOAD))),
    "hop by hop": (1, ether(six(IPv6ExtHdrHopByHop() / segment()))),
    "routing": (1, ether(six(IPv6ExtHdrRouting(addresses=["2001:db8::3"]) / segment()))),
    "destination": (1, ether(six(IPv6ExtHdrDestOpt() / IPv6ExtHdrDestOpt() / segment()))),
    "authenticated": (1, ether(four(AH(icv=bytes(12), nh=6, payloadlen=4) / segment()))),
    "authenticated 6": (1, ether(six(AH(icv=bytes(12), nh=6, payloadlen=4) / segment()))),
    "atomic fragment": (1, ether(six(IPv6ExtHdrFragment(id=3) / segment()))),
    "ip in ip": (1, ether(outer(four()))),
    "6in4": (1, ether(outer(six()))),
    "4in6": (1, ether(IPv6(src="2001:db8::8", dst="2001:db8::9") / four())),
    "gre": (1, ether(outer(GRE() / four()))),
    "gre everything": (
        1,
        ether(outer(GRE(chksum_present=1, key_present=1, seqnum_present=1) / six())),
    ),
    "gre ethernet": (1, ether(outer(GRE(proto=0x6558, key_present=1) / ether(four())))),
    "gre mpls": (1, ether(outer(GRE(proto=0x8847) / MPLS(label=4, s=1) / four()))),
    "erspan": (
        1,
        ether(outer(GRE(proto=0x88BE, seqnum_present=1) / Raw(bytes(8) + bytes(ether(four()))))),
    ),
    "erspan 1": (1, ether(outer(GRE(proto=0x88BE) / ether(four())))),
    "vxlan": (1, ether(outer(UDP(dport=4789) / VXLAN(vni=3) / ether(four())))),
    "vxlan vlan": (1, ether(outer(UDP(dport=4789) / VXLAN(vni=3) / ether(Dot1Q() / six())))),
    "vxlan of linux": (1, ether(outer(UDP(dport=8472) / VXLAN(vni=3) / ether(four())))),
    "erspan 3": (1, ether(erspan_3(bytes(ether(four()))))),
    "erspan 3 platform": (1, ether(erspan_3(bytes(ether(six())), 1, bytes(8)))),
    "erspan 3 ip": (1, ether(erspan_3(bytes(four()), 2 << 10))),
    "vxlan gpe": (1, ether(vxlan_gpe(3, bytes(ether(four()))))),
    "vxlan gpe ip": (1, ether(vxlan_gpe(1, bytes(four())))),
    "vxlan gpe 6": (1, ether(vxlan_gpe(2, bytes(six())))),
    "vxlan gpe nsh": (1, ether(vxlan_gpe(4, nsh(1, bytes(four()))))),
    "nsh": (1, Ether(type=0x894F) / Raw(nsh(1, bytes(four())))),
    "nsh ethernet": (1, Ether(type=0x894F) / Raw(nsh(3, bytes(ether(six())), 2))),
    "gre nsh": (1, ether(outer(GRE(proto=0x894F) / Raw(nsh(2, bytes(six())))))),
    "gtp": (1, ether(gtp(bytes(four())))),
    "gtp 6": (1, ether(gtp(bytes(six())))),
    "gtp sequence": (1, ether(gtp(bytes(four()), 0x32, b"\0\7\0\0"))),
    "gtp extensions": (
        1,
        ether(gtp(bytes(four()), 0x34, b"\0\0\0\x85\1\x10\1\xc0\2\1\2\3\4\5\6\0")),
    ),
    "mpls in udp": (1, ether(outer(UDP(sport=40000, dport=6635) / MPLS(label=4, s=1) / four()))),
    "geneve": (
        1,
        ether(outer(UDP(sport=40000, dport=6081) / GENEVE(vni=3, proto=0x6558) / ether(four()))),
    ),
    "geneve options": (
        1,
        ether(
            outer(
                UDP(sport=40000, dport=6081) / Raw(b"\x01\0\x08\0\0\0\3\0\0\0\0\0" + bytes(four()))
            )
        ),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_leads_to_the_segment(name: str) -> None:
    link_type, layers = CASES[name]
    octets = bytes(layers)
    result = run([Packet(octets, START_NS, None, link_type)])
    assert result.stream(0) == [PAYLOAD]
    if "options" not in name or name == "geneve options":
        assert result.events[0].a in ("10.0.0.1:40000", "[2001:db8::1]:40000")


@pytest.mark.parametrize("name", CASES)
def test_cut_anywhere(name: str) -> None:
    link_type, layers = CASES[name]
    octets = bytes(layers)
    for captured in range(len(octets)):
        result = run([Packet(octets[:captured], START_NS, len(octets), link_type)])
        if result.events:
            parts = result.stream(0)
            whole = [len(part) if isinstance(part, bytes) else part for part in parts]
            assert sum(whole) == len(PAYLOAD)
            assert all(PAYLOAD.startswith(part) for part in parts if isinstance(part, bytes))


def test_same_packet_at_several_places_is_one() -> None:
    names = ("ethernet", "vlan", "vxlan", "gre", "raw", "ip in ip")
    packets = [
        Packet(bytes(CASES[name][1]), START_NS + number, None, CASES[name][0])
        for number, name in enumerate(names)
    ]
    result = alike_in_any_batches(packets)
    assert result.kinds() == ["open", "data", "close"]
    assert result.counters["duplicates"] == len(names) - 1


@pytest.mark.parametrize("make", [four, six])
def test_length_of_zero_is_the_records(make: Callable[[], Layer]) -> None:
    layer = make()
    if IPv6 in layer:
        layer.plen = 0
    else:
        layer.len = 0
    octets = bytes(ether(layer))
    assert run([Packet(octets, START_NS, None, 1)]).stream(0) == [PAYLOAD]
    cut = run([Packet(octets[:-5], START_NS, len(octets), 1)])
    assert cut.stream(0) == [PAYLOAD[:-5], 5]


def test_length_on_the_wire_is_ips() -> None:
    octets = bytes(ether(four()))
    rewritten = run([Packet(octets[:-5], START_NS, None, 1)])
    assert rewritten.stream(0) == [PAYLOAD[:-5], 5]
    trailer = run([Packet(octets + b"trailer", START_NS, None, 1)])
    assert trailer.stream(0) == [PAYLOAD]
    padded = bytes(ether(IP() / TCP(dport=5672, flags="S"))) + bytes(6)
    assert run([Packet(padded, START_NS, None, 1)]).kinds() == ["open", "close"]


def other_packets() -> dict[str, tuple[Layer, str]]:
    return {
        "arp": (ether(Raw(bytes(40))), "not_ip"),
        "udp": (ether(four(UDP(dport=53) / Raw(b"query"))), "not_tcp"),
        "icmp": (ether(outer(ICMP() / Raw(b"x"))), "not_tcp"),
        "icmp that quotes a segment": (ether(outer(ICMP(type=3, code=1) / four())), "not_tcp"),
        "icmp of IPv6": (ether(six(ICMPv6DestUnreach(code=4) / six())), "not_tcp"),
        "gre 1": (ether(outer(GRE(version=1) / Raw(bytes(20)))), "not_tcp"),
        "short header": (ether(four(TCP(dataofs=4))), "malformed"),
        "long header": (ether(four(TCP(dataofs=15))), "malformed"),
        "ip version": (ether(IP(version=5) / segment()), "malformed"),
        "ip header": (ether(IP(ihl=4) / segment()), "malformed"),
        "ip length": (ether(IP(len=19) / segment()), "malformed"),
    }


@pytest.mark.parametrize("name", other_packets())
def test_counted_and_skipped(name: str) -> None:
    layers, counter = other_packets()[name]
    result = run([Packet(bytes(layers), START_NS, None, 1)])
    assert not result.events
    assert {key for key, value in result.counters.items() if value} == {"packets", counter}


UNREAD = {
    "IPsec": outer(Raw(bytes(40))),
    "GRE": outer(GRE(version=1) / Raw(bytes(20))),
    "L2TP": outer(UDP(dport=1701) / Raw(bytes(20))),
    "VXLAN": outer(UDP(dport=4789) / Raw(bytes(8) + bytes(ether(four())))),
    "Geneve": outer(UDP(sport=40000, dport=6081) / Raw(b"\x40" + bytes(20))),
    "GTP": gtp(bytes(four()), 0x50),
    "VXLAN-GPE": vxlan_gpe(9, bytes(four())),
}
UNREAD["IPsec"].proto = 50


@pytest.mark.parametrize("tunnel", UNREAD)
def test_tunnels_that_are_not_read_are_counted(tunnel: str) -> None:
    octets = bytes(ether(UNREAD[tunnel]))
    machine = Reassembler()
    machine.feed(batch([Packet(octets, START_NS, None, 1)] * 3))
    assert machine.unread_tunnels == {"capture": {tunnel: 3}}
    assert unread_tunnels("capture", {tunnel: 3}).code == "tunnel-unreadable"
    assert machine.counters["not_tcp"] == 3


def test_packets_of_a_tunnel_itself_are_not_counted() -> None:
    echo = outer(UDP(dport=2152) / Raw(b"\x32\1\0\4\0\0\0\0\0\0\0\0"))
    maintenance = outer(UDP(sport=40000, dport=4790) / Raw(b"\x0d\0\0\1" + bytes(20)))
    machine = Reassembler()
    for layers in (echo, maintenance, ether(four(UDP(dport=53) / Raw(b"query")))):
        machine.feed(batch([Packet(bytes(ether(layers)), START_NS, None, 1)]))
    assert machine.unread_tunnels == {}


@pytest.mark.skipif(shutil.which("tshark") is None, reason="no tshark")
def test_tshark_finds_the_same_segment(tmp_path: Path) -> None:
    """In tunnels; but not below an ERSPAN header of zeros, nor in ERSPAN of IP packets."""
    tunnels = ("erspan", "vxlan", "nsh", "gre", "gtp", "geneve", "mpls in udp")
    names = [name for name in CASES if any(tunnel in name for tunnel in tunnels)]
    names = [name for name in names if name not in ("erspan", "erspan 3 ip")]
    path = tmp_path / "tunnels.pcap"
    wrpcap(str(path), [Ether(bytes(CASES[name][1])) for name in names])
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-e", "tcp.payload"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    found = [name for name, line in zip(names, lines, strict=False) if PAYLOAD.hex() in line]
    assert found == names


def test_unknown_link_type() -> None:
    assert run([Packet(bytes(100), START_NS, None, 147)]).counters["not_ip"] == 1


def test_layers_end() -> None:
    packet = bytes(four())
    for depth in range(1, 60):
        packet = bytes(IP(src="192.0.2.1", dst="192.0.2.2", proto=4) / Raw(packet))
        result = run([Packet(packet, START_NS, None, 228)])
        assert bool(result.events) == (depth < 32)
    tags = bytes.fromhex("8100 0005") * 60
    frame = bytes(12) + tags + b"\x08\0" + bytes(four())
    assert run([Packet(frame, START_NS, None, 1)]).counters["not_ip"] == 1


BIG = bytes(range(256)) * 12


def fragments(make: Callable[[Layer], Layer]) -> list[bytes]:
    big = TCP(sport=40000, dport=5672, seq=7, flags="A") / Raw(BIG)
    if make is four:
        pieces = fragment(IP(src="10.0.0.1", dst="10.0.0.2", id=77) / big, 1000)
    else:
        whole = IPv6(src="2001:db8::1", dst="2001:db8::2") / IPv6ExtHdrFragment(id=77) / big
        pieces = fragment6(whole, 1000)
    return [bytes(ether(piece)) for piece in pieces]


def fed(pieces: list[bytes], step_ns: int = 1000, limits: Limits | None = None) -> Result:
    packets = [Packet(p, START_NS + n * step_ns, None, 1) for n, p in enumerate(pieces)]
    return alike_in_any_batches(packets, limits)


@pytest.mark.parametrize("make", [four, six])
def test_fragments(make: Callable[[Layer], Layer]) -> None:
    pieces = fragments(make)
    assert len(pieces) == 4
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 1, 3, 0, 0, 2]):
        result = fed([pieces[index] for index in order])
        assert result.stream(0) == [BIG]
        assert result.events[1].number == len(order)
        assert result.counters["fragments"] == len(order)
    assert not fed(pieces[:3]).events


@pytest.mark.parametrize("make", [four, six])
def test_fragment_cut_by_the_snap_length(make: Callable[[Layer], Layer]) -> None:
    pieces = fragments(make)
    packets = [Packet(piece, START_NS, None, 1) for piece in pieces]
    packets[1] = packets[1].cut(500)
    parts = run(packets).stream(0)
    assert [type(part) for part in parts] == [bytes, int]
    assert BIG.startswith(parts[0])
    assert len(parts[0]) + parts[1] == len(BIG)


def test_first_fragment_wins() -> None:
    pieces = fragments(four)
    forged = pieces[2][:-20] + bytes(20)
    assert fed([pieces[0], pieces[2], forged, pieces[1], pieces[3]]).stream(0) == [BIG]
    assert fed([pieces[0], forged, pieces[2], pieces[1], pieces[3]]).stream(0) != [BIG]


def test_fragments_wait_so_long() -> None:
    limits = Limits()
    pieces = fragments(four)
    step = limits.fragment_ns // 3
    assert fed(pieces, step).stream(0) == [BIG]
    assert not fed(pieces, step + 1).events


@pytest.mark.parametrize(
    ("limit", "enough"), [("fragment_bytes", 2024), ("fragments_per_packet", 4)]
)
def test_fragment_limits(limit: str, enough: int) -> None:
    pieces = fragments(four)
    enough_bytes = sum(len(piece) - 34 for piece in pieces[:3])
    most = enough_bytes if limit == "fragment_bytes" else enough
    assert fed(pieces, limits=Limits(**{limit: most})).events or limit == "fragment_bytes"
    assert not fed(pieces, limits=Limits(**{limit: most - 1})).events


def test_fragments_of_two_interfaces() -> None:
    """However often a fragment comes, it is one."""
    twice = [piece for piece in fragments(four) for _ in range(2)]
    assert fed(twice, limits=Limits(fragments_per_packet=4)).stream(0) == [BIG]
    assert not fed(twice, limits=Limits(fragments_per_packet=3)).events


def test_fragmented_packets_at_once() -> None:
    def of(identification: int) -> list[bytes]:
        whole = IP(src="10.0.0.1", dst="10.0.0.2", id=identification) / segment()
        return [bytes(ether(piece)) for piece in fragment(whole, 24)]

    first, second, third = of(1), of(2), of(3)
    limits = Limits(fragmented_packets=2)
    assert fed([first[0], second[0], first[1], *second[1:], *first[2:]], limits=limits).events
    rest = fed([first[0], second[0], third[0], *first[1:]], limits=limits)
    assert not rest.events


def test_fragments_of_a_tunnel() -> None:
    whole = IP(src="192.0.2.1", dst="192.0.2.2", id=5) / UDP(dport=4789) / VXLAN() / ether(four())
    pieces = [bytes(ether(piece)) for piece in fragment(whole, 24)]
    assert len(pieces) > 2
    assert fed(pieces).stream(0) == [PAYLOAD]


def test_forgotten_fragments_do_not_shift_others() -> None:
    udp = IP(src="10.0.0.1", dst="10.0.0.2", id=9) / UDP(dport=53) / Raw(bytes(100))
    waste = [bytes(ether(piece)) for piece in fragment(udp, 64)]
    result = fed([*waste, *fragments(four)], MILLISECOND)
    assert result.stream(0) == [BIG]
    assert result.counters["not_tcp"] == 1
