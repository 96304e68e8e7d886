# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Records of messages for links, in numbers: `LinkRecord` is one message, `LinkLog` a log of them.

The reader of a message fills in its record (`link_recorder`), for the linker of the same process or
for the log. A linker that is fed the logs of all readers in order makes the same links as with one
reader of everything. Texts are hashes, the same in all processes.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.event_log import EventLog
from cython.cimports.amqpsniff.session.link_flags import CLOSED, OVER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.columns import Integers
    from amqpsniff.session.entities import Session


NUMBERS = (
    "flags connection channel packet_number sent_ns connection_id vhost line other routing_key "
    "queue correlation reply_to deadline identity asks answers"
).split()
"""Integers of a message. `connection` counts connections, negative for an unknown one;
`connection_id` is its id as a number. `line`: size, properties, exchange and routing key. `other`:
of a delivery that died, the same with what it was published with; of a publish of 0-9-1, exchange
and routing key as one address; of one of 1.0, message-id and correlation-id, by which 0-9-1 looks
for it. `queue`: its name, or the consumer's tag. `correlation`: the
correlation-id. `reply_to`: an address. `deadline`: when a request expires, null for never.
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

    asks: cython.ulonglong
    answers: cython.ulonglong

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
    identity: cython.ulonglong
    deadline: cython.longlong
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


LOG_NUMBERS = ["message", *NUMBERS]
"""Columns of integers: `message` is the ordinal of a message among those of its reader."""


@cython.cclass
class LinkLog(EventLog):
    """Writes them down; `messages` counts the messages so far, linkable or not."""

    messages: cython.longlong
    asks: Integers
    answers: Integers

    message: Integers
    flags: Integers
    connection: Integers
    channel: Integers
    packet_number: Integers
    sent_ns: Integers
    connection_id: Integers
    vhost: Integers
    line: Integers
    other: Integers
    routing_key: Integers
    queue: Integers
    correlation: Integers
    reply_to: Integers
    deadline: Integers
    identity: Integers

    def __init__(self, seed: Any, give: Any) -> None:
        EventLog.__init__(self, seed, give, LOG_NUMBERS)
        self.messages = 0

    @cython.ccall
    @cython.exceptval(-1)
    def write(self, one: LinkRecord) -> cython.int:
        """A message that can be linked."""
        row: cython.longlong = self.put_order()
        self.message.values[row] = self.messages
        self.flags.values[row] = one.flags
        self.connection.values[row] = one.connection
        self.channel.values[row] = one.channel
        self.packet_number.values[row] = one.packet_number
        self.sent_ns.values[row] = one.sent_ns
        self.connection_id.values[row] = one.connection_id
        self.vhost.values[row] = _signed(one.vhost)
        self.line.values[row] = _signed(one.line)
        self.other.values[row] = _signed(one.other)
        self.routing_key.values[row] = _signed(one.routing_key)
        self.queue.values[row] = _signed(one.queue)
        self.correlation.values[row] = _signed(one.correlation)
        self.reply_to.values[row] = _signed(one.reply_to)
        self.deadline.values[row] = one.deadline
        self.identity.values[row] = _signed(one.identity)
        self.asks.values[row] = _signed(one.asks)
        self.answers.values[row] = _signed(one.answers)
        return self.end_row()

    @cython.ccall
    def close(self, connection: cython.longlong, close_ns: Any, over: cython.bint) -> None:
        """A connection that asked for a reply was closed (None: it was not), or is over."""
        one: LinkRecord = LinkRecord()
        one.flags = OVER if over else CLOSED
        one.connection = connection
        one.sent_ns = NULL if close_ns is None else close_ns
        self.write(one)


@cython.cfunc
def _signed(number: cython.ulonglong) -> cython.longlong:
    """A hash as a signed number."""
    if cython.compiled:
        return cython.cast(cython.longlong, number)
    return number - (1 << 64) if number >> 63 else number
