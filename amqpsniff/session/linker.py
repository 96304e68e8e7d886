# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Links publishes to their deliveries, across connections.

A broker gives a message no identifier, so a delivery is matched by its content: virtual host,
exchange, routing key, size, properties and, if computed, the hash of the body (`fingerprint`).
Equal publishes form a line, and each queue delivers them in their order: its next delivery matches
the first publish that it has not delivered yet. A later delivery of the same message
(`redelivered`, or dead-lettered) is matched with the publishes that its queue delivered before.

A link is `exact` if only one publish matches and it has a message id; `likely` if only one of the
remembered publishes matches; `ambiguous` if several were equal and the order decided, and for the
publishes that such a choice left over.

An unknown queue (its consumer began before the capture) is identified by the routing key with the
default exchange; with other exchanges every consumer counts as one with its own queue.

Messages of AMQP 1.0 have no exchange and no stable routing key: they are matched by their
`identity` (`link_records`), and so are messages that go from one protocol to the other. Publishes
of 0-9-1 with a message-id have one too.

A linker gets messages one after the other, as `LinkRecord`s of any number of readers.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.clock import elapsed
from cython.cimports.amqpsniff.columns import Integers
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.fingerprint import mixed
from cython.cimports.amqpsniff.session.link_flags import (
    ADDRESSED,
    AGAIN,
    ASKS,
    CLOSED,
    DIED,
    DIRECT_KEY,
    DIRECT_REPLY,
    IDENTIFIED,
    OVER,
    OWN_QUEUE,
    PUBLISH,
    ROUTED,
)
from cython.cimports.amqpsniff.session.link_records import (
    LinkRecord,
)
from cython.cimports.amqpsniff.session.publish_index import PublishIndex
from cython.cimports.amqpsniff.session.rpc import RpcRequest, RpcRequests

from amqpsniff.session import link_columns, link_records
from amqpsniff.session.limits import Memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_EXACT = cython.declare(cython.int, link_columns.EXACT)
_LIKELY = cython.declare(cython.int, link_columns.LIKELY)
_AMBIGUOUS = cython.declare(cython.int, link_columns.AMBIGUOUS)
_REPLY = cython.declare(cython.ulonglong, 0x2545F4914F6CDD1D)
_BY_PACK = cython.declare(cython.ulonglong, 0xD6E8FEB86659FD93)
"""Stands for the address of requests whose ids packs name."""
_UNKNOWN_VHOST = cython.declare(cython.ulonglong, 0)

UNKNOWN_VHOST = 0
"""Stands for an unknown virtual host."""


