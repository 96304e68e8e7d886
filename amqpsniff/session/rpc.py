# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Requests and their replies: a publish with `reply_to`, and the publish to that address.

A request waits under its address and correlation id. A reply goes through the default exchange
with the address as its routing key; an address of the form `exchange/key` is also recognized. For
direct replies the broker makes the address when it delivers the request. Before that, and if the
server's connection was not captured, the request waits under its own channel, where such a reply
must be delivered. Several requests with the same address and correlation id (or without one) are
answered in their order.
"""

from __future__ import annotations

from collections import deque

import cython
from cython.cimports.amqpsniff.null import NULL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.session.entities import Session


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

    calls: list[Any]

    def __init__(self) -> None:
        self.calls = []
        self.start = self.unreplied = self.undelivered = 0

    @cython.exceptval(-2)
    def last(self) -> cython.Py_ssize_t:
        """The place of the last that is not forgotten: they need not come as they were asked."""
        count: cython.Py_ssize_t = len(self.calls)
        if cython.cast(RpcRequest, self.calls[count - 1]).forgotten:
            while count and cython.cast(RpcRequest, self.calls[count - 1]).forgotten:
                self.calls.pop()
                count -= 1
            self.start = min(self.start, count)
            self.unreplied = min(self.unreplied, count)
            self.undelivered = min(self.undelivered, count)
        return count - 1

    def trim(self) -> cython.bint:
        """Give up the place of requests that are forgotten, now and then; whether all are."""
        count: cython.Py_ssize_t = len(self.calls)
        while self.start < count and cython.cast(RpcRequest, self.calls[self.start]).forgotten:
            self.start += 1
        if self.start > MAX_PASSED and 2 * self.start > count:
            del self.calls[: self.start]
            self.unreplied = max(self.unreplied - self.start, 0)
            self.undelivered = max(self.undelivered - self.start, 0)
            self.start = 0
        return self.start == len(self.calls)


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
    def add(self, call: RpcRequest, key: Any) -> cython.int:
        """Remember a request under a key."""
        while self.order and self._is_old(self.order[0], call.ts_ns):
            self._forget()
        if len(self.order) >= self.most:
            self._forget()
            self.hits += 1
        self.order.append(call)
        return self.wait(call, key)

    @cython.ccall
    @cython.exceptval(-1)
    def wait(self, call: RpcRequest, key: Any) -> cython.int:
        """Let a request wait under one more key."""
        if call.forgotten or len(call.keys) >= MAX_KEYS or key in call.keys:
            return 0
        call.keys.append(key)
        waits: RequestQueue = self.waiting.get(key)
        if waits is None:
            waits = self.waiting[key] = RequestQueue()
        waits.calls.append(call)
        return 0

    @cython.ccall
    def find(self, key: Any, delivered: cython.bint) -> RpcRequest:
        """The request that a reply under a key answers, or None.

        It is the oldest without one; when all have one, the last.
        """
        waits: RequestQueue = self.waiting.get(key)
        if waits is None or not waits.calls:
            return None
        last: cython.Py_ssize_t = waits.last()
        if last < 0:
            return None
        at: cython.Py_ssize_t = min(waits.undelivered if delivered else waits.unreplied, last)
        call: RpcRequest = waits.calls[at]
        while at < last and (call.forgotten or (call.delivered if delivered else call.replied)):
            at += 1
            call = waits.calls[at]
        if delivered:
            waits.undelivered = at
        else:
            waits.unreplied = at
        return call

    def is_late(self, call: RpcRequest, ts_ns: cython.longlong) -> cython.bint:
        """True if the request had expired or its connection was closed by then."""
        if ts_ns == NULL:
            return False
        if call.deadline != NULL and ts_ns > call.deadline:
            return True
        return call.requester is not None and call.requester.closed_before(ts_ns)

    def _is_old(self, call: RpcRequest, ts_ns: cython.longlong) -> cython.bint:
        return call.ts_ns != NULL and ts_ns != NULL and ts_ns - call.ts_ns > self.age_ns

    def _forget(self) -> cython.int:
        """Forget the oldest request."""
        call: RpcRequest = self.order.popleft()
        call.forgotten = True
        for key in call.keys:
            waits: RequestQueue = self.waiting.get(key)
            if waits is not None and waits.trim():
                del self.waiting[key]
        return 0
