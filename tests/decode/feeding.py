"""Bytes into a decoder without packets, and packets into a pipeline, for the tests of decoding.

A `Stream` is one half-stream of a capture as reassembly gave it. `Feeder` and `run_…` decode once;
`Runs` decodes thousands of times and compares rows as strings, for exhaustive loops.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from amqpsniff.capture import PacketBatch, read
from amqpsniff.decode.decoder import Decoder
from amqpsniff.findings import Finding, FindingLog
from amqpsniff.options import Options
from amqpsniff.packs import PackFile, load
from amqpsniff.pipeline import Pipeline
from amqpsniff.plan import Plan
from amqpsniff.tables.batches import Maker
from amqpsniff.tcp.codes import DATA, GAP
from amqpsniff.tcp.reassembly import Reassembler
from amqpsniff.tcp.stream import StreamBatch

CLIENT, SERVER = 0, 1
Row = dict[str, Any]
_PLANNED = {"tables", "columns", "claims", "meanings"}
_FRAMES, _MESSAGES = Maker("frames"), Maker("messages")


@dataclass
class Talk:
    """A conversation as the decoder needs it; direction 0 is the client's."""

    syn_seen: bool = True
    a: str = "10.0.0.1:40000"
    b: str = "10.0.0.2:5672"
    ports: tuple[int, int] = (40000, 5672)
    connection_id: str = "00000000000000aa"
    ended: str | None = None
    ended_by: int | None = None
    tls: None = None
    starts: tuple[int, int] = (0, 0)
    packets: tuple[int, int] = (1, 1)
    start_ns: int = 0
    serial: int = 0


class Decoded:
    """What a decoder made: frames and messages as rows, findings, and columns to compare."""

    def __init__(self, taken: tuple[Any, ...], findings: list[Finding]) -> None:
        self.taken = taken
        self.findings = findings
        self.count: int = taken[0].rows

    @property
    def codes(self) -> list[str]:
        """Codes of the findings, each once, sorted."""
        return sorted({finding.code for finding in self.findings})

    @property
    def errors(self) -> list[Finding]:
        """Findings that say something is wrong with the traffic."""
        return [finding for finding in self.findings if finding.kind.severity == "error"]

    def frames(self) -> list[Row]:
        """The frames table; arguments stay JSON text. Gives the columns away: once only."""
        return _FRAMES.make(self.taken).to_pylist()

    def messages(self) -> list[Row]:
        """The messages table. Gives the columns away: once only."""
        return _MESSAGES.make(self.taken).to_pylist()


NOT_COMPARED = {
    "capture",
    "packet_number",
    "ts_ns",
    "timestamp",
    "connection_id",
    "client",
    "server",
}
"""Columns that say where a row was seen, and not what it is."""


def joined(batch: pa.RecordBatch, *leave_out: str) -> list[str]:
    """Every row as one string of what it is: the quick way to compare very many rows."""
    columns = [
        pc.fill_null(batch.column(name).cast(pa.string()), "-")
        for name in batch.schema.names
        if name not in NOT_COMPARED
        and name not in leave_out
        and not pa.types.is_binary(batch.schema.field(name).type)
    ]
    return pc.binary_join_element_wise(*columns, "|").to_pylist()


class Run(NamedTuple):
    """One of many runs: frames as (offset, end, what it is), messages, error findings."""

    frames: list[tuple[int, int, str]]
    messages: list[str]
    errors: list[Finding]


def _decoder(log: FindingLog, **options: Any) -> Decoder:
    """A decoder with a `Plan`, and `Options`."""
    plan = Plan(**{name: options.pop(name) for name in _PLANNED & options.keys()})
    chosen = Options(**options)
    packs = load(*map(PackFile.read, chosen.packs)) if plan.reads_packs else None
    return Decoder(log, plan, chosen, packs)


class Runs:
    """Very many short runs in one decoder: each a conversation of its own on slot 0."""

    def __init__(self, **options: Any) -> None:
        self.log = FindingLog()
        self.decoder = _decoder(self.log, **options)
        self.count = 0

    def add(self, pieces: Iterable[tuple[int, bytes | int]], syn_seen: bool = False) -> None:
        """One run: (direction, bytes), or (direction, number of bytes missing)."""
        talk = Talk(syn_seen, connection_id=f"{self.count:016x}")
        self.count += 1
        self.decoder.use_capture("octets")
        self.decoder.open(0, talk)
        for direction, piece in pieces:
            if isinstance(piece, int):
                self.decoder.gap(0, direction, piece, 1, 1000)
            else:
                self.decoder.data(0, direction, piece, 1, 1000)
        self.decoder.close(0)

    def take(self) -> list[Run]:
        """What became of each run, in the order in which they were added."""
        runs = [Run([], [], []) for _ in range(self.count)]
        taken = self.decoder.take()
        batch = _FRAMES.make(taken)
        ids = batch.column("connection_id").to_pylist()
        offsets = batch.column("stream_offset").to_pylist()
        sizes = batch.column("size").to_pylist()
        kinds = batch.column("frame_type").to_pylist()
        texts = joined(batch, "stream_offset")
        for id, offset, size, kind, text in zip(ids, offsets, sizes, kinds, texts, strict=True):
            end = offset + size + (0 if kind == "protocol-header" else 8)
            runs[int(id, 16)].frames.append((offset, end, text))
        batch = _MESSAGES.make(taken)
        for id, text in zip(batch.column("connection_id").to_pylist(), joined(batch), strict=True):
            runs[int(id, 16)].messages.append(text)
        for finding in self.log.take():
            if finding.kind.severity == "error":
                runs[int(finding.connection_id or "0", 16)].errors.append(finding)
        self.count = 0
        return runs


