# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Makes a `LinkRecord` of each row of messages: for a linker, or for a log.

A reader of all connections links a message when its row is there, and writes its links into
`LinkColumns`. A reader of some logs the records (`event_logs.LinkLog`), and when connections that
asked for replies were closed.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.columns import Codes, Integers, Vocabulary
from cython.cimports.amqpsniff.decode.amqp10.columns import DeliveryColumns, SideColumns
from cython.cimports.amqpsniff.decode.codes import ABORTED, INCOMPLETE
from cython.cimports.amqpsniff.decode.method_layout import SEND
from cython.cimports.amqpsniff.decode.octets import code_of
from cython.cimports.amqpsniff.decode.rows import Vocabularies
from cython.cimports.amqpsniff.decode.state import Connection
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
from cython.cimports.amqpsniff.session.entities import Session
from cython.cimports.amqpsniff.session.fingerprint import Fingerprinter, is_direct, mixed
from cython.cimports.amqpsniff.session.linker import Linker, LinkRecord
from cython.cimports.amqpsniff.session.method_flags import DELIVER, GET_OK, PUBLISH

from amqpsniff.decode.json_objects import read_object
from amqpsniff.decode.octets import own_seed
from amqpsniff.session import method_flags
from amqpsniff.session.amqp10 import vhost_to_link
from amqpsniff.session.linker import UNKNOWN_VHOST, closed_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.decode.rows import MessageRows
    from amqpsniff.session.event_logs import LinkLog

MAX_EXPIRATION_DIGITS = 12
"""Digits of an `expiration` that is taken for one: RabbitMQ allows 2^32 ms, ten digits."""

LAST_NS = 2**63 - 1
"""The last time that a column holds: a capture may say that it is nearly then."""

_MS = cython.declare(cython.longlong, 1_000_000)
_UNKNOWN_VHOST = cython.declare(cython.ulonglong, UNKNOWN_VHOST)
_SLASH = b"/"


def id_number(connection_id: Any) -> Any:
    """A connection's id, 16 hex digits, as a signed number."""
    number = int(connection_id, 16)
    return number - (1 << 64) if number >> 63 else number


def id_text(number: Any) -> Any:
    """The opposite of `id_number`."""
    return f"{number & 0xFFFFFFFFFFFFFFFF:016x}"


