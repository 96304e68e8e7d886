# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""TCP conversations: the names and counts of one, and the table of all that are open.

A capture may have hundreds of thousands of short ones, so texts are made on demand.

The table has open conversations by slot, ended ones for a while, and the order of eviction. A slot
is the place of an open conversation in the lists that the hot loop indexes. It is free again in the
batch after the conversation's end, so that within a batch it means one conversation. Keys are a
segment's addresses and ports as bytes, in the order of one direction; bytes, so that Python's keyed
hash stands between a capture and the table. That of a conversation is the smaller one of its two
directions: one key less saves very many conversations 130 bytes each.
"""

from __future__ import annotations

from array import array
from heapq import nsmallest
from ipaddress import IPv6Address

import cython
from cython.cimports.amqpsniff.packet_numbers import NUMBER_MASK
from cython.cimports.amqpsniff.tcp.codes import (
    A_HIGH,
    A_LOW,
    B_HIGH,
    B_LOW,
    MASK,
    PORTS,
    SEQ,
    SIGN32,
)
from cython.cimports.amqpsniff.tcp.half_stream import HalfStream
from cython.cimports.amqpsniff.tcp.limits import MIN_JUMP

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize  # type: ignore

try:
    from _blake2 import blake2b  # what hashlib gives, which loads OpenSSL first, for 2 ms
except ImportError:
    from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .half_stream import ZeroWindow
    from .retransmissions import ResentTime

CONNECTION_ID_BYTES = 8

MAX_HOSTS = 1024
"""Addresses whose text is remembered: a capture has many connections, but few hosts."""

_OCTETS: list[str] = cython.declare(list, list(map(str, range(256))))
_HOSTS: dict[bytes, str] = cython.declare(dict, {})
_HASH = blake2b(digest_size=CONNECTION_ID_BYTES)  # to copy takes half as long as to make one


@cython.cclass
class _Shown:
    """The endpoint that was shown last, and its text."""

    version: cython.int
    port: cython.int
    high: cython.longlong
    low: cython.longlong
    text: str

    def __init__(self) -> None:
        self.version = self.port = 0
        self.high = self.low = 0
        self.text = ""


_RESPONDER = cython.declare(_Shown, _Shown())
"""Very many conversations have one responder."""


@cython.cclass
class Conversation:
    """One TCP conversation; direction 0 is what the originator sends, 1 what the responder sends.

    The originator sent the SYN, or without a captured SYN the first captured segment. Counts are
    pairs by direction; they are final at the `CLOSE`.
    """

    first: HalfStream  # what the originator sends
    second: HalfStream  # what the responder sends

    # endpoints
    version: cython.int  # of IP, 4 or 6
    a_port: cython.int  # the originator is `a`, the responder `b`
    b_port: cython.int
    a_high: cython.longlong  # the halves of an address, as in `codes`
    a_low: cython.longlong
    b_high: cython.longlong
    b_low: cython.longlong
    key: bytes  # in the table of conversations
    incarnation: cython.longlong  # how many conversations of the same endpoints came before it
    name: str  # its `connection_id`, once asked for

    # beginning
    syn_seen: cython.bint  # a SYN or the answer to one was captured
    first_isn: cython.longlong  # the originator's initial sequence number, -1 if unknown
    first_packet_number: cython.longlong
    start_ns: cython.longlong
    serial: cython.longlong  # unique: number of its first packet, and index of its capture
    syn_ns: cython.longlong  # time of the last SYN before it was answered, as far as captured
    syns_again: cython.int  # how often the SYN was sent again
    answers_again: cython.int  # how often the answer to it was
    round_trip_ns: cython.longlong  # last SYN to acknowledgement of its answer; -1 if unknown
    unreachable: cython.longlong  # the code of the first ICMP packet about the SYN, -1 without one

    # end
    ended: Any  # `fin`, `rst`, or None: it is open, or never ended
    ended_by: Any  # the direction that ended it first
    ended_ns: cython.longlong  # when that was, -1 if it was not
    ended_number: cython.longlong
    reset_ns: cython.longlong  # the time of a RST that TCP takes, -1 without one
    reset: Any  # a `Reset` whose consequences are still in doubt, or None
    successor: Any  # a `PossibleSuccessor`, or None
    lingers: cython.bint  # only an acknowledgement is missing, see `Limits.linger_ns`
    over_ns: cython.longlong  # when it was taken for over, whatever others there are; else -1

    findings_made: dict[Any, Any]  # how many of each code
    tls: Any  # what the TLS stage knows of it; None where it is not TLS

    def __init__(self, first: HalfStream, second: HalfStream) -> None:
        self.first = first
        self.second = second
        self.syn_seen = False
        self.first_isn = -1
        self.incarnation = 0
        self.first_packet_number = 0
        self.start_ns = self.syn_ns = 0
        self.syns_again = self.answers_again = 0
        self.over_ns = self.ended_ns = self.reset_ns = -1
        self.ended_number = 0
        self.ended = None
        self.ended_by = None
        self.serial = 0
        self.key = b""
        self.lingers = False
        self.reset = self.successor = None
        self.round_trip_ns = -1
        self.unreachable = -1
        self.findings_made = None
        self.name = None
        self.tls = None

    def __repr__(self) -> str:
        return f"<Conversation {self.a} > {self.b} {self.connection_id}>"

    def take_ends(
        self, rows: cython.longlong[::1], at: cython.longlong, turned: cython.bint
    ) -> cython.int:
        """The endpoints are those of a segment's row; `turned`: the responder sent it."""
        self.version = rows[at + PORTS] >> 32
        self.a_port = rows[at + PORTS] >> 16 & 0xFFFF
        self.b_port = rows[at + PORTS] & 0xFFFF
        self.a_high, self.a_low = rows[at + A_HIGH], rows[at + A_LOW]
        self.b_high, self.b_low = rows[at + B_HIGH], rows[at + B_LOW]
        if turned:
            self.a_port, self.b_port = self.b_port, self.a_port
            self.a_high, self.b_high = self.b_high, self.a_high
            self.a_low, self.b_low = self.b_low, self.a_low
        return 0

    @property
    def ports(self) -> tuple[int, int]:
        """TCP ports, by direction of their side."""
        return self.a_port, self.b_port

    @property
    def a(self) -> str:
        """The originator as `address:port`."""
        return _shown(self.version, self.a_high, self.a_low, self.a_port)

    @property
    def b(self) -> str:
        """The responder as `address:port`."""
        last: _Shown = _RESPONDER
        if (
            last.port != self.b_port
            or last.low != self.b_low
            or last.high != self.b_high
            or last.version != self.version
        ):
            last.version, last.port = self.version, self.b_port
            last.high, last.low = self.b_high, self.b_low
            last.text = _shown(self.version, self.b_high, self.b_low, self.b_port)
        return last.text

    @property
    def isn(self) -> int | None:
        """The originator's initial sequence number."""
        return None if self.first_isn < 0 else self.first_isn

    @property
    def starts(self) -> tuple[int | None, int | None]:
        """The sequence number of stream offset 0, by direction; None if unknown."""
        return _start(self.first), _start(self.second)

    @property
    def acked(self) -> tuple[int, int]:
        """The highest offset acknowledged beyond a hole, by direction; 0 without one."""
        return self.first.acked, self.second.acked

    @property
    def connection_id(self) -> str:
        """16 hex digits that identify a conversation, the same in every capture of it.

        They are computed from both endpoints, in an order that does not depend on the direction,
        and from the originator's initial sequence number, or without it from the number of earlier
        conversations of the two endpoints.
        """
        if self.name is None:
            self.name = self._name()
        return self.name

    @cython.cfunc
    def _name(self) -> str:
        number: cython.longlong = self.incarnation
        width: cython.int = 8 if number else 0
        if self.first_isn >= 0:
            number, width = self.first_isn, 4
        half: cython.int = 6 if self.version == 4 else 18
        octets: bytearray = bytearray(2 * half + width)
        _put_end(octets, 0, self.version, self.a_high, self.a_low, self.a_port)
        _put_end(octets, half, self.version, self.b_high, self.b_low, self.b_port)
        at: cython.int = 0
        while at < half - 1 and octets[at] == octets[half + at]:
            at += 1
        if octets[at] > octets[half + at]:
            _put_end(octets, 0, self.version, self.b_high, self.b_low, self.b_port)
            _put_end(octets, half, self.version, self.a_high, self.a_low, self.a_port)
        _put(octets, 2 * half, number, width)
        hashed = _HASH.copy()
        hashed.update(octets)
        return hashed.hexdigest()

    @property
    def packets(self) -> tuple[int, int]:
        """Packets captured, by direction; from the one that opened it to the one that closed it."""
        return self.first.packets, self.second.packets

    @property
    def copies(self) -> tuple[int, int]:
        """Packets among them that are another one captured once more, by direction."""
        return self.first.copies, self.second.copies

    @property
    def octets(self) -> tuple[int, int]:
        """Bytes of the stream that were captured, each once, by direction."""
        return self.first.octets, self.second.octets

    @property
    def retransmissions(self) -> tuple[int, int]:
        """Segments whose bytes had come before, and SYNs, by direction; no copies of packets."""
        return self.first.retransmissions, self.second.retransmissions

    @property
    def connecting_ns(self) -> int:
        """Time from the first SYN to the acknowledgement of its answer; -1 if unknown."""
        if self.round_trip_ns < 0:
            return -1
        return self.syn_ns - self.start_ns + self.round_trip_ns

    @property
    def first_retransmissions(self) -> tuple[Any, Any]:
        """(packet number, ts_ns) of the first of them, by direction; None without any."""
        return self.first.first_retransmission, self.second.first_retransmission

    @property
    def resent(self) -> tuple[ResentTime | None, ResentTime | None]:
        """The longest time in which the same bytes were sent again, by direction."""
        return _resent(self.first), _resent(self.second)

    @property
    def resent_bytes(self) -> tuple[int, int]:
        """Length of the last segment that was sent again, by direction; 0 without any."""
        return _repeated_bytes(self.first), _repeated_bytes(self.second)

    @property
    def unarrived(self) -> tuple[Any, Any]:
        """(bytes, since when) that a side has sent, as its empty segments show, and that neither
        came to where the capture was taken nor were acknowledged, by direction; else null.
        """
        return _unarrived(self.first), _unarrived(self.second)

    @property
    def impaired(self) -> bool:
        """True if a segment came more than once, or a hole was given up."""
        first, second = self.first, self.second
        return bool(first.retransmissions + second.retransmissions + first.gaps + second.gaps)

    @property
    def awaited_acks(self) -> tuple[int, int]:
        """Segments sent as soon as a delayed acknowledgement of all before came, by direction."""
        return self.first.awaited_acks, self.second.awaited_acks

    @property
    def owed(self) -> tuple[bool, bool]:
        """True if held bytes or acknowledgements show more than was handed on, by direction."""
        return _owes(self.first), _owes(self.second)

    @property
    def unacknowledged(self) -> tuple[bool, bool]:
        """True if bytes sent are not acknowledged by the other side's last packet, by direction."""
        return _waits(self.first), _waits(self.second)

    @property
    def gaps(self) -> tuple[int, int]:
        """Holes given up, by direction."""
        return self.first.gaps, self.second.gaps

    @property
    def cut_bytes(self) -> tuple[int, int]:
        """Bytes that the snap length cut off, by direction."""
        return self.first.cut_bytes, self.second.cut_bytes

    @property
    def lost_bytes(self) -> tuple[int, int]:
        """Bytes in those holes, by direction."""
        return self.first.lost_bytes, self.second.lost_bytes

    @property
    def holes(self) -> tuple[int, int]:
        """Number of holes, and the bytes in them, of the directions that were captured.

        A direction without a packet is missing as a whole: what the other acknowledges is no hole.
        """
        captured = [half for half in (self.first, self.second) if half.packets]
        return sum(half.gaps for half in captured), sum(half.lost_bytes for half in captured)

    @property
    def zero_windows(self) -> tuple[ZeroWindow | None, ZeroWindow | None]:
        """Time in which each direction's sender had a closed window while data waited for it."""
        return (
            self.first.zero_window(self.second, self.end_ns),
            self.second.zero_window(self.first, self.end_ns),
        )

    @property
    def syn_ignored(self) -> bool:
        """True if a SYN with other numbers did not begin another conversation."""
        return self.findings_made is not None and "tcp-syn-ignored" in self.findings_made

    def may_report(self, code: Any, max_findings: cython.int) -> cython.bint:
        """Count a finding; whether there were fewer than `max_findings` of its code before."""
        if self.findings_made is None:
            self.findings_made = {}
        count = self.findings_made.get(code, 0)
        self.findings_made[code] = count + 1
        return count < max_findings

    @cython.cfunc
    def last_half(self) -> HalfStream:
        """The direction of the last packet."""
        return self.first if self.first.activity >= self.second.activity else self.second

    @cython.ccall
    @cython.exceptval(-2)
    def last_number(self) -> cython.longlong:
        """Number of the last packet, with the index of its capture."""
        return self.last_half().last_number

    @property
    def last_packet_number(self) -> int:
        """Packet number of the last packet, either direction."""
        return self.last_number() & NUMBER_MASK

    @property
    def ended_packet_number(self) -> int:
        """The packet that ended it first."""
        return self.ended_number & NUMBER_MASK

    @property
    def reset_by_stranger(self) -> bool:
        """True if a RST without an acknowledgement ended it first: so answers a host that has no
        such connection (RFC 9293 §3.10.7.1), while one that ends its own sets the ACK flag.
        """
        return self.ended == "rst" and self.reset.ack < 0

    @property
    def end_acknowledged(self) -> bool:
        """True if a FIN ended it first, and the other side acknowledged it."""
        if self.ended != "fin":
            return False
        return bool((self.second if self.ended_by else self.first).fin_acked)

    @property
    def last_times_ns(self) -> tuple[int, int]:
        """Time of the last packet, by direction."""
        return self.first.last_ns, self.second.last_ns

    @property
    def last_packet_numbers(self) -> tuple[int, int]:
        """Number of the last packet, by direction."""
        return self.first.last_number & NUMBER_MASK, self.second.last_number & NUMBER_MASK

    @property
    def end_ns(self) -> int:
        """Time of the last packet."""
        return self.last_half().last_ns


