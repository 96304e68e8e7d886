# Any packets, in batches of any size, raise nothing and give the same events; those of a
# half-stream follow each other between an open and a close, and name bytes that are there.
"""Fuzz reassembly: `python -m tests.fuzz.fuzz_tcp [CORPUS…]` (atheris).

An input is a list of small instructions for two hosts' segments, with raw packets between them, so
that mutations stay near conversations. Coverage guides it only through uncompiled modules.
"""

from amqpsniff.tcp import Limits
from tests.fuzz.guided import fuzz
from tests.tcp.wire import IPV4_LINK, START_NS, Packet, run, tcp

LINK_TYPES = (0, 1, 9, 12, 50, 51, 101, 104, 108, 113, 166, 204, 219, 228, 229, 239, 258, 276, 147)
LIMITS = Limits(
    conversations=3,
    closed_conversations=3,
    held_bytes=1500,
    held_bytes_total=2500,
    history_segments=4,
    history_bytes=700,
    conflict_findings=3,
    fragmented_packets=2,
    fragment_bytes=600,
    fragments_per_packet=6,
)
PORTS = ((40000, 5672), (5672, 40000), (40001, 5672), (5672, 40001))
TIMES = (0, 1, 1000, 10_000_000, 2_000_000_000, -5, 2**62, -(2**63))


def packets(data: bytes) -> list[Packet]:
    """Six bytes an instruction: a segment, or how many of the next bytes are a packet."""
    found: list[Packet] = []
    at = 0
    while at + 6 <= len(data) and len(found) < 200:
        kind, place, length, flags, acknowledged, time = data[at : at + 6]
        at += 6
        wait = TIMES[time & 7]
        ts_ns = wait if abs(wait) > 2**60 else START_NS + len(found) * 1000 + wait
        if kind & 0xE0 == 0xE0:
            octets = data[at : at + length]
            link_type = LINK_TYPES[place % len(LINK_TYPES)]
            found.append(Packet(octets, ts_ns, length + (flags & 3), link_type))
            at += length
            continue
        side = kind & 3
        far = (0, 0, 0, 1 << 30, 1 << 31, 3 << 30, 1 << 24, 1 << 26)[kind >> 2 & 7]
        seq = 2**32 - 100 + place + far
        payload = bytes((seq + step) & 0xFF for step in range(length & 63))
        if flags & 0x40:
            payload = payload[::-1]
        ends = (b"\x0a\0\0\1", b"\x0a\0\0\2")
        ends = ends if side & 1 == 0 else ends[::-1]
        octets = tcp(seq, payload, flags & 0x17, 2**32 - 100 + acknowledged, PORTS[side], ends)
        cut = len(octets) - 3 if flags & 0x80 else len(octets)
        found.append(Packet(octets[:cut], ts_ns, len(octets), IPV4_LINK))
    return found


def one_input(data: bytes) -> None:
    """Follow one list of instructions; raises AssertionError where the invariant does not hold."""
    everything = packets(data)
    whole = run(everything, limits=LIMITS)
    for size in (1, 5):
        assert run(everything, size, LIMITS) == whole


if __name__ == "__main__":
    fuzz(one_input)
