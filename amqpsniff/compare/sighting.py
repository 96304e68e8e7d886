"""One capture read for a comparison with another one of the same connections.

Of each direction of a connection are kept: its frames (where they stand in the stream, when they
were complete, in which packet), a checksum of each block of bytes, and which bytes segments
carried once, again, or not at all. The first two wait in a temporary file when they are many.

Blocks begin at multiples of `BLOCK_BYTES` of the TCP sequence number, so that two captures that
began at different bytes of a connection have the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol
from zlib import crc32

from amqpsniff.compare.spans import Coverage
from amqpsniff.compare.spill import Log, Spill
from amqpsniff.findings import Finding
from amqpsniff.options import Options
from amqpsniff.packet_numbers import NUMBER_MASK
from amqpsniff.pipeline import Pipeline, run
from amqpsniff.plan import Plan
from amqpsniff.spec.amqp010 import overhead_bytes
from amqpsniff.tables.values import values
from amqpsniff.tcp.codes import DATA, GAP, OPEN
from amqpsniff.tcp.stream import POSITION_FIELDS, StreamBatch

BLOCK_BYTES = 256
"""Bytes of a block. A difference is located to a block, and each takes 16 bytes of memory."""

CRC_BITS = 32

MAX_CONNECTIONS = 30_000
"""AMQP connections of one capture that are compared, some 4 kB each; later ones are counted."""

NO_TIME = -(2**63)

FRAME = ("offset", "ts_ns", "packet_number", "octets", "kind", "channel")
"""Integers of a frame's row; `octets` counts its header too, `kind` is a place in
`Vocabulary.names`."""

COLUMNS = (
    "packet_number", "ts_ns", "connection_id", "sender", "stream_offset", "channel", "frame_type",
    "size", "method",
)  # fmt: skip


class Vocabulary:
    """Names of methods and of frame types, by number; one for both captures."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        """The number of a name."""
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self.names)
            self.names.append(name)
        return number


class Direction:
    """One direction of a connection in one capture.

    Attributes:
        frames: Rows of `FRAME`.
        blocks: Rows of (stream offset of the first byte, bytes << 32 | CRC-32).
        coverage: What segments carried, and `acked` how far that was acknowledged beyond a hole.
        start: The sequence number of offset 0, None where it is not known.
    """

    __slots__ = ("_at", "_begin", "_crc", "acked", "blocks", "coverage", "frames", "start")

    def __init__(self, spill: Spill) -> None:
        self.frames: Iterable[tuple[int, ...]] = ()
        self.blocks = Log(spill, 2)
        self.coverage = Coverage()
        self.acked = 0
        self.start: int | None = None
        self._begin = self._at = self._crc = 0

    def take(self, offset: int, octets: memoryview) -> None:
        """The next bytes of the stream."""
        if offset != self._at:
            self.cut()
            self._begin = self._at = offset
        begin, end = 0, len(octets)
        base = self.start or 0
        while begin < end:
            room = BLOCK_BYTES - (base + self._at) % BLOCK_BYTES
            stop = min(begin + room, end)
            self._crc = crc32(octets[begin:stop], self._crc)
            self._at += stop - begin
            if stop - begin == room:
                self.cut()
            begin = stop

    def cut(self) -> None:
        """End the block that was begun."""
        if self._at > self._begin:
            self.blocks.add(self._begin, (self._at - self._begin) << CRC_BITS | self._crc)
        self._begin, self._crc = self._at, 0


@dataclass(eq=False, slots=True)
class CapturedConnection:
    """A TCP conversation of one capture; direction 0 is the originator's.

    `client` is the direction of the AMQP client, None where it was not found to be AMQP.
    """

    conversation: Any
    directions: tuple[Direction, Direction]
    connection_id: str = ""
    ends: tuple[str, str] = ("", "")
    isn: int | None = None
    syn_seen: bool = False
    start_ns: int = 0
    end_ns: int = 0
    client: int | None = None

    def detach(self) -> None:
        """Copy the facts of the conversation, and drop the reference to it."""
        conversation = self.conversation
        self.connection_id, self.ends = conversation.connection_id, (conversation.a, conversation.b)
        self.isn, self.syn_seen = conversation.isn, bool(conversation.syn_seen)
        self.start_ns, self.end_ns = conversation.start_ns, conversation.end_ns
        for direction, start, acked in zip(
            self.directions, conversation.starts, conversation.acked, strict=True
        ):
            direction.cut()
            direction.coverage.finish()
            direction.acked = acked
            if direction.start is None:
                direction.start = start
        self.conversation = None

    @property
    def address(self) -> str:
        """The client's end."""
        return self.ends[self.client or 0]

    @property
    def server(self) -> str:
        """The broker's end."""
        return self.ends[1 - (self.client or 0)]


@dataclass
class Sighting:
    """A connection as one capture saw it.

    Attributes:
        names: The captures.
        talks: AMQP connections, by connection id.
        totals: `pipeline.Totals`.
        found: Findings about the capture.
        forgotten: Connections beyond `MAX_CONNECTIONS`.
        connection_names: What clients call their connections, by connection id.
    """

    names: list[str]
    spill: Spill = field(default_factory=Spill)
    connections: dict[str, CapturedConnection] = field(default_factory=dict)
    totals: Any = None
    found: list[Finding] = field(default_factory=list)
    connection_names: dict[str, str] = field(default_factory=dict)
    forgotten: int = 0


