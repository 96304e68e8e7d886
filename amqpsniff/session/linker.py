# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Links publishes to their deliveries, and requests to their replies, across connections.

A broker gives a message no identifier, so a delivery is matched by its content: virtual host,
exchange, routing key, size, properties and, if computed, the hash of the body (`fingerprint`).
Equal publishes form a line (`PublishIndex`), and each queue delivers them in their order: its next
delivery matches the first publish that it has not delivered yet. A later delivery of the same
message (`redelivered`, or dead-lettered) is matched with the publishes that its queue delivered
before.

A link is `exact` if only one publish matches and it has a message id; `likely` if only one of the
remembered publishes matches; `ambiguous` if several were equal and the order decided, and for the
publishes that such a choice left over.

An unknown queue (its consumer began before the capture) is identified by the routing key with the
default exchange; with other exchanges every consumer counts as one with its own queue.

Messages of AMQP 1.0 have no exchange and no stable routing key: they are matched by their
`identity`, and so are messages that go from one protocol to the other. Publishes of 0-9-1 with a
message-id have one too.

A request is a publish with `reply_to`, its reply the publish to that address (`RpcRequests`). A
request waits under its address and correlation id. A reply goes through the default exchange with
the address as its routing key; an address of the form `exchange/key` is also recognized. For direct
replies the broker makes the address when it delivers the request. Before that, and if the server's
connection was not captured, the request waits under its own channel, where such a reply must be
delivered. Several requests with the same address and correlation id (or without one) are answered
in their order.