@cython.cfunc
def _repeated_bytes(half: HalfStream) -> cython.longlong:
    return 0 if half.repeated is None else half.repeated[1]


@cython.cfunc
def _unarrived(half: HalfStream) -> tuple[Any, ...]:
    arrived: cython.longlong = max(half.next_offset, half.acked)
    if half.next_seq < 0 or half.sent <= arrived or half.sent_ns <= 0:
        return None
    return half.sent - arrived, half.sent_ns


@cython.cfunc
def _owes(half: HalfStream) -> cython.bint:
    """True if bytes of a direction are waited for, or wait for those of the other."""
    if half.holds():
        return True
    return half.next_seq >= 0 and half.known_end() > half.next_offset


@cython.cfunc
def _waits(half: HalfStream) -> cython.bint:
    """True if the last bytes of a direction have no acknowledgement."""
    unacked: cython.longlong = (half.next_seq - half.ack_seq) & 0xFFFFFFFF
    return half.ack_seen and half.next_seq >= 0 and 0 < unacked < 1 << 31


@cython.cfunc
def _resent(half: HalfStream) -> Any:
    return None if half.resent is None else half.resent.time(half.next_offset)


@cython.cfunc
def _start(half: HalfStream) -> Any:
    """The sequence number of a half-stream's first byte."""
    return None if half.next_seq < 0 else (half.next_seq - half.next_offset) & MASK


