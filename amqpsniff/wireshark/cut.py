"""The packets that belong to a part of the traffic.

Connections, times and packet numbers choose packets as they are, those without AMQP in them too:
handshakes, acknowledgements, ends. All other filters choose frames, and the packets in which they
lie; a message brings its content and the packet that decided its outcome. A conversation over TLS
is always whole: without its handshake nothing of it can be read.

Rows say where a frame lies in its half-stream, so a further reading finds the packets of these
bytes. A segment that came in IP fragments is of the packet that completed it, so where there are
any, one more reading finds the packets of the others. The last reading copies.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import IO, TYPE_CHECKING, Any

from amqpsniff.analysis.selection import OF_CONNECTIONS, MessagePositions, Selection
from amqpsniff.capture import PacketBatch
from amqpsniff.capture.packets import NO_TIME
from amqpsniff.errors import UsageError
from amqpsniff.findings.catalogue import kind_of
from amqpsniff.packet_numbers import NUMBER_BITS, NUMBER_MASK
from amqpsniff.spec.amqp010 import overhead_bytes
from amqpsniff.tables.values import values
from amqpsniff.tcp.codes import A_HIGH, DATA, PORTS, SEGMENT_FIELDS
from amqpsniff.tcp.fragments import Fragments
from amqpsniff.tcp.headers import HeaderParser
from amqpsniff.tcp.limits import Limits
from amqpsniff.wireshark.copying import PacketCopier

if TYPE_CHECKING:
    from amqpsniff.tcp.stream import StreamBatch

_CONNECTIONS = (
    "connection_id", "client", "server", "start_ns", "tls_version",
    "first_packet_number", "last_packet_number",
)  # fmt: skip
_FRAMES = (
    "capture", "packet_number", "connection_id", "client", "server", "sender", "channel",
    "stream_offset", "frame_type", "size", "method", "delivery_tag", "arguments",
)  # fmt: skip
_MESSAGES = (
    "capture", "connection_id", "sender", "channel", "packet_number", "method", "delivery_tag",
    "outcome_packet_number",
)  # fmt: skip
_FINDINGS = ("code", "capture", "connection_id", "packet_number", "last_packet_number",
             "cause_packet_number")  # fmt: skip
_HALF = (1 << 64) - 1

Conversation = frozenset[tuple[int, int]]
"""Address and port of both ends."""


@dataclass
class Cut:
    """The result of writing.

    Attributes:
        packets: Packets written.
        read: Packets read in the last reading.
        written_bytes: Bytes written.
        connections: Connections in the output, whole or in part.
    """

    packets: int = 0
    read: int = 0
    written_bytes: int = 0
    connections: int = 0


class PacketNumbers:
    """A set of packets, a bit for each packet of a capture."""

    def __init__(self) -> None:
        self._bits: dict[str, bytearray] = {}

    def add(self, capture: str, number: int | None) -> None:
        """Take a packet in; None is ignored."""
        if number is None:
            return
        bits = self._bits.setdefault(capture, bytearray())
        index = number >> 3
        if index >= len(bits):
            bits.extend(bytes(index + 1 - len(bits) + len(bits) // 2))
        bits[index] |= 1 << (number & 7)

    def __contains__(self, packet: tuple[str, int]) -> bool:
        bits = self._bits.get(packet[0], b"")
        index = packet[1] >> 3
        return index < len(bits) and bool(bits[index] >> (packet[1] & 7) & 1)

    def __bool__(self) -> bool:
        return bool(self._bits)


class _Spans:
    """Places of frames in half-streams, in the order in which they were sent."""

    def __init__(self) -> None:
        self._halves: dict[tuple[str, str], tuple[list[int], list[int]]] = {}

    def add(self, half: tuple[str, str], first: int, last: int) -> None:
        """Add bytes; those that follow the last ones extend their span."""
        starts, ends = self._halves.setdefault(half, ([], []))
        if ends and starts[-1] <= first <= ends[-1]:
            ends[-1] = max(ends[-1], last)
        else:
            starts.append(first)
            ends.append(last)

    def meets(self, half: tuple[str, str], first: int, last: int) -> bool:
        """True if any of these bytes is in a span."""
        starts, ends = self._halves.get(half, ((), ()))
        at = bisect_right(starts, last - 1) - 1
        return at >= 0 and ends[at] > first


def cut(
    capture: Any,
    sink: IO[bytes],
    part: Selection,
    *,
    findings: Collection[str] = (),
    whole: bool = False,
) -> Iterator[Cut]:
    """Write the packets of a part of a capture as pcapng to a binary file.

    Gives the progress, always the same object, from time to time and at the end. The input is read
    two to five times. Raises UsageError for a capture that can be read only once, for an unknown
    code, and for an option that makes no sense.

    Args:
        capture: The `amqpsniff.passes.Passes` over it.
        sink: What is written to.
        part: The part to write; its `where` is about frames, or about findings if these choose.
        findings: Codes of findings: their packets are written, and those of their causes.
        whole: Whole conversations of all that is chosen.
    """
    if capture.once:
        raise UsageError(
            f"cut reads captures several times; save {capture.once[0]} to a file first"
        )
    chosen = _Chosen(part, frozenset(kind_of(code).code for code in findings), whole=whole)
    chosen.find(capture)
    done = Cut()
    yield done
    span = chosen.span(capture)
    if capture.totals.counters["fragments"]:
        _find_fragments(capture, chosen, span)
    conversations = _Conversations(chosen.starts)
    written: set[str | None] = {None}
    with capture.packets() as packets:
        copier = PacketCopier(packets, sink)
        batch = None
        for batch in packets:
            copier.begin(batch)
            of_rows = conversations.of(batch)
            for row in range(batch.begin, batch.end):
                if chosen.wants(batch, row, of_rows.get(row), span):
                    copier.write(batch, row)
                    written.add(of_rows.get(row))
            done.read += len(batch)
            done.connections = len(written) - 1
            done.packets, done.written_bytes = copier.packets, copier.octets
            yield done
        copier.finish(batch, counts=False)
    done.written_bytes = copier.octets
    yield done


def _find_fragments(capture: Any, chosen: _Chosen, span: Span) -> None:
    """Choose the fragments of chosen segments too."""
    joined = _JoinedFragments()
    conversations = _Conversations(chosen.starts, joined)
    with capture.packets() as packets:
        for batch in packets:
            for row in range(batch.begin, batch.end):
                joined.at = batch.number[row]
                joined.numbers = ()
                of_rows = conversations.of(batch, row)
                if joined.numbers and chosen.wants(batch, row, of_rows.get(row), span):
                    for number in joined.numbers:
                        chosen.numbers.add(batch.capture, number)


class _JoinedFragments:
    """`Fragments` that note the packets of each datagram.

    Attributes:
        at: The number of the packet that is read.
        numbers: Those of all fragments before it, once it completes their datagram.
    """

    def __init__(self) -> None:
        self.at = 0
        self.numbers: tuple[int, ...] = ()
        self._fragments = Fragments(Limits())
        self._waiting: OrderedDict[Any, tuple[int, ...]] = OrderedDict()

    def add(self, key: Any, *fragment: Any) -> Any:
        """Take one fragment, as `Fragments.add` does."""
        numbers = (*self._waiting.pop(key, ()), *self.numbers, self.at)
        datagram = self._fragments.add(key, *fragment)
        if datagram is None:
            self._waiting[key] = numbers[-_MAX_PIECES:]
            self.numbers = ()
            while len(self._waiting) > _MAX_PACKETS:
                self._waiting.popitem(last=False)
        else:
            self.numbers = numbers
        return datagram


_MAX_PIECES, _MAX_PACKETS = Limits().fragments_per_packet, Limits().fragmented_packets

Span = tuple["int | None", "int | None", "tuple[int, int] | None"]
"""First nanosecond, the nanosecond after the last, first and last packet number."""


def _within(batch: PacketBatch, row: int, span: Span) -> bool:
    from_ns, to_ns, numbers = span
    ts_ns, number = batch.ts_ns[row], batch.number[row]
    if numbers is not None and not numbers[0] <= number <= numbers[1]:
        return False
    if ts_ns == NO_TIME:
        return from_ns is None and to_ns is None
    return (from_ns is None or ts_ns >= from_ns) and (to_ns is None or ts_ns < to_ns)


class _Chosen:
    """The choice of packets.

    Attributes:
        connections: Ids of connections whose packets are written, those within the span.
        always: Those of them that are written whole.
        numbers: Packets that are written besides.
        starts: Of every conversation, its connections: (start, id), the earliest first.
    """

    def __init__(self, part: Selection, codes: frozenset[str], *, whole: bool) -> None:
        self.connections: set[str] = set()
        self.whole_connections: set[str] = set()
        self.numbers = PacketNumbers()
        self.starts: dict[Conversation, list[tuple[int, str]]] = {}
        self._part = part
        self._codes = codes
        self._whole = whole
        self._messages: set[tuple[Any, ...]] = set()
        self._spans = _Spans()
        self._touched: set[str] = set()
        self._encrypted: set[str] = set()
        self._numbers: dict[str, tuple[int, int]] = {}

    def find(self, capture: Any) -> None:
        """Read the capture as often as needed to choose the packets."""
        if self._codes:
            self._find_findings(capture)
        elif self._plain() is not None:
            self._find_connections(capture)
        else:
            self._find_frames(capture)
        if self._whole:
            self.connections |= self._touched
            self.whole_connections |= self.connections
        else:
            self.whole_connections |= self._touched & self._encrypted
            self.connections |= self.whole_connections
        if self._touched - self.whole_connections:
            self._find_packets(capture)

    def wants(self, batch: PacketBatch, row: int, connection: str | None, span: Span) -> bool:
        """True if a packet is to be written; `connection` is None for other traffic."""
        return (batch.capture, batch.number[row]) in self.numbers or (
            connection in self.connections
            and (connection in self.whole_connections or _within(batch, row, span))
        )

    def span(self, capture: Any) -> Span:
        """The times and numbers between which packets of connections are written."""
        plain = None if self._codes else self._plain()
        if plain is None or self._whole:
            return None, None, None
        return (*plain.span(capture.started), plain.packets())

    def _plain(self) -> Selection | None:
        """The part, where it chooses packets as they are; None where it chooses frames."""
        part = self._part if self._whole else replace(self._part, packet=None)
        other_filters = set(part.names()) - {*OF_CONNECTIONS}
        return None if other_filters or part.where or part.channel is not None else self._part

    def _find_connections(self, capture: Any) -> None:
        self._take_connections(capture, replace(self._part, packet=None), ())
        first_number, last_number = self._part.packets() or (0, _HALF)
        for key, (first, last) in self._numbers.items():
            if first <= last and (
                first > last_number or last < first_number
            ):  # else from file to file
                self.connections.discard(key)
        self.whole_connections |= self.connections & self._encrypted

    def _find_frames(self, capture: Any) -> None:
        self._take_connections(capture, Selection(), ("frames",))
        self.connections = set()

    def _find_findings(self, capture: Any) -> None:
        (rows,) = capture.row_filters(self._part, "findings")
        columns = {*_FINDINGS, *rows.columns}
        for _, batch in capture.tables("findings", encoded=True, columns={"findings": columns}):
            for code, name, connection, *numbers in zip(
                *(values(rows.of(batch), column) for column in _FINDINGS), strict=True
            ):
                if code in self._codes:
                    for number in numbers:
                        self.numbers.add(name, number)
                    self._touched.update((connection,) if connection is not None else ())
        touched = set(self._touched)
        self._find_frames(capture)
        self._touched |= touched

    def _take_connections(self, capture: Any, part: Selection, tables: tuple[str, ...]) -> None:
        """Read connections and choose those of the part; with `tables` also read the frames."""
        (row_filter,) = capture.row_filters(part, "connections")
        frames = (
            capture.row_filters(self._part, "frames")[0] if tables and not self._codes else None
        )
        columns = {"connections": {*_CONNECTIONS, *row_filter.columns}}
        if tables:
            columns["frames"] = {*_FRAMES, *(frames.columns if frames is not None else ())}
        positions = MessagePositions()
        for table, batch in capture.tables("connections", *tables, encoded=True, columns=columns):
            if table == "frames":
                self._take_frames(batch, frames, positions)
                continue
            for key, client, server, start_ns, tls, *numbers in zip(
                *(values(batch, name) for name in _CONNECTIONS), strict=True
            ):
                ends = frozenset((_end(client), _end(server)))
                self.starts.setdefault(ends, []).append((start_ns or 0, key))
                self._encrypted.update((key,) if tls is not None else ())
                first, last = numbers
                self._numbers[key] = first or 0, last or _HALF
            self.connections.update(values(row_filter.of(batch), "connection_id"))
        for starts in self.starts.values():
            starts.sort()

    def _take_frames(self, batch: Any, row_filter: Any, positions: MessagePositions) -> None:
        """Remember the chosen frames, and the messages that they belong to."""
        if row_filter is None:
            packets = zip(values(batch, "capture"), values(batch, "packet_number"), strict=True)
            mask = [packet in self.numbers for packet in packets]
        else:
            mask = row_filter.mask(batch).to_pylist()
        rows = zip(*(values(batch, name) for name in _FRAMES), strict=True)
        for is_chosen, message, row in zip(mask, positions.of(batch), rows, strict=True):
            if message is not None and is_chosen:
                self._messages.add(message)
            if not is_chosen and (message is None or message not in self._messages):
                continue
            name, number, connection, client, server, sender, _, offset, kind, size, *_ = row
            self._touched.add(connection)
            self.numbers.add(name, number)
            end = client if sender != "server" else server
            length = size + overhead_bytes(kind)
            self._spans.add((connection, end or ""), offset, offset + length)

    def _find_packets(self, capture: Any) -> None:
        """Find the packets of the frames, and what decided the outcome of the messages."""
        positions = MessagePositions()
        for _, batch in capture.tables(
            "messages", encoded=True, columns={"messages": _MESSAGES}, on_stream=self._mark
        ):
            keys = positions.of(batch)
            names, outcomes = values(batch, "capture"), values(batch, "outcome_packet_number")
            for key, name, outcome in zip(keys, names, outcomes, strict=True):
                if key in self._messages:
                    self.numbers.add(name, outcome)

    def _mark(self, events: StreamBatch) -> None:
        """Take in the packets that carried bytes of the frames."""
        for row in range(events.count):
            if events.kind[row] != DATA:
                continue
            slot = events.half[row]
            conversation = events.conversations[slot >> 1]
            half = (conversation.connection_id, conversation.b if slot & 1 else conversation.a)
            first = events.stream_offset[row]
            if self._spans.meets(half, first, first + events.length[row]):
                number = events.number[row]
                self.numbers.add(events.captures[number >> NUMBER_BITS], number & NUMBER_MASK)


class _Conversations:
    """Tells which connection the packets of a batch belong to."""

    def __init__(
        self, starts: dict[Conversation, list[tuple[int, str]]], fragments: Any = None
    ) -> None:
        self._starts = starts
        self._parser = HeaderParser(None, fragments or Fragments(Limits()))
        self._by_key: dict[tuple[int, ...], list[tuple[int, str]]] = {}

    def of(self, batch: PacketBatch, row: int | None = None) -> dict[int, str]:
        """The id of the connection by row, of all rows or of one; other rows are left out."""
        ids: dict[int, str] = {}
        extra: list[bytes] = []
        begin, end = (batch.begin, batch.end) if row is None else (row, row + 1)
        count = self._parser.parse(batch, begin, end, extra)
        rows: Any = self._parser.segments() if count else ()
        for at in range(0, count * SEGMENT_FIELDS, SEGMENT_FIELDS):
            key = tuple(rows[at + A_HIGH : at + PORTS + 1])
            starts = self._by_key.get(key)
            if starts is None:
                starts = self._by_key[key] = self._starts.get(_ends(key), [])
            if starts:
                row = rows[at]
                ids[row] = _latest(starts, batch.ts_ns[row])
        return ids


def _latest(starts: list[tuple[int, str]], ts_ns: int) -> str:
    """The connection of these ends that was the last to begin, at a time."""
    at = len(starts) - 1
    while at > 0 and starts[at][0] > ts_ns:
        at -= 1
    return starts[at][1]


def _ends(key: Iterable[int]) -> Conversation:
    a_high, a_low, b_high, b_low, ports = key
    address = (a_high & _HALF) << 64 | a_low & _HALF
    other_address = (b_high & _HALF) << 64 | b_low & _HALF
    return frozenset(((address, ports >> 16 & 0xFFFF), (other_address, ports & 0xFFFF)))


def _end(name: str | None) -> tuple[int, int]:
    """Address and port of `address:port`; the address is 0 without one."""
    host, _, port = (name or "").rpartition(":")
    try:
        return int(ip_address(host.strip("[]").partition("%")[0])), int(port)
    except ValueError:
        return -1, 0