A `Linker` gets messages one after the other, as a `LinkRecord` each, of one reader or of several
(`log_replay`).
"""

from __future__ import annotations

from collections import deque

import cython
from cython.cimports.amqpsniff.clock import elapsed
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.codes import (
    DEAD_LETTERED,
    DIRECT_REPLY,
    DIRECT_ROUTING_KEY,
    HAS_ADDRESS,
    HAS_MESSAGE_ID,
    HAS_ROUTING_KEY,
    IS_PUBLISH,
    IS_REDELIVERED,
    IS_REQUEST,
    OWN_QUEUE,
)
from cython.cimports.amqpsniff.session.fingerprint import mixed

from amqpsniff.session.limits import Memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.session.entities import Session

MATCHES = ("exact", "likely", "ambiguous")
"""Confidence that a delivery is of a publish, by code."""

_EXACT = cython.declare(cython.int, 0)
_LIKELY = cython.declare(cython.int, 1)
_AMBIGUOUS = cython.declare(cython.int, 2)

UNKNOWN_VHOST = 0
"""Stands for an unknown virtual host."""

_MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_REPLY = cython.declare(cython.ulonglong, 0x2545F4914F6CDD1D)
_BY_PACK = cython.declare(cython.ulonglong, 0xD6E8FEB86659FD93)
"""Stands for the address of requests whose ids packs name."""
_UNKNOWN_VHOST = cython.declare(cython.ulonglong, UNKNOWN_VHOST)


# messages


NUMBERS = (
    "flags connection channel packet_number sent_ns connection_id vhost line other routing_key "
    "queue correlation reply_to deadline identity asks answers"
).split()
"""Integers of a message. `connection` counts connections, negative for an unknown one;
`connection_id` is its id as a number. `line`: size, properties, exchange and routing key. `other`:
of a delivery that died, the same with what it was published with; of a publish of 0-9-1, exchange
and routing key as one address; of one of 1.0, message-id and correlation-id, by which 0-9-1 looks
for it. `queue`: its name, or the consumer's tag. `correlation`: the correlation-id. `reply_to`: an
address. `deadline`: when a request expires, null for never.
`identity`: what AMQP 1.0 hands on, also from 0-9-1: message-id, correlation-id and size, or
without a message-id what is immutable; 0 where that is not known. Of a delivery of 0-9-1, the same
without the size, since a broker writes bodies that are values with their type. `asks`, `answers`:
the id of a request and of the one that is answered, where a framework keeps them in headers or
bodies; 0 for none. A message of 1.0 has no line, and an address for a routing key."""


@cython.cclass
class LinkRecord:
    """A message; the object is reused for the next one.

    `session` is the connection that sent or received it, None if another reader has it. The linker
    sets `published` if it found the publish, `replies` if it found the request, and their fields;
    `delivery_number` is negative for none, unknown times are `NULL`.
    """

    session: Session
    flags: cython.longlong
    connection: cython.longlong
    channel: cython.longlong
    packet_number: cython.longlong
    sent_ns: cython.longlong
    connection_id: cython.longlong
    vhost: cython.ulonglong
    line: cython.ulonglong
    other: cython.ulonglong
    routing_key: cython.ulonglong
    queue: cython.ulonglong
    correlation: cython.ulonglong
    reply_to: cython.ulonglong
    deadline: cython.longlong
    identity: cython.ulonglong
    asks: cython.ulonglong
    answers: cython.ulonglong
    published: cython.bint
    replies: cython.bint
    reply_late: cython.bint
    published_number: cython.longlong
    published_id: cython.longlong
    published_ns: cython.longlong
    delivery_number: cython.longlong
    request_number: cython.longlong
    request_id: cython.longlong
    request_ns: cython.longlong
    link_confidence: cython.int

    def __init__(self) -> None:
        self.session = None
        for name in NUMBERS:
            setattr(self, name, 0)
        self.clear()

    def clear(self) -> cython.int:
        """Forget its links."""
        self.published = self.replies = self.reply_late = False
        self.published_number = self.request_number = 0
        self.published_id = self.request_id = 0
        self.published_ns = self.request_ns = NULL
        self.link_confidence = -1
        self.delivery_number = -1
        return 0


# publishes that are remembered


_REDELIVERED = cython.declare(cython.ulonglong, 0x9E6C63D0876A9A35)
_NO_PUBLISH = cython.declare(cython.longlong, -1)
_FIRST_SIZE = 256

_PUBLISHES = {
    "keys": "Q", "packet_numbers": "q", "times": "q", "connection_ids": "q", "ranks": "q",
    "delivered": "q", "next_equal": "q", "identified": "B", "doubted": "B",
}  # fmt: skip
"""Columns of publishes: the hash of what they are, `ranks` in their lines, how often they were
`delivered`, the number of the next equal one, whether they have a message id, and whether a queue
may have handed on the one before or after instead (`doubted`)."""

_LINES = {"first": "q", "last": "q", "reached": "q", "queues": "Q"}
"""Columns of lines: numbers of publishes, `reached` by the first of its `queues`."""


def _column(code: Any, size: Any) -> Any:
    """A column of zeros."""
    return memoryview(bytearray(size * (1 if code == "B" else 8))).cast(code)


@cython.cclass
class PublishIndex:
    """Lines of equal publishes, first in first out, by their hash; -1 for no publish and no line.

    A line is in the order of its publishes; each queue delivers them in that order. Publishes are
    forgotten from the oldest on, of all lines. They are numbered as they come, and those that are
    remembered follow one another, so a ring holds them: columns of numbers, in which the place of a
    publish is its number modulo the ring's size. Lines are rows of columns too, found in a table of
    slots by the hash that their publishes have. So a publish that is alone in its line takes some
    130 bytes, where objects would take 310.

    After `match`: `candidates` is the number of publishes that were equal, `is_first_hop` is True
    if its queue delivers it for the first time. `hits` counts dropped entries by name of the limit.
    """

    memory: Any
    most: cython.longlong
    age_ns: cython.longlong
    size: cython.longlong
    used: cython.longlong
    oldest: cython.longlong
    next_id: cython.longlong
    positions: cython.longlong
    candidates: cython.longlong
    is_first_hop: cython.bint

    keys: cython.ulonglong[::1]
    queues: cython.ulonglong[::1]
    packet_numbers: cython.longlong[::1]
    times: cython.longlong[::1]
    connection_ids: cython.longlong[::1]
    ranks: cython.longlong[::1]
    delivered: cython.longlong[::1]
    next_equal: cython.longlong[::1]
    identified: cython.uchar[::1]
    doubted: cython.uchar[::1]
    first: cython.longlong[::1]
    last: cython.longlong[::1]
    reached: cython.longlong[::1]
    slots: cython.int[::1]
    requests_made: list[Any]
    requests_answered: list[Any]
    free_lines: list[Any]
    more_queues: dict[Any, Any]
    hits: dict[Any, Any]

    def __init__(self, memory: Any) -> None:
        self.memory = memory
        self.most = memory.publishes
        self.age_ns = memory.age_ns
        self.size = _FIRST_SIZE
        for name, code in _PUBLISHES.items():
            setattr(self, name, _column(code, self.size))
        for name, code in _LINES.items():
            setattr(self, name, _column(code, self.size))
        self.requests_made = [None] * self.size
        self.requests_answered = [None] * self.size
        self.slots = memoryview(bytearray(b"\xff") * (8 * self.size)).cast("i")
        self.free_lines = []
        self.used = 0
        self.more_queues = {}
        self.oldest = 0
        self.next_id = 0
        self.positions = 0
        self.candidates = 0
        self.is_first_hop = False
        self.hits = {}

    def __len__(self) -> Any:
        """Number of publishes that are remembered."""
        return self.next_id - self.oldest

    @cython.exceptval(check=False)
    def at(self, publish: cython.longlong) -> cython.longlong:
        """The place of a publish in the columns."""
        return publish % self.size

    @cython.ccall
    @cython.exceptval(-2)
    def remember(
        self,
        key: cython.ulonglong,
        packet_number: cython.longlong,
        ts_ns: cython.longlong,
        connection_id: cython.longlong,
        identified: cython.bint,
    ) -> cython.longlong:
        """Append a publish to its line, and return it; forget those too old or too many.

        Its index has the request that it makes in `requests_made`, and the one that it answers in
        `requests_answered`.
        """
        while self.oldest < self.next_id and self._is_old(ts_ns):
            self._forget()
        if self.next_id - self.oldest >= self.most:
            self._forget()
            self._limit_reached("publishes")
        if self.next_id - self.oldest == self.size:
            self._grow()
        publish: cython.longlong = self.next_id
        at: cython.longlong = self.at(publish)
        slot: cython.longlong = self._slot(key)
        line: cython.longlong = self.slots[slot]
        self.next_id += 1
        self.keys[at] = key
        self.packet_numbers[at] = packet_number
        self.times[at] = ts_ns
        self.connection_ids[at] = connection_id
        self.identified[at] = identified
        self.delivered[at] = 0
        self.doubted[at] = False
        self.next_equal[at] = _NO_PUBLISH
        if line < 0:
            self.ranks[at] = 0
            self.slots[slot] = self._new_line(publish)
        else:
            last: cython.longlong = self.at(self.last[line])
            self.ranks[at] = self.ranks[last] + 1
            self.next_equal[last] = publish
            self.last[line] = publish
        return publish

    def _is_old(self, ts_ns: cython.longlong) -> cython.bint:
        """True if the oldest publish is too old."""
        then: cython.longlong = self.times[self.at(self.oldest)]
        return then != NULL and ts_ns != NULL and ts_ns - then > self.age_ns

    def _forget(self) -> cython.int:
        """Forget the oldest publish, and its line if it was the only one."""
        at: cython.longlong = self.at(self.oldest)
        slot: cython.longlong = self._slot(self.keys[at])
        line: cython.longlong = self.slots[slot]
        if self.next_equal[at] == _NO_PUBLISH:
            if self.more_queues:
                self.positions -= len(self.more_queues.pop(line, ()))
            self._free_slot(slot)
            self.free_lines.append(line)
        else:
            self.first[line] = self.next_equal[at]
        self.requests_made[at] = None
        self.requests_answered[at] = None
        self.oldest += 1
        return 0

    def _grow(self) -> cython.int:
        """Have room for twice as many, but not for more than will be remembered."""
        size: cython.longlong = min(2 * self.size, self.most)
        for name, code in _PUBLISHES.items():
            column = _column(code, size)
            self._copy(getattr(self, name), column, size)
            setattr(self, name, column)
        for name in ("requests_made", "requests_answered"):
            requests: list[Any] = [None] * size
            self._copy(getattr(self, name), requests, size)
            setattr(self, name, requests)
        for name, code in _LINES.items():
            column = _column(code, size)
            column[: self.used] = getattr(self, name)[: self.used]
            setattr(self, name, column)
        lines = [line for line in self.slots if line >= 0]
        self.slots = memoryview(bytearray(b"\xff") * (8 * len(self.slots))).cast("i")
        self.size = size
        for line in lines:
            self.slots[self._slot(self.keys[self.at(self.first[line])])] = line
        return 0

    def _copy(self, source: Any, target: Any, size: cython.longlong) -> cython.int:
        """Copy a column of publishes to a ring of another size."""
        for publish in range(self.oldest, self.next_id):
            target[publish % size] = source[publish % self.size]
        return 0

    # lines

    @cython.ccall
    @cython.exceptval(-2)
    def get(self, key: cython.ulonglong) -> cython.longlong:
        """The line of a hash."""
        return self.slots[self._slot(key)]

    @cython.exceptval(-2)
    def _slot(self, key: cython.ulonglong) -> cython.longlong:
        """The slot of a hash's line, or where it would stand; slots are a power of two, twice the
        lines."""
        mask: cython.longlong = len(self.slots) - 1
        slot: cython.longlong = cython.cast(cython.longlong, key & 0x7FFFFFFF) & mask
        line: cython.longlong = self.slots[slot]
        while line >= 0 and self.keys[self.at(self.first[line])] != key:
            slot = (slot + 1) & mask
            line = self.slots[slot]
        return slot

    def _free_slot(self, slot: cython.longlong) -> cython.int:
        """Empty a slot: lines after it move up where they would be lost."""
        mask: cython.longlong = len(self.slots) - 1
        at: cython.longlong = slot
        line: cython.longlong
        home: cython.longlong
        while True:
            at = (at + 1) & mask
            line = self.slots[at]
            if line < 0:
                break
            key: cython.ulonglong = self.keys[self.at(self.first[line])]
            home = cython.cast(cython.longlong, key & 0x7FFFFFFF) & mask
            if ((at - home) & mask) >= ((at - slot) & mask):
                self.slots[slot] = cython.cast(cython.int, line)
                slot = at
        self.slots[slot] = -1
        return 0

    def _new_line(self, publish: cython.longlong) -> cython.int:
        """A line of one publish."""
        line: cython.int = self.used
        if self.free_lines:
            line = self.free_lines.pop()
        else:
            self.used += 1
        self.first[line] = publish
        self.last[line] = publish
        self.reached[line] = _NO_PUBLISH
        self.queues[line] = 0
        return line

    # queues

    @cython.ccall
    @cython.exceptval(-2)
    def match(
        self, line: cython.longlong, queue: cython.ulonglong, again: cython.bint
    ) -> cython.longlong:
        """The publish that a queue hands on; -1 when it handed on all there were."""
        first: cython.longlong = self.first[line]
        last: cython.longlong = self.last[line]
        reached: cython.longlong = self._position(line, queue)
        begin: cython.longlong = self.ranks[self.at(first)]
        before: cython.longlong = 0
        if reached >= first:
            before = self.ranks[self.at(reached)] - begin + 1
        undelivered: cython.longlong = self.ranks[self.at(last)] - begin + 1 - before
        self.is_first_hop = False
        if again and before:
            self.candidates = before
            return first if before == 1 else self._match_redelivery(line, queue, reached)
        if undelivered == 0:
            self.candidates = 1
            return last if last == first and self.identified[self.at(last)] else _NO_PUBLISH
        chosen: cython.longlong = self.next_equal[self.at(reached)] if before else first
        self.candidates = undelivered
        self.is_first_hop = True
        if undelivered > 1:
            self.doubted[self.at(chosen)] = True
            self.doubted[self.at(self.next_equal[self.at(chosen)])] = True
        self._set_position(line, queue, chosen)
        return chosen

    @cython.exceptval(-2)
    def _match_redelivery(
        self, line: cython.longlong, queue: cython.ulonglong, reached: cython.longlong
    ) -> cython.longlong:
        """The next of the publishes that a queue hands on once more: from the oldest, in order."""
        key: cython.ulonglong = mixed(queue, _REDELIVERED)
        last: cython.longlong = self._position(line, key)
        chosen: cython.longlong = self.first[line]
        if chosen <= last < reached:
            chosen = self.next_equal[self.at(last)]
        self._set_position(line, key, chosen)
        return chosen

    @cython.exceptval(-2)
    def _position(self, line: cython.longlong, queue: cython.ulonglong) -> cython.longlong:
        """The last publish that a queue handed on, which may be forgotten."""
        if self.queues[line] == queue:
            return self.reached[line]
        if not self.more_queues:
            return _NO_PUBLISH
        positions = self.more_queues.get(line)
        return _NO_PUBLISH if positions is None else positions.get(queue, _NO_PUBLISH)

    def _set_position(
        self, line: cython.longlong, queue: cython.ulonglong, publish: cython.longlong
    ) -> cython.int:
        """Note how far a queue is."""
        if self.queues[line] == queue or self.reached[line] == _NO_PUBLISH:
            self.queues[line] = queue
            self.reached[line] = publish
            return 0
        positions: dict[Any, Any] = self.more_queues.get(line)
        if positions is None:
            positions = self.more_queues[line] = {}
        if queue not in positions:
            if self.positions >= self.memory.positions:
                return self._limit_reached("positions")
            self.positions += 1
        positions[queue] = publish
        return 0

    def _limit_reached(self, name: str) -> cython.int:
        """A limit was reached."""
        self.hits[name] = self.hits.get(name, 0) + 1
        return 0


# requests that are remembered


MAX_KEYS = 8
"""Addresses under which one request waits: its channel and one for each delivery to a server, which
are the same; a hostile broker could deliver one request under ever new addresses."""

MAX_PASSED = 32
"""Requests of one line that are forgotten and still have their place, beyond which it is given up
when they are half of the line."""


@cython.cclass
class Requester:
    """A connection that sent requests; `session` is None once it is over, or where it is not here.

    `close_ns` is then when it was closed, None for never.
    """

    session: Session
    close_ns: Any

    def __init__(self, session: Any) -> None:
        self.session = session
        self.close_ns = None

    def closed_before(self, ts_ns: cython.longlong) -> cython.bint:
        """True if the connection was closed before that time."""
        if self.session is not None:
            self.close_ns = closed_at(self.session)
        return self.close_ns is not None and self.close_ns < ts_ns


def closed_at(session: Any) -> Any:
    """Time at which a connection was closed or TCP ended, or None."""
    if session.close_ns is not None:
        return session.close_ns
    conversation = session.connection.conversation
    if conversation.reset_ns >= 0:
        return conversation.reset_ns
    over_ns = conversation.over_ns
    return over_ns if conversation.ended is not None and over_ns >= 0 else None


@cython.cclass
class RpcRequest:
    """A request; `replied` and `delivered`: its reply was. `deadline` is null without one."""

    packet_number: cython.longlong
    ts_ns: cython.longlong
    deadline: cython.longlong
    connection_id: cython.longlong
    replied: cython.bint
    delivered: cython.bint
    forgotten: cython.bint

    requester: Requester
    keys: list[Any]

    def __init__(
        self,
        requester: Requester,
        packet_number: Any,
        ts_ns: Any,
        connection_id: Any,
        deadline: Any,
    ) -> None:
        self.requester = requester
        self.packet_number = packet_number
        self.ts_ns = ts_ns
        self.connection_id = connection_id
        self.deadline = deadline
        self.replied = False
        self.delivered = False
        self.forgotten = False
        self.keys = []


@cython.cclass
class RequestQueue:
    """Requests under one key, in the order in which they came there.

    Those before `start` are forgotten, those before `unreplied` and `undelivered` too, or have what
    they wait for; the last is never passed by. A list, for most keys have one request: a deque
    takes four times as much memory.
    """

    start: cython.Py_ssize_t
    unreplied: cython.Py_ssize_t
    undelivered: cython.Py_ssize_t

    requests: list[Any]

    def __init__(self) -> None:
        self.requests = []
        self.start = self.unreplied = self.undelivered = 0

    @cython.exceptval(-2)
    def last(self) -> cython.Py_ssize_t:
        """The place of the last that is not forgotten: they need not come as they were asked."""
        count: cython.Py_ssize_t = len(self.requests)
        if cython.cast(RpcRequest, self.requests[count - 1]).forgotten:
            while count and cython.cast(RpcRequest, self.requests[count - 1]).forgotten:
                self.requests.pop()
                count -= 1
            self.start = min(self.start, count)
            self.unreplied = min(self.unreplied, count)
            self.undelivered = min(self.undelivered, count)
        return count - 1

    def trim(self) -> cython.bint:
        """Give up the place of requests that are forgotten, now and then; whether all are."""
        count: cython.Py_ssize_t = len(self.requests)
        while self.start < count and cython.cast(RpcRequest, self.requests[self.start]).forgotten:
            self.start += 1
        if self.start > MAX_PASSED and 2 * self.start > count:
            del self.requests[: self.start]
            self.unreplied = max(self.unreplied - self.start, 0)
            self.undelivered = max(self.undelivered - self.start, 0)
            self.start = 0
        return self.start == len(self.requests)


@cython.cclass
class RpcRequests:
    """Requests that were seen, by where a reply will come."""

    most: cython.longlong
    age_ns: cython.longlong
    hits: cython.longlong
    order: Any

    waiting: dict[Any, Any]
    requesters: dict[Any, Any]

    def __init__(self, most: Any, age_ns: Any) -> None:
        self.most = most
        self.age_ns = age_ns
        self.waiting = {}
        self.requesters = {}
        self.order: Any = deque()
        self.hits = 0

    @cython.cfunc
    def requester(self, connection: cython.longlong, session: Session) -> Requester:
        """The `Requester` of a connection, as long as a request of it is remembered."""
        found: Requester = self.requesters.get(connection)
        if found is None:
            found = self.requesters[connection] = Requester(session)
        return found

    @cython.ccall
    def close(self, connection: cython.longlong, close_ns: Any) -> Any:
        """A connection that is not here was closed."""
        found: Requester = self.requesters.get(connection)
        if found is not None:
            found.close_ns = close_ns

    @cython.ccall
    def end(self, connection: cython.longlong, close_ns: Any) -> Any:
        """A connection is over; it was closed then, None for never."""
        self.close(connection, close_ns)
        found: Requester = self.requesters.pop(connection, None)
        if found is not None:
            found.session = None

    @cython.ccall
    @cython.exceptval(-1)
    def add(self, request: RpcRequest, key: Any) -> cython.int:
        """Remember a request under a key."""
        while self.order and self._is_old(self.order[0], request.ts_ns):
            self._forget()
        if len(self.order) >= self.most:
            self._forget()
            self.hits += 1
        self.order.append(request)
        return self.wait(request, key)

    @cython.ccall
    @cython.exceptval(-1)
    def wait(self, request: RpcRequest, key: Any) -> cython.int:
        """Let a request wait under one more key."""
        if request.forgotten or len(request.keys) >= MAX_KEYS or key in request.keys:
            return 0
        request.keys.append(key)
        waits: RequestQueue = self.waiting.get(key)
        if waits is None:
            waits = self.waiting[key] = RequestQueue()
        waits.requests.append(request)
        return 0

    @cython.ccall
    def find(self, key: Any, delivered: cython.bint) -> RpcRequest:
        """The request that a reply under a key answers, or None.

        It is the oldest without one; when all have one, the last.
        """
        waits: RequestQueue = self.waiting.get(key)
        if waits is None or not waits.requests:
            return None
        last: cython.Py_ssize_t = waits.last()
        if last < 0:
            return None
        at: cython.Py_ssize_t = min(waits.undelivered if delivered else waits.unreplied, last)
        request: RpcRequest = waits.requests[at]
        while at < last and (
            request.forgotten or (request.delivered if delivered else request.replied)
        ):
            at += 1
            request = waits.requests[at]
        if delivered:
            waits.undelivered = at
        else:
            waits.unreplied = at
        return request

    def is_late(self, request: RpcRequest, ts_ns: cython.longlong) -> cython.bint:
        """True if the request had expired or its connection was closed by then."""
        if ts_ns == NULL:
            return False
        if request.deadline != NULL and ts_ns > request.deadline:
            return True
        return request.requester is not None and request.requester.closed_before(ts_ns)

    def _is_old(self, request: RpcRequest, ts_ns: cython.longlong) -> cython.bint:
        return request.ts_ns != NULL and ts_ns != NULL and ts_ns - request.ts_ns > self.age_ns

    def _forget(self) -> cython.int:
        """Forget the oldest request."""
        request: RpcRequest = self.order.popleft()
        request.forgotten = True
        for key in request.keys:
            waits: RequestQueue = self.waiting.get(key)
            if waits is not None and waits.trim():
                del self.waiting[key]
        return 0


# links


@cython.cclass
class Linker:
    """Links messages; `hits` counts the forgotten entries by name of the limit."""

    memory: Any
    has_unknown_vhost: cython.bint
    any_vhost: cython.bint
    last_vhost: cython.ulonglong

    lines: PublishIndex
    identities: PublishIndex
    requests: RpcRequests
    vhosts: list[Any]

    def __init__(self, memory: Any = None) -> None:
        self.memory = memory or Memory()
        self.requests = RpcRequests(self.memory.calls, self.memory.age_ns)
        self.lines = PublishIndex(self.memory)
        self.identities = PublishIndex(self.memory)
        self.vhosts = []
        self.has_unknown_vhost = False
        self.last_vhost = 0
        self.any_vhost = False

    @property
    def hits(self) -> Any:
        """Number of times that each limit was reached."""
        return (
            self.identities.hits
            | self.lines.hits
            | ({"calls": self.requests.hits} if self.requests.hits else {})
        )

    @cython.ccall
    @cython.exceptval(-1)
    def link(self, record: LinkRecord) -> cython.int:
        """Link the next message with its publish and its request."""
        record.clear()
        if not self.any_vhost or record.vhost != self.last_vhost:
            self._note_vhost(record.vhost)
        if record.flags & IS_PUBLISH:
            return self._publish(record)
        return self._deliver(record)

    def _note_vhost(self, vhost: cython.ulonglong) -> cython.int:
        """A message of another virtual host than the last one's."""
        self.last_vhost = vhost
        self.any_vhost = True
        self.has_unknown_vhost = self.has_unknown_vhost or vhost == _UNKNOWN_VHOST
        if vhost not in self.vhosts and len(self.vhosts) < self.memory.vhosts:
            self.vhosts.append(vhost)
        return 0

    # publishes

    def _publish(self, record: LinkRecord) -> cython.int:
        """Remember a publish; it may be a request, or a reply."""
        answered: RpcRequest = self._request_answered(record) if self.requests.waiting else None
        own_request: RpcRequest = (
            self._remember_request(record) if record.flags & IS_REQUEST or record.asks else None
        )
        if record.line:
            self._remember_publish(self.lines, record.line, record, answered, own_request)
        if record.identity:
            self._remember_publish(self.identities, record.identity, record, answered, own_request)
            if not record.line and record.flags & HAS_MESSAGE_ID:
                self._remember_publish(self.identities, record.other, record, answered, own_request)
        return 0

    def _remember_publish(
        self,
        index: PublishIndex,
        h: cython.ulonglong,
        record: LinkRecord,
        answered: RpcRequest,
        own_request: RpcRequest,
    ) -> cython.int:
        """Put a publish in an index, under a hash and its virtual host."""
        at: cython.longlong = index.at(
            index.remember(
                mixed(h, record.vhost),
                record.packet_number,
                record.sent_ns,
                record.connection_id,
                record.flags & HAS_MESSAGE_ID != 0,
            )
        )
        if answered is not None:
            index.requests_answered[at] = answered
        if own_request is not None:
            index.requests_made[at] = own_request
        return 0

    # deliveries

    def _deliver(self, record: LinkRecord) -> cython.int:
        """Find the publish of a delivery, and the request that it brings the reply to."""
        died: cython.bint = record.flags & DEAD_LETTERED != 0
        again: cython.bint = record.flags & IS_REDELIVERED != 0
        index: PublishIndex = self.lines
        line: cython.longlong = -1
        if record.line:
            line = self._find_line(index, record.line, record.vhost)
        if line < 0 and died:
            line = self._find_line(index, record.other, record.vhost)
        if line < 0 and record.identity:
            index = self.identities
            line = self._find_line(index, record.identity, record.vhost)
        publish: cython.longlong = -1
        if line >= 0:
            queue: cython.ulonglong = record.queue
            if record.flags & OWN_QUEUE:
                queue = mixed(mixed(queue, record.connection & _MASK64), record.channel & _MASK64)
            publish = index.match(line, queue, again or died)
            if publish >= 0:
                self._write_publish(record, index, index.at(publish), again, died)
        if self.requests.waiting:
            self._link_reply(record, index, publish)
        return 0

    @cython.exceptval(-2)
    def _find_line(
        self, index: PublishIndex, h: cython.ulonglong, vhost: cython.ulonglong
    ) -> cython.longlong:
        """The line of publishes with a hash, in a virtual host, or -1."""
        line: cython.longlong = index.get(mixed(h, vhost))
        other: cython.ulonglong
        if line >= 0:
            return line
        if vhost != _UNKNOWN_VHOST:
            return index.get(mixed(h, _UNKNOWN_VHOST)) if self.has_unknown_vhost else -1
        for each in self.vhosts:
            other = each
            line = index.get(mixed(h, other))
            if line >= 0:
                return line
        return -1

    def _write_publish(
        self,
        record: LinkRecord,
        lines: PublishIndex,
        at: cython.longlong,
        again: cython.bint,
        died: cython.bint,
    ) -> cython.int:
        """Write the publish of a delivery into its record; `at` is the publish's index."""
        record.published = True
        record.published_number = lines.packet_numbers[at]
        record.published_id = lines.connection_ids[at]
        record.published_ns = elapsed(lines.times[at], record.sent_ns)
        record.link_confidence = _AMBIGUOUS
        if lines.candidates == 1 and not lines.doubted[at]:
            record.link_confidence = _EXACT if lines.identified[at] else _LIKELY
        if not again and (lines.is_first_hop or not died):
            lines.delivered[at] += 1
            record.delivery_number = lines.delivered[at]
        return 0

    # requests and replies

    @cython.cfunc
    def _remember_request(self, record: LinkRecord) -> RpcRequest:
        """Remember a request."""
        request: RpcRequest = RpcRequest(
            None
            if record.connection < 0
            else self.requests.requester(record.connection, record.session),
            record.packet_number,
            record.sent_ns,
            record.connection_id,
            record.deadline,
        )
        h: cython.ulonglong = record.reply_to
        if record.flags & DIRECT_REPLY:
            h = _on_channel(record)
        by_pack: cython.ulonglong = mixed(mixed(_BY_PACK, record.asks), record.vhost)
        if not record.flags & IS_REQUEST:
            self.requests.add(request, by_pack)
            return request
        self.requests.add(request, mixed(mixed(h, record.correlation), record.vhost))
        if record.asks:
            self.requests.wait(request, by_pack)
        return request

    @cython.cfunc
    def _find_request(
        self, h: cython.ulonglong, vhost: cython.ulonglong, delivered: cython.bint
    ) -> RpcRequest:
        """The request that a reply to a hash answers, in a virtual host."""
        request: RpcRequest = self.requests.find(mixed(h, vhost), delivered)
        other: cython.ulonglong
        if request is not None:
            return request
        if vhost != _UNKNOWN_VHOST:
            return (
                self.requests.find(mixed(h, _UNKNOWN_VHOST), delivered)
                if self.has_unknown_vhost
                else None
            )
        for each in self.vhosts:
            other = each
            request = self.requests.find(mixed(h, other), delivered)
            if request is not None:
                return request
        return None

    @cython.cfunc
    def _request_answered(self, record: LinkRecord) -> RpcRequest:
        """The request that a publish answers, or None."""
        request: RpcRequest = None
        vhost: cython.ulonglong = record.vhost
        address: cython.ulonglong
        if record.answers:
            request = self._find_request(mixed(_BY_PACK, record.answers), vhost, False)
        if request is None and record.flags & HAS_ROUTING_KEY:
            address = mixed(record.routing_key, record.correlation)
            request = self._find_request(address, vhost, False)
        if request is None and record.flags & HAS_ADDRESS:
            address = mixed(record.other, record.correlation)
            request = self._find_request(address, vhost, False)
        if request is not None:
            request.replied = True
            self._write_request(record, request)
        return request

    def _link_reply(
        self, record: LinkRecord, index: PublishIndex, publish: cython.longlong
    ) -> cython.int:
        """Write the request that a delivery answers, and keep the reply address of a request."""
        request: RpcRequest = None
        own_request: RpcRequest = None
        if publish >= 0:
            own_request = index.requests_made[index.at(publish)]
            request = index.requests_answered[index.at(publish)]
            if own_request is not None and record.flags & DIRECT_REPLY:
                key: cython.ulonglong = mixed(record.reply_to, record.correlation)
                self.requests.wait(own_request, mixed(key, record.vhost))
        if request is None and own_request is None:
            request = self._request_of_unseen(record)
        if request is None or request.forgotten:
            return 0
        request.replied = True
        request.delivered = True
        return self._write_request(record, request)

    @cython.cfunc
    def _request_of_unseen(self, record: LinkRecord) -> RpcRequest:
        """The request that a delivery answers whose publish was not captured."""
        request: RpcRequest = None
        if record.answers:
            request = self._find_request(mixed(_BY_PACK, record.answers), record.vhost, True)
        if request is not None or not record.flags & HAS_ROUTING_KEY:
            return request
        h: cython.ulonglong = record.routing_key
        if record.flags & DIRECT_ROUTING_KEY:
            h = _on_channel(record)
        return self._find_request(mixed(h, record.correlation), record.vhost, True)

    def _write_request(self, record: LinkRecord, request: RpcRequest) -> cython.int:
        """Write the request that a message answers into its record."""
        record.replies = True
        record.request_number = request.packet_number
        record.request_id = request.connection_id
        record.request_ns = elapsed(request.ts_ns, record.sent_ns)
        record.reply_late = self.requests.is_late(request, record.sent_ns)
        return 0


@cython.cfunc
@cython.exceptval(1)
def _on_channel(record: LinkRecord) -> cython.ulonglong:
    """The hash that stands for direct replies to a message's channel."""
    return mixed(mixed(_REPLY, record.connection & _MASK64), record.channel & _MASK64)
