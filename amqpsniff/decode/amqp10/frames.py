# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Frames of AMQP 1.0: what one frame means, as a row.

The row is begun by the handler of all frames (`decode.frames`), which knows the connection. What
the session goes by is put in `FrameRows.performatives`, in the order of the rows.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.columns import Texts
from cython.cimports.amqpsniff.decode.amqp10.codes import (
    ATTACH,
    BEGIN,
    CLOSE,
    DETACH,
    DISPOSITION,
    END,
    EXACT,
    FLOW,
    LONG,
    OPEN,
    SASL_CHALLENGE,
    SASL_INIT,
    SASL_MECHANISMS,
    TRANSFER,
    UNKNOWN,
)
from cython.cimports.amqpsniff.decode.amqp10.deliveries import Delivery, DeliveryAssembler
from cython.cimports.amqpsniff.decode.amqp10.performatives import (
    JsonCache,
    Performative,
    PerformativeDecoder,
)
from cython.cimports.amqpsniff.decode.amqp10.values import TypedReader
from cython.cimports.amqpsniff.decode.codes import HEARTBEAT, INCOMPLETE
from cython.cimports.amqpsniff.decode.frames import FrameHandler
from cython.cimports.amqpsniff.decode.method_layout import FIRST_PERFORMATIVE
from cython.cimports.amqpsniff.decode.octets import code_of
from cython.cimports.amqpsniff.decode.rows import FrameRows, Vocabularies, put_text
from cython.cimports.amqpsniff.decode.state import Connection

from amqpsniff.decode.json_objects import read_object, table_of
from amqpsniff.decode.values import oddity_codes, oddity_text
from amqpsniff.spec.amqp10 import CBS_NODE, MANAGEMENT_NODE, PERFORMATIVES
from amqpsniff.spec.management import PATHS, REFUSED, as_method

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.decode.state import Half
    from amqpsniff.options import Options
    from amqpsniff.plan import Plan

PERFORMATIVE, SASL = 257, 258
"""Codes of frame types, beside those of 0-9-1; an empty frame has that of its heartbeat."""

_CBS = cython.declare(bytes, CBS_NODE.encode())
"""Bodies of messages to this node are secrets."""

_MANAGEMENT = cython.declare(bytes, MANAGEMENT_NODE.encode())
"""Messages to this node are requests, and those from it answers."""

_ASKS = cython.declare(bytes, b"\xa1\x03$me")
_ANSWERS = cython.declare(bytes, b"\xa1\x0dhttp:response")
"""Bytes of a request's `reply-to`, and of a property of an answer. In the first `_LOOKED_AT` bytes
of a message they show a link to or from RabbitMQ's management whose attach was not captured."""

_LOOKED_AT = cython.declare(cython.longlong, 512)
_STATUS_DIGITS = cython.declare(cython.longlong, 3)

# sections and fields of messages that requests and answers have
_PROPERTIES = cython.declare(cython.int, 0x73)
_VALUE = cython.declare(cython.int, 0x77)
_FIELDS = cython.declare(
    dict, {0: b'"message_id":', 2: b'"path":', 3: b'"method":', 5: b'"correlation_id":'}
)
"""Fields of the section `properties`, by their places (§3.2.4)."""

MAX_MARKED_LINKS = 1024
"""Links to these, and links without an address, that are remembered of one direction."""

_PERFORMATIVE = cython.declare(cython.int, PERFORMATIVE)
_SASL = cython.declare(cython.int, SASL)
_NAMES = {row.code: row.name for row in PERFORMATIVES}
_RABBITMQ = b"product\xa1\x08RabbitMQ"


@cython.cclass
class Amqp10Half:
    """The state of one direction: incomplete messages by channel and handle, and the message of the
    current frame; handles of links that carry secrets, of links to or from RabbitMQ's management,
    and of links to the anonymous terminus, whose messages have their own address. `seen_links`:
    other links of a connection from before the capture, which were looked at.
    `tells_redelivered`: the sender is RabbitMQ, which sets first-acquirer in each delivery, False
    for a redelivery (measured on 3.10 and 4.3); from other senders False may be a default.

    `search` is set while the next boundary is searched. `first_part`: kept bytes of a large
    transfer whose payload is passed on as it comes, 0 for none.
    """

    first_part: cython.longlong
    tells_redelivered: cython.bint

    under_way: dict[Any, Any]
    current: Delivery
    secret_links: set[Any]
    managing_links: set[Any]
    seen_links: set[Any]
    nameless_links: set[Any]
    search: Any

    def __init__(self) -> None:
        self.under_way = {}
        self.current = None
        self.secret_links = self.managing_links = self.nameless_links = self.seen_links = None
        self.search = None
        self.first_part = 0
        self.tells_redelivered = False


