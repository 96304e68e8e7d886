# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Frames to rows.

`FrameHandler` gets complete frames (or frames with a known number of missing bytes) from the
framer, in the order of their half-stream. It writes the frame's row, reads methods, passes content
to the assembler, and keeps facts of the connection.

The client is the side that sent the SYN, the side that sent a protocol header first, or the side
of a method that only a client sends; before such a proof, the side that is not on a well-known AMQP
port. The dialect comes from the client's protocol header, until the server's `connection.start`
names another version, which is final; without either from the first method whose payload fits only
one dialect.

A method whose payload came before is looked up, not read (`MethodCache`). Deliveries and
acknowledgements differ only in their tag, so a method is cached without it. A method that may hold
a secret, itself or in a quote of its reply text, is never cached. `values` has the bounds. Among
payloads with the same few selected bytes, the latest is compared first: mostly it matches, and
needs no look-up.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.columns import Texts, Vocabulary
from cython.cimports.amqpsniff.decode.amqp10.values import TypedReader
from cython.cimports.amqpsniff.decode.codes import (
    BODY,
    EXACT,
    HEADER,
    HEARTBEAT,
    METHOD,
    PROTOCOL_HEADER,
    TOO_SHORT,
    UNKNOWN,
)
from cython.cimports.amqpsniff.decode.contents import ContentAssembler
from cython.cimports.amqpsniff.decode.meanings import NoteWriter
from cython.cimports.amqpsniff.decode.method_layout import NO_TAG, REPLY_TEXT, TAG_FIRST
from cython.cimports.amqpsniff.decode.methods import DecodedMethod, MethodDecoder
from cython.cimports.amqpsniff.decode.rows import FrameRows, MessageRows, Vocabularies, copy_text
from cython.cimports.amqpsniff.decode.state import Connection
from cython.cimports.amqpsniff.decode.values import Cache, ValueReader

from amqpsniff.decode import method_layout
from amqpsniff.decode.claims import END, Claim
from amqpsniff.decode.redaction import (
    CUT_FROM_BYTES,
    LONG_LOGIN_BYTES,
    shortened,
    with_secrets,
    without_properties,
    without_secrets,
)
from amqpsniff.decode.rows import FIRST_ROWS, as_many
from amqpsniff.decode.values import MAX_CACHED, MAX_CACHED_BYTES, oddity_codes, oddity_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.decode.state import Half
    from amqpsniff.options import Options
    from amqpsniff.packs import Packs
    from amqpsniff.plan import Plan


MAX_METHOD_NAMES = 4096
"""Names made for unknown class and method numbers; an attacker has 2^32 of them."""

AMQP_PORTS = frozenset((5671, 5672))

_TUNE = cython.declare(cython.int, 30)
_OPEN_OK = cython.declare(cython.int, 41)
"""After connection.tune and .open-ok the server has taken the login (a client may not wait)."""

_DIALECT_08 = cython.declare(cython.int, method_layout.DIALECT_CODES["0-8"])
_DIALECT_091 = cython.declare(cython.int, method_layout.DIALECT_CODES["0-9-1"])
_METHODS = cython.declare(cython.int, len(method_layout.NAMES))
_CONTENT = cython.declare(bytes, bytes(method_layout.content))
_SENDERS = cython.declare(bytes, bytes(method_layout.senders))
_CUT_FROM = cython.declare(cython.int, CUT_FROM_BYTES)

_MAX_CACHED = cython.declare(cython.int, MAX_CACHED)
_LONGEST = cython.declare(cython.longlong, MAX_CACHED_BYTES)
_MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_TAG_KEY = b'"delivery_tag":'
_LAST = 8192
_PLACES = cython.declare(cython.ulonglong, _LAST)


