# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""What links need to know of the messages that a reader of some connections sees.

A linker that is given those of all readers in order (`relinking`) does what it would have done with
one reader of everything.
"""

import cython
from cython.cimports.amqpsniff.session.linkable import (
    Linkable,
)
from cython.cimports.amqpsniff.session.witness import Witness

from amqpsniff.columns import NULL
from amqpsniff.session import linkable

NUMBERS = ["message", *linkable.NUMBERS]
"""Columns of integers: `message` is the ordinal of a message among those of its reader."""

CLOSED, OVER = 1 << 10, 1 << 11
"""Flags of a row that is no message: a connection was closed (`sent_ns`, null for never), and it is
over."""

_NULL = cython.declare(cython.longlong, NULL)
_CLOSED = cython.declare(cython.longlong, CLOSED)
_OVER = cython.declare(cython.longlong, OVER)


class Linkables(Witness):
    """Writes them down; `messages` counts the messages so far, linkable or not."""

    def __init__(self, seed, give):
        Witness.__init__(self, seed, give, NUMBERS)
        self.messages = 0

    def write(self, one):
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
        return self.end_row()

    def close(self, connection, close_ns, over):
        """A connection that asked for a reply was closed (None: it was not), or is over."""
        one: Linkable = Linkable()
        one.flags = _OVER if over else _CLOSED
        one.connection = connection
        one.sent_ns = _NULL if close_ns is None else close_ns
        self.write(one)


def _signed(number):
    """A hash as a signed number."""
    if cython.compiled:
        return cython.cast(cython.longlong, number)
    return number - (1 << 64) if number >> 63 else number
