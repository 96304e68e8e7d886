# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Log of messages that readers of other connections may see too.

Repeated publishes, queue times and redelivery counts depend on the messages of every connection. A
reader of a partition logs the events that `recent_publishes` and `rules.requeueing` would have
used, in time order, and `amqpsniff.session.message_replay` replays the merged logs of all readers.

Only these messages are logged: those with a message-id or a correlation-id, redelivered ones, and
requeued ones.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.decode.octets import (
    ByteReader,
)
from cython.cimports.amqpsniff.decode.rows import Vocabularies
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.entities import MessageTimes
from cython.cimports.amqpsniff.session.event_log import EventLog
from cython.cimports.amqpsniff.session.fingerprint import mixed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.columns import Integers, Vocabulary
    from amqpsniff.decode.rows import MessageRows
    from amqpsniff.session.entities import Channel, Session

NUMBERS = "kind connection channel mark route seen_ns seen_number".split()
"""Columns of integers. `channel` is the ordinal of the first sighting on that incarnation of a
channel. `mark` is what makes messages the same, `route` where a publish went, or the delivery tag
of what came again; `seen_ns` and `seen_number` are what a finding says, in the capture `seen_in`,
an index like `capture`."""

NAMES = "exchange routing_key queue".split()
"""Columns of names, for the words of findings; `NULL` where none needs them."""

PLACES = "connection_id client server channel_number".split()
"""Columns that say which channel it is, with the first sighting there."""

PUBLISH, NAMED, DELIVER, FORGET, COUNTED, AGAIN_NAMED, AGAIN, PUT_BACK, DISCARDED = range(9)
CLOSED, OVER, LOST, LOADED = 9, 10, 11, 12
"""Kinds of sightings. A publish with a correlation-id, one with a message-id; the first delivery of
a message with either; a publish that the broker did not take. A delivery of which the broker says
how often it has come (in `mark`); one that comes again with a message-id, and one without; one that
is given back, and one that is rejected. The end of a channel of which there are sightings, and of a
connection on which messages came again. A connection on which frames of a side (in `mark`) may be
missing. A channel whose consumers had all that they may hold, as `queue` says in words."""

_NOTHING = cython.declare(cython.ulonglong, 0x5851F42D4C957F2D)
_PUBLISH = cython.declare(cython.longlong, PUBLISH)
_NAMED = cython.declare(cython.longlong, NAMED)
_DELIVER = cython.declare(cython.longlong, DELIVER)