@cython.cclass
class FrameHandler:
    """Turns frames into rows.

    Args:
        plan, options, packs: See `Decoder`.
        report: Called for a finding; see `Decoder._report`.

    `methods_only`: only methods have rows. `peers` are the connections of the rows being made, by
    code; `connections` are their names, None until `names` is called: there may be many. `dialect`
    is the one to take for every connection, 0 to find out.
    """

    report: Any
    methods_only: cython.bint
    ports: Any
    serial: cython.int
    dialect: cython.int

    frames: FrameRows
    messages: MessageRows
    method_cache: MethodCache
    block: ValueReader
    scratch: ValueReader
    contents: ContentAssembler
    captures: list[Any]
    claims: list[Any]
    method_numbers: dict[Any, Any]
    method_names: list[Any]
    decoder: MethodDecoder
    connections: list[Any]
    peers: list[Any]

    def __init__(self, plan: Plan, options: Options, packs: Packs | None, report: Any) -> None:
        self.decoder = MethodDecoder(options.show_secrets, not plan.arguments)
        self.ports = AMQP_PORTS | options.ports
        self.serial = 0
        self.dialect = method_layout.DIALECT_CODES[options.dialect]
        self.connections = []
        self.peers = []
        words = Vocabularies()
        unmade: frozenset[str] = frozenset()
        if (columns := plan.columns_of("messages")) is not None:
            unmade = frozenset(MessageRows.PROPERTIES).difference(columns)
        self.frames = FrameRows(words, FIRST_ROWS, "frames" in plan.tables)
        self.messages = MessageRows(words, FIRST_ROWS, "messages" in plan.tables, unmade=unmade)
        self.method_cache = MethodCache()
        self.block = TypedReader(self.frames.arguments, options.table_dialect)
        self.scratch = ValueReader(self.frames.arguments, options.table_dialect)
        self.contents = ContentAssembler(plan, options, packs, report, self.frames, self.messages)
        self.report = report
        self.captures = []
        self.method_numbers = {}
        self.method_names = []
        self.claims = [] if plan.claims else None
        self.methods_only = plan.methods_only

    def claim(
        self,
        half: Half,
        kind: cython.int,
        offset: cython.longlong,
        channel: cython.int,
        size: cython.longlong,
        payload: Any,
        method: cython.int,
        exact: cython.bint,
    ) -> cython.int:
        """Label the bytes at `offset`, if claims are requested; see `claims`."""
        serial = half.connection.conversation.serial
        self.claims.append(
            Claim(serial, half.direction, kind, offset, channel, size, payload, method, exact)
        )
        return 0

    def claim_body(self, half: Half) -> cython.int:
        """A body frame begins: its header is claimed, its payload is not."""
        if self.claims is not None:
            self.claim(
                half, BODY, half.frame_offset, half.frame_channel, half.frame_size, b"", -1, True
            )
        return 0

    def claim_end(self, half: Half, offset: cython.longlong) -> cython.int:
        """An end byte is right."""
        if self.claims is not None:
            self.claim(half, END, offset, 0, 0, b"", -1, True)
        return 0

    def use_capture(self, name: Any) -> None:
        """Rows from now on are of this capture."""
        last: cython.Py_ssize_t = len(self.captures) - 1
        if last < 0 or self.captures[last] != name:
            self.captures.append(name)
        self.frames.capture_code = len(self.captures) - 1
        self.contents.writer.capture_code = len(self.captures) - 1
        self.contents.writer.captures = self.captures
        self.contents.writer.capture = self.captures[len(self.captures) - 1]

    def take(self) -> Any:
        """Give away the rows: (frames, messages, connections, captures, method names)."""
        connections = self.connections
        if self.frames.wanted or self.messages.wanted:
            connections = self.names()
        tables = (self.frames, self.messages, connections, self.captures)
        names = self.method_names
        words = Vocabularies()
        frames, messages = self.frames, self.messages
        self.frames = FrameRows(
            words, as_many(frames.rows), frames.wanted, as_many(frames.arguments.used)
        )
        self.frames.follow(frames)
        room = as_many(messages.rows), messages.wanted, as_many(messages.headers.used)
        self.messages = MessageRows(words, *room, messages.unmade)
        self.block.out = self.scratch.out = self.frames.arguments
        self.contents.frames = self.frames
        self.contents.writer.use(self.messages)
        self.connections = []
        self.peers = []
        self.captures = []
        self.method_numbers = {}
        self.method_names = []
        self.serial += 1
        return (*tables, names)

    # frames

    def _begin(self, half: Half) -> cython.int:
        """Write what every frame has."""
        connection: Connection = half.connection
        frames: FrameRows = self.frames
        if connection.row_serial != self.serial:
            self._register(connection)
        row: cython.longlong = frames.rows
        if row >= frames.capacity:
            frames.reserve()
        sender: cython.int = -1
        if connection.client_direction >= 0:
            sender = half.direction ^ connection.client_direction
        with cython.boundscheck(False):  # every column has room for as many rows
            frames.connection.values[row] = connection.row_code
            frames.sender.values[row] = sender
            frames.packet_number.values[row] = half.number
            frames.ts_ns.values[row] = half.ts_ns
            frames.stream_offset.values[row] = half.frame_offset
            frames.channel.values[row] = half.frame_channel
            frames.frame_type.values[row] = half.frame_type
            frames.size.values[row] = half.frame_size
            frames.capture.values[row] = frames.capture_code
        return 0

    def _row(self, half: Half) -> cython.int:
        """Write the row of a frame that is no method."""
        if self.methods_only:
            return self.refresh(half.connection)
        self._begin(half)
        self.frames.rows += 1
        return 0

    def frame(
        self,
        half: Half,
        reader: ValueReader,
        at: cython.longlong,
        end: cython.longlong,
        whole: cython.bint,
    ) -> cython.int:
        """The frame under way is of any type but body; its payload is `at`..`end` of the data.

        `whole` is false when the payload was captured only up to `end`.
        """
        kind: cython.int = half.frame_type
        if kind == METHOD:
            return self.method(half, reader, at, end, whole)
        if self.claims is not None:
            self._claim_frame(half, reader.bytes_at(at, end - at), -1, whole)
        self._row(half)
        if kind == HEADER:
            return self.contents.header(half, reader, at, end, whole)
        if kind == HEARTBEAT:
            if (half.frame_size or half.frame_channel) and not half.repeats("heartbeat-malformed"):
                octets = "1 byte" if half.frame_size == 1 else f"{half.frame_size} bytes"
                detail = f"a payload of {octets}, channel {half.frame_channel}"
                self.report("heartbeat-malformed", half, detail)
        else:
            code: str = "frame-type-unusual" if 0 < kind < 11 else "frame-type-unknown"
            if not half.repeats(code):
                self.report(code, half, f"type {kind}")
        return 0

    def body(
        self, half: Half, reader: ValueReader, at: cython.longlong, end: cython.longlong
    ) -> cython.int:
        """The frame under way is a body; its payload is `at`..`end` of the data."""
        if self.claims is not None:
            self.claim_body(half)
        if end > at:
            self.body_bytes(half, reader, at, end - at)
        return self.body_end(half)

    def body_bytes(
        self, half: Half, reader: ValueReader, at: cython.longlong, count: cython.longlong
    ) -> cython.int:
        """Bytes of the body frame under way; they may end a content that was lost before."""
        self.refresh(half.connection)
        return self.contents.body_bytes(half, reader, at, count)

    def body_missing(self, half: Half, count: cython.longlong) -> cython.int:
        """Bytes of that frame that are not in the capture."""
        self.refresh(half.connection)
        return self.contents.body_missing(half, count)

    def body_end(self, half: Half) -> cython.int:
        """The body frame under way ended."""
        self._row(half)
        return self.contents.body_end(half)

    def protocol_header(self, half: Half) -> cython.int:
        """Eight bytes `AMQP…` at the begin of a half-stream."""
        half.frame_type = PROTOCOL_HEADER
        half.frame_channel = 0
        half.frame_size = 8
        return self._row(half)

    def method(
        self,
        half: Half,
        reader: ValueReader,
        at: cython.longlong,
        end: cython.longlong,
        whole: cython.bint,
    ) -> cython.int:
        """Write the row of a method frame."""
        connection: Connection = half.connection
        cached: CachedMethod
        if whole and connection.dialect and end - at >= 4:
            mark: cython.longlong = reader.out.used
            cached = self.method_cache.look_up(
                self.decoder, reader, self.frames, connection.dialect, at, end
            )
            if cached is not None:
                if connection.sent_secrets is None or not self._reveals_secret(
                    connection, cached, reader, at, end
                ):
                    return self._write_cached(half, cached, reader, at, end)
                reader.out.used = mark
        return self._read_method(half, reader, at, end, whole)

    def _reveals_secret(
        self,
        connection: Connection,
        cached: CachedMethod,
        reader: ValueReader,
        at: cython.longlong,
        end: cython.longlong,
    ) -> cython.bint:
        """True if a cached method contains a secret that was sent on this connection."""
        start: cython.longlong = cached.starts[REPLY_TEXT]
        if start >= 0:
            text: bytes = reader.bytes_at(at + start, cached.lengths[REPLY_TEXT])
        elif cached.class_id == 10:
            text = reader.bytes_at(at, end - at)
        else:
            return False
        for secret in connection.sent_secrets:
            if text.find(secret) >= 0 or len(text) >= _CUT_FROM:
                return without_secrets(text, connection.sent_secrets) is not None
        return False

    def _write_cached(
        self,
        half: Half,
        cached: CachedMethod,
        reader: ValueReader,
        at: cython.longlong,
        end: cython.longlong,
    ) -> cython.int:
        """A method that came before."""
        if not half.connection.role_proved and 0 < _SENDERS[cached.method] < 3:
            self.prove_role(half, reader, at, end)
        if self.claims is not None:
            self._claim_frame(half, reader.bytes_at(at, end - at), cached.method, True)
        self._begin(half)
        self.method_cache.end_row(self.frames, cached, reader, at, self.serial)
        return self._pass_on(half, cached, reader, at, end)

    def _read_method(
        self,
        half: Half,
        reader: ValueReader,
        at: cython.longlong,
        end: cython.longlong,
        whole: cython.bint,
    ) -> cython.int:
        """Read a method, and remember it if it has no oddities."""
        connection: Connection = half.connection
        decoder: MethodDecoder = self.decoder
        payload: bytes = b""
        if self.claims is not None:
            payload = reader.bytes_at(at, end - at)
        if end - at < 4:
            return self._report_short_method(half, payload, whole)
        reader.oddities = 0
        decoder.past_login = connection.past_login
        decoder.channel_zero = half.frame_channel == 0
        decoder.sender = 0
        if connection.role_proved:
            decoder.sender = 1 if half.direction == connection.client_direction else 2
        decoder.sent_secrets = connection.sent_secrets
        self.frames.open_arguments()
        mark: cython.longlong = reader.out.used
        answer: cython.int = decoder.decode(reader, connection.dialect, at, end, half.frame_size)
        plain: cython.bint = answer == EXACT and reader.oddities == 0
        plain = plain and not decoder.secret_anywhere and not decoder.tells_secret
        if plain and whole and connection.dialect:
            self.method_cache.store(decoder, reader, connection.dialect, at, end, mark)
        if self.claims is not None:
            claimed_method: cython.int = -1 if decoder.secret_anywhere else decoder.method
            self._claim_frame(half, payload, claimed_method, whole and answer == EXACT)
        if answer == UNKNOWN:
            return self._unknown_method(half, reader, at)
        method: cython.int = decoder.method
        if not connection.role_proved and 0 < _SENDERS[method] < 3:
            self.prove_role(half, reader, at, end)
        self._begin(half)
        self.frames.end_method(decoder, reader, at)
        if answer != EXACT:
            self._complain(half, answer, whole, method)
        elif connection.dialect == 0:
            self._infer_dialect(connection, reader, at, end)
        if reader.oddities:
            for oddity in oddity_codes(reader.oddities):
                where = f"arguments of {method_layout.method_name(method)}"
                self.report(oddity, half, oddity_text(oddity, where, reader.strange_tag))
        return self._pass_on(half, decoder, reader, at, end)

    def _pass_on(
        self,
        half: Half,
        facts: DecodedMethod,
        reader: ValueReader,
        at: cython.longlong,
        end: cython.longlong,
    ) -> cython.int:
        """After a method's row: begin its content, or keep its facts of the connection."""
        if _CONTENT[facts.method]:
            return self.contents.method(half, facts, reader, at, end)
        self.contents.other_method(half)
        if facts.class_id == 10:
            self._learn(half, facts, reader, at, end)
        elif facts.class_id == 50 or facts.method_id == 20:
            self._learn_queue(half.connection)
        return 0

    def _claim_frame(self, half: Any, payload: Any, method: Any, exact: Any) -> None:
        """Claim the frame under way."""
        self.claim(
            half, half.frame_type, half.frame_offset, half.frame_channel, half.frame_size, payload,
            method, exact,
        )  # fmt: skip

    def _report_short_method(self, half: Any, payload: Any, whole: Any) -> Any:
        """A method frame without room for a method's numbers."""
        if self.claims is not None:
            self._claim_frame(half, payload, -1, False)
        self._begin(half)
        if whole:
            detail = f"method frame of {half.frame_size} bytes"
            self.report("arguments-truncated", half, detail)
        else:
            self.contents.unsure(half, half.frame_channel)
            self.contents.note_loss(half)  # it may be any method
        self.frames.rows += 1
        return 0

    def _complain(self, half: Any, answer: Any, whole: Any, method: Any) -> None:
        """Report arguments that did not fit their payload."""
        if not whole:
            code = "arguments-cut"
        else:
            code = "arguments-truncated" if answer == TOO_SHORT else "arguments-trailing"
        self.report(code, half, method_layout.method_name(method))

    def _unknown_method(self, half: Half, reader: ValueReader, at: cython.longlong) -> cython.int:
        """Write the row of a method that no dialect has, named by its numbers."""
        decoder: MethodDecoder = self.decoder
        number = decoder.class_id << 16 | decoder.method_id
        self._begin(half)
        code: cython.int = -1
        known_code = self.method_numbers.get(number)
        if known_code is not None:
            code = known_code
        elif len(self.method_numbers) < MAX_METHOD_NAMES:
            code = self.method_numbers[number] = _METHODS + len(self.method_numbers)
            self.method_names.append(f"{decoder.class_id}.{decoder.method_id}")
        decoder.method = code
        self.frames.end_method(decoder, reader, at)
        if not half.repeats("method-unknown"):
            detail = f"class {decoder.class_id}, method {decoder.method_id}"
            self.report("method-unknown", half, detail)
        return self.contents.other_method(half)

    # roles: client and broker

    def refresh(self, connection: Connection) -> cython.int:
        """Make sure that the connection has a code in the rows being made."""
        if connection.row_serial != self.serial:
            self._register(connection)
        return 0

    def _register(self, connection: Connection) -> cython.int:
        if connection.client_direction < 0:
            self._guess_role(connection)
        connection.row_code = len(self.connections)
        connection.row_serial = self.serial
        self.connections.append(None)
        self.peers.append(connection)
        return 0

    @cython.cfunc
    def names(self) -> list[Any]:
        """The names of the connections of the rows made, by code."""
        code: cython.Py_ssize_t
        peer: Connection
        for code in range(len(self.peers)):
            if self.connections[code] is None:
                peer = self.peers[code]
                self.connections[code] = peer.name()
        return self.connections

    def _guess_role(self, connection: Any) -> None:
        """Take the side that has no well-known port for the client, until there is proof."""
        a_known: cython.bint = connection.conversation.ports[0] in self.ports
        b_known: cython.bint = connection.conversation.ports[1] in self.ports
        if a_known != b_known:
            connection.client_direction = 1 if a_known else 0

    def set_client(self, connection: Connection, direction: cython.int) -> cython.int:
        """There is proof which direction the client sends."""
        if connection.role_proved:
            return 0
        connection.role_proved = True
        if connection.client_direction != direction:
            if connection.row_serial == self.serial:  # its rows so far keep their sides
                self.connections[connection.row_code] = connection.name()
            connection.client_direction = direction
            connection.row_serial = -1
        return 0

    def prove_role(
        self, half: Half, reader: ValueReader, at: cython.longlong, end: cython.longlong
    ) -> cython.int:
        """Identify the client by a method that only one side may send."""
        connection: Connection = half.connection
        sides: cython.int = self._matching_facts(
            method_layout.senders, reader, connection.dialect, at, end
        )
        if 0 < sides < 3:
            self.set_client(connection, half.direction ^ (sides - 1))
        return 0

    def _learn(
        self,
        half: Half,
        facts: DecodedMethod,
        reader: ValueReader,
        at: cython.longlong,
        end: cython.longlong,
    ) -> cython.int:
        """Keep the connection's facts from connection.start, start-ok and tune-ok."""
        connection: Connection = half.connection
        if facts.method_id == _TUNE or facts.method_id == _OPEN_OK:
            connection.past_login = True
        payload: bytes = b""
        if self.decoder.secrets[facts.method]:
            payload = reader.bytes_at(at, end - at)
            if facts.method_id == 11:
                payload = without_properties(payload)
            if not self.decoder.show_secrets:
                earlier = connection.sent_secrets
                connection.sent_secrets = with_secrets(earlier, facts.method, payload)
        if facts.method_id == 11:
            connection.login = payload if len(payload) <= LONG_LOGIN_BYTES else shortened(payload)
            if self.contents.writer.notes is not None:
                arguments: bytes = self.frames.arguments.bytes_of(self.frames.rows - 1)
                connection.reads_bodies = self.contents.writer.notes.knows(arguments)
        elif facts.method_id == 31 and facts.frame_max >= 0:
            connection.frame_max = facts.frame_max
        elif facts.method_id == 10 and self.dialect == 0:
            self._agree(connection, facts)
        return 0

    def _learn_queue(self, connection: Connection) -> cython.int:
        """Identify a framework by the name of a queue that its client declares or reads."""
        notes: NoteWriter = self.contents.writer.notes
        if notes is not None and not connection.reads_bodies:
            code = self.frames.queue.values[self.frames.rows - 1]
            name = self.frames.vocabularies.queue.text(code)
            connection.reads_bodies = notes.knows_queue(name)
        return 0

    def _agree(self, connection: Connection, facts: DecodedMethod) -> cython.int:
        """Take the version in connection.start; that of 0-9 is 0-9-1's."""
        if facts.version_major == 8:
            connection.dialect = _DIALECT_08
        elif facts.version_major == 0 and facts.version_minor == 9:
            if connection.dialect == 0 or connection.dialect == _DIALECT_08:
                connection.dialect = _DIALECT_091
        return 0

    def _infer_dialect(
        self, connection: Connection, reader: ValueReader, at: cython.longlong, end: cython.longlong
    ) -> cython.int:
        """Infer the dialect from a payload that only one dialect allows."""
        mask: cython.int = method_layout.dialects[self.decoder.method]
        if mask & (mask - 1) == 0:
            mask = self._matching_facts(method_layout.dialects, reader, 0, at, end)
            if mask & (mask - 1) == 0:
                connection.dialect = _bit(mask)
        return 0

    def _matching_facts(
        self,
        facts: Any,
        reader: ValueReader,
        dialect: cython.int,
        at: cython.longlong,
        end: cython.longlong,
    ) -> cython.int:
        """The union of the bits in `facts` of the rows that a method's payload fits.

        If it fits no row, the union over all rows with its numbers; 0 without a row.
        """
        decoder: MethodDecoder = self.decoder
        choice: cython.int = decoder.find(dialect, reader.u16(at), reader.u16(at + 2))
        fitting: cython.int = 0
        every: cython.int = 0
        while choice >= 0 and method_layout.choices[choice] >= 0:
            every |= facts[method_layout.choices[choice]]
            if decoder.fits(reader, method_layout.choices[choice], at + 4, end):
                fitting |= facts[method_layout.choices[choice]]
            choice += 1
        return fitting or every