@cython.cclass
class Linker:
    """Links messages; `hits` counts the forgotten entries by name of the limit."""

    memory: Any
    unknown: cython.bint
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
        self.unknown = False
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
    def link(self, one: LinkRecord) -> cython.int:
        """Link the next message with its publish and its request."""
        one.clear()
        if not self.any_vhost or one.vhost != self.last_vhost:
            self._enter(one.vhost)
        if one.flags & PUBLISH:
            return self._publish(one)
        return self._deliver(one)

    def _enter(self, vhost: cython.ulonglong) -> cython.int:
        """A message of another virtual host than the last one's."""
        self.last_vhost = vhost
        self.any_vhost = True
        self.unknown = self.unknown or vhost == _UNKNOWN_VHOST
        if vhost not in self.vhosts and len(self.vhosts) < self.memory.vhosts:
            self.vhosts.append(vhost)
        return 0

    # publishes

    def _publish(self, one: LinkRecord) -> cython.int:
        """Remember a publish; it may be a request, or a reply."""
        answer: RpcRequest = self._reply(one) if self.requests.waiting else None
        asked: RpcRequest = self._ask(one) if one.flags & ASKS or one.asks else None
        if one.line:
            self._remember(self.lines, one.line, one, answer, asked)
        if one.identity:
            self._remember(self.identities, one.identity, one, answer, asked)
            if not one.line and one.flags & IDENTIFIED:
                self._remember(self.identities, one.other, one, answer, asked)
        return 0

    def _remember(
        self,
        index: PublishIndex,
        h: cython.ulonglong,
        one: LinkRecord,
        answer: RpcRequest,
        asked: RpcRequest,
    ) -> cython.int:
        """Put a publish in an index, under a hash and its virtual host."""
        at: cython.longlong = index.at(
            index.remember(
                mixed(h, one.vhost),
                one.packet_number,
                one.sent_ns,
                one.connection_id,
                one.flags & IDENTIFIED != 0,
            )
        )
        if answer is not None:
            index.answers[at] = answer
        if asked is not None:
            index.asks[at] = asked
        return 0

    # deliveries

    def _deliver(self, one: LinkRecord) -> cython.int:
        """Find the publish of a delivery, and the request that it brings the reply to."""
        died: cython.bint = one.flags & DIED != 0
        again: cython.bint = one.flags & AGAIN != 0
        index: PublishIndex = self.lines
        line: cython.longlong = -1
        if one.line:
            line = self._line(index, one.line, one.vhost)
        if line < 0 and died:
            line = self._line(index, one.other, one.vhost)
        if line < 0 and one.identity:
            index = self.identities
            line = self._line(index, one.identity, one.vhost)
        publish: cython.longlong = -1
        if line >= 0:
            queue: cython.ulonglong = one.queue
            if one.flags & OWN_QUEUE:
                queue = mixed(mixed(queue, one.connection & _MASK64), one.channel & _MASK64)
            publish = index.match(line, queue, again or died)
            if publish >= 0:
                self._say_publish(one, index, index.at(publish), again, died)
        if self.requests.waiting:
            self._bring(one, index, publish)
        return 0

    @cython.exceptval(-2)
    def _line(
        self, index: PublishIndex, h: cython.ulonglong, vhost: cython.ulonglong
    ) -> cython.longlong:
        """The line of publishes with a hash, in a virtual host, or -1."""
        line: cython.longlong = index.get(mixed(h, vhost))
        other: cython.ulonglong
        if line >= 0:
            return line
        if vhost != _UNKNOWN_VHOST:
            return index.get(mixed(h, _UNKNOWN_VHOST)) if self.unknown else -1
        for each in self.vhosts:
            other = each
            line = index.get(mixed(h, other))
            if line >= 0:
                return line
        return -1

    def _say_publish(
        self,
        one: LinkRecord,
        lines: PublishIndex,
        at: cython.longlong,
        again: cython.bint,
        died: cython.bint,
    ) -> cython.int:
        """Write the publish of a delivery into its record; `at` is the publish's index."""
        one.published = True
        one.published_number = lines.packet_numbers[at]
        one.published_id = lines.connection_ids[at]
        one.published_ns = elapsed(lines.times[at], one.sent_ns)
        one.link_confidence = _AMBIGUOUS
        if lines.candidates == 1 and not lines.doubted[at]:
            one.link_confidence = _EXACT if lines.identified[at] else _LIKELY
        if not again and (lines.is_first_hop or not died):
            lines.delivered[at] += 1
            one.delivery_number = lines.delivered[at]
        return 0

    # requests and replies

    @cython.cfunc
    def _ask(self, one: LinkRecord) -> RpcRequest:
        """Remember a request."""
        call: RpcRequest = RpcRequest(
            None if one.connection < 0 else self.requests.requester(one.connection, one.session),
            one.packet_number,
            one.sent_ns,
            one.connection_id,
            one.deadline,
        )
        h: cython.ulonglong = one.reply_to
        if one.flags & DIRECT_REPLY:
            h = _on_channel(one)
        by_pack: cython.ulonglong = mixed(mixed(_BY_PACK, one.asks), one.vhost)
        if not one.flags & ASKS:
            self.requests.add(call, by_pack)
            return call
        self.requests.add(call, mixed(mixed(h, one.correlation), one.vhost))
        if one.asks:
            self.requests.wait(call, by_pack)
        return call

    @cython.cfunc
    def _waiting(
        self, h: cython.ulonglong, vhost: cython.ulonglong, delivered: cython.bint
    ) -> RpcRequest:
        """The request that a reply to a hash answers, in a virtual host."""
        call: RpcRequest = self.requests.find(mixed(h, vhost), delivered)
        other: cython.ulonglong
        if call is not None:
            return call
        if vhost != _UNKNOWN_VHOST:
            return self.requests.find(mixed(h, _UNKNOWN_VHOST), delivered) if self.unknown else None
        for each in self.vhosts:
            other = each
            call = self.requests.find(mixed(h, other), delivered)
            if call is not None:
                return call
        return None

    @cython.cfunc
    def _reply(self, one: LinkRecord) -> RpcRequest:
        """The request that a publish answers, or None."""
        call: RpcRequest = None
        if one.answers:
            call = self._waiting(mixed(_BY_PACK, one.answers), one.vhost, False)
        if call is None and one.flags & ROUTED:
            call = self._waiting(mixed(one.routing_key, one.correlation), one.vhost, False)
        if call is None and one.flags & ADDRESSED:
            call = self._waiting(mixed(one.other, one.correlation), one.vhost, False)
        if call is not None:
            call.replied = True
            self._say_reply(one, call)
        return call

    def _bring(self, one: LinkRecord, index: PublishIndex, publish: cython.longlong) -> cython.int:
        """Write the request that a delivery answers, and keep the reply address of a request."""
        call: RpcRequest = None
        asked: RpcRequest = None
        if publish >= 0:
            asked = index.asks[index.at(publish)]
            call = index.answers[index.at(publish)]
            if asked is not None and one.flags & DIRECT_REPLY:
                key: cython.ulonglong = mixed(one.reply_to, one.correlation)
                self.requests.wait(asked, mixed(key, one.vhost))
        if call is None and asked is None:
            call = self._unseen(one)
        if call is None or call.forgotten:
            return 0
        call.replied = True
        call.delivered = True
        return self._say_reply(one, call)

    @cython.cfunc
    def _unseen(self, one: LinkRecord) -> RpcRequest:
        """The request that a delivery answers whose publish was not captured."""
        call: RpcRequest = None
        if one.answers:
            call = self._waiting(mixed(_BY_PACK, one.answers), one.vhost, True)
        if call is not None or not one.flags & ROUTED:
            return call
        h: cython.ulonglong = one.routing_key
        if one.flags & DIRECT_KEY:
            h = _on_channel(one)
        return self._waiting(mixed(h, one.correlation), one.vhost, True)

    def _say_reply(self, one: LinkRecord, call: RpcRequest) -> cython.int:
        """Write the request that a message answers into its record."""
        one.replies = True
        one.request_number = call.packet_number
        one.request_id = call.connection_id
        one.request_ns = elapsed(call.ts_ns, one.sent_ns)
        one.reply_late = self.requests.is_late(call, one.sent_ns)
        return 0