class Readable(Protocol):
    """Captures that are read as one: their names, and how they are decoded."""

    names: list[str]
    options: Options


class Sighter:
    """Reads one capture: `read` gives packets done now and then; then `sighting` is complete."""

    def __init__(
        self, capture: Readable, words: Vocabulary, max_connections: int = MAX_CONNECTIONS
    ) -> None:
        self.sighting = Sighting(capture.names)
        self._max_connections = max_connections
        self._capture = capture
        self._words = words
        self._open: dict[int, CapturedConnection] = {}
        self._frames: dict[tuple[str, str | None], Log] = {}
        self._closed: list[CapturedConnection] = []

    def read(self) -> Iterator[int]:
        """Read the capture once."""
        from amqpsniff.capture import CaptureSet
        from amqpsniff.tables.batches import Maker

        options = self._capture.options
        pipeline = Pipeline(options, Plan(("frames", "connections"), positions=True))
        self.sighting.totals = pipeline.totals
        maker = Maker("frames", encoded=True, columns=COLUMNS)
        with CaptureSet(self.sighting.names, reader=options.reader) as packets:
            for batch, events in run(packets, pipeline):
                positions = () if batch is None else pipeline.reassembler.take_positions()
                self._follow(events, positions, batch)
                self._rows(pipeline.settled(), maker, pipeline)
                yield pipeline.totals.packets
            self._rows(pipeline.rest(), maker, pipeline)
            self.sighting.found = [*packets.findings, *pipeline.findings(packets.findings)]
        self._conclude()

    def _follow(self, events: StreamBatch, positions: Any = (), batch: Any = None) -> None:
        """Take the segments and events of a batch."""
        connections: dict[int, CapturedConnection] = {}
        conversations = events.conversations
        for at in range(0, len(positions), POSITION_FIELDS):
            row, half, offset, _, captured, acked = positions[at : at + POSITION_FIELDS]
            connection = connections.get(half >> 1)
            if connection is None:
                connection = connections[half >> 1] = self._connection_of(conversations[half >> 1])
            end = offset + captured + batch.original[row] - batch.captured[row]
            if end > offset:
                coverage = connection.directions[half & 1].coverage
                coverage.add(offset, end, batch.ts_ns[row], batch.number[row], acked)
        self._bytes(events, connections)

    def _bytes(self, events: StreamBatch, connections: dict[int, CapturedConnection]) -> None:
        kinds, halves, lengths = events.kind, events.half, events.length
        sources, starts, offsets = events.source, events.start, events.stream_offset
        block = memoryview(events.octets)
        for row in range(events.count):
            kind, half = kinds[row], halves[row]
            connection = connections.get(half >> 1)
            if connection is None:
                connection = connections[half >> 1] = self._connection_of(
                    events.conversations[half >> 1]
                )
            direction = connection.directions[half & 1]
            if kind == DATA:
                if direction.start is None:
                    direction.start = connection.conversation.starts[half & 1]
                source, start = sources[row], starts[row]
                octets = block if source < 0 else memoryview(events.extra[source])
                direction.take(offsets[row], octets[start : start + lengths[row]])
            elif kind == GAP:
                direction.cut()
            elif kind != OPEN:
                self._end(connection)
                connections.pop(half >> 1)

    def _connection_of(self, conversation: Any) -> CapturedConnection:
        connection = self._open.get(conversation.serial)
        if connection is None:
            spill = self.sighting.spill
            connection = CapturedConnection(conversation, (Direction(spill), Direction(spill)))
            self._open[conversation.serial] = connection
        return connection

    def _end(self, connection: CapturedConnection) -> None:
        del self._open[connection.conversation.serial]
        connection.detach()
        self._closed.append(connection)

    def _rows(self, pieces: Any, maker: Any, pipeline: Pipeline) -> None:
        for piece in pieces:
            self._take_frames(maker.make(piece))
        closed = {connection.connection_id: connection for connection in self._closed}
        for row in pipeline.records()["connections"]:
            connection = closed.get(row["connection_id"])
            if connection is not None:
                self._keep(connection, row)
        self._closed.clear()

    def _keep(self, connection: CapturedConnection, row: dict[str, Any]) -> None:
        """A conversation was AMQP, as a row of the connections table says."""
        if len(self.sighting.connections) >= self._max_connections:
            self.sighting.forgotten += 1
            return
        connection.client = 1 if row["client"] == connection.ends[1] else 0
        self.sighting.connections[connection.connection_id] = connection
        if row["connection_name"]:
            self.sighting.connection_names[connection.connection_id] = row["connection_name"]

    def _take_frames(self, batch: Any) -> None:
        words = self._words
        cells = [values(batch, name) for name in COLUMNS]
        for number, ts_ns, connection, sender, offset, channel, kind, size, method in zip(
            *cells, strict=True
        ):
            log = self._frames.get((connection, sender))
            if log is None:
                log = self._frames[connection, sender] = Log(self.sighting.spill, len(FRAME))
            name = words.number(method or kind)
            time = NO_TIME if ts_ns is None else ts_ns
            length = size + overhead_bytes(kind)
            log.add(offset, time, number & NUMBER_MASK, length, name, channel or 0)

    def _conclude(self) -> None:
        """Bring frames and conversations together."""
        for connection in self.sighting.connections.values():
            client = connection.client or 0
            for sender, at in (("client", client), ("server", 1 - client)):
                log = self._frames.get((connection.connection_id, sender))
                if log is not None:
                    connection.directions[at].frames = log
