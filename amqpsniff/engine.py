"""The engine without files: packets or bytes in, rows out.

Packets come from a capture library, a test or the buffers of another program, bytes of connections
from a proxy or a tap behind TLS. Rows gather until `take`.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from operator import index
from typing import TYPE_CHECKING, Any, TypeAlias

from amqpsniff.capture.packets import NO_TIME, PacketBatch
from amqpsniff.decode.preamble import may_open
from amqpsniff.errors import UsageError
from amqpsniff.findings import Finding as FoundRow
from amqpsniff.limits import Limits
from amqpsniff.objects import Finding, Frame, Message, rows
from amqpsniff.options import Decoding, Options
from amqpsniff.pipeline import Pipeline, Totals
from amqpsniff.plan import Plan

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Unpack

__all__ = ["Engine", "connection_id_of"]

ETHERNET = 1
"""LINKTYPE_ETHERNET (https://www.tcpdump.org/linktypes.html)."""

ENGINE_TABLES = ("frames", "messages", "connections", "channels", "links", "findings")
"""Tables whose rows an engine makes."""

_DIRECTIONS = {"client": 0, "server": 1}


class Engine:
    """Decodes packets, or bytes of connections, that the caller has.

    Packets are numbered from 1, and so are calls of `feed_bytes` and `gap`, which count as
    packets. An engine takes packets or bytes, not both. Raises UsageError for an invalid call;
    invalid bytes are reported as findings.

    >>> engine = Engine()
    >>> engine.feed_bytes("a", "client", b"AMQP\\x00\\x00\\x09\\x01")
    >>> engine.feed_bytes("a", "client", bytes.fromhex("08 0000 00000000 ce"))
    >>> [frame.frame_type for frame in engine.frames()]
    ['protocol-header', 'heartbeat']

    Args:
        capture: The value of the column `capture` in the rows.
        decoding: As in `amqpsniff.open`: `ports`, `dialect`, `table_dialect`, `bodies`,
            `body_sha256`, `show_secrets`, `tls_keylog`, `tls_key`, `packs`, `limits`.
    """

    def __init__(self, *, capture: str = "-", **decoding: Unpack[Decoding]) -> None:
        self.capture = capture
        self.options = Options.of(**decoding)
        plan = Plan(ENGINE_TABLES, links=True, meanings=True, processes=True)
        self._pipeline = Pipeline(self.options, plan)
        self._held = _HeldPackets(capture, self.options.limits)
        self._streams: Streams | None = None
        self._number = 0
        self._finished = False
        self._pending: defaultdict[str, list[Any]] = defaultdict(list)
        self._batches: defaultdict[str, list[Any]] = defaultdict(list)
        self._findings: list[FoundRow] = []

    def __repr__(self) -> str:
        return f"<Engine {self._number} packets{', finished' if self._finished else ''}>"

    @property
    def totals(self) -> Totals:
        """Counts so far; those of connections come when they end."""
        self._decode_held()
        return self._pipeline.totals

    def feed_packet(
        self,
        data: bytes,
        ts_ns: int | None = None,
        link_type: int = ETHERNET,
        original_bytes: int | None = None,
    ) -> None:
        """Decode the next packet.

        `data` begins with the header of `link_type` (a number of LINKTYPE). `ts_ns` is nanoseconds
        since the epoch, None if unknown; `original_bytes` is the length on the wire of a packet
        that a snap length cut.
        """
        if self._streams is not None:
            raise UsageError("this engine was given bytes of connections; make one for packets")
        octets, time = _bytes(data), _time(ts_ns)
        original = len(octets) if original_bytes is None else original_bytes
        self._held.add(self._next(), time, octets, original, link_type)
        self._number += 1
        if self._held.full:
            self._decode_held()

    def feed_bytes(
        self, connection_key: Key, direction: str, data: bytes, ts_ns: int | None = None
    ) -> None:
        """Decode the next bytes that the `client` or the `server` of a connection sent.

        The key is any string, or a pair of the client's and the server's `address:port`, which
        then stand in the rows. `connection_id_of` gives its `connection_id`. A connection that
        begins with the client's protocol header, or with a proxy's, is taken to be whole; another
        may have begun at any byte.
        """
        sender, sent, time = self._sender(direction), _bytes(data), _time(ts_ns)
        self._number = number = self._next()
        size = self.options.limits.piece_bytes
        for at in range(0, len(sent), size):
            self._stream().data(connection_key, sender, sent[at : at + size], number, time)
            self._pipeline.follow()
            self._gather()

    def gap(
        self, connection_key: Key, direction: str, missing: int, ts_ns: int | None = None
    ) -> None:
        """Report that the next `missing` bytes of one direction are lost."""
        sender, time = self._sender(direction), _time(ts_ns)
        if missing < 0:
            raise UsageError(f"a gap of {missing} bytes; it cannot be negative")
        self._number = self._next()
        if missing:
            self._stream().gap(connection_key, sender, missing, self._number, time)
            self._pipeline.follow()
        self._gather()

    def close(self, connection_key: Key) -> None:
        """End a connection; its key may be used for another one afterwards."""
        if self._streams is not None:
            self._use_capture()
            self._streams.close(connection_key)
            self._pipeline.follow()

    def finish(self) -> None:
        """End of input: end every connection. The remaining rows can be taken afterwards."""
        if self._finished:
            return
        self._decode_held()
        if self._streams is not None:
            self._use_capture()
            self._streams.close_all()
        self._pipeline.finish()
        self._finished = True

    def take(self, table: str) -> pa.RecordBatch:
        """The rows of one table since it was last taken, as a `pyarrow.RecordBatch`.

        Raises UsageError for an unknown table.
        """
        import pyarrow as pa

        from amqpsniff.tables.batches import Maker

        maker = Maker(table, everything=True)
        self._decode_held()
        self._gather(table)
        if table == "findings":
            findings, self._findings = self._findings, []
            return maker.make(findings)
        batches = self._batches.pop(table, [])
        if len(batches) == 1:
            return batches[0]
        merged = pa.Table.from_batches(batches, maker.schema)
        columns = [column.combine_chunks() for column in merged.columns]
        return pa.RecordBatch.from_arrays(columns, schema=maker.schema)

    def frames(self) -> Iterator[Frame]:
        """Frames since they were last taken, as objects."""
        return rows(Frame, [self.take("frames")])

    def messages(self) -> Iterator[Message]:
        """Messages that ended since they were last taken, as objects."""
        return rows(Message, [self.take("messages")])

    def findings(self) -> Iterator[Finding]:
        """Findings since they were last taken, as objects."""
        return rows(Finding, [self.take("findings")])

    def _next(self) -> int:
        """The number of the next packet or call."""
        if self._finished:
            raise UsageError("this engine is finished; make a new one")
        return self._number + 1

    def _sender(self, direction: str) -> int:
        sender = _DIRECTIONS.get(direction)
        if sender is None:
            raise UsageError(f"no direction `{direction}`; it is client or server")
        return sender

    def _stream(self) -> Streams:
        if self._streams is None:
            if self.totals.packets:
                raise UsageError("this engine was given packets; make one for bytes")
            self._streams = Streams(self._pipeline.decoder)
            self._pipeline.capture = self.capture
        self._use_capture()
        return self._streams

    def _use_capture(self) -> None:
        """Rows since the last `take` are of our capture."""
        self._pipeline.decoder.use_capture(self.capture)

    def _decode_held(self) -> None:
        if len(self._held):
            self._pipeline.feed(self._held.take())
            self._gather()

    def _gather(self, requested: str = "") -> None:
        """Turn rows into batches, when there are enough of them or a table is asked for."""
        if not (requested or self._pipeline.ready):
            return
        for settled in self._pipeline.rest() if requested else self._pipeline.settled():
            for table, made in (("frames", settled[0]), ("messages", settled[1])):
                if made.rows:
                    self._pending[table].append(settled)
        for table in (requested,) if self._finished else tuple(self._pending):
            self._make(table, self._pending.pop(table, ()))
        for table, records in self._pipeline.records().items():
            if records:
                self._make(table, [records])
        self._findings += self._pipeline.findings()

    def _make(self, table: str, pending: Iterable[Any]) -> None:
        from amqpsniff.tables.batches import Maker

        for settled in pending:
            batch = Maker(table, everything=True).make(settled)
            self._batches[table].append(batch)


class _HeldPackets:
    """Packets that wait to be decoded together."""

    def __init__(self, capture: str, limits: Limits) -> None:
        self._capture = capture
        self._limits = limits
        self._clear()

    def _clear(self) -> None:
        self._pieces: list[bytes] = []
        self._bytes = 0
        self._columns = [array("q") for _ in range(6)]

    def __len__(self) -> int:
        return len(self._pieces)

    @property
    def full(self) -> bool:
        limits = self._limits
        return len(self._pieces) >= limits.packets or self._bytes >= limits.packet_bytes

    def add(self, number: int, time: int, octets: bytes, original: int, link_type: int) -> None:
        row = array("q", (number, time, self._bytes, len(octets), original, link_type))
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)
        self._pieces.append(octets)
        self._bytes += len(octets)

    def take(self) -> PacketBatch:
        batch = PacketBatch(self._capture, b"".join(self._pieces), 0, len(self), *self._columns)
        self._clear()
        return batch