@cython.cclass
class MessageLog(EventLog):
    """Writes them down; `places` are tuples of a row and what `PLACES` are there. In the columns of
    names are codes of `names`; `message_id` has bytes, or None.
    """

    reader: ByteReader
    places: list[Any]
    names: dict[Any, Any]
    exchange: Integers
    routing_key: Integers
    queue: Integers
    message_id: list[Any]
    returning: set[Any]
    words: Vocabularies
    recent_exchange: cython.int
    recent_key: cython.int
    recent_route: cython.longlong
    kind: Integers
    connection: Integers
    channel: Integers
    mark: Integers
    route: Integers
    seen_ns: Integers
    seen_number: Integers
    seen_in: Integers

    def __init__(self, seed: Any, give: Any) -> None:
        EventLog.__init__(self, seed, give, [*NUMBERS, "seen_in", *NAMES])
        self.reader = ByteReader()
        self.returning = set()
        self.words = None
        self.recent_exchange = self.recent_key = self.recent_route = -1
        self._begin()

    def _begin(self) -> None:
        self.places, self.message_id, self.names = [], [], {}

    @cython.ccall
    def finish(self) -> None:
        """Give away the remaining rows."""
        EventLog.finish(self)
        self._begin()

    def publish(self, channel: Channel, messages: MessageRows, row: cython.longlong) -> cython.int:
        """A publish; nothing when it has no id."""
        words = messages.vocabularies
        keyed: cython.bint = messages.routing_key.values[row] >= 0  # it was not cut
        named: cython.bint = keyed and messages.message_id.has(row)
        if not named and not messages.correlation_id.has(row):
            return 0
        if named:
            self._text(
                words.exchange.text(messages.exchange.values[row]),
                words.routing_key.text(messages.routing_key.values[row]),
                None,
                messages.message_id.bytes_of(row),
            )
        else:
            self._text(None, None, None, None)
        named = named and channel.session.server_seen
        self._put(_NAMED if named else _PUBLISH, channel, messages, row)
        return 0

    def deliver(self, channel: Channel, messages: MessageRows, row: cython.longlong) -> cython.int:
        """The first delivery of a message; nothing when it has no id."""
        if not messages.message_id.has(row) and not messages.correlation_id.has(row):
            return 0
        queue = messages.vocabularies.queue.text(messages.queue.values[row])
        self._text(None, None, queue, None)
        self._put(_DELIVER, channel, messages, row)
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def note(
        self,
        kind: cython.longlong,
        channel: Channel,
        mark: cython.longlong,
        tag: cython.longlong,
        number: cython.longlong,
        ts_ns: Any,
        queue: Any,
        message_id: Any,
    ) -> cython.int:
        """Anything else; `ts_ns` may be None, as texts may."""
        self._text(None, None, queue, message_id)
        self._add(kind, channel, mark, tag, NULL if ts_ns is None else ts_ns, number)
        return 0

    @cython.ccall
    def close(self, channel: Channel) -> None:
        """A channel is over."""
        if channel.times.first_logged >= 0:
            self.note(CLOSED, channel, 0, 0, 0, None, None, None)

    @cython.ccall
    def end(self, session: Session) -> None:
        """A connection is over."""
        if session.number in self.returning:
            self.returning.discard(session.number)
            self._text(None, None, None, None)
            self._write(OVER, session.number, -1, 0, 0, NULL, 0, None)

    @cython.ccall
    def lose(self, session: Session, side: cython.int) -> None:
        """Frames of a side may be missing on a connection."""
        self._text(None, None, None, None)
        self._write(LOST, session.number, -1, side, 0, NULL, 0, None)

    @cython.ccall
    @cython.exceptval(-1)
    def key(
        self, text: str | None, octets: bytes | None, mark: cython.ulonglong
    ) -> cython.longlong:
        """A hash of a text, bytes (either may be None) and a number."""
        h: cython.ulonglong = _NOTHING if text is None else self._hash(text.encode())
        h = mixed(h, _NOTHING if octets is None else self._hash(octets))
        return cython.cast(cython.longlong, mixed(h, mark) >> 1)

    @cython.exceptval(1)
    def _hash(self, octets: bytes) -> cython.ulonglong:
        self.reader.read_from(octets)
        return self.reader.hash_with(self.seed, 0, len(octets))

    @cython.exceptval(1)
    def _word(self, vocabulary: Vocabulary, code: cython.int) -> cython.ulonglong:
        """The hash of a text of a vocabulary."""
        if code < 0:
            return _NOTHING
        start: cython.longlong = vocabulary.ends[code]
        self.reader.read_from(vocabulary.octets)
        return self.reader.hash_with(self.seed, start, vocabulary.ends[code + 1] - start)

    def _put(
        self, kind: cython.longlong, channel: Channel, messages: MessageRows, row: cython.longlong
    ) -> cython.int:
        words: Vocabularies = messages.vocabularies
        exchange: cython.int = messages.exchange.values[row]
        key: cython.int = messages.routing_key.values[row]
        h: cython.ulonglong
        if words is not self.words or exchange != self.recent_exchange or key != self.recent_key:
            self.words, self.recent_exchange, self.recent_key = words, exchange, key
            h = mixed(self._word(words.exchange, exchange), self._word(words.routing_key, key))
            self.recent_route = cython.cast(cython.longlong, h >> 1)
        self._add(
            kind,
            channel,
            messages.mark.values[row],
            self.recent_route,
            messages.ts_ns.values[row],
            messages.packet_number.values[row],
        )
        return 0

    def _text(self, exchange: Any, routing_key: Any, queue: Any, message_id: Any) -> cython.int:
        row: cython.longlong = self.rows
        self.exchange.values[row] = self._code(exchange)
        self.routing_key.values[row] = self._code(routing_key)
        self.queue.values[row] = self._code(queue)
        self.message_id.append(message_id)
        return 0

    @cython.exceptval(-2)
    def _code(self, name: Any) -> cython.longlong:
        """The code of a name, `NULL` for None."""
        if name is None:
            return NULL
        code = self.names.get(name)
        if code is None:
            code = self.names[name] = len(self.names)
        return code

    def _add(
        self,
        kind: cython.longlong,
        channel: Channel,
        mark: cython.longlong,
        route: cython.longlong,
        seen_ns: cython.longlong,
        seen_number: cython.longlong,
    ) -> cython.int:
        session: Session = channel.session
        times: MessageTimes = channel.own_times()
        if times.first_logged < 0:
            times.first_logged = self.count
            self.places.append((self.rows, *session.connection.name(), channel.number))
        seen_in = session.capture
        if session.captures is not None and seen_ns != NULL:
            seen_in = session.capture_at(seen_ns)
        self._write(
            kind, session.number, times.first_logged, mark, route, seen_ns, seen_number, seen_in
        )
        return 0

    def _write(
        self,
        kind: cython.longlong,
        connection: cython.longlong,
        channel: cython.longlong,
        mark: cython.longlong,
        route: cython.longlong,
        seen_ns: cython.longlong,
        seen_number: cython.longlong,
        seen_in: Any,
    ) -> cython.int:
        row: cython.longlong = self.put_order()
        self.kind.values[row] = kind
        self.connection.values[row] = connection
        self.channel.values[row] = channel
        self.mark.values[row] = mark
        self.route.values[row] = route
        self.seen_ns.values[row] = seen_ns
        self.seen_number.values[row] = seen_number
        self.seen_in.values[row] = self.code_of(seen_in)
        return self.end_row()