@cython.cclass
class LinkColumns(SideColumns):
    """Links of the rows of one batch of messages; null without a link.

    They exist only if links are requested, as an attribute of their rows (`MessageRows.links`).
    """

    connections: Vocabulary
    codes: dict[Any, Any]
    link_confidence: Codes
    published_connection_id: Codes
    request_connection_id: Codes
    reply_late: Codes
    published_packet_number: Integers
    published_ns: Integers
    delivery_number: Integers
    request_packet_number: Integers
    request_ns: Integers

    INTEGERS = tuple(
        "published_packet_number published_ns delivery_number request_packet_number "
        "request_ns".split()
    )
    CODES = tuple(
        "link_confidence published_connection_id request_connection_id reply_late".split()
    )

    def __init__(self) -> None:
        SideColumns.__init__(self)
        self.connections = Vocabulary()
        self.codes = {}

    def by_name(self) -> Any:
        """Vocabularies by the name of their columns."""
        names = ("published_connection_id", "request_connection_id")
        return dict.fromkeys(names, self.connections)

    def write(self, row: cython.longlong, record: LinkRecord) -> cython.int:
        """Write the links of a message: the publish of a delivery, and the request it answers."""
        if record.published:
            self.published_packet_number.values[row] = record.published_number
            self.published_connection_id.values[row] = self._code(record.published_id)
            self.published_ns.values[row] = record.published_ns
            self.link_confidence.values[row] = record.link_confidence
            if record.delivery_number > 0:
                self.delivery_number.values[row] = record.delivery_number
        if record.replies:
            self.request_packet_number.values[row] = record.request_number
            self.request_connection_id.values[row] = self._code(record.request_id)
            self.request_ns.values[row] = record.request_ns
            self.reply_late.values[row] = record.reply_late
        return 0

    def _code(self, connection_id: cython.longlong) -> cython.int:
        """The code of a connection's id, which is given as a number."""
        code = self.codes.get(connection_id)
        if code is None:
            code = code_of(self.connections, id_text(connection_id).encode())
            self.codes[connection_id] = code
        return code


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
    """Links the rows of messages, or logs what links need to know of them.

    Args:
        memory: Other bounds than the usual ones.
        log: Where they are written; None links them here.
    """

    log: LinkLog
    linker: Linker
    fingerprinter: Fingerprinter
    record: LinkRecord
    origins: dict[Any, Any]
    rows: MessageRows
    asking: set[Any]
    kinds: cython.const[cython.uchar][::1]

    def __init__(self, memory: Any = None, log: Any = None) -> None:
        self.linker = Linker(memory)
        self.log = log
        self.fingerprinter = Fingerprinter(own_seed() if log is None else log.seed)
        self.record = LinkRecord()
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
        columns: LinkColumns = messages.links
        if columns is not None:
            columns.reserve(messages.capacity)
        if self._make_record(messages, row, connections):
            self._link(columns, row)
        if self.log is not None:
            self.log.messages += 1
        return 0

    def _begin(self, messages: MessageRows) -> cython.int:
        """Rows of another batch."""
        self.rows = messages
        self.origins.clear()
        if messages.links is None and self.log is None:
            messages.links = LinkColumns()
        return 0

    def _link(self, columns: LinkColumns, row: cython.longlong) -> cython.int:
        """Link the message of the record, or log it."""
        record: LinkRecord = self.record
        if self.log is not None:
            self.log.write(record)
            if (record.flags & IS_REQUEST or record.asks) and record.session is not None:
                self.asking.add(record.connection)
                if closed_at(record.session) is not None:
                    self.close(record.session)
            return 0
        self.linker.link(record)
        return columns.write(row, record)

    @cython.ccall
    def close(self, session: Session) -> Any:
        """A connection was closed or reset, or had data after a reset."""
        if self.log is not None and session.number in self.asking:
            self.log.close(session.number, closed_at(session), False)

    @cython.ccall
    def end(self, session: Session) -> Any:
        """A connection is over."""
        if self.log is None:
            self.linker.requests.end(session.number, closed_at(session))
        elif session.number in self.asking:
            self.asking.discard(session.number)
            self.log.close(session.number, closed_at(session), True)

    # the record of a message

    def _make_record(
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
            return self._make_publish(messages, row, connections)
        if (kind == DELIVER or kind == GET_OK) and messages.sender.values[row] == 1:
            return self._make_delivery(messages, row, connections)
        return False

    def _make_publish(
        self, messages: MessageRows, row: cython.longlong, connections: list[Any]
    ) -> cython.bint:
        """Make a publish; whether it is one that can be linked."""
        if messages.status.values[row] == INCOMPLETE:
            return False
        record: LinkRecord = self.record
        words: Vocabularies = messages.vocabularies
        self._fill_in(messages, row, connections)
        record.flags |= IS_PUBLISH
        if messages.message_id.has(row):
            record.flags |= HAS_MESSAGE_ID
            record.identity = _with_size(self.fingerprinter.identity(messages, row), messages, row)
        if self.log is not None or self.linker.requests.waiting:
            self._fill_in_address(messages, row)
        code: cython.int = messages.reply_to.values[row]
        if code >= 0 and words.reply_to.ends[code + 1] > words.reply_to.ends[code]:
            self._fill_in_request(messages, row)
        return True

    def _make_delivery(
        self, messages: MessageRows, row: cython.longlong, connections: list[Any]
    ) -> cython.bint:
        """Make a delivery; it can be linked."""
        record: LinkRecord = self.record
        fingerprinter: Fingerprinter = self.fingerprinter
        words: Vocabularies = messages.vocabularies
        h: cython.ulonglong = self._fill_in(messages, row, connections)
        if fingerprinter.died:
            record.flags |= DEAD_LETTERED
            record.other = mixed(mixed(h, fingerprinter.exchange), fingerprinter.routing_key)
        if messages.redelivered.values[row] == 1:
            record.flags |= IS_REDELIVERED
        self._fill_in_queue(messages, row)
        code: cython.int = messages.reply_to.values[row]
        if code >= 0 and is_direct(words.reply_to, code):
            record.flags |= DIRECT_REPLY
            record.reply_to = fingerprinter.word(words.reply_to, code)
        code = messages.routing_key.values[row]
        if code >= 0 and is_direct(words.routing_key, code):
            record.flags |= DIRECT_ROUTING_KEY
        record.identity = fingerprinter.identity(messages, row)
        return True

    def _make_amqp10(
        self,
        messages: MessageRows,
        row: cython.longlong,
        connections: list[Any],
        publish: cython.bint,
    ) -> cython.bint:
        """Make a message of AMQP 1.0; whether it is one that can be linked."""
        record: LinkRecord = self.record
        fingerprinter: Fingerprinter = self.fingerprinter
        words: Vocabularies = messages.vocabularies
        more: DeliveryColumns = messages.deliveries
        status: cython.int = messages.status.values[row]
        if messages.sender.values[row] != (0 if publish else 1):
            return False
        if status == ABORTED or (publish and status == INCOMPLETE):
            return False
        self._fill_in_place(messages, row, connections)
        code: cython.int = more.address.values[row]
        record.flags = IS_PUBLISH if publish else 0
        if code >= 0:
            record.flags |= HAS_ROUTING_KEY
            record.routing_key = fingerprinter.word(more.address.words, code)
        record.line = 0
        record.correlation = fingerprinter.id_of(messages.correlation_id, row)
        identity: cython.ulonglong = fingerprinter.identity(messages, row)
        if identity:
            record.identity = _with_size(identity, messages, row)
            if publish:
                record.flags |= HAS_MESSAGE_ID
                record.other = identity
        else:
            record.identity = fingerprinter.bare(messages, row) or 1
        if not publish:
            if messages.redelivered.values[row] == 1:
                record.flags |= IS_REDELIVERED
            self._fill_in_queue(messages, row)
            return True
        code = messages.reply_to.values[row]
        if code >= 0 and words.reply_to.ends[code + 1] > words.reply_to.ends[code]:
            asked: cython.ulonglong = record.correlation
            if not messages.correlation_id.has(row):
                record.correlation = fingerprinter.id_of(messages.message_id, row)
            self._fill_in_request(messages, row)
            if self.log is None and asked != record.correlation and self.linker.requests.waiting:
                record.flags &= ~HAS_ROUTING_KEY  # a request without a correlation-id is no reply
        return True

    def _fill_in_place(
        self, messages: MessageRows, row: cython.longlong, connections: list[Any]
    ) -> cython.int:
        """Fill in where a message is."""
        record: LinkRecord = self.record
        origin: Origin = self._origin(messages, row, connections)
        record.session = origin.session
        record.connection = origin.number
        record.connection_id = origin.connection_id
        record.vhost = origin.vhost
        record.channel = messages.channel.values[row]
        record.packet_number = messages.packet_number.values[row]
        record.sent_ns = messages.ts_ns.values[row]
        record.routing_key = record.other = record.reply_to = record.queue = record.identity = 0
        record.asks = record.answers = 0
        record.deadline = NULL
        if messages.calls is not None:
            call: tuple = messages.calls.pop(row, None)
            if call is not None:
                asks, _, answers = call
                if asks is not None and messages.sender.values[row] == 0:
                    record.asks = self.fingerprinter.octets(asks.encode())
                if answers is not None:
                    record.answers = self.fingerprinter.octets(answers.encode())
        return 0

    @cython.exceptval(1)
    def _fill_in(
        self, messages: MessageRows, row: cython.longlong, connections: list[Any]
    ) -> cython.ulonglong:
        """Fill in the common fields; returns the hash of size and properties."""
        record: LinkRecord = self.record
        fingerprinter: Fingerprinter = self.fingerprinter
        words: Vocabularies = messages.vocabularies
        code: cython.int = messages.routing_key.values[row]
        self._fill_in_place(messages, row, connections)
        record.flags = HAS_ROUTING_KEY if code >= 0 else 0
        record.routing_key = fingerprinter.word(words.routing_key, code)
        h: cython.ulonglong = fingerprinter.of(messages, row)
        record.correlation = fingerprinter.correlation
        exchange: cython.ulonglong = fingerprinter.word(
            words.exchange, messages.exchange.values[row]
        )
        record.line = mixed(mixed(h, exchange), record.routing_key)
        return h

    def _fill_in_address(self, messages: MessageRows, row: cython.longlong) -> cython.int:
        """Exchange and routing key of a publish as one address."""
        words: Vocabularies = messages.vocabularies
        code: cython.int = messages.routing_key.values[row]
        exchange = words.exchange.text(messages.exchange.values[row])
        if code >= 0 and exchange:
            address: bytes = exchange.encode() + _SLASH + words.routing_key.text(code).encode()
            self.record.other = self.fingerprinter.octets(address)
            self.record.flags |= HAS_ADDRESS
        return 0

    def _fill_in_request(self, messages: MessageRows, row: cython.longlong) -> cython.int:
        """A publish is a request."""
        record: LinkRecord = self.record
        words: Vocabularies = messages.vocabularies
        code: cython.int = messages.reply_to.values[row]
        record.flags |= IS_REQUEST
        if is_direct(words.reply_to, code):
            record.flags |= DIRECT_REPLY
        else:
            record.reply_to = self.fingerprinter.word(words.reply_to, code)
        expiration = words.expiration.text(messages.expiration.values[row])
        if expiration is not None and record.sent_ns != NULL:
            if expiration.isdecimal() and len(expiration) <= MAX_EXPIRATION_DIGITS:
                record.deadline = min(record.sent_ns + int(expiration) * _MS, LAST_NS)
        return 0

    def _fill_in_queue(self, messages: MessageRows, row: cython.longlong) -> cython.int:
        """Fill in the identity of a delivery's queue."""
        record: LinkRecord = self.record
        words: Vocabularies = messages.vocabularies
        code: cython.int = messages.queue.values[row]
        if code >= 0 and not self.fingerprinter.streamed:
            record.queue = self.fingerprinter.word(words.queue, code)
        elif code < 0 and words.exchange.text(messages.exchange.values[row]) == "":
            record.queue = record.routing_key
        else:
            record.flags |= OWN_QUEUE
            record.queue = self.fingerprinter.word(
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
def _with_size(
    identity: cython.ulonglong, messages: MessageRows, row: cython.longlong
) -> cython.ulonglong:
    """An identity with the size of the body, which comes to AMQP 1.0 as it was published."""
    return mixed(identity, messages.body_size.values[row]) or 1
