"""What a broker cannot be brought to do: edits of conversations that it had."""

from __future__ import annotations

from collections.abc import Callable

Packets = list[tuple[int, bytes]]


def _written(before: bytes, after: bytes) -> Callable[[Packets], Packets]:
    """Other bytes of the same length, where they stand once."""

    def edit(packets: Packets) -> Packets:
        assert len(before) == len(after)
        assert sum(packet.count(before) for _, packet in packets) == 1
        return [(ts_ns, packet.replace(before, after)) for ts_ns, packet in packets]

    return edit


def _another(packet: bytes) -> bytes:
    """An IP packet with another identification, behind Ethernet."""
    return packet[:18] + bytes((packet[18] ^ 0x80,)) + packet[19:]


def _sent_again(count: int) -> Callable[[Packets], Packets]:
    """Publishes that are there twice, the second 300 ms after the first, in other IP packets."""

    def edit(packets: Packets) -> Packets:
        sent = [one for one in packets if b"\x00\x3c\x00\x28" in one[1]][:count]
        late = [(ts_ns + 300_000_000, _another(packet)) for ts_ns, packet in sent]
        return sorted([*packets, *late], key=lambda one: one[0])

    return edit


EDITS: dict[tuple[str, str], Callable[[Packets], Packets]] = {
    ("prefetch-exceeded", "shown"): _written(
        b"\x00\x3c\x00\x0a\x00\x00\x00\x00\x00\x04", b"\x00\x3c\x00\x0a\x00\x00\x00\x00\x00\x01"
    ),
    ("tcp-retransmissions", "shown"): _sent_again(20),
    ("tcp-retransmissions", "nearly"): _sent_again(5),
    ("login-anonymous", "shown"): _written(
        b"\x05PLAIN\x00\x00\x00\x0d\x00guest\x00secret", b"\x09ANONYMOUS\x00\x00\x00\x09secretsec"
    ),
    ("field-name-duplicate", "shown"): _written(b"\x05other", b"\x05first"),
    ("field-table-malformed", "shown"): _written(
        b"\x05firstS\x00\x00\x00\x0b", b"\x05firstS\x00\x00\x01\x0b"
    ),
    ("properties-malformed", "shown"): _written(b"\x0atext/plain", b"\x7etext/plain"),
}
"""By code and kind: what is written into a capture afterwards."""
