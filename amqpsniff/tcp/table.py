# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""The table of conversations: open ones by slot, ended ones for a while, and the eviction order.

A slot is the place of an open conversation in the lists that the hot loop indexes. It is free
again in the batch after the conversation's end, so that within a batch it means one conversation.
Keys are a segment's addresses and ports as bytes, in the order of one direction; bytes, so that
Python's keyed hash stands between a capture and the table. That of a conversation is the smaller
one of its two directions: one key less saves very many conversations 130 bytes each.
"""

from __future__ import annotations

from array import array
from heapq import nsmallest

import cython
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
from cython.cimports.amqpsniff.tcp.conversation import Conversation
from cython.cimports.amqpsniff.tcp.half_stream import HalfStream
from cython.cimports.amqpsniff.tcp.limits import MIN_JUMP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize  # type: ignore

# Conversations that are looked up at once to make room for others: to look takes a ms for each
# thousand that are open, and what is found is kept.
QUIETEST = cython.declare(cython.int, 1_024)

# Bytes of a key: source and destination address, IP version and ports; of IPv4 without what is
# always 0, which saves very many conversations 64 bytes each.
KEY_BYTES = cython.declare(cython.longlong, 40)
IPV4_KEY_BYTES = cython.declare(cython.longlong, 12)

# What stands in the place of half-streams whose conversation has ended: one that is not open.
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
    def all_open(self, most: cython.longlong) -> list[Any]:
        """Open conversations in the order in which they were opened, at most `most`."""
        half: HalfStream
        found: list[Any] = []
        for half in self.keys.values():
            if len(found) == most:
                break
            found.append(self.conversations[half.index >> 1])
        return found
