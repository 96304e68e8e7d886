# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Rows of messages made `LinkRecord`: for a linker, or written down for one that is fed by many.

A reader of all connections links a message when its row is there, and hangs the links on the row. A
reader of some writes its messages down (`link_records`), and when connections that asked for
replies were closed.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.decode.amqp10.columns import DeliveryColumns
from cython.cimports.amqpsniff.decode.codes import ABORTED, INCOMPLETE
from cython.cimports.amqpsniff.decode.method_layout import SEND
from cython.cimports.amqpsniff.decode.rows import (
    Vocabularies,
)
from cython.cimports.amqpsniff.decode.state import Connection
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.entities import Session
from cython.cimports.amqpsniff.session.fingerprint import (
    Fingerprinter,
    is_direct,
    mixed,
)
from cython.cimports.amqpsniff.session.link_columns import LinkColumns
from cython.cimports.amqpsniff.session.link_flags import (
    ADDRESSED,
    AGAIN,
    ASKS,
    DIED,
    DIRECT_KEY,
    DIRECT_REPLY,
    IDENTIFIED,
    OWN_QUEUE,
    ROUTED,
)
from cython.cimports.amqpsniff.session.link_flags import PUBLISH as IS_PUBLISH
from cython.cimports.amqpsniff.session.link_records import (
    LinkRecord,
)
from cython.cimports.amqpsniff.session.linker import Linker
from cython.cimports.amqpsniff.session.method_flags import DELIVER, GET_OK, PUBLISH

from amqpsniff.decode.json_objects import read_object
from amqpsniff.decode.octets import own_seed
from amqpsniff.session import method_flags
from amqpsniff.session.amqp10 import vhost_to_link
from amqpsniff.session.link_columns import id_number
from amqpsniff.session.linker import UNKNOWN_VHOST
from amqpsniff.session.rpc import closed_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.decode.rows import MessageRows

MAX_EXPIRATION_DIGITS = 12
"""Digits of an `expiration` that is taken for one: RabbitMQ allows 2^32 ms, ten digits."""

LAST_NS = 2**63 - 1
"""The last time that a column holds: a capture may say that it is nearly then."""

_MS = cython.declare(cython.longlong, 1_000_000)
_UNKNOWN_VHOST = cython.declare(cython.ulonglong, UNKNOWN_VHOST)
_SLASH = b"/"


@cython.cclass
class Origin:
    """A connection of a batch: what its rows have in common."""

    connection_id: cython.longlong
    number: cython.longlong
    vhost: cython.ulonglong

    session: Session

    def __init__(self, session: Session, connection_id: Any, vhost: Any) -> None:
        self.session = session
        self.connection_id = connection_id
        self.vhost = vhost
        self.number = -1 if session is None else session.number