@cython.cfunc
@cython.exceptval(-1, check=True)
def _put(
    octets: bytearray, at: cython.int, number: cython.longlong, count: cython.int
) -> cython.int:
    """Write the last `count` bytes of a number in network order; gives the index after them."""
    after: cython.int = at + count
    index: cython.int = after
    while index > at:
        index -= 1
        octets[index] = number & 0xFF
        number >>= 8
    return after


@cython.cfunc
@cython.exceptval(-1, check=True)
def _put_end(
    octets: bytearray,
    at: cython.int,
    version: cython.int,
    high: cython.longlong,
    low: cython.longlong,
    port: cython.int,
) -> cython.int:
    """Write an endpoint: the address and the port."""
    if version != 4:
        at = _put(octets, at, high, 8)
    at = _put(octets, at, low, 4 if version == 4 else 8)
    return _put(octets, at, port, 2)


@cython.cfunc
def _shown(
    version: cython.int, high: cython.longlong, low: cython.longlong, port: cython.int
) -> str:
    """An endpoint as text."""
    key: Any = low
    if version != 4:
        key = high, low
    host = _HOSTS.get(key)
    if host is None:
        if len(_HOSTS) >= MAX_HOSTS:
            _HOSTS.clear()
        host = _HOSTS[key] = _host(version, high, low)
    return f"{host}:{port}"