@cython.final
@cython.cclass
class Amqp10Frames:
    """Turns frames into rows.

    Args:
        plan, options: See `Decoder`.
        handler: Begins rows and knows which side is the client.
    """

    report: Any
    show_secrets: cython.bint

    handler: FrameHandler
    decoder: PerformativeDecoder
    alike: JsonCache
    deliveries: DeliveryAssembler
    reader: TypedReader
    scratch: TypedReader

    def __init__(self, plan: Plan, options: Options, handler: FrameHandler) -> None:
        self.handler = handler
        self.report = handler.report
        self.show_secrets = options.show_secrets
        self.decoder = PerformativeDecoder(options.show_secrets)
        self.alike = JsonCache(self.decoder)
        self.deliveries = DeliveryAssembler(plan, handler.contents, handler.messages)
        self.reader = TypedReader(handler.frames.arguments)
        self.scratch = TypedReader(handler.frames.arguments)

    def use(self, frames: Any, messages: Any) -> None:
        """Write into these rows from now on."""
        self.reader.out = self.scratch.out = frames.arguments
        self.deliveries.use(messages)

    @cython.exceptval(-2)
    def frame(
        self,
        half: Half,
        reader: TypedReader,
        at: cython.longlong,
        end: cython.longlong,
        size: cython.longlong,
    ) -> cython.Py_ssize_t:
        """Read the body of the current frame, `at`..`end` of the data, `size` bytes in all.

        Returns the number of bytes before the payload, -1 without one. The captured payload is
        passed on here, its later bytes by the caller.
        """
        state: Amqp10Half = half.amqp10
        handler: FrameHandler = self.handler
        decoder: PerformativeDecoder = self.decoder
        frames: FrameRows = handler.frames
        whole: cython.bint = end - at == size
        if size == 0:
            half.frame_type = HEARTBEAT
            handler._row(half)
            return -1
        reader.oddities = 0
        answer: cython.int = decoder.read(reader, at, end)
        code: cython.int = decoder.code
        if half.frame_type == _SASL and code >= SASL_MECHANISMS:
            handler.set_client(
                half.connection,
                half.direction if code == SASL_INIT or (code > SASL_CHALLENGE and code != 0x44)
                else 1 - half.direction,
            )  # fmt: skip
        handler._begin(half)
        frames = handler.frames
        row: cython.longlong = frames.rows
        found: Performative = None
        text: bytes = None
        payload: cython.longlong = -1
        if code >= 0:
            frames.method.values[row] = FIRST_PERFORMATIVE + decoder.place
            found = _next(frames)
            decoder.performative(reader, found)
            if code == TRANSFER and (answer == EXACT or answer == LONG):
                payload = decoder.payload - at
                found.manages = self._manages(half, reader, at + payload, end, found)
            if frames.wanted or found.manages or code == ATTACH or code == OPEN or code > CLOSE:
                frames.open_arguments()
                if code == TRANSFER or code == DISPOSITION or code == FLOW:
                    decoder.put_json(reader, size - payload if payload >= 0 else -1)
                    self._redact(half, found)
                    if found.manages:
                        self._put_managed(reader, at + payload, end)
                else:
                    self.alike.put_table(reader, at, decoder.payload)
                frames.arguments.end()
            if found.first >= 0 and (code == TRANSFER or code == DISPOSITION):
                frames.delivery_tag.values[row] = found.first
            if found.condition is not None:
                text = found.condition.encode()
                if found.description:
                    text += b": " + found.description.encode()
                put_text(frames.reply_text, row, text)
        elif answer == UNKNOWN and frames.wanted:
            frames.open_arguments()
            frames.arguments.put_bytes(b'{"value":')
            if not reader.put_value(at, end):
                reader._bytes(at, end - at)
            frames.arguments.put_byte(125)
            frames.arguments.end()
        if answer != EXACT or reader.oddities or decoder.wrong >= 0:
            self._complain(half, reader, answer, whole)
        frames.rows += 1
        if found is None:
            return -1
        if code == ATTACH or code == OPEN or code == SASL_INIT:
            self._learn(half, reader, found)
        elif (code == DETACH or code == END or code == BEGIN) and state.under_way:
            self._cut(half, found)
        if payload >= 0:
            if state.first_part == 0:
                self.transfer(half, reader, at + payload, end, whole, found)
            elif state.current.transfers == 1:
                state.current.number = half.number
                state.current.ts_ns = half.ts_ns
            found.delivery = state.current.ordinal
            found.begins = state.current.transfers == 1
        frames.performatives_made += 1
        return payload

    def begin_large(
        self, half: Half, reader: TypedReader, at: cython.longlong, end: cython.longlong
    ) -> cython.int:
        """The fields of a large transfer are there, and its payload up to `end`."""
        self.decoder.read(reader, at, end)
        found: Performative = _next(self.handler.frames)
        self.decoder.performative(reader, found)
        self.handler.refresh(half.connection)
        return self.transfer(half, reader, self.decoder.payload, end, False, found)

    def transfer(
        self,
        half: Half,
        reader: TypedReader,
        at: cython.longlong,
        end: cython.longlong,
        whole: cython.bint,
        found: Performative,
    ) -> cython.int:
        """A transfer whose fields were read: its payload begins at `at`; `whole`: all is there."""
        state: Amqp10Half = half.amqp10
        key: cython.longlong = (found.handle << 16) | half.frame_channel
        secret: cython.bint = self._is_secret(half, found)
        self.deliveries.ended_at = self.handler.frames.rows
        delivery: Delivery = self.deliveries.transfer(
            half, state.under_way, found, key, self.decoder, reader, secret, whole
        )
        if state.nameless_links is not None and delivery.transfers == 1:
            delivery.reads = delivery.reads or key in state.nameless_links
        if state.managing_links is not None and delivery.transfers == 1:
            asks: cython.bint = half.direction == half.connection.client_direction
            delivery.answers = not asks and key in state.managing_links
        state.current = delivery
        if end > at:
            self.deliveries.payload(delivery, reader, at, end - at)
        return 0

    def _is_secret(self, half: Half, found: Performative) -> cython.bint:
        """True if a transfer is of a link to the node for claims."""
        state: Amqp10Half = half.amqp10
        if state.secret_links is None or self.show_secrets:
            return False
        return ((found.handle << 16) | half.frame_channel) in state.secret_links

    def _redact(self, half: Half, found: Performative) -> cython.int:
        """Mark the payload of a transfer as a possible token, in its arguments."""
        if found.code == TRANSFER and self._is_secret(half, found):
            out: Texts = self.handler.frames.arguments
            out.used -= 1  # the closing brace
            out.put_bytes(b',"payload":"[redacted]"}')
        return 0

    def _manages(
        self,
        half: Half,
        reader: TypedReader,
        at: cython.longlong,
        end: cython.longlong,
        found: Performative,
    ) -> cython.bint:
        """True if a message to or from RabbitMQ's management begins with a payload."""
        state: Amqp10Half = half.amqp10
        if state.managing_links is None and half.connection.began:
            return False
        key = found.handle << 16 | half.frame_channel
        if key in state.under_way:
            return False
        if state.managing_links is not None and key in state.managing_links:
            return True
        if half.connection.began or (state.seen_links is not None and key in state.seen_links):
            return False
        octets: bytes = reader.bytes_at(at, min(end - at, _LOOKED_AT)) if end > at else b""
        if octets.find(_ASKS) < 0 and octets.find(_ANSWERS) < 0:
            state.seen_links = _marked(state.seen_links, key)
            return False
        state.managing_links = _marked(state.managing_links, key)
        return True

    def _put_managed(
        self, reader: TypedReader, at: cython.longlong, end: cython.longlong
    ) -> cython.int:
        """Write a message to or from RabbitMQ's management into its frame's arguments, and its
        names and status into columns.

        Bodies are written if they are declarations or of answers: others are tokens, which are
        secrets. Only the first section of a kind counts.
        """
        frames: FrameRows = self.handler.frames
        out: Texts = frames.arguments
        oddities: cython.int = reader.oddities
        has_properties: cython.bint = False
        shows_body: cython.bint = False
        out.used -= 1  # the closing brace
        begin: cython.longlong = out.used
        out.put_bytes(b',"management":{')
        while at < end:
            place: cython.longlong = reader.descriptor(at, end)
            section: cython.int = reader.code
            after: cython.longlong = reader.skip(at, end)
            if place >= 0 and section == _PROPERTIES and not has_properties:
                has_properties = True
                shows_body = self._put_properties(reader, place, end)
            elif after >= 0 and section == _VALUE and shows_body:
                shows_body = False
                if reader.data[place] != 0x40:
                    out.put_bytes(b',"body":')
                    reader.put_value(place, after)
            if after < 0:
                break
            at = after
        out.put_bytes(b"}}")
        reader.oddities = oddities
        management = read_object(b"{" + out.bytes_between(begin + 1, out.used))
        self._put_columns(table_of(management, "management"))
        return 0

    def _put_properties(
        self, reader: TypedReader, at: cython.longlong, end: cython.longlong
    ) -> cython.bint:
        """Write the properties of a request or an answer; true if its body is no secret."""
        out: Texts = self.handler.frames.arguments
        path: bytes = None
        answers: cython.bint = False
        if not reader.open_list(at, end):
            return False
        at = reader.items
        end = min(reader.limit, end)
        first: cython.bint = True
        place: cython.longlong
        for place in range(min(reader.count, 6)):
            after: cython.longlong = reader.skip(at, end)
            if after < 0:
                break
            if place in _FIELDS and reader.data[at] != 0x40:
                length: cython.longlong = reader.text_at(at, after)
                octets: bytes = b"" if length < 0 else reader.bytes_at(reader.items, length)
                if place == 2:
                    path = octets
                if not first:
                    out.put_byte(44)
                first = False
                if place == 3 and length == _STATUS_DIGITS and octets.isdigit():
                    answers = True
                    out.put_bytes(b'"status":%d' % int(octets))
                else:
                    out.put_bytes(_FIELDS[place])
                    reader.put_value(at, after)
            at = after
        return answers if path is None else path.startswith(PATHS)

    def _put_columns(self, management: Any) -> None:
        """Write the columns of a frame with a request to RabbitMQ's management, or with its answer,
        as those of a method of 0-9-1."""
        frames: FrameRows = self.handler.frames
        words: Vocabularies = frames.vocabularies
        row: cython.longlong = frames.rows
        status = management.get("status")
        if status is not None:
            frames.reply_code.values[row] = status
            text = management.get("body")
            if status >= REFUSED and isinstance(text, str):
                put_text(frames.reply_text, row, text.encode(errors="replace"))
            return
        method = as_method(management)
        for column, vocabulary, name in (
            (frames.queue, words.queue, "queue"),
            (frames.exchange, words.exchange, "exchange"),
            (frames.routing_key, words.routing_key, "routing_key"),
        ):
            value = None if method is None else method[1].get(name)
            if value is not None:
                column.values[row] = code_of(vocabulary, value.encode(errors="replace"))

    def transfer_end(self, half: Half) -> cython.int:
        """The frame under way was a transfer, and is over."""
        state: Amqp10Half = half.amqp10
        if state.current is not None:
            self.deliveries.ended_at = self.handler.frames.rows
            self.handler.refresh(half.connection)
            self.deliveries.transfer_end(half, state.under_way, state.current)
            state.current = None
        return 0

    def finish(self, half: Half) -> cython.int:
        """End of a half-stream."""
        state: Amqp10Half = half.amqp10
        if state.under_way:
            self.handler.refresh(half.connection)
            self.deliveries.ended_at = self.handler.frames.rows
            self.deliveries.finish(half, state.under_way)
        return 0

    def _complain(self, half: Any, reader: Any, answer: Any, whole: Any) -> None:
        """Report a malformed frame; a cut frame lacks bytes without being malformed."""
        name = _NAMES.get(self.decoder.code, "a performative")
        if not whole and answer != EXACT and answer != LONG:
            self.handler.contents.note_loss(half)
        if not whole and answer != EXACT and answer != UNKNOWN:
            self.report("arguments-cut", half, name)
        elif answer == UNKNOWN:
            self.report("method-unknown", half, "the descriptor of a performative")
        elif answer == LONG:
            self.report("arguments-trailing", half, name)
        elif answer != EXACT:
            self.report("arguments-truncated", half, name)
        if self.decoder.wrong >= 0:
            field = self.decoder.wrong_field.replace("_", "-")
            self.report("field-type-wrong", half, f"{field} of {name}")
        for oddity in oddity_codes(reader.oddities):
            where = f"arguments of {name}"
            self.report(oddity, half, oddity_text(oddity, where, 0))

    def _learn(self, half: Half, reader: TypedReader, found: Performative) -> cython.int:
        """Read the connection's handshake and attaches."""
        state: Amqp10Half = half.amqp10
        decoder: PerformativeDecoder = self.decoder
        connection: Connection = half.connection
        if found.code == ATTACH:
            self._learn_link(half, reader, found)
        elif found.code == OPEN:
            place: cython.longlong = decoder.start(9)
            if place >= 0 and self.handler.messages.wanted:
                octets: bytes = reader.bytes_at(place, decoder.payload - place)
                state.tells_redelivered = octets.find(_RABBITMQ) >= 0
            connection.past_login = True
        elif found.code == SASL_INIT:
            mechanism: bytes = decoder.octets(reader, 0) or b""
            response: bytes = decoder.octets(reader, 1) or b""
            connection.login = _as_start_ok(mechanism[:255], response[:4096])
        return 0

    def _cut(self, half: Half, found: Performative) -> None:
        """End of a link or session of this side: its incomplete deliveries end too."""
        state: Amqp10Half = half.amqp10
        self.deliveries.ended_at = self.handler.frames.rows - 1
        channel: cython.int = half.frame_channel
        keys: list[Any] = [found.handle << 16 | channel]
        if found.code != DETACH:
            keys = [key for key in state.under_way if key & 0xFFFF == channel]
        for key in keys:
            if key in state.under_way:
                self.deliveries.end(half, state.under_way.pop(key), INCOMPLETE)

    def _learn_link(self, half: Half, reader: TypedReader, found: Performative) -> cython.int:
        """Remember links to or from the nodes for claims and for management."""
        state: Amqp10Half = half.amqp10
        key = found.handle << 16 | half.frame_channel
        marked: set[Any]
        for marked in (state.secret_links, state.managing_links, state.nameless_links):
            if marked is not None:
                marked.discard(key)
        address: bytes = self._address(reader, 6)
        if address is not None:
            if not address:
                state.nameless_links = _marked(state.nameless_links, key)
            elif address.endswith(_CBS):
                state.secret_links = _marked(state.secret_links, key)
        if address == _MANAGEMENT or self._address(reader, 5) == _MANAGEMENT:
            state.managing_links = _marked(state.managing_links, key)
        elif not half.connection.began:
            state.seen_links = _marked(state.seen_links, key)
        return 0

    def _address(self, reader: TypedReader, field: cython.int) -> bytes:
        """The address of a terminus, empty for none; None without a terminus."""
        at: cython.longlong = self.decoder.start(field)
        if at < 0:
            return None
        end: cython.longlong = self.decoder.ends[field]
        at = reader.descriptor(at, end)
        if at < 0 or not reader.open_list(at, end):
            return None
        length: cython.longlong = reader.text_at(reader.items, end)
        return b"" if length < 0 else reader.bytes_at(reader.items, length)


@cython.cfunc
@cython.inline
def _next(frames: FrameRows) -> Performative:
    """An object for the next performative."""
    if frames.performatives_made == len(frames.performatives):
        frames.performatives.append(Performative())
    return cython.cast(Performative, frames.performatives[frames.performatives_made])


@cython.cfunc
def _marked(links: set[Any] | None, key: Any) -> set[Any]:
    """Links with one more, unless they are too many; None for none."""
    if links is None:
        return {key}
    if len(links) < MAX_MARKED_LINKS:
        links.add(key)
    return links


@cython.cfunc
def _as_start_ok(mechanism: bytes, response: bytes) -> bytes:
    """A mechanism and its response as connection.start-ok of 0-9-1 has them, without properties."""
    before = bytes(8) + bytes((len(mechanism),)) + mechanism
    return before + len(response).to_bytes(4, "big") + response