@cython.cfunc
def _bit(mask: cython.int) -> cython.int:
    """The number of the only bit that is set, from 1."""
    index: cython.int = 0
    while mask:
        mask >>= 1
        index += 1
    return index


@cython.cclass
class CachedMethod(DecodedMethod):
    """A decoded method of `count` bytes. The `tag` bytes (8 or 0) after the `first` are a delivery
    tag; the others are in the cache's words from `begin` on.

    Its JSON is in the cache's from `json_start` to `json_end`, without the digits of the tag, which
    belong at `json_cut`. The codes of its names hold for the rows of one `serial` number, which
    share vocabularies.
    """

    dialect: cython.int
    exchange: cython.int
    routing_key: cython.int
    queue: cython.int
    consumer_tag: cython.int
    count: cython.longlong
    first: cython.longlong
    tag: cython.longlong
    begin: cython.longlong
    serial: cython.longlong
    json_start: cython.longlong
    json_cut: cython.longlong
    json_end: cython.longlong


@cython.cclass
class MethodCache(Cache):
    """Methods without secrets: their payloads without the delivery tag, and their values."""

    digest: cython.ulonglong
    method: cython.int
    cell: cython.int
    tag_at: cython.longlong

    tag_places: cython.const[cython.uchar][::1]
    last: cython.int[::1]
    methods: list[Any]

    def __init__(self) -> None:
        Cache.__init__(self)
        self.tag_places = bytes(method_layout.tag_places)
        self.last = memoryview(bytearray(4 * _LAST)).cast("i")
        self.digest = 0
        self.method = -1
        self.tag_at = -1
        self.cell = 0

    @cython.ccall
    @cython.exceptval(-1)
    def clear(self) -> cython.int:
        """Forget all methods."""
        Cache.clear(self)
        self.methods = []
        return 0

    @cython.cfunc
    def look_up(
        self,
        decoder: MethodDecoder,
        reader: ValueReader,
        frames: FrameRows,
        dialect: cython.int,
        at: cython.longlong,
        end: cython.longlong,
    ) -> CachedMethod:
        """The cached method of the payload `at`..`end`, with its delivery tag, or None.

        Its JSON is written for the next frame row, as by decoding. After None the caller decodes
        the payload, and can add it.
        """
        self.method = -1
        if end - at < 4 or end - at > _LONGEST:
            return None
        sketch: cython.ulonglong = reader.sketch(at, end - at)
        self.cell = cython.cast(cython.int, sketch & (_PLACES - 1))
        code: cython.int = self.last[self.cell]
        if self._matches(reader, code, dialect, at, end):
            self.lookups += 1
        else:
            code = self._search(decoder, reader, dialect, at, end)
            if code < 0:
                return None
            self.last[self.cell] = code
        self.hits += 1
        cached: CachedMethod = self.methods[code]
        if cached.has_json:
            self._write_json(reader, frames, cached)
        return cached

    def _matches(
        self,
        reader: ValueReader,
        code: cython.int,
        dialect: cython.int,
        at: cython.longlong,
        end: cython.longlong,
    ) -> cython.bint:
        """True if the payload `at`..`end` matches the entry of a code, which then has its tag."""
        if code >= len(self.methods):
            return False
        cached: CachedMethod = self.methods[code]
        if cached.dialect != dialect or cached.count != end - at:
            return False
        if not reader.equals_but(
            self.words, cached.begin, at, cached.count, cached.first, cached.tag
        ):
            return False
        if cached.tag:
            tag: cython.longlong = reader.i64(at + cached.first)
            if tag < 0:
                return False
            cached.delivery_tag = tag
        return True

    @cython.exceptval(-2)
    def _search(
        self,
        decoder: MethodDecoder,
        reader: ValueReader,
        dialect: cython.int,
        at: cython.longlong,
        end: cython.longlong,
    ) -> cython.int:
        """The code of a payload; -1 if it is not cached."""
        choice: cython.int = decoder.find(dialect, reader.u16(at), reader.u16(at + 2))
        if choice < 0:
            return -1
        method: cython.int = decoder.choices[choice]
        tag_place: cython.int = self.tag_places[method]
        if (
            tag_place == 0
            or not self._locate(reader, tag_place, at, end)
            or not self.is_worthwhile()
        ):
            return -1
        self.method = method
        first: cython.longlong = self.tag_at - at
        tail_bytes: cython.longlong = end - at - first
        if tag_place != NO_TAG:
            tail_bytes -= 8
        self.digest = reader.hash_of(at, first) ^ cython.cast(cython.ulonglong, dialect)
        if tail_bytes:
            self.digest = (self.digest + 3 * reader.hash_of(end - tail_bytes, tail_bytes)) & _MASK64
        words: Vocabulary = self.words
        code: cython.int = words.find(self.digest, first + tail_bytes)
        while code >= 0:
            if self._matches(reader, code, dialect, at, end):
                return code
            code = words.next(self.digest, first + tail_bytes)
        return -1

    def _locate(
        self, reader: ValueReader, tag_place: cython.int, at: cython.longlong, end: cython.longlong
    ) -> cython.bint:
        """Note the position of the delivery tag, or the end; False if it is cut or negative."""
        self.tag_at = end
        if tag_place == NO_TAG:
            return True
        if tag_place == TAG_FIRST:
            self.tag_at = at + 4
        else:
            if at + 5 > end:
                return False
            self.tag_at = at + 5 + reader.data[at + 4]
        return self.tag_at + 8 <= end and reader.i64(self.tag_at) >= 0

    def _write_json(
        self, reader: ValueReader, frames: FrameRows, cached: CachedMethod
    ) -> cython.int:
        """Write the JSON of a cached method with its tag."""
        frames.open_arguments()
        out: Texts = reader.out
        out.put_from(self.json, cached.json_start, cached.json_cut - cached.json_start)
        if cached.tag:
            reader._digits(cached.delivery_tag)
            out.put_from(self.json, cached.json_cut, cached.json_end - cached.json_cut)
        return 0

    def store(
        self,
        decoder: MethodDecoder,
        reader: ValueReader,
        dialect: cython.int,
        at: cython.longlong,
        end: cython.longlong,
        mark: cython.longlong,
    ) -> cython.int:
        """Add the payload that `look_up` did not find; its JSON was written from `mark` on."""
        if self.method < 0 or decoder.method != self.method or decoder.quoted:
            return 0
        cached: CachedMethod = CachedMethod()
        cached.copy(decoder)
        cached.dialect = dialect
        cached.count = end - at
        cached.first = self.tag_at - at
        cached.tag = 0 if self.tag_places[self.method] == NO_TAG else 8
        cached.serial = -1
        tail_bytes: cython.longlong = cached.count - cached.first - cached.tag
        if self.words.count >= _MAX_CACHED:
            self.clear()
            self.words.find(self.digest, cached.first + tail_bytes)
        cached.begin = self.words.used
        reader.copy_to(self.words, at, cached.first)
        reader.copy_to(self.words, end - tail_bytes, tail_bytes)
        self.last[self.cell] = self.words.add(self.digest)
        self._store_json(reader, cached, mark)
        self.methods.append(cached)
        return 0

    def _store_json(
        self, reader: ValueReader, cached: CachedMethod, mark: cython.longlong
    ) -> cython.int:
        """Remember the JSON from `mark` on, cut where the digits of the delivery tag were."""
        out: Texts = reader.out
        text: bytes = bytes(out.octets[mark : out.used])
        head, key, tail = text.partition(_TAG_KEY) if cached.tag else (text, b"", b"")
        cached.json_start = self.json.used
        self.json.put_bytes(head + key)
        cached.json_cut = self.json.used
        self.json.put_bytes(tail.lstrip(b"0123456789"))
        cached.json_end = self.json.used
        return 0

    def end_row(
        self,
        frames: FrameRows,
        cached: CachedMethod,
        reader: ValueReader,
        at: cython.longlong,
        serial: cython.longlong,
    ) -> cython.int:
        """Close the frame row of a cached method, in the rows of a serial number."""
        row: cython.longlong = frames.rows
        if cached.serial != serial:
            frames.end_method(cached, reader, at)
            cached.exchange = frames.exchange.values[row]
            cached.routing_key = frames.routing_key.values[row]
            cached.queue = frames.queue.values[row]
            cached.consumer_tag = frames.consumer_tag.values[row]
            cached.serial = serial
            return 0
        if row >= frames.capacity:
            raise IndexError("no room for a row")
        with cython.boundscheck(False):  # every column has room for as many rows
            frames.method.values[row] = cached.method
            frames.reply_code.values[row] = cached.reply_code
            frames.delivery_tag.values[row] = cached.delivery_tag
            frames.flags.values[row] = cached.flags
            frames.exchange.values[row] = cached.exchange
            frames.routing_key.values[row] = cached.routing_key
            frames.queue.values[row] = cached.queue
            frames.consumer_tag.values[row] = cached.consumer_tag
        if cached.has_json:
            frames.arguments.end()
        start: cython.longlong = cached.starts[REPLY_TEXT]
        if start >= 0:
            copy_text(frames.reply_text, row, reader, at + start, cached.lengths[REPLY_TEXT])
        frames.rows = row + 1
        return 0
