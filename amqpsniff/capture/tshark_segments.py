"""TCP segments that tshark found, as packets: for links and tunnels that only tshark can read.

tshark writes a line of fields a packet (`FIELDS`), the last occurrence of each, which in a tunnel
is that of the innermost packet; which of IPv4 and IPv6 that is, the packet's protocols say in their
order. Each becomes an IP packet with a TCP header of its own and the payload, under the number and
time of the packet it was in; a packet without TCP becomes one without bytes.

Not carried over: IP options, TCP options, checksums.
"""

from __future__ import annotations

import struct
from array import array
from ipaddress import ip_address

from amqpsniff.capture.packets import NO_TIME, PacketBatch
from amqpsniff.link_types import LINK_RAW

FIELDS = (
    "frame.number", "frame.time_epoch", "frame.protocols", "ip.src", "ip.dst", "ipv6.src",
    "ipv6.dst", "tcp.srcport", "tcp.dstport", "tcp.seq", "tcp.ack", "tcp.flags",
    "tcp.window_size_value", "tcp.len", "tcp.payload",
)  # fmt: skip

ARGUMENTS = (
    "-o", "tcp.relative_sequence_numbers:FALSE",
    "-o", "tcp.analyze_sequence_numbers:FALSE",
    "-o", "tcp.desegment_tcp_streams:FALSE",
    "--disable-protocol", "amqp",
    "--disable-protocol", "tls",
    "-n", "-T", "fields", "-E", "occurrence=l", "-E", "separator=/t",
    *(word for name in FIELDS for word in ("-e", name)),
)  # fmt: skip
"""What tshark is told."""

MAX_LINE_BYTES = 1 << 20
"""A packet has at most 256 KiB, twice as long in hexadecimal."""

_IPV4 = struct.Struct(">BBHHHBBH4s4s")
_IPV6 = struct.Struct(">IHBB16s16s")
_TCP = struct.Struct(">HHIIBBHHH")
_NS = 1_000_000_000
_NS_DIGITS = 9


class Segments:
    """Turns the lines of tshark into batches of packets; `packets` is the last number so far."""

    def __init__(self, capture: str) -> None:
        self.capture = capture
        self.packets = 0
        self._rest = b""

    def feed(self, octets: bytes) -> PacketBatch | None:
        """The packets of the lines that these bytes complete, or None."""
        *lines, self._rest = (self._rest + octets).split(b"\n")
        if len(self._rest) > MAX_LINE_BYTES:
            self._rest = b""
        columns = [array("q") for _ in range(6)]
        pieces: list[bytes] = []
        at = 0
        for line in lines:
            fields = line.decode("ascii", "replace").split("\t")
            if len(fields) != len(FIELDS) or not fields[0].isdigit():
                continue
            self.packets = int(fields[0])
            packet, missing = _packet(fields)
            row = (self.packets, _time(fields[1]), at, len(packet), len(packet) + missing, LINK_RAW)
            for column, value in zip(columns, row, strict=True):
                column.append(value)
            pieces.append(packet)
            at += len(packet)
        if not pieces:
            return None
        return PacketBatch(self.capture, b"".join(pieces), 0, len(pieces), *columns)


def _time(text: str) -> int:
    """Nanoseconds of seconds with a fraction; `NO_TIME` without one, or past 64 bits."""
    seconds, _, fraction = text.partition(".")
    try:
        whole = int(seconds) * _NS
        part = int(fraction[:_NS_DIGITS].ljust(_NS_DIGITS, "0"))
    except ValueError:
        return NO_TIME
    moment = whole - part if seconds.startswith("-") else whole + part
    return moment if NO_TIME < moment < -NO_TIME else NO_TIME


def _packet(fields: list[str]) -> tuple[bytes, int]:
    """An IP packet of the fields of a line, and how many bytes of it were not captured."""
    _, _, protocols, source, target, source6, target6, *tcp, hexed = fields
    four = [one for one in protocols.split(":") if one in ("ip", "ipv6")][-1:] == ["ip"]
    try:
        ports_and_more = [int(field, 0) for field in tcp]
        payload = bytes.fromhex(hexed.replace(":", ""))
        ends = [
            ip_address(one).packed for one in ((source, target) if four else (source6, target6))
        ]
    except ValueError:
        return b"", 0
    one, other, seq, ack, flags, window, length = ports_and_more
    header = _TCP.pack(one, other, seq, ack, 0x50, flags & 0xFF, min(window, 0xFFFF), 0, 0)
    size = len(header) + max(length, len(payload))
    if four:
        ip = _IPV4.pack(0x45, 0, min(20 + size, 0xFFFF), 0, 0, 64, 6, 0, *ends)
    else:
        ip = _IPV6.pack(0x60000000, min(size, 0xFFFF), 6, 64, *ends)
    return ip + header + payload, max(0, length - len(payload))
