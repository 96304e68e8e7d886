# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Messages that readers of some connections each have written down, linked as if one had read all.

`Relinking` is fed them in the order of time and gives them to a `Linker`, the same that a reader of
everything asks. Only messages that belong to others come out, as rows of numbers.
"""

import cython
from cython.cimports.amqpsniff.columns import Integers
from cython.cimports.amqpsniff.session.linkable import (
    Linkable,
)
from cython.cimports.amqpsniff.session.linker import Linker

from amqpsniff.columns import NULL
from amqpsniff.session import linkables

COLUMNS = ["task", *linkables.NUMBERS]
"""What is fed: `task` is whose message it is."""

FOUND = (
    "task message published_packet_number published_connection_id published_ns delivery_number "
    "link_confidence request_packet_number request_connection_id request_ns reply_late"
).split()
"""The columns of the result: connection ids as numbers, `link_confidence` as its code, null where
nothing is known."""

_NULL = cython.declare(cython.longlong, NULL)
_CLOSED = cython.declare(cython.longlong, linkables.CLOSED)
_OVER = cython.declare(cython.longlong, linkables.OVER)
# Connections of a task, more than packets can open.
_CONNECTION_BITS = cython.declare(cython.int, 40)


class Relinking:
    """Links what it is fed; `rows` links are in the columns of `FOUND`, until the next `feed`."""

    def __init__(self, memory=None):
        self.linker = Linker(memory)
        self.one = Linkable()
        self.columns = {}
        self.rows = 0

    @property
    def hits(self):
        """How often each limit was reached."""
        return self.linker.hits

    def feed(self, columns, count):
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
        at: cython.longlong
        connection: cython.longlong
        one: Linkable = self.one
        self._begin(count)
        for at in range(count):
            connection = connections[at]
            if connection >= 0:
                connection |= tasks[at] << _CONNECTION_BITS
            if flags[at] & (_CLOSED | _OVER):
                self._close(connection, times[at], flags[at] & _OVER != 0)
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
            self.linker.link(one)
            if one.published or one.replies:
                self._put(tasks[at], messages[at])
        return 0

    def _begin(self, count):
        """Have room for as many links; they are null until they are written."""
        self.rows = 0
        self.columns = {}
        for name in FOUND:
            column: Integers = Integers()
            column.reserve(count)
            self.columns[name] = column
            setattr(self, name, column)
        return 0

    def _close(self, connection, close_ns, over):
        """A connection was closed, or is over."""
        time: object = None if close_ns == _NULL else close_ns
        if over:
            self.linker.calls.end(connection, time)
        else:
            self.linker.calls.close(connection, time)
        return 0

    def _put(self, task, message):
        """Write what the message that was linked belongs to."""
        row: cython.longlong = self.rows
        one: Linkable = self.one
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


def _unsigned(number):
    """A hash that was written as a signed number."""
    if cython.compiled:
        return cython.cast(cython.ulonglong, number)
    return number & 0xFFFFFFFFFFFFFFFF
