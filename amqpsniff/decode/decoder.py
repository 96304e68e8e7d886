# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""The decoder: octets of TCP conversations in, rows of frames and messages out.

Each half-stream is cut into frames where it stands: a frame that lies whole in the octets at hand
is read there; one that begins there is kept until the rest comes, a body only counted. After a hole
the place is kept by arithmetic when the hole lies inside a frame whose size is known; otherwise
`synchronize` looks for the next boundary. Framing that breaks (wrong end octet, impossible size) is
a finding, and the search begins there.

`feed` takes the events of reassembly (`amqpsniff.tcp.stream`), or `open`, `data`, `gap` and `close`
may be called directly by those who have octets and no packets. Rows gather in the handler until
`take`. Nothing here raises on any octets.
"""

import cython

from amqpsniff.decode.synchronize import MAX_KEPT_FRAME_OCTETS, Search
from amqpsniff.findings import Finding
from amqpsniff.spec import protocol_of

if cython.compiled:
    from cython.cimports.amqpsniff.decode.contents import (  # type: ignore[import-not-found]
        ContentAssembler,
    )
    from cython.cimports.amqpsniff.decode.frames import (  # type: ignore[import-not-found]
        FrameHandler,
    )
    from cython.cimports.amqpsniff.decode.state import (  # type: ignore[import-not-found]
        Connection,
        Half,
    )
    from cython.cimports.amqpsniff.decode.values import (  # type: ignore[import-not-found]
        ValueReader,
    )
else:
    from amqpsniff.decode.contents import ContentAssembler
    from amqpsniff.decode.frames import FrameHandler
    from amqpsniff.decode.state import Connection, Half
    from amqpsniff.decode.values import ValueReader

from amqpsniff.columns import NULL
from amqpsniff.decode import plan
from amqpsniff.decode.foreign import name_protocol

_START = cython.declare(cython.int, 0)
_SEARCH = cython.declare(cython.int, 1)
_FRAMES = cython.declare(cython.int, 2)
_FOREIGN = cython.declare(cython.int, 3)
_SILENT = cython.declare(cython.int, 4)
# the kinds of events of tcp.stream
_OPEN = cython.declare(cython.int, 0)
_GAP = cython.declare(cython.int, 2)
_CLOSE = cython.declare(cython.int, 3)
_END = cython.declare(cython.int, 0xCE)
_BODY = cython.declare(cython.int, 3)

FIRST_OCTETS = 16
"""Octets kept of a half-stream that is not AMQP, to say what it is."""


@cython.cclass
class Decoder:
    """Decodes any number of conversations at once.

    Args:
        log: Collects the findings.
        reading: The reading of field-value tags (`spec.FIELD_TAGS`).
        dialect: Take this dialect for every connection; None to find out.
        show_secrets: Write secrets as they are instead of `[redacted]`.
        new_hash: Makes a hash object for message bodies, or None for no hashes.
        keep_bodies: Keep message bodies.
        ports: Ports that servers listen on, beside 5671 and 5672.
        tables: Names of the tables whose rows are wanted; the others stay empty.
    """

    handler: FrameHandler
    contents: ContentAssembler
    halves: list
    log: object
    dialect: cython.int

    def __init__(
        self,
        log,
        reading="rabbitmq",
        dialect=None,
        show_secrets=False,
        new_hash=None,
        keep_bodies=False,
        ports=None,
        tables=("frames", "messages"),
    ):
        self.log = log
        self.dialect = plan.DIALECT_CODES[dialect]
        self.handler = FrameHandler(
            reading, show_secrets, new_hash, keep_bodies, ports, self._report, tables
        )
        self.contents = self.handler.contents
        self.halves = []

    @property
    def rows(self):
        """Rows made since the last `take`: those of the larger table."""
        return max(self.handler.frames.rows, self.handler.messages.rows)

    @property
    def octets(self):
        """Octets of text and bodies in the rows made since the last `take`."""
        return (
            self.handler.frames.arguments.used
            + self.handler.messages.headers.used
            + self.handler.messages.body.used
        )

    def use_capture(self, name):
        """What comes next is of this capture."""
        self.handler.use_capture(name)

    def take(self):
        """Give the rows away; see `FrameHandler.take`."""
        return self.handler.take()

    def feed(self, batch, capture):
        """Decode the events of one `StreamBatch` of a capture."""
        self.handler.use_capture(capture)
        kinds: cython.const[cython.int][::1] = batch.kind
        slots: cython.const[cython.int][::1] = batch.half
        sources: cython.const[cython.int][::1] = batch.source
        starts: cython.const[cython.longlong][::1] = batch.start
        lengths: cython.const[cython.longlong][::1] = batch.length
        numbers: cython.const[cython.longlong][::1] = batch.number
        times: cython.const[cython.longlong][::1] = batch.ts_ns
        block: ValueReader = self.handler.block
        block.read_from(batch.octets)
        half: Half
        i: cython.Py_ssize_t
        kind: cython.int
        for i in range(batch.count):
            kind = kinds[i]
            if kind == _OPEN:
                self.open(slots[i] >> 1, batch.conversations[slots[i] >> 1])
                continue
            if kind == _CLOSE:
                self.close(slots[i] >> 1, numbers[i], times[i])
                continue
            half = self.halves[slots[i]]
            if half.mode == _FOREIGN or half.mode == _SILENT:
                half.offset += lengths[i]
            elif kind == _GAP:
                self._gap(half, lengths[i], numbers[i], times[i])
            elif sources[i] < 0:
                self._data(half, block, starts[i], starts[i] + lengths[i], numbers[i], times[i])
            else:
                self._data_apart(
                    half, batch.extra[sources[i]], starts[i], lengths[i], numbers[i], times[i]
                )
        block.read_from(b"")

    def open(self, slot, conversation):
        """A conversation begins on a slot."""
        connection = Connection(conversation)
        connection.dialect = self.dialect
        if conversation.syn_seen:
            connection.role_proved = True
            connection.client_direction = 0
        while len(self.halves) < 2 * slot + 2:
            self.halves.append(None)
        self.halves[2 * slot] = Half(connection, 0)
        self.halves[2 * slot + 1] = Half(connection, 1)

    def data(self, slot, direction, octets, number=0, ts_ns=NULL):
        """The next octets of one half-stream, as a bytes object."""
        half: Half = self.halves[2 * slot + direction]
        if half.mode == _FOREIGN or half.mode == _SILENT:
            half.offset += len(octets)
        else:
            self._data_apart(half, octets, 0, len(octets), number, ts_ns)

    def gap(self, slot, direction, missing, number=0, ts_ns=NULL):
        """The next `missing` octets of one half-stream are not in the capture."""
        half: Half = self.halves[2 * slot + direction]
        if half.mode == _FOREIGN or half.mode == _SILENT:
            half.offset += missing
        else:
            self._gap(half, missing, number, ts_ns)

    def close(self, slot, number=0, ts_ns=NULL):
        """The conversation on a slot is over."""
        for direction in (0, 1):
            half: Half = self.halves[2 * slot + direction]
            if half is None:
                continue
            if half.mode == _SEARCH:
                self._accept(half, half.search.finish(), number, ts_ns)
            self.handler.refresh(half.connection)
            self.contents.finish(half)
        self._say_foreign(slot, number, ts_ns)
        self.halves[2 * slot] = None
        self.halves[2 * slot + 1] = None

    def finish(self, capture):
        """The capture is over: close every conversation that is still open."""
        if capture is not None:
            self.handler.use_capture(capture)
        for slot in range(len(self.halves) // 2):
            if self.halves[2 * slot] is not None:
                self.close(slot)

    def _report(self, code, half, channel, number, ts_ns, detail):
        """Record a finding about a half-stream."""
        connection: Connection = half.connection
        self.handler.refresh(connection)
        connection_id, client, server = self.handler.connections[connection.row_code]
        captures = self.handler.captures
        self.log.add(
            Finding(
                code,
                detail,
                capture=captures[len(captures) - 1] if captures else None,
                packet_number=number or None,
                ts_ns=None if ts_ns == NULL else ts_ns,
                connection_id=connection_id,
                client=client,
                server=server,
                channel=channel,
            )
        )

    def _say_foreign(self, slot, number, ts_ns):
        """A client that spoke something else to a server that speaks AMQP."""
        half: Half = self.halves[2 * slot]
        if half is not None and half.connection.is_amqp and half.mode == _FOREIGN:
            detail = name_protocol(half.first_octets)
            self._report("not-amqp", half, None, number, ts_ns, detail)

    # octets

    @cython.cfunc
    def _data_apart(
        self,
        half: Half,
        octets: bytes,
        start: cython.longlong,
        length: cython.longlong,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
        """Octets that are not in the block at hand."""
        reader: ValueReader = ValueReader.__new__(ValueReader)
        block: ValueReader = self.handler.block
        reader.out = block.out
        reader.kinds = block.kinds
        reader.widths = block.widths
        reader.base64 = block.base64
        reader.floats = block.floats
        reader.read_from(octets)
        return self._data(half, reader, start, start + length, number, ts_ns)

    @cython.cfunc
    def _data(
        self,
        half: Half,
        reader: ValueReader,
        at: cython.longlong,
        end: cython.longlong,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
        """The octets `at`..`end` of the reader's data are the next of a half-stream."""
        while at < end:
            if half.mode == _FRAMES:
                if half.left > 0:
                    at = self._counted(half, reader, at, end, number, ts_ns)
                elif half.kept > 0 or end - at < 7:
                    at = self._kept(half, reader, at, end, number, ts_ns)
                else:
                    at = self._boundary(half, reader, at, end, number, ts_ns)
            elif half.mode == _START:
                at = self._start(half, reader, at, end, number, ts_ns)
            elif half.mode == _SEARCH:
                self._search(half, bytes(reader.data[at:end]), number, ts_ns)
                return 0
            else:
                half.offset += end - at
                return 0
        return 0

    @cython.cfunc
    def _boundary(
        self,
        half: Half,
        reader: ValueReader,
        at: cython.longlong,
        end: cython.longlong,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.longlong:
        """At a frame boundary with a whole frame header at hand; position gone on to."""
        kind: cython.int = reader.data[at]
        channel: cython.int = reader.u16(at + 1)
        size: cython.longlong = reader.u32(at + 3)
        half.frame_offset = half.offset
        if not self._acceptable(half, kind, channel, size, number, ts_ns):
            self._lose(half, True)
            return at
        if kind == _BODY:
            half.frame_type = kind
            half.frame_channel = channel
            half.frame_size = size
            half.left = size + 1
            half.offset += 7
            return at + 7
        if end - at < size + 8:
            half.expected = size + 8
            half.keep(reader, at, end - at)
            half.offset += end - at
            return end
        if not self._frame(half, reader, at, number, ts_ns):
            half.offset += 7
            self._lose(half, False)
            return at + 7
        half.offset += size + 8
        return at + size + 8

    @cython.cfunc
    def _frame(
        self,
        half: Half,
        reader: ValueReader,
        at: cython.longlong,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.bint:
        """Hand a whole frame on; whether its end octet was right."""
        kind: cython.int = reader.data[at]
        channel: cython.int = reader.u16(at + 1)
        size: cython.longlong = reader.u32(at + 3)
        last: cython.int = reader.data[at + 7 + size]
        self.handler.frame(
            half, reader, kind, channel, size, at + 7, at + 7 + size, True, number, ts_ns
        )
        if last == _END:
            return True
        self._wrong_end(half, channel, last, number, ts_ns)
        return False

    def _wrong_end(self, half, channel, octet, number, ts_ns):
        detail = f"{octet:#04x} instead of 0xce at stream offset {half.frame_offset}"
        self._report("frame-end-wrong", half, channel, number, ts_ns, detail)

    @cython.cfunc
    def _acceptable(
        self,
        half: Half,
        kind: cython.int,
        channel: cython.int,
        size: cython.longlong,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.bint:
        """Whether a frame header at a boundary can be gone by."""
        limit: cython.longlong = half.connection.frame_max
        if 0 < kind < 11:
            # RabbitMQ compares the payload alone with frame-max (measured on 3.10.8)
            if limit <= 0 or size <= limit:
                if kind == _BODY or size <= MAX_KEPT_FRAME_OCTETS:
                    return True
            return self._too_large(half, kind, channel, size, limit, number, ts_ns)
        self._report("frame-type-unknown", half, channel, number, ts_ns, f"type {kind}")
        return False

    def _too_large(self, half, kind, channel, size, limit, number, ts_ns):
        detail = f"type {kind}, {size} octets"
        if limit > 0:
            detail += f", frame-max {limit}"
        self._report("frame-too-large", half, channel, number, ts_ns, detail)
        return False

    @cython.cfunc
    def _counted(
        self,
        half: Half,
        reader: ValueReader,
        at: cython.longlong,
        end: cython.longlong,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.longlong:
        """Inside a frame whose octets are only counted; position gone on to."""
        count: cython.longlong = half.left - 1
        if count > end - at:
            count = end - at
        if count > 0:
            if not half.skipping:
                self.contents.body_octets(half, half.frame_channel, reader, at, count)
            half.left -= count
            half.offset += count
            at += count
        if at < end:
            half.left = 0
            half.offset += 1
            self._end_counted(half, number, ts_ns)
            if reader.data[at] != _END:
                self._wrong_end(half, half.frame_channel, reader.data[at], number, ts_ns)
                self._lose(half, False)
            at += 1
        return at

    @cython.cfunc
    def _end_counted(
        self, half: Half, number: cython.longlong, ts_ns: cython.longlong
    ) -> cython.int:
        """The frame whose octets were only counted is over."""
        half.left = 0
        if half.skipping:
            return self._cut_frame(half, number, ts_ns)
        return self.handler.body_end(half, number, ts_ns)

    @cython.cfunc
    def _cut_frame(self, half: Half, number: cython.longlong, ts_ns: cython.longlong) -> cython.int:
        """A kept frame is over of which only a beginning was captured."""
        reader: ValueReader = self.handler.scratch
        reader.data = half.store.octets
        kept: cython.longlong = half.kept
        half.kept = 0
        half.skipping = False
        self.handler.frame(
            half,
            reader,
            reader.data[0],
            reader.u16(1),
            reader.u32(3),
            7,
            min(kept, 7 + reader.u32(3)),
            kept >= 7 + reader.u32(3),
            number,
            ts_ns,
        )
        half.expected = 0
        return 0

    @cython.cfunc
    def _kept(
        self,
        half: Half,
        reader: ValueReader,
        at: cython.longlong,
        end: cython.longlong,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.longlong:
        """Inside a frame that is kept until it is whole; position gone on to."""
        if half.kept == 0:
            half.frame_offset = half.offset
            half.expected = 0
        wanted: cython.longlong = (half.expected or 7) - half.kept
        if wanted > end - at:
            wanted = end - at
        half.keep(reader, at, wanted)
        half.offset += wanted
        at += wanted
        if half.expected == 0 and half.kept == 7:
            self._kept_header(half, number, ts_ns)
        elif half.expected and half.kept == half.expected:
            half.kept = 0
            half.expected = 0
            store: ValueReader = self.handler.scratch
            store.data = half.store.octets
            if not self._frame(half, store, 0, number, ts_ns):
                self._lose(half, False)
        return at

    @cython.cfunc
    def _kept_header(
        self, half: Half, number: cython.longlong, ts_ns: cython.longlong
    ) -> cython.int:
        """The seven octets of a frame header came in pieces and are there now."""
        header: ValueReader = self.handler.scratch
        header.data = half.store.octets
        kind: cython.int = header.data[0]
        channel: cython.int = header.u16(1)
        size: cython.longlong = header.u32(3)
        if not self._acceptable(half, kind, channel, size, number, ts_ns):
            octets: bytes = bytes(half.store.octets[0:7])
            half.offset -= 7
            half.kept = 0
            self._lose(half, True)
            return self._search(half, octets, number, ts_ns)
        if kind == _BODY:
            half.kept = 0
            half.frame_type = kind
            half.frame_channel = channel
            half.frame_size = size
            half.left = size + 1
        else:
            half.expected = size + 8
        return 0

    # beginnings

    @cython.cfunc
    def _start(
        self,
        half: Half,
        reader: ValueReader,
        at: cython.longlong,
        end: cython.longlong,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.longlong:
        """At the first octets of a half-stream; position gone on to."""
        wanted: cython.longlong = 8 - half.kept
        if wanted > end - at:
            wanted = end - at
        half.keep(reader, at, wanted)
        half.offset += wanted
        at += wanted
        octets: bytes = bytes(half.store.octets[0 : half.kept])
        if octets[:4] != b"AMQP"[: len(octets)]:
            self._headless(half, octets, number, ts_ns)
        elif len(octets) == 8:
            half.kept = 0
            half.frame_offset = half.offset - 8
            self._protocol_header(half, octets, number, ts_ns)
        return at

    def _protocol_header(self, half, octets, number, ts_ns):
        """Eight octets that begin with AMQP, at the begin of a half-stream."""
        connection: Connection = half.connection
        connection.is_amqp = True
        if not connection.role_proved:
            self.handler.refresh(connection)
            if connection.client_direction < 0:
                self.handler.set_client(connection, half.direction)
        self.handler.protocol_header(half, number, ts_ns)
        protocol = protocol_of(octets[4:])
        half.mode = _FRAMES
        if protocol is None:
            detail = "AMQP " + " ".join(str(octet) for octet in octets[4:])
            self._report("protocol-header-unknown", half, None, number, ts_ns, detail)
        elif protocol.protocol not in plan.DIALECT_CODES:
            half.mode = _SILENT
            self._report("protocol-not-decoded", half, None, number, ts_ns, f"AMQP {protocol.protocol}")
        elif connection.dialect == 0 and half.direction == connection.client_direction:
            connection.dialect = plan.DIALECT_CODES[protocol.protocol]

    def _headless(self, half, octets, number, ts_ns):
        """The first octets of a half-stream are no protocol header."""
        connection: Connection = half.connection
        half.first_octets = octets
        half.kept = 0
        half.offset -= len(octets)
        known_start = connection.conversation.syn_seen
        if known_start and half.direction == 0:
            half.mode = _FOREIGN
            half.offset += len(octets)
            half.first_octets = octets
            return
        if known_start and connection.is_amqp and octets[0] == 1:
            half.mode = _FRAMES
            self._data_apart(half, octets, 0, len(octets), number, ts_ns)
            return
        if not known_start:
            half.lossy = True
            half.opened_since = set()
        half.mode = _SEARCH
        half.search = Search(self.handler, half, half.offset)
        self._search(half, octets, number, ts_ns)

    # holes

    @cython.cfunc
    def _gap(
        self,
        half: Half,
        missing: cython.longlong,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
        """`missing` octets of a half-stream are not in the capture."""
        if half.mode == _SEARCH:
            self._accept(half, half.search.gap(missing), number, ts_ns)
            if half.mode == _SEARCH:
                half.offset = half.search.end
                return 0
        elif half.mode == _START:
            if half.kept:
                half.offset -= half.kept
                half.kept = 0
            half.mode = _FRAMES
        if half.left > 0:
            missing = self._gap_in_counted(half, missing, number, ts_ns)
        elif half.kept > 0:
            missing = self._gap_in_kept(half, missing, number, ts_ns)
        half.offset += missing
        if missing:
            self._lose(half, False)
        return 0

    @cython.cfunc
    def _gap_in_counted(
        self,
        half: Half,
        missing: cython.longlong,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.longlong:
        """A hole in a frame that is counted; octets of the hole behind that frame."""
        payload: cython.longlong = min(missing, half.left - 1)
        if not half.skipping:
            self.contents.body_missing(half, half.frame_channel, payload)
        if missing < half.left:
            half.left -= missing
            half.offset += missing
            return 0
        missing -= half.left
        half.offset += half.left
        self._end_counted(half, number, ts_ns)
        return missing

    @cython.cfunc
    def _gap_in_kept(
        self,
        half: Half,
        missing: cython.longlong,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.longlong:
        """A hole in a frame that is kept; octets of the hole behind that frame."""
        if half.expected == 0:
            half.kept = 0
            return missing
        to_come: cython.longlong = half.expected - half.kept
        if missing < to_come:
            half.skipping = True
            half.left = to_come - missing
            half.offset += missing
            return 0
        half.offset += to_come
        self._cut_frame(half, number, ts_ns)
        return missing - to_come

    @cython.cfunc
    def _lose(self, half: Half, forced: cython.bint) -> cython.int:
        """Framing is lost at `half.offset`: search from there."""
        self.contents.lose(half)
        half.forget_frame()
        half.mode = _SEARCH
        half.search = Search(self.handler, half, half.offset, forced)
        return 0

    # searching

    @cython.cfunc
    def _search(
        self, half: Half, octets: bytes, number: cython.longlong, ts_ns: cython.longlong
    ) -> cython.int:
        """Search on with these octets."""
        half.offset += len(octets)
        if len(half.first_octets) < FIRST_OCTETS and not half.connection.is_amqp:
            half.first_octets = (half.first_octets + octets)[:FIRST_OCTETS]
        believed = half.search.feed(octets, number, ts_ns)
        if believed is not None:
            self._accept(half, believed, number, ts_ns)
        elif half.search.hopeless:
            half.mode = _FOREIGN
            half.search = None
        return 0

    def _accept(self, half, chain, number, ts_ns):
        """Take the frames of a chain that is believed; go on behind it."""
        if chain is None:
            return
        search = half.search
        half.search = None
        half.mode = _FRAMES
        half.connection.is_amqp = True
        self._prove_role(half, chain.frames)
        for offset, kind, channel, size, payload, frame_number, frame_ts_ns in chain.frames:
            half.frame_offset = offset
            self._chain_frame(half, kind, channel, size, payload, frame_number, frame_ts_ns)
        half.offset = chain.next
        rest = search.rest(chain)
        if rest is None:
            kind, half.frame_channel, half.frame_size = chain.pending
            half.frame_type = kind
            half.frame_offset = chain.next
            half.left = chain.next + half.frame_size + 8 - search.end
            half.offset = search.end
        elif rest:
            self._data_apart(half, rest, 0, len(rest), number, ts_ns)

    def _prove_role(self, half, frames):
        """Let the methods of a chain tell who is the client before any row is written."""
        if half.connection.role_proved:
            return
        for _, kind, _, _, payload, _, _ in frames:
            if kind == 1 and len(payload) >= 4:
                class_id = payload[0] << 8 | payload[1]
                method_id = payload[2] << 8 | payload[3]
                dialect = half.connection.dialect
                choice = self.handler.decoder.find(dialect, class_id, method_id)
                sender = plan.senders[plan.choices[choice]] if choice >= 0 else 3
                if sender < 3:
                    self.handler.set_client(half.connection, half.direction ^ (sender - 1))
                    return

    def _chain_frame(self, half, kind, channel, size, payload, number, ts_ns):
        """Hand on one frame of a chain that is believed."""
        if kind == 65:
            self._protocol_header(half, payload, number, ts_ns)
            return
        if kind == _BODY:
            half.frame_channel = channel
            half.frame_size = size
            self.contents.body_missing(half, channel, size)
            self.handler.body_end(half, number, ts_ns)
            return
        reader: ValueReader = self.handler.scratch
        reader.read_from(payload)
        self.handler.frame(half, reader, kind, channel, size, 0, size, True, number, ts_ns)