@cython.cfunc
def _host(version: cython.int, high: cython.longlong, low: cython.longlong) -> str:
    """An address as text, one of IPv6 in brackets."""
    if version == 4:
        parts = _OCTETS[low >> 24 & 255], _OCTETS[low >> 16 & 255], _OCTETS[low >> 8 & 255]
        return ".".join((*parts, _OCTETS[low & 255]))
    octets: bytearray = bytearray(16)
    _put(octets, _put(octets, 0, high, 8), low, 8)
    return f"[{IPv6Address(bytes(octets))}]"


# Conversations that are looked up at once to make room for others: to look takes a ms for each
# thousand that are open, and what is found is kept.
QUIETEST = cython.declare(cython.int, 1_024)

# Bytes of a key: source and destination address, IP version and ports; of IPv4 without what is
# always 0, which saves very many conversations 64 bytes each.
KEY_BYTES = cython.declare(cython.longlong, 40)
IPV4_KEY_BYTES = cython.declare(cython.longlong, 12)

# Placeholder for half-streams whose conversation has ended: one that is not open.
_ENDED = cython.declare(HalfStream, HalfStream(None, -1))
_ENDED.open = 0


@cython.cfunc
def key_of(rows: cython.longlong[::1], at: cython.longlong) -> bytes:
    """The addresses and ports of the segment at `at`, as bytes."""
    if not 0 <= at < len(rows) - PORTS:
        raise IndexError("no such row")
    if rows[at + PORTS] >> 32 == 4:
        numbers: cython.uint[3]
        numbers = [rows[at + A_LOW] & MASK, rows[at + B_LOW] & MASK, rows[at + PORTS] & MASK]  # type: ignore
        if cython.compiled:
            return PyBytes_FromStringAndSize(
                cython.cast(cython.p_char, cython.address(numbers[0])), IPV4_KEY_BYTES
            )
        return array("I", numbers).tobytes()  # type: ignore
    if cython.compiled:
        first = cython.cast(cython.p_char, cython.address(rows[at + A_HIGH]))
        return PyBytes_FromStringAndSize(first, KEY_BYTES)
    return cython.cast(object, rows)[at + A_HIGH : at + PORTS + 1].tobytes()