@cython.cclass
class LinkRecorder:
    """Links the rows of messages, or writes down what links need to know of them.

    Args:
        memory: Other bounds than the usual ones.
        written: Where they are written down; None links them here.
    """

    written: Any

    linker: Linker
    fingerprinter: Fingerprinter
    one: LinkRecord
    origins: dict[Any, Any]
    rows: MessageRows
    asking: set[Any]
    kinds: cython.const[cython.uchar][::1]

    def __init__(self, memory: Any = None, written: Any = None) -> None:
        self.linker = Linker(memory)
        self.written = written
        self.fingerprinter = Fingerprinter(own_seed() if written is None else written.seed)
        self.one = LinkRecord()
        self.origins = {}
        self.rows = None
        self.asking = set()
        self.kinds = method_flags.KINDS

    @property
    def hits(self) -> Any:
        """Number of times that each limit was reached."""
        return self.linker.hits

    @cython.ccall
    @cython.exceptval(-1)
    def observe(
        self, messages: MessageRows, row: cython.longlong, connections: list[Any]
    ) -> cython.int:
        """A message's row is there; `connections` are the decoder's, by code."""
        if self.rows is not messages:
            self._begin(messages)
        found: LinkColumns = messages.links
        if found is not None:
            found.reserve(messages.capacity)
        if self._make(messages, row, connections):
            self._link(found, row)
        if self.written is not None:
            self.written.messages += 1
        return 0

    def _begin(self, messages: MessageRows) -> cython.int:
        """Rows of another batch."""
        self.rows = messages
        self.origins.clear()
        if messages.links is None and self.written is None:
            messages.links = LinkColumns()
        return 0

    def _link(self, found: LinkColumns, row: cython.longlong) -> cython.int:
        """Link the message that was made, or write it down."""
        one: LinkRecord = self.one
        if self.written is not None:
            self.written.write(one)
            if (one.flags & ASKS or one.asks) and one.session is not None:
                self.asking.add(one.connection)
                if closed_at(one.session) is not None:
                    self.close(one.session)
            return 0
        self.linker.link(one)
        if one.published:
            found.published(
                row,
                one.published_number,
                one.published_id,
                one.published_ns,
                one.link_confidence,
                one.delivery_number,
            )
        if one.replies:
            found.replies(row, one.request_number, one.request_id, one.request_ns, one.reply_late)
        return 0

    @cython.ccall
    def close(self, session: Session) -> Any:
        """A connection was closed or reset, or had data after a reset."""
        if self.written is not None and session.number in self.asking:
            self.written.close(session.number, closed_at(session), False)

    @cython.ccall
    def end(self, session: Session) -> Any:
        """A connection is over."""
        if self.written is None:
            self.linker.requests.end(session.number, closed_at(session))
        elif session.number in self.asking:
            self.asking.discard(session.number)
            self.written.close(session.number, closed_at(session), True)

    # the record of a message

    def _make(
        self, messages: MessageRows, row: cython.longlong, connections: list[Any]
    ) -> cython.bint:
        """Make the message of a row; whether it is one that can be linked."""
        method: cython.int = messages.method.values[row]
        if method < 0 or messages.body_size.values[row] == NULL:
            return False
        if method >= SEND and messages.deliveries is not None:
            return self._make_amqp10(messages, row, connections, method == SEND)
        if method >= len(self.kinds):
            return False
        kind: cython.int = self.kinds[method]
        if kind == PUBLISH and messages.sender.values[row] == 0:
            return self._publish(messages, row, connections)
        if (kind == DELIVER or kind == GET_OK) and messages.sender.values[row] == 1:
            return self._deliver(messages, row, connections)
        return False

    def _publish(
        self, messages: MessageRows, row: cython.longlong, connections: list[Any]
    ) -> cython.bint:
        """Make a publish; whether it is one that can be linked."""
        if messages.status.values[row] == INCOMPLETE:
            return False
        one: LinkRecord = self.one
        words: Vocabularies = messages.vocabularies
        self._make_any(messages, row, connections)
        one.flags |= IS_PUBLISH
        if messages.message_id.has(row):
            one.flags |= IDENTIFIED
            one.identity = _sized(self.fingerprinter.identity(messages, row), messages, row)
        if self.written is not None or self.linker.requests.waiting:
            self._address(messages, row)
        code: cython.int = messages.reply_to.values[row]
        if code >= 0 and words.reply_to.ends[code + 1] > words.reply_to.ends[code]:
            self._ask(messages, row)
        return True

    def _deliver(
        self, messages: MessageRows, row: cython.longlong, connections: list[Any]
    ) -> cython.bint:
        """Make a delivery; it can be linked."""
        one: LinkRecord = self.one
        like: Fingerprinter = self.fingerprinter
        words: Vocabularies = messages.vocabularies
        h: cython.ulonglong = self._make_any(messages, row, connections)
        if like.died:
            one.flags |= DIED
            one.other = mixed(mixed(h, like.exchange), like.routing_key)
        if messages.redelivered.values[row] == 1:
            one.flags |= AGAIN
        self._queue(messages, row)
        code: cython.int = messages.reply_to.values[row]
        if code >= 0 and is_direct(words.reply_to, code):
            one.flags |= DIRECT_REPLY
            one.reply_to = like.word(words.reply_to, code)
        code = messages.routing_key.values[row]
        if code >= 0 and is_direct(words.routing_key, code):
            one.flags |= DIRECT_KEY
        one.identity = like.identity(messages, row)
        return True

    def _make_amqp10(
        self,
        messages: MessageRows,
        row: cython.longlong,
        connections: list[Any],
        publish: cython.bint,
    ) -> cython.bint:
        """Make a message of AMQP 1.0; whether it is one that can be linked."""
        one: LinkRecord = self.one
        like: Fingerprinter = self.fingerprinter
        words: Vocabularies = messages.vocabularies
        more: DeliveryColumns = messages.deliveries
        status: cython.int = messages.status.values[row]
        if messages.sender.values[row] != (0 if publish else 1):
            return False
        if status == ABORTED or (publish and status == INCOMPLETE):
            return False
        self._place(messages, row, connections)
        code: cython.int = more.address.values[row]
        one.flags = IS_PUBLISH if publish else 0
        if code >= 0:
            one.flags |= ROUTED
            one.routing_key = like.word(more.address.words, code)
        one.line = 0
        one.correlation = like.id_of(messages.correlation_id, row)
        identity: cython.ulonglong = like.identity(messages, row)
        if identity:
            one.identity = _sized(identity, messages, row)
            if publish:
                one.flags |= IDENTIFIED
                one.other = identity
        else:
            one.identity = like.bare(messages, row) or 1
        if not publish:
            if messages.redelivered.values[row] == 1:
                one.flags |= AGAIN
            self._queue(messages, row)
            return True
        code = messages.reply_to.values[row]
        if code >= 0 and words.reply_to.ends[code + 1] > words.reply_to.ends[code]:
            asked: cython.ulonglong = one.correlation
            if not messages.correlation_id.has(row):
                one.correlation = like.id_of(messages.message_id, row)
            self._ask(messages, row)
            if self.written is None and asked != one.correlation and self.linker.requests.waiting:
                one.flags &= ~ROUTED  # a request without a correlation-id is no reply
        return True

    def _place(
        self, messages: MessageRows, row: cython.longlong, connections: list[Any]
    ) -> cython.int:
        """Fill in where a message is."""
        one: LinkRecord = self.one
        origin: Origin = self._origin(messages, row, connections)
        one.session = origin.session
        one.connection = origin.number
        one.connection_id = origin.connection_id
        one.vhost = origin.vhost
        one.channel = messages.channel.values[row]
        one.packet_number = messages.packet_number.values[row]
        one.sent_ns = messages.ts_ns.values[row]
        one.routing_key = one.other = one.reply_to = one.queue = one.identity = 0
        one.asks = one.answers = 0
        one.deadline = NULL
        if messages.calls is not None:
            call: tuple = messages.calls.pop(row, None)
            if call is not None:
                asks, _, answers = call
                if asks is not None and messages.sender.values[row] == 0:
                    one.asks = self.fingerprinter.octets(asks.encode())
                if answers is not None:
                    one.answers = self.fingerprinter.octets(answers.encode())
        return 0

    @cython.exceptval(1)
    def _make_any(
        self, messages: MessageRows, row: cython.longlong, connections: list[Any]
    ) -> cython.ulonglong:
        """Fill in the common fields; returns the hash of size and properties."""
        one: LinkRecord = self.one
        like: Fingerprinter = self.fingerprinter
        words: Vocabularies = messages.vocabularies
        code: cython.int = messages.routing_key.values[row]
        self._place(messages, row, connections)
        one.flags = ROUTED if code >= 0 else 0
        one.routing_key = like.word(words.routing_key, code)
        h: cython.ulonglong = like.of(messages, row)
        one.correlation = like.correlation
        exchange: cython.ulonglong = like.word(words.exchange, messages.exchange.values[row])
        one.line = mixed(mixed(h, exchange), one.routing_key)
        return h

    def _address(self, messages: MessageRows, row: cython.longlong) -> cython.int:
        """Exchange and routing key of a publish as one address."""
        words: Vocabularies = messages.vocabularies
        code: cython.int = messages.routing_key.values[row]
        exchange = words.exchange.text(messages.exchange.values[row])
        if code >= 0 and exchange:
            address: bytes = exchange.encode() + _SLASH + words.routing_key.text(code).encode()
            self.one.other = self.fingerprinter.octets(address)
            self.one.flags |= ADDRESSED
        return 0

    def _ask(self, messages: MessageRows, row: cython.longlong) -> cython.int:
        """A publish is a request."""
        one: LinkRecord = self.one
        words: Vocabularies = messages.vocabularies
        code: cython.int = messages.reply_to.values[row]
        one.flags |= ASKS
        if is_direct(words.reply_to, code):
            one.flags |= DIRECT_REPLY
        else:
            one.reply_to = self.fingerprinter.word(words.reply_to, code)
        expiration = words.expiration.text(messages.expiration.values[row])
        if expiration is not None and one.sent_ns != NULL:
            if expiration.isdecimal() and len(expiration) <= MAX_EXPIRATION_DIGITS:
                one.deadline = min(one.sent_ns + int(expiration) * _MS, LAST_NS)
        return 0

    def _queue(self, messages: MessageRows, row: cython.longlong) -> cython.int:
        """Fill in the identity of a delivery's queue."""
        one: LinkRecord = self.one
        words: Vocabularies = messages.vocabularies
        code: cython.int = messages.queue.values[row]
        if code >= 0 and not self.fingerprinter.streamed:
            one.queue = self.fingerprinter.word(words.queue, code)
        elif code < 0 and words.exchange.text(messages.exchange.values[row]) == "":
            one.queue = one.routing_key
        else:
            one.flags |= OWN_QUEUE
            one.queue = self.fingerprinter.word(
                words.consumer_tag, messages.consumer_tag.values[row]
            )
        return 0

    # where messages are

    @cython.cfunc
    def _origin(
        self, messages: MessageRows, row: cython.longlong, connections: list[Any]
    ) -> Origin:
        """The connection of a row."""
        code: cython.int = messages.connection.values[row]
        origin: Origin = self.origins.get(code)
        if origin is None:
            connection: Connection = connections[code]
            session: Session = connection.session
            origin = Origin(session, id_number(connection.name()[0]), self._vhost(session))
            self.origins[code] = origin
        elif origin.vhost == _UNKNOWN_VHOST:
            origin.vhost = self._vhost(origin.session)
        return origin

    @cython.exceptval(1)
    def _vhost(self, session: Session) -> cython.ulonglong:
        """The hash of the virtual host of a connection; `_UNKNOWN_VHOST` if unknown."""
        if session is not None and session.connection.is_amqp10:
            state = session.amqp10
            vhost = None if state is None else vhost_to_link(state)
            return self.fingerprinter.octets(vhost.encode()) if vhost else _UNKNOWN_VHOST
        octets = None if session is None else session.handshake_json("connection.open")
        vhost = read_object(octets).get("virtual_host")
        return (
            self.fingerprinter.octets(vhost.encode()) if isinstance(vhost, str) else _UNKNOWN_VHOST
        )


@cython.cfunc
@cython.exceptval(1)
def _sized(
    identity: cython.ulonglong, messages: MessageRows, row: cython.longlong
) -> cython.ulonglong:
    """An identity with the size of the body, which comes to AMQP 1.0 as it was published."""
    return mixed(identity, messages.body_size.values[row]) or 1