def _time(ts_ns: int | None) -> int:
    return NO_TIME if ts_ns is None else index(ts_ns)


def _bytes(octets: bytes) -> bytes:
    """The bytes of any buffer, as they are now: its owner may use it again."""
    return octets if type(octets) is bytes else bytes(memoryview(octets))


AMQP_PORT = 5672

Key: TypeAlias = str | tuple[str, str]
Call: TypeAlias = tuple[bytes, int, int]  # bytes, number and time of a call


def connection_id_of(key: Key) -> str:
    """The 16 hex digits that stand in `connection_id` for a key of `Engine.feed_bytes`."""
    name = key if isinstance(key, str) else "\n".join(key)
    return blake2b(name.encode(errors="surrogatepass"), digest_size=8).hexdigest()


class Streams:
    """Connections whose bytes come without packets: their places in the decoder, by key."""

    def __init__(self, decoder: Any) -> None:
        self._decoder = decoder
        self._slots: dict[Key, int] = {}
        self._open: dict[int, Stream] = {}
        self._begins: dict[Key, list[Call]] = {}  # too short to identify the protocol
        self._free: list[int] = []

    def data(self, key: Key, sender: int, octets: bytes, number: int, ts_ns: int) -> None:
        """The next bytes of one direction."""
        if sender or key in self._slots:
            self._feed(self._place(key), sender, octets, number, ts_ns)
            return
        calls = self._begins.setdefault(key, [])
        calls.append((octets, number, ts_ns))
        began = may_open(b"".join(call[0] for call in calls))
        if began is not None:
            self._place(key, began)

    def gap(self, key: Key, sender: int, missing: int, number: int, ts_ns: int) -> None:
        """The next bytes of one direction are missing."""
        slot = self._place(key)
        self._open[slot].lost(sender, missing, number, ts_ns)
        self._decoder.gap(slot, sender, missing, number, ts_ns)

    def _feed(self, slot: int, sender: int, octets: bytes, number: int, ts_ns: int) -> None:
        self._open[slot].saw(sender, len(octets), number, ts_ns)
        self._decoder.data(slot, sender, octets, number, ts_ns)

    def _place(self, key: Key, began: bool | None = None) -> int:
        """The slot of a connection, which is opened when it is new."""
        slot = self._slots.get(key)
        if slot is None:
            slot = self._slots[key] = self._free.pop() if self._free else len(self._open)
            calls = self._begins.pop(key, [])
            stream = self._open[slot] = Stream(key, bool(calls) if began is None else began)
            self._decoder.open(slot, stream)
            for octets, number, ts_ns in calls:
                self._feed(slot, 0, octets, number, ts_ns)
        return slot

    def close(self, key: Key) -> None:
        if key in self._begins:
            self._place(key)
        slot = self._slots.pop(key, None)
        if slot is not None:
            self._decoder.close(slot)
            self._free.append(slot)

    def close_all(self) -> None:
        for key in [*self._slots, *self._begins]:
            self.close(key)


