# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Logs of a reader of some connections, in time order, to be merged with those of other readers.

Links, repeated publishes, queue times and redelivery counts depend on the messages of every
connection. A reader of a partition logs what they need: each message as its `LinkRecord`
(`LinkLog`), and the events that `recent_publishes` and `rules.requeueing` would have used
(`MessageLog`). `log_replay` replays the merged logs of all readers.

Each row has the packet that caused it, by time, capture and number, or the end of the capture. In
this order, the rows of all readers are those of one reader of everything. Rows are given away
`ROWS` at a time; none are kept. Texts are hashes, the same in all processes.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.columns import Integers
from cython.cimports.amqpsniff.decode.rows import Vocabularies
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.codes import CONNECTION_CLOSED, CONNECTION_OVER
from cython.cimports.amqpsniff.session.entities import MessageTimes
from cython.cimports.amqpsniff.session.fingerprint import Fingerprinter, mixed
from cython.cimports.amqpsniff.session.linker import LinkRecord

from amqpsniff.session.linker import NUMBERS as LINK_NUMBERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.decode.rows import MessageRows
    from amqpsniff.session.entities import Channel, Session

ROWS = 32_768
"""Rows that are held before they are given away, in 10 MB."""

ORDER = ["ts_ns", "capture", "number"]
"""Columns that say when it was; `capture` is an index, negative if unknown."""

_LAST = cython.declare(cython.longlong, 2**63 - 1)


@cython.cclass
class EventLog:
    """Writes rows.

    Args:
        seed: Seed of the hashes; the same for all readers whose rows are merged.
        give: Called with this object when its columns have `most` rows; the columns are then
            reused.
        numbers: Names of further columns of integers.

    `captures` are names by index. `over`: the capture has ended. `most`: rows held at a time,
    `ROWS` or fewer.
    """

    seed: cython.ulonglong
    give: Any
    over: cython.bint
    count: cython.longlong
    rows: cython.longlong
    most: cython.longlong
    last_ns: cython.longlong
    last_capture: cython.longlong
    last_number: cython.longlong
    recent_code: cython.longlong

    captures: list[Any]
    codes: dict[Any, Any]
    recent: Any
    ts_ns: Integers
    capture: Integers
    number: Integers

    def __init__(self, seed: Any, give: Any, numbers: Any) -> None:
        self.seed = seed
        self.give = give
        self.captures = []
        self.codes = {}
        self.recent, self.recent_code = None, -1
        self.count = self.rows = 0
        self.last_ns = NULL
        self.last_capture = self.last_number = 0
        self.over = False
        self.most = ROWS
        for name in [*ORDER, *numbers]:
            column: Integers = Integers(nulls=False)
            column.reserve(ROWS)
            setattr(self, name, column)

    @cython.ccall
    @cython.exceptval(-1)
    def at(self, capture: Any, number: cython.longlong, ts_ns: cython.longlong) -> cython.int:
        """Set the packet that brings about the next rows, or the time alone (`capture` None).

        Time does not run backwards here.
        """
        if ts_ns == NULL or ts_ns < self.last_ns:
            return 0
        code: cython.longlong = self.code_of(capture)
        if ts_ns == self.last_ns and code == self.last_capture and number < self.last_number:
            return 0
        self.last_ns, self.last_capture, self.last_number = ts_ns, code, number
        return 0

    @cython.exceptval(-2)
    def code_of(self, capture: Any) -> cython.longlong:
        """The index of a capture in `captures`, which it is put in; negative for None."""
        if capture is not self.recent:
            code: cython.longlong = -1
            if capture is not None:
                code = self.codes.setdefault(capture, len(self.captures))
                if code == len(self.captures):
                    self.captures.append(capture)
            self.recent, self.recent_code = capture, code
        return self.recent_code

    def at_end(self, conversation: Any) -> cython.int:
        """Set the end of the capture, on a conversation, as what brings about the next rows."""
        begun: cython.longlong = conversation.start_ns
        if self.last_ns == _LAST and begun < self.last_number:
            return 0
        self.last_ns, self.last_capture = _LAST, -1
        self.last_number = begun
        return 0

    @cython.ccall
    def finish(self) -> None:
        """Give away the remaining rows."""
        if self.rows:
            self.give(self)
            self.rows = 0

    def put_order(self) -> cython.longlong:
        """Begin a row: write when it was; gives its place."""
        row: cython.longlong = self.rows
        self.ts_ns.values[row] = self.last_ns
        self.capture.values[row] = self.last_capture
        self.number.values[row] = self.last_number
        return row

    def end_row(self) -> cython.int:
        """A row is written."""
        self.rows += 1
        self.count += 1
        if self.rows >= self.most:
            self.finish()
        return 0


# messages to be linked


LINK_LOG_NUMBERS = ["message", *LINK_NUMBERS]
"""Columns of a `LinkLog`: `message` is the ordinal of a message among those of its reader."""