class Feeder:
    """A decoder of conversations on slots 0, 1, … that is fed bytes by hand."""

    def __init__(self, *talks: Talk, **options: Any) -> None:
        self.log = FindingLog()
        self.decoder = _decoder(self.log, **options)
        self.decoder.use_capture("octets")
        for slot, talk in enumerate(talks or (Talk(),)):
            self.decoder.open(slot, talk)

    def data(self, direction: int, octets: bytes, number: int = 1, slot: int = 0) -> Feeder:
        """The next bytes of one direction."""
        self.decoder.data(slot, direction, octets, number, number * 1000)
        return self

    def gap(self, direction: int, missing: int, number: int = 1, slot: int = 0) -> Feeder:
        """Bytes of one direction that are missing."""
        self.decoder.gap(slot, direction, missing, number, number * 1000)
        return self

    def finish(self) -> Decoded:
        """End every conversation."""
        self.decoder.finish("octets")
        return Decoded(self.decoder.take(), self.log.take())


def decode(
    octets: bytes, direction: int = CLIENT, syn_seen: bool = True, **options: Any
) -> Decoded:
    """One half-stream, fed whole."""
    return Feeder(Talk(syn_seen), **options).data(direction, octets).finish()


@dataclass
class Stream:
    """One half-stream of a capture.

    `pieces` are (packet number, bytes) in order; there are no holes in the captures used.
    """

    capture: str
    client: str
    direction: int
    pieces: list[tuple[int, bytes]] = field(default_factory=list)

    @property
    def octets(self) -> bytes:
        """All bytes."""
        return b"".join(octets for _, octets in self.pieces)

    def __str__(self) -> str:
        return f"{self.capture}-{self.client}-{('client', 'server')[self.direction]}"


def _events(path: Path) -> Iterator[StreamBatch]:
    reassembler = Reassembler()
    for batch in read([path]):
        yield reassembler.feed(batch)
    yield reassembler.finish()


def events_of(path: Path) -> tuple[list[Stream], list[tuple[int, int]]]:
    """Half-streams of a capture (client's at even indices), and its holes as (stream, bytes)."""
    streams: dict[tuple[str, int], Stream] = {}
    holes: list[tuple[int, int]] = []
    for events in _events(path):
        for row in range(events.count):
            if events.kind[row] not in (DATA, GAP):
                continue
            half = events.half[row]
            talk = events.conversations[half >> 1]
            assert talk is not None
            for direction in (0, 1):
                streams.setdefault(
                    (talk.connection_id, direction), Stream(path.stem, talk.a, direction)
                )
            stream = streams[talk.connection_id, half & 1]
            if events.kind[row] == GAP:
                holes.append((half, events.length[row]))
            else:
                stream.pieces.append((events.number[row], events.payload(row)))
    return list(streams.values()), holes


@cache
def streams_of(path: Path) -> list[Stream]:
    """Half-streams of a capture without holes, in pairs: what the originator sent, the answers."""
    streams, holes = events_of(path)
    assert not holes
    return streams


def packets_of(path: Path) -> list[tuple[int, int, bytes, int, int]]:
    """(number, ts_ns, bytes, original length, link type) of every packet of a capture."""
    return [
        (
            batch.number[row],
            batch.ts_ns[row],
            batch.packet(row),
            batch.original[row],
            batch.link_type[row],
        )
        for batch in read([path])
        for row in range(batch.begin, batch.end)
    ]


def batch_of(packets: Sequence[tuple[int, int, bytes, int, int]], name: str) -> PacketBatch:
    """One batch of packets, which keep their numbers."""
    octets = b"".join(packet[2] for packet in packets)
    lengths = [len(packet[2]) for packet in packets]
    starts, at = array("q"), 0
    for length in lengths:
        starts.append(at)
        at += length
    return PacketBatch(
        name,
        octets,
        0,
        len(packets),
        array("q", [packet[0] for packet in packets]),
        array("q", [packet[1] for packet in packets]),
        starts,
        array("q", lengths),
        array("q", [packet[3] for packet in packets]),
        array("q", [packet[4] for packet in packets]),
    )


def run_packets(
    packets: Sequence[tuple[int, int, bytes, int, int]], name: str = "packets", **options: Any
) -> Decoded:
    """Packets through the whole way."""
    pipeline = Pipeline(Options(**options))
    pipeline.feed(batch_of(packets, name))
    pipeline.finish()
    return Decoded(pipeline.take(), pipeline.findings())


def run_file(path: Path, **options: Any) -> Decoded:
    """A capture file through the whole way."""
    pipeline = Pipeline(Options(**options))
    captures = read([path])
    for batch in captures:
        pipeline.feed(batch)
    pipeline.finish()
    return Decoded(pipeline.take(), [*pipeline.findings(), *captures.findings])