@cython.cfunc
@cython.exceptval(-2, check=True)
def _before(half: HalfStream) -> cython.longlong:
    """The number before a direction's first byte; -1 if that is unknown."""
    if half.isn >= 0 or half.next_seq < 0:
        return half.isn
    return (half.next_seq - half.next_offset - 1) & MASK


@cython.cclass
class Closed:
    """Facts of a conversation that are kept after its end; -1 for unknown numbers."""

    key: bytes
    next_seq: cython.longlong  # of the direction of its key
    back_next_seq: cython.longlong  # of the other direction
    isn: cython.longlong  # in the same way
    back_isn: cython.longlong
    incarnation: cython.longlong
    over: cython.bint  # it ended; otherwise it was given up and may continue

    def __init__(self) -> None:
        self.key = b""


@cython.cclass
class ConversationTable:
    """Open and recently closed conversations, bounded by `Limits`."""

    halves: list[Any]  # by slot * 2 + direction
    conversations: list[Any]  # by slot
    keys: dict[Any, Any]  # by conversation's key the half-stream of the direction with that key
    open_count: cython.longlong  # open conversations
    near: cython.longlong  # bytes within which a late segment is of a conversation that ended
    remembered: cython.longlong  # how many closed ones at most
    turned: cython.longlong[
        ::1
    ]  # the addresses and ports of a segment's other direction, as in a row
    _closed: dict[Any, Any]  # by key the last one that ended
    _ended: list[Any]  # a ring of all that are remembered
    _oldest: cython.longlong  # index of the one that ended first
    _free: list[Any]  # slots
    _free_next_batch: list[Any]
    _quiet: list[Any]  # see `least_active`

    def __init__(self, limits: Any) -> None:
        self.near = limits.closed_near_bytes
        self.remembered = limits.closed_conversations
        self.halves = []
        self.conversations = []
        self.keys = {}
        self.open_count = 0
        self._free = []
        self._free_next_batch = []
        self._closed = {}
        self._ended = []
        self._oldest = 0
        self._quiet = []
        self.turned = array("q", [0]) * (PORTS + 1)

    @cython.cfunc
    def back_key(self, rows: cython.longlong[::1], at: cython.longlong) -> bytes:
        """The key of the other direction than the segment's."""
        ports: cython.longlong = rows[at + PORTS]
        turned: cython.longlong[::1] = self.turned
        turned[A_HIGH], turned[A_LOW] = rows[at + B_HIGH], rows[at + B_LOW]
        turned[B_HIGH], turned[B_LOW] = rows[at + A_HIGH], rows[at + A_LOW]
        turned[PORTS] = (ports >> 32) << 32 | (ports & 0xFFFF) << 16 | (ports >> 16 & 0xFFFF)
        return key_of(turned, 0)

    @cython.cfunc
    def key(self, rows: cython.longlong[::1], at: cython.longlong) -> bytes:
        """The key of the conversation of a segment."""
        key: bytes = key_of(rows, at)
        back_key: bytes = self.back_key(rows, at)
        return min(key, back_key)

    @cython.cfunc
    def find(self, rows: cython.longlong[::1], at: cython.longlong) -> HalfStream:
        """The half-stream of a segment, or None."""
        key: bytes = key_of(rows, at)
        back_key: bytes = self.back_key(rows, at)
        half: HalfStream = self.keys.get(min(key, back_key))
        if half is None or key <= back_key:
            return half
        return self.halves[half.index ^ 1]

    @cython.ccall
    @cython.exceptval(-1)
    def begin_batch(self) -> cython.int:
        """Slots of conversations that ended in the last batch may be used again."""
        slot: cython.Py_ssize_t
        for slot in self._free_next_batch:
            self.conversations[slot] = None
            self.halves[slot * 2] = self.halves[slot * 2 + 1] = _ENDED
        self._free.extend(self._free_next_batch)
        self._free_next_batch.clear()
        return 0

    def free_slot(self) -> cython.longlong:
        """A slot that no conversation has in this batch."""
        if self._free:
            return self._free.pop()
        self.conversations.append(None)
        self.halves.append(None)
        self.halves.append(None)
        return len(self.conversations) - 1

    def add(
        self,
        slot: cython.longlong,
        conversation: Conversation,
        half: HalfStream,
        serial: cython.longlong,
    ) -> cython.int:
        """Enter a conversation; `half` is that of the direction of its key."""
        conversation.serial = serial
        self.conversations[slot] = conversation
        self.halves[slot * 2] = conversation.first
        self.halves[slot * 2 + 1] = conversation.second
        self.keys[conversation.key] = half
        self.open_count += 1
        return 0

    def remove(self, conversation: Conversation, over: cython.bint) -> cython.int:
        """Remove a conversation, and keep the data that identify its late segments."""
        half: HalfStream = self.keys.pop(conversation.key)
        self._free_next_batch.append(conversation.first.index >> 1)
        self.open_count -= 1
        if self.remembered > 0:
            self._remember(conversation, half, self._record(), over)
        return 0

    @cython.cfunc
    def _record(self) -> Closed:
        """A record to be written: a new one, or that of the conversation which ended first."""
        record: Closed
        if len(self._ended) < self.remembered:
            record = Closed()
            self._ended.append(record)
            return record
        record = self._ended[self._oldest]
        self._oldest = (self._oldest + 1) % self.remembered
        if self._closed.get(record.key) is record:
            del self._closed[record.key]
        return record

    def _remember(
        self, conversation: Conversation, half: HalfStream, record: Closed, over: cython.bint
    ) -> cython.int:
        other: HalfStream = self.halves[half.index ^ 1]
        record.key = conversation.key
        record.next_seq, record.back_next_seq = half.next_seq, other.next_seq
        record.isn, record.back_isn = _before(half), _before(other)
        record.incarnation = conversation.incarnation
        record.over = over
        self._closed[record.key] = record
        return 0

    def incarnation(self, key: bytes) -> cython.longlong:
        """Number of earlier conversations of these endpoints."""
        record: Closed = self._closed.get(key)
        return 0 if record is None else record.incarnation + 1

    def is_straggler(
        self,
        rows: cython.longlong[::1],
        at: cython.longlong,
        seq: cython.longlong,
        syn: cython.bint,
    ) -> cython.bint:
        """True if a segment without a conversation is a late one of a conversation that ended."""
        record: Closed = self._closed.get(self.key(rows, at))
        expected: cython.longlong
        isn: cython.longlong
        back: cython.bint
        if record is None or not record.over:
            return False
        back = key_of(rows, at) != record.key
        isn = record.back_isn if back else record.isn
        if syn:
            return seq == isn
        expected = record.back_next_seq if back else record.next_seq
        if isn >= 0 and (isn - seq) & MASK < SIGN32 and seq != isn:
            return False  # before its first byte
        return expected >= 0 and (seq - expected + self.near) & MASK <= 2 * self.near

    def is_beyond(self, rows: cython.longlong[::1], at: cython.longlong) -> cython.bint:
        """True if the bytes of a segment come after all of a conversation that ended."""
        record: Closed = self._closed.get(self.key(rows, at))
        ahead: cython.longlong
        back: cython.bint
        if record is None:
            return False
        back = key_of(rows, at) != record.key
        ahead = (rows[at + SEQ] - (record.back_next_seq if back else record.next_seq)) & MASK
        return MIN_JUMP <= ahead < SIGN32

    @cython.cfunc
    def least_active(self) -> Conversation:
        """The open conversation that has been quiet for the longest time.

        `QUIETEST` are looked up at once and used until none of them has stayed quiet since: all
        others have been active later, so the first one left is the answer.
        """
        conversation: Conversation
        while True:
            while self._quiet:
                activity, _, conversation = self._quiet.pop()
                if conversation.first.open and conversation.last_half().activity == activity:
                    return conversation
            activities: list[Any] = []
            for conversation in self.all_open(self.open_count):
                activities.append(conversation.last_half().activity)
            last: cython.longlong = max(nsmallest(QUIETEST, activities))
            for conversation in self.all_open(self.open_count):
                activity = conversation.last_half().activity
                if activity <= last:
                    self._quiet.append((activity, conversation.serial, conversation))
            self._quiet.sort(reverse=True)

    @cython.cfunc
    def all_open(self, max_count: cython.longlong) -> list[Any]:
        """Open conversations in the order in which they were opened, at most `max_count`."""
        half: HalfStream
        conversations: list[Any] = []
        for half in self.keys.values():
            if len(conversations) == max_count:
                break
            conversations.append(self.conversations[half.index >> 1])
        return conversations
