"""Packets by hand, and what reassembly makes of them, for the tests of this folder."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from amqpsniff.capture.packets import PacketBatch
from amqpsniff.tcp import Limits, Reassembler, StreamBatch

FIN, SYN, RST, ACK = 1, 2, 4, 16
IPV4_LINK = 228
START_NS = 1_700_000_000_000_000_000
MILLISECOND = 1_000_000


class Packet(NamedTuple):
    """One captured packet; `original` is its length on the wire, null: all of it was captured."""

    octets: bytes
    ts_ns: int = START_NS
    original: int | None = None
    link_type: int = IPV4_LINK

    def cut(self, captured: int) -> Packet:
        """The packet as a snap length leaves it."""
        return self._replace(octets=self.octets[:captured], original=len(self.octets))


def tcp(
    seq: int,
    payload: bytes = b"",
    flags: int = ACK,
    ack: int = 0,
    ports: tuple[int, int] = (40000, 5672),
    addresses: tuple[bytes, bytes] = (b"\x0a\0\0\1", b"\x0a\0\0\2"),
) -> bytes:
    """An IPv4 packet of one segment."""
    ports_of = struct.pack(">HH", *ports)
    segment = ports_of + struct.pack(
        ">IIBBHHH", seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, 0x50, flags, 1000, 0, 0
    )
    header = struct.pack(">BBHHHBBH", 0x45, 0, 40 + len(payload), 0, 0, 64, 6, 0)
    return header + addresses[0] + addresses[1] + segment + payload


class Talk:
    """Two hosts and the packets they send: `client` and `server` append one each to `packets`.

    Positions are offsets of the stream; sequence numbers follow from the two initial ones. What a
    side has sent so far is what the other acknowledges, unless `ack` says otherwise.
    """

    def __init__(
        self,
        isn: tuple[int, int] = (1000, 9000),
        step_ns: int = 1000,
        ports: tuple[int, int] = (40000, 5672),
        start_ns: int = START_NS,
    ) -> None:
        self.isn = list(isn)
        self.sent = [0, 0]
        self.ports = ports
        self.step_ns = step_ns
        self.now = start_ns
        self.packets: list[Packet] = []

    def put(
        self,
        side: int,
        payload: bytes = b"",
        at: int | None = None,
        flags: int = ACK,
        ack: int | None = None,
    ) -> Packet:
        """A segment of direction `side` whose payload starts at offset `at` (null: the next)."""
        offset = self.sent[side] if at is None else at
        answered = self.sent[1 - side] if ack is None else ack
        seq = self.isn[side] + (0 if flags & SYN else 1) + offset
        acknowledged = self.isn[1 - side] + 1 + answered if flags & ACK else 0
        octets = tcp(
            seq,
            payload,
            flags,
            acknowledged,
            self.ports if side == 0 else self.ports[::-1],
            (b"\x0a\0\0\1", b"\x0a\0\0\2") if side == 0 else (b"\x0a\0\0\2", b"\x0a\0\0\1"),
        )
        self.sent[side] = max(self.sent[side], offset + len(payload))
        self.now += self.step_ns
        packet = Packet(octets, self.now)
        self.packets.append(packet)
        return packet

    def client(self, payload: bytes = b"", **more: int) -> Packet:
        return self.put(0, payload, **more)

    def server(self, payload: bytes = b"", **more: int) -> Packet:
        return self.put(1, payload, **more)

    def hands(self) -> Talk:
        """The three segments of the handshake."""
        self.client(flags=SYN)
        self.server(flags=SYN | ACK)
        self.client()
        return self

    def goodbye(self) -> Talk:
        """FIN, FIN, and their acknowledgements."""
        self.client(flags=FIN | ACK)
        self.server(flags=FIN | ACK, ack=self.sent[0] + 1)
        self.client(at=self.sent[0] + 1, ack=self.sent[1] + 1)
        return self

    def wait(self, wait_ns: int) -> None:
        self.now += wait_ns


class Event(NamedTuple):
    """One row of a `StreamBatch`, without what depends on batches."""

    kind: str
    a: str
    connection_id: str
    direction: int
    offset: int
    number: int
    ts_ns: int
    payload: bytes | int


class Result(NamedTuple):
    """Everything that came out; findings are (code, connection_id, packet number)."""

    events: list[Event]
    findings: list[tuple[str, str, int]]
    conversations: list[tuple[Any, ...]]
    counters: dict[str, int]

    def stream(self, direction: int) -> list[Any]:
        """Payload and gaps of one direction; what follows each other is one."""
        parts: list[Any] = []
        for event in self.events:
            if event.direction == direction and event.kind in ("data", "gap"):
                last = parts[-1] if parts else None
                if type(last) is type(event.payload):
                    parts[-1] = last + event.payload
                else:
                    parts.append(event.payload)
        return parts

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    def codes(self) -> list[str]:
        return [code for code, _, _ in self.findings]


def batch(packets: Sequence[Packet], first_number: int = 1) -> PacketBatch:
    """Packets as a batch of their own block."""
    columns = [array("q") for _ in range(6)]
    block = bytearray()
    for index, packet in enumerate(packets):
        original = len(packet.octets) if packet.original is None else packet.original
        row = (
            first_number + index,
            packet.ts_ns,
            len(block),
            len(packet.octets),
            original,
            packet.link_type,
        )
        for column, value in zip(columns, row, strict=True):
            column.append(value)
        block += packet.octets
    return PacketBatch("capture", bytes(block), 0, len(packets), *columns)


def _described(result: Result, output: StreamBatch) -> None:
    for row, (kind, talk, direction, offset, number, payload) in enumerate(output.events()):
        event = Event(
            kind,
            talk.a,
            talk.connection_id,
            direction,
            offset,
            number,
            output.ts_ns[row],
            payload,
        )
        result.events.append(event)
        if kind == "close":
            result.conversations.append(facts(talk))
    result.findings.extend(
        (finding.code, finding.conversation.connection_id, finding.packet_number)
        for finding in output.findings
    )


def facts(talk: object) -> tuple[object, ...]:
    """What a conversation says of itself."""
    names = (
        "a b syn_seen isn incarnation connection_id first_packet_number start_ns "
        "last_packet_number end_ns ended ended_by packets octets retransmissions gaps lost_bytes"
    )
    return tuple(getattr(talk, name) for name in names.split())


def run(
    packets: Iterable[Packet],
    size: int | None = None,
    limits: Limits | None = None,
    ports: frozenset[int] | None = None,
) -> Result:
    """Feed packets, `size` a batch (null: all in one), and collect what comes out."""
    everything = list(packets)
    machine = Reassembler(ports, limits or Limits())
    result = Result([], [], [], {})
    step = size or max(len(everything), 1)
    for first in range(0, len(everything), step):
        _described(result, machine.feed(batch(everything[first : first + step], first + 1)))
    _described(result, machine.finish())
    result.counters.update(machine.counters)
    contiguous(result)
    return result


def contiguous(result: Result) -> None:
    """Every half-stream's events follow each other between an open and a close."""
    positions: dict[tuple[str, int], int] = {}
    open_now: set[str] = set()
    for event in result.events:
        if event.kind == "open":
            assert event.connection_id not in open_now
            open_now.add(event.connection_id)
            positions[event.connection_id, 0] = positions[event.connection_id, 1] = 0
            continue
        assert event.connection_id in open_now
        if event.kind == "close":
            open_now.remove(event.connection_id)
            continue
        size = len(event.payload) if isinstance(event.payload, bytes) else event.payload
        assert size > 0
        assert event.offset == positions[event.connection_id, event.direction]
        positions[event.connection_id, event.direction] = event.offset + size
    assert not open_now


def alike_in_any_batches(packets: Sequence[Packet], limits: Limits | None = None) -> Result:
    """The result, after checking that it does not depend on how packets came."""
    whole = run(packets, limits=limits)
    for size in (1, 2, 3, 7):
        assert run(packets, size, limits) == whole
    return whole