class Stream:
    """A conversation as far as the decoder needs it (`amqpsniff.tcp.Conversation`).

    It has the public attributes of that class except sequence numbers and captured packets.
    """

    def __init__(self, key: Key, began: bool) -> None:
        self.connection_id = connection_id_of(key)
        ends: tuple[str | None, str | None] = (None, None) if isinstance(key, str) else key
        self.a, self.b = ends
        self.ports = (0, AMQP_PORT)  # the caller says that direction 1 is the server's
        self.syn_seen = began
        self.first_packet_number: int | None = None
        self.last_packet_number: int | None = None
        self.start_ns = self.end_ns = NO_TIME
        self.ended = self.ended_by = None  # the end of the TCP connection is unknown
        self.ended_ns, self.ended_packet_number = -1, 0
        self.reset_by_stranger = self.end_acknowledged = False
        self.unreachable = -1
        self.over_ns = self.reset_ns = self.round_trip_ns = self.connecting_ns = -1
        self.syn_ns, self.syns_again, self.answers_again = NO_TIME, 0, 0
        self.packets, self.octets, self.gaps, self.lost_bytes = [0, 0], [0, 0], [0, 0], [0, 0]
        self.first_retransmissions = self.resent = self.unarrived = (None, None)
        self.resent_bytes = (0, 0)
        self.retransmissions = self.copies = self.cut_bytes = self.awaited_acks = self.acked = (
            0,
            0,
        )
        self.owed = self.unacknowledged = (False, False)  # the caller gives every byte at once
        self.last_times_ns, self.last_packet_numbers = [NO_TIME, NO_TIME], [0, 0]
        self.impaired = True  # it may be: the counts above tell
        self.zero_windows, self.tls = (None, None), None
        self.starts = (0, 0)  # bytes that are given are of a connection

    @property
    def holes(self) -> tuple[int, int]:
        """Number of holes, and the bytes in them."""
        return sum(self.gaps), sum(self.lost_bytes)

    def saw(self, sender: int, octets: int, number: int, ts_ns: int) -> None:
        self.packets[sender] += number != self.last_packet_number  # a call may come in pieces
        self._at(number, ts_ns)
        self.last_times_ns[sender], self.last_packet_numbers[sender] = ts_ns, number
        self.octets[sender] += octets

    def _at(self, number: int, ts_ns: int) -> None:
        if self.first_packet_number is None:
            self.first_packet_number, self.start_ns = number, ts_ns
        self.last_packet_number, self.end_ns = number, ts_ns

    def lost(self, sender: int, octets: int, number: int, ts_ns: int) -> None:
        self._at(number, ts_ns)
        self.gaps[sender] += 1
        self.lost_bytes[sender] += octets