@cython.cclass
class LinkLog(EventLog):
    """Writes link records; `messages` counts the messages so far, linkable or not."""

    messages: cython.longlong
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
    asks: Integers
    answers: Integers

    def __init__(self, seed: Any, give: Any) -> None:
        EventLog.__init__(self, seed, give, LINK_LOG_NUMBERS)
        self.messages = 0

    def write(self, record: LinkRecord) -> cython.int:
        """A message that can be linked."""
        row: cython.longlong = self.put_order()
        self.message.values[row] = self.messages
        self.flags.values[row] = record.flags
        self.connection.values[row] = record.connection
        self.channel.values[row] = record.channel
        self.packet_number.values[row] = record.packet_number
        self.sent_ns.values[row] = record.sent_ns
        self.connection_id.values[row] = record.connection_id
        self.vhost.values[row] = _signed(record.vhost)
        self.line.values[row] = _signed(record.line)
        self.other.values[row] = _signed(record.other)
        self.routing_key.values[row] = _signed(record.routing_key)
        self.queue.values[row] = _signed(record.queue)
        self.correlation.values[row] = _signed(record.correlation)
        self.reply_to.values[row] = _signed(record.reply_to)
        self.deadline.values[row] = record.deadline
        self.identity.values[row] = _signed(record.identity)
        self.asks.values[row] = _signed(record.asks)
        self.answers.values[row] = _signed(record.answers)
        return self.end_row()

    @cython.ccall
    def close(self, connection: cython.longlong, close_ns: Any, over: cython.bint) -> None:
        """A connection that asked for a reply was closed (None: it was not), or is over."""
        record: LinkRecord = LinkRecord()
        record.flags = CONNECTION_OVER if over else CONNECTION_CLOSED
        record.connection = connection
        record.sent_ns = NULL if close_ns is None else close_ns
        self.write(record)


@cython.cfunc
def _signed(number: cython.ulonglong) -> cython.longlong:
    """A hash as a signed number."""
    if cython.compiled:
        return cython.cast(cython.longlong, number)
    return number - (1 << 64) if number >> 63 else number


# messages that repeat, wait or come again


MESSAGE_LOG_NUMBERS = "kind connection channel mark route seen_ns seen_number".split()
"""Columns of integers of a `MessageLog`. `channel` is the ordinal of the first sighting on that
incarnation of a channel. `mark` is what makes messages the same, `route` where a publish went, or
the delivery tag of what came again; `seen_ns` and `seen_number` are what a finding says, in the
capture `seen_in`, an index like `capture`."""

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

_PUBLISH = cython.declare(cython.longlong, PUBLISH)
_NAMED = cython.declare(cython.longlong, NAMED)
_DELIVER = cython.declare(cython.longlong, DELIVER)


@cython.cclass
class MessageLog(EventLog):
    """Writes the messages with a message-id or a correlation-id, redelivered and requeued ones.

    `places` are tuples of a row and what `PLACES` are there. In the columns of
    names are codes of `names`; `message_id` has bytes, or None.
    """

    fingerprinter: Fingerprinter
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
        EventLog.__init__(self, seed, give, [*MESSAGE_LOG_NUMBERS, "seen_in", *NAMES])
        self.fingerprinter = Fingerprinter(seed)
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
            self._put_texts(
                words.exchange.text(messages.exchange.values[row]),
                words.routing_key.text(messages.routing_key.values[row]),
                None,
                messages.message_id.bytes_of(row),
            )
        else:
            self._put_texts(None, None, None, None)
        named = named and channel.session.server_seen
        self._log_message(_NAMED if named else _PUBLISH, channel, messages, row)
        return 0

    def deliver(self, channel: Channel, messages: MessageRows, row: cython.longlong) -> cython.int:
        """The first delivery of a message; nothing when it has no id."""
        if not messages.message_id.has(row) and not messages.correlation_id.has(row):
            return 0
        queue = messages.vocabularies.queue.text(messages.queue.values[row])
        self._put_texts(None, None, queue, None)
        self._log_message(_DELIVER, channel, messages, row)
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
        self._put_texts(None, None, queue, message_id)
        self._log_on_channel(kind, channel, mark, tag, NULL if ts_ns is None else ts_ns, number)
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
            self._put_texts(None, None, None, None)
            self._write(OVER, session.number, -1, 0, 0, NULL, 0, None)

    @cython.ccall
    def lose(self, session: Session, side: cython.int) -> None:
        """Frames of a side may be missing on a connection."""
        self._put_texts(None, None, None, None)
        self._write(LOST, session.number, -1, side, 0, NULL, 0, None)

    @cython.ccall
    @cython.exceptval(-1)
    def key(
        self, text: str | None, octets: bytes | None, mark: cython.ulonglong
    ) -> cython.longlong:
        """A hash of a text, bytes (either may be None) and a number."""
        like: Fingerprinter = self.fingerprinter
        h: cython.ulonglong = like.octets(None if text is None else text.encode())
        h = mixed(h, like.octets(octets))
        return cython.cast(cython.longlong, mixed(h, mark) >> 1)

    def _log_message(
        self, kind: cython.longlong, channel: Channel, messages: MessageRows, row: cython.longlong
    ) -> cython.int:
        words: Vocabularies = messages.vocabularies
        exchange: cython.int = messages.exchange.values[row]
        key: cython.int = messages.routing_key.values[row]
        h: cython.ulonglong
        if words is not self.words or exchange != self.recent_exchange or key != self.recent_key:
            self.words, self.recent_exchange, self.recent_key = words, exchange, key
            like: Fingerprinter = self.fingerprinter
            h = mixed(like.word(words.exchange, exchange), like.word(words.routing_key, key))
            self.recent_route = cython.cast(cython.longlong, h >> 1)
        self._log_on_channel(
            kind,
            channel,
            messages.mark.values[row],
            self.recent_route,
            messages.ts_ns.values[row],
            messages.packet_number.values[row],
        )
        return 0

    def _put_texts(
        self, exchange: Any, routing_key: Any, queue: Any, message_id: Any
    ) -> cython.int:
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

    def _log_on_channel(
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
