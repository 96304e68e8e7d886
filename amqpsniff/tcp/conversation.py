"""A TCP conversation as a person names it, and what was counted of it."""

from __future__ import annotations

from hashlib import blake2b
from ipaddress import IPv6Address
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .half_stream import HalfStream

CONNECTION_ID_OCTETS = 8


class Endpoint(NamedTuple):
    """One side of a conversation: `address` as text, `packed` in network order."""

    address: str
    port: int
    packed: bytes

    def __str__(self) -> str:
        address = f"[{self.address}]" if len(self.packed) == 16 else self.address
        return f"{address}:{self.port}"


def endpoint(version: int, high: int, low: int, port: int) -> Endpoint:
    """An endpoint from the integers of a segment's row."""
    if version == 4:
        packed = low.to_bytes(4, "big")
        return Endpoint(".".join(map(str, packed)), port, packed)
    v6 = IPv6Address((high & 0xFFFFFFFFFFFFFFFF) << 64 | low & 0xFFFFFFFFFFFFFFFF)
    return Endpoint(str(v6), port, v6.packed)


def connection_id(one: Endpoint, other: Endpoint, isn: int | None, incarnation: int) -> str:
    """16 hex digits that name a conversation wherever it is read.

    From both endpoints, in an order that does not depend on who spoke first, and the originator's
    initial sequence number; where that was not captured, from which use of the two ports it is.
    """
    ends = sorted(end.packed + end.port.to_bytes(2, "big") for end in (one, other))
    if isn is not None:
        ends.append(isn.to_bytes(4, "big"))
    elif incarnation:
        ends.append(incarnation.to_bytes(8, "big"))
    return blake2b(b"".join(ends), digest_size=CONNECTION_ID_OCTETS).hexdigest()


class Conversation:
    """One TCP conversation; direction 0 is what the originator sends, 1 what the responder sends.

    The originator sent the SYN; where none was captured, it sent the first segment captured.
    `addresses`, `ports` and the counts below are pairs by direction. `a` and `b` are the endpoints
    as text. `syn_seen`: its beginning was captured (a SYN or the answer to one). `isn`: the
    originator's initial sequence number, null when not known. `incarnation`: how many conversations
    of the same endpoints came before it. `ended`: `fin`, `rst`, or null while it is open or when it
    never ended; `ended_by`: the direction that ended it first.

    Counts go on until the `CLOSE` and stay as they are then.
    """

    __slots__ = (
        "addresses",
        "ports",
        "a",
        "b",
        "syn_seen",
        "isn",
        "incarnation",
        "connection_id",
        "first_packet_number",
        "start_ns",
        "ended",
        "ended_by",
        "halves",
        "serial",
        "keys",
        "lingers",
        "findings_made",
    )

    def __init__(
        self,
        ends: tuple[Endpoint, Endpoint],
        isn: int | None,
        incarnation: int,
        halves: tuple[HalfStream, HalfStream],
    ) -> None:
        self.addresses = (ends[0].address, ends[1].address)
        self.ports = (ends[0].port, ends[1].port)
        self.a, self.b = str(ends[0]), str(ends[1])
        self.syn_seen = isn is not None
        self.isn = isn
        self.incarnation = incarnation
        self.connection_id = connection_id(ends[0], ends[1], isn, incarnation)
        self.first_packet_number = 0
        self.start_ns = 0
        self.ended: str | None = None
        self.ended_by: int | None = None
        self.halves = halves
        self.serial = 0
        self.keys: tuple[bytes, bytes] = (b"", b"")
        self.lingers = False
        self.findings_made: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<Conversation {self.a} > {self.b} {self.connection_id}>"

    @property
    def packets(self) -> tuple[int, int]:
        """Packets captured, by direction; from the one that opened it to the one that closed it."""
        return self.halves[0].packets, self.halves[1].packets

    @property
    def octets(self) -> tuple[int, int]:
        """Octets of the stream that were captured, each once, by direction."""
        return self.halves[0].octets, self.halves[1].octets

    @property
    def retransmissions(self) -> tuple[int, int]:
        """Segments whose octets had come before, by direction; not copies of one packet."""
        return self.halves[0].retransmissions, self.halves[1].retransmissions

    @property
    def gaps(self) -> tuple[int, int]:
        """Holes given up, by direction."""
        return self.halves[0].gaps, self.halves[1].gaps

    @property
    def cut_octets(self) -> tuple[int, int]:
        """Octets that the snap length cut off, by direction."""
        return self.halves[0].cut_octets, self.halves[1].cut_octets

    @property
    def lost_octets(self) -> tuple[int, int]:
        """Octets in those holes, by direction."""
        return self.halves[0].lost_octets, self.halves[1].lost_octets

    @property
    def last_half(self) -> HalfStream:
        """The direction of the last packet."""
        first, second = self.halves
        return first if first.activity >= second.activity else second

    @property
    def last_packet_number(self) -> int:
        """Packet number of the last packet, either direction."""
        return self.last_half.last_number

    @property
    def end_ns(self) -> int:
        """Time of the last packet."""
        return self.last_half.last_ns