@cython.cfunc
@cython.exceptval(1)
def _on_channel(one: LinkRecord) -> cython.ulonglong:
    """The hash that stands for direct replies to a message's channel."""
    return mixed(mixed(_REPLY, one.connection & _MASK64), one.channel & _MASK64)


# the logs of several readers, linked as if one had read everything


COLUMNS = ["task", *link_records.LOG_NUMBERS]
"""Columns that are fed: `task` is whose message it is."""

FOUND = (
    "task message published_packet_number published_connection_id published_ns delivery_number "
    "link_confidence request_packet_number request_connection_id request_ns reply_late"
).split()
"""Columns of the result: connection ids as numbers, confidence as a code, null where unknown."""

# Connections of a task, more than packets can open.
_CONNECTION_BITS = cython.declare(cython.int, 40)


@cython.cclass
class DistributedLinker:
    """Links the records of `feed`; `rows` links are in the columns of `FOUND` until the next."""

    rows: cython.longlong

    linker: Linker
    one: LinkRecord
    columns: dict[Any, Any]
    task: Integers
    message: Integers
    published_packet_number: Integers
    published_connection_id: Integers
    published_ns: Integers
    delivery_number: Integers
    link_confidence: Integers
    request_packet_number: Integers
    request_connection_id: Integers
    request_ns: Integers
    reply_late: Integers

    def __init__(self) -> None:
        self.linker = Linker(None)
        self.one = LinkRecord()
        self.columns = {}
        self.rows = 0

    @property
    def hits(self) -> Any:
        """Number of times that each limit was reached."""
        return self.linker.hits

    @cython.ccall
    @cython.exceptval(-1)
    def feed(self, columns: dict[Any, Any], count: cython.longlong) -> cython.int:
        """Go over the next `count` messages: `columns` are buffers of `COLUMNS`."""
        tasks: cython.longlong[::1] = columns["task"]
        messages: cython.longlong[::1] = columns["message"]
        flags: cython.longlong[::1] = columns["flags"]
        connections: cython.longlong[::1] = columns["connection"]
        channels: cython.longlong[::1] = columns["channel"]
        numbers: cython.longlong[::1] = columns["packet_number"]
        times: cython.longlong[::1] = columns["sent_ns"]
        ids: cython.longlong[::1] = columns["connection_id"]
        vhosts: cython.longlong[::1] = columns["vhost"]
        lines: cython.longlong[::1] = columns["line"]
        others: cython.longlong[::1] = columns["other"]
        keys: cython.longlong[::1] = columns["routing_key"]
        queues: cython.longlong[::1] = columns["queue"]
        correlations: cython.longlong[::1] = columns["correlation"]
        addresses: cython.longlong[::1] = columns["reply_to"]
        deadlines: cython.longlong[::1] = columns["deadline"]
        identities: cython.longlong[::1] = columns["identity"]
        asks: cython.longlong[::1] = columns["asks"]
        answers: cython.longlong[::1] = columns["answers"]
        at: cython.longlong
        connection: cython.longlong
        one: LinkRecord = self.one
        self._begin(count)
        for at in range(count):
            connection = connections[at]
            if connection >= 0:
                connection |= tasks[at] << _CONNECTION_BITS
            if flags[at] & (CLOSED | OVER):
                self._close(connection, times[at], flags[at] & OVER != 0)
                continue
            one.flags = flags[at]
            one.connection = connection
            one.channel = channels[at]
            one.packet_number = numbers[at]
            one.sent_ns = times[at]
            one.connection_id = ids[at]
            one.vhost = _unsigned(vhosts[at])
            one.line = _unsigned(lines[at])
            one.other = _unsigned(others[at])
            one.routing_key = _unsigned(keys[at])
            one.queue = _unsigned(queues[at])
            one.correlation = _unsigned(correlations[at])
            one.reply_to = _unsigned(addresses[at])
            one.deadline = deadlines[at]
            one.identity = _unsigned(identities[at])
            one.asks = _unsigned(asks[at])
            one.answers = _unsigned(answers[at])
            self.linker.link(one)
            if one.published or one.replies:
                self._put(tasks[at], messages[at])
        return 0

    def _begin(self, count: cython.longlong) -> cython.int:
        """Have room for as many links; they are null until they are written."""
        self.rows = 0
        self.columns = {}
        for name in FOUND:
            column: Integers = Integers()
            column.reserve(count)
            self.columns[name] = column
            setattr(self, name, column)
        return 0

    def _close(
        self, connection: cython.longlong, close_ns: cython.longlong, over: cython.bint
    ) -> cython.int:
        """A connection was closed, or is over."""
        time: Any = None if close_ns == NULL else close_ns
        if over:
            self.linker.requests.end(connection, time)
        else:
            self.linker.requests.close(connection, time)
        return 0

    def _put(self, task: cython.longlong, message: cython.longlong) -> cython.int:
        """Write the links of the current message to the columns."""
        row: cython.longlong = self.rows
        one: LinkRecord = self.one
        self.task.values[row] = task
        self.message.values[row] = message
        if one.published:
            self.published_packet_number.values[row] = one.published_number
            self.published_connection_id.values[row] = one.published_id
            self.published_ns.values[row] = one.published_ns
            self.link_confidence.values[row] = one.link_confidence
            if one.delivery_number > 0:
                self.delivery_number.values[row] = one.delivery_number
        if one.replies:
            self.request_packet_number.values[row] = one.request_number
            self.request_connection_id.values[row] = one.request_id
            self.request_ns.values[row] = one.request_ns
            self.reply_late.values[row] = one.reply_late
        self.rows += 1
        return 0


@cython.cfunc
@cython.exceptval(1)
def _unsigned(number: cython.longlong) -> cython.ulonglong:
    """A hash that was written as a signed number."""
    if cython.compiled:
        return cython.cast(cython.ulonglong, number)
    return number & 0xFFFFFFFFFFFFFFFF
