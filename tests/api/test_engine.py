"""The engine that is fed by hand: bytes in pieces of any size, packets, ends, and wrong calls."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from amqpsniff.engine import connection_id_of
from amqpsniff.errors import UsageError
from amqpsniff.limits import Limits
from amqpsniff.tables.schema import schema_of
from tests.conftest import SAMPLES
from tests.decode.feeding import joined, packets_of, streams_of
from tests.decode.script import OPENING, method, publish
from tests.encoder import HEARTBEAT_FRAME, body, header
from tests.thorough import some

Piece = tuple[str, bytes]
WAYS = ("client", "server")
ENDS = ("10.0.0.1:40000", "10.0.0.2:5672")
CALLS = (
    "last_packet_number", "response_packet_number", "outcome_packet_number",
    "published_packet_number", "request_packet_number", "count",
)  # fmt: skip
"""Columns that number calls, or count them."""

TABLES = ("frames", "messages", "findings")


def exchange(name: str, octets: int = 1 << 30) -> list[Piece]:
    """What was sent on the first connection of a capture, in the order of packets."""
    pair = streams_of(SAMPLES / name)[:2]
    pieces = [
        (number, WAYS[stream.direction], data) for stream in pair for number, data in stream.pieces
    ]
    return [(way, data) for _, way, data in sorted(pieces)][:octets]


def rows_of(pieces: Iterable[Piece], **options: Any) -> dict[str, list[str]]:
    """Rows of every table, without the calls that they came in."""
    given = amqpsniff.Engine(bodies=True, body_sha256=True, **options)
    for way, octets in pieces:
        given.feed_bytes(ENDS, way, octets)
    given.finish()
    found = {name: given.take(name) for name in TABLES}
    rows = {name: joined(batch, *CALLS) + bodies(batch) for name, batch in found.items()}
    rows["findings"] = sorted(  # they come in the order of packets, which bytes have not
        re.sub(r"packets? \d+( to \d+)?", "packet #", row) for row in rows["findings"]
    )
    return rows


def bodies(batch: Any) -> list[str]:
    """Bodies of messages, which `joined` leaves out."""
    if "body" not in batch.schema.names:
        return []
    return [repr(octets) for octets in batch.column("body").to_pylist()]


def cut(pieces: list[Piece], at: int) -> Iterator[Piece]:
    """The same bytes with one more cut, behind `at` of them."""
    for way, octets in pieces:
        if 0 < at < len(octets):
            yield way, octets[:at]
            yield way, octets[at:]
        else:
            yield way, octets
        at -= len(octets)


def in_pieces(pieces: list[Piece], size: int) -> Iterator[Piece]:
    """The same bytes so many at a time."""
    for way, octets in pieces:
        for at in range(0, len(octets), size):
            yield way, octets[at : at + size]


SHORT: list[Piece] = [
    ("client", OPENING),
    ("server", method("connection.start", 0, version_major=0, version_minor=9, mechanisms=b"P")),
    ("client", method("connection.start-ok", 0, mechanism=b"PLAIN", response=b"\0app\0secret")),
    ("server", method("connection.tune", 0, channel_max=9, frame_max=4096, heartbeat=9)),
    ("client", method("connection.open", 0, virtual_host=b"/")),
    ("client", publish() + header(1, 60, 6) + body(1, b"abc") + body(1, b"def")),
    ("client", HEARTBEAT_FRAME + publish(2) + header(2, 60, 0)),
    ("server", method("connection.close", 0, reply_code=320, reply_text=b"bye") + HEARTBEAT_FRAME),
]


@pytest.mark.parametrize("first", range(len(SHORT) - 1))
def test_every_split(first: int) -> None:
    """From the begin of a connection everywhere, from inside it in what comes first."""
    pieces = SHORT[first:]
    whole = rows_of(pieces)
    assert whole["frames"]
    for at in some(range(1, sum(len(octets) for _, octets in (pieces[:2] if first else pieces)))):
        assert rows_of(cut(pieces, at)) == whole, at
    for size in (1, 2, 3, 5, 64):
        assert rows_of(in_pieces(pieces, size)) == whole, size


@pytest.mark.parametrize("name", ["bunny.pcapng", "blocked.pcap", "amqplib08.pcap"])
def test_every_split_of_a_capture(name: str) -> None:
    """Every byte of its opening, and some of the rest."""
    pieces = exchange(name)
    whole = rows_of(pieces)
    count = sum(len(octets) for _, octets in pieces)
    choose = random.Random(11)
    for at in some([*range(1, 40), *choose.sample(range(40, count), 60)]):
        assert rows_of(cut(pieces, at)) == whole, at
    for size in (1, 7, 100):
        assert rows_of(in_pieces(pieces, size)) == whole, size


@pytest.mark.parametrize("octets", [b"A", b"AMQ", b"AM" + publish(), b"P" + publish(), b"\r\n\r\n"])
def test_bytes_that_begin_like_a_header(octets: bytes) -> None:
    """Inside a connection they are what is left of a frame, in however many pieces they come."""
    pieces = [("client", octets + publish() + header(1, 60, 0) + HEARTBEAT_FRAME)]
    whole = rows_of(pieces)
    assert len(whole["frames"]) >= 3
    for at in range(1, len(octets) + 20):
        assert rows_of(cut(pieces, at)) == whole, at


def test_a_begin_that_is_all_there_is() -> None:
    """Too little to tell what it is: no row, and a connection that is no AMQP."""
    given = amqpsniff.Engine()
    given.feed_bytes("a", "client", b"AM")
    given.feed_bytes("b", "client", b"PROXY")
    given.close("b")
    given.feed_bytes("c", "client", b"A")
    given.feed_bytes("c", "server", OPENING)
    given.finish()
    assert [row.sender for row in given.frames()] == ["server"]
    assert given.totals.foreign == 2


def test_a_gap_after_a_begin() -> None:
    given = amqpsniff.Engine()
    given.feed_bytes("a", "client", b"AM")
    given.gap("a", "client", 6)
    given.feed_bytes("a", "client", HEARTBEAT_FRAME * 2)
    given.finish()
    assert [row.stream_offset for row in given.frames()] == [8, 16]


def test_rows_say_where_they_are_from() -> None:
    """Ends and an id by the key, numbers by the calls, times as they were given."""
    given = amqpsniff.Engine(capture="tap")
    given.feed_bytes(ENDS, "client", OPENING[:5], 1_000)
    given.feed_bytes(ENDS, "client", OPENING[5:], 2_000)
    given.feed_bytes("other", "client", OPENING)
    first, second = given.frames()
    assert (first.client, first.server) == ENDS
    assert (first.connection_id, first.capture) == (connection_id_of(ENDS), "tap")
    assert (first.packet_number, first.ts_ns, first.sender) == (2, 2_000, "client")
    assert (second.client, second.server, second.ts_ns) == (None, None, None)
    assert (second.packet_number, second.connection_id) == (3, connection_id_of("other"))
    assert list(given.frames()) == []


def test_a_key_used_again() -> None:
    given = amqpsniff.Engine()
    for _ in range(3):
        given.feed_bytes("a", "client", OPENING + HEARTBEAT_FRAME)
        given.close("a")
    given.close("never seen")
    given.finish()
    given.finish()
    assert [row.stream_offset for row in given.frames()] == [0, 8] * 3
    assert given.totals.connections == 3


def test_packets() -> None:
    """Packets one by one are the capture; there are more of them than wait at once."""
    path: Path = SAMPLES / "aiopika_rpc.pcap"
    packets = packets_of(path)
    assert len(packets) > Limits().packets
    given = amqpsniff.Engine(capture=str(path))
    for _, ts_ns, octets, original, link in packets:
        given.feed_packet(octets, ts_ns, link, original)
    given.finish()
    capture = amqpsniff.open(path)
    for name in TABLES:
        every = schema_of(name, everything=True).names
        assert given.take(name).to_pylist() == capture.table(name, columns=every).to_pylist()
    assert given.totals == capture.totals


def test_wrong_calls() -> None:
    given = amqpsniff.Engine()
    with pytest.raises(UsageError, match="no direction `up`"):
        given.feed_bytes("a", "up", b"x")
    with pytest.raises(UsageError, match="cannot be negative"):
        given.gap("a", "client", -1)
    with pytest.raises(UsageError, match="no table"):
        given.take("nothing")
    given.feed_bytes("a", "client", b"x")
    with pytest.raises(UsageError, match="given bytes"):
        given.feed_packet(b"")
    given.finish()
    with pytest.raises(UsageError, match="finished"):
        given.feed_bytes("a", "client", b"x")
    packets = amqpsniff.Engine()
    packets.feed_packet(b"\0" * 60)
    with pytest.raises(UsageError, match="given packets"):
        packets.feed_bytes("a", "client", b"x")
    for options in ({"dialect": "0-10"}, {"table_dialect": "x"}, {"ports": [1 << 16]}):
        with pytest.raises(UsageError):
            amqpsniff.Engine(**options)  # type: ignore[arg-type]


def test_bytes_of_any_buffer() -> None:
    given = amqpsniff.Engine()
    given.feed_bytes("a", "client", bytearray(OPENING))
    given.feed_bytes("a", "client", b"")
    given.feed_bytes("a", "client", memoryview(HEARTBEAT_FRAME))  # type: ignore[arg-type]
    assert [row.frame_type for row in given.frames()] == ["protocol-header", "heartbeat"]


def test_packets_in_a_buffer_that_is_used_again() -> None:
    packets = packets_of(SAMPLES / "pika_mix.pcap")
    given, buffer = amqpsniff.Engine(), bytearray(1 << 16)
    for _, ts_ns, octets, original, link in packets:
        buffer[: len(octets)] = octets
        part = memoryview(buffer)[: len(octets)]
        given.feed_packet(part, ts_ns, link, original)  # type: ignore[arg-type]
    given.finish()
    assert given.take("frames").num_rows == 563


def test_a_packet_that_is_refused_changes_nothing() -> None:
    """Numbers that are none, or too large, and bytes that are none: the rows are as without."""
    packets = packets_of(SAMPLES / "pika_mix.pcap")
    tables = []
    for wrong in (False, True):
        given = amqpsniff.Engine()
        for _, ts_ns, octets, original, link in packets:
            if wrong:
                with pytest.raises(TypeError):
                    given.feed_packet(octets, ts_ns / 1e9)  # type: ignore[arg-type]
                with pytest.raises(TypeError):
                    given.feed_packet("x")  # type: ignore[arg-type]
                with pytest.raises(TypeError):
                    given.feed_packet(octets, ts_ns, "ethernet")  # type: ignore[arg-type]
                with pytest.raises(OverflowError):
                    given.feed_packet(octets, 2**63)
            given.feed_packet(octets, ts_ns, link, original)
        given.finish()
        tables.append(given.take("frames"))
    assert tables[0] == tables[1]


def test_times_of_all_packets() -> None:
    """Packets without a time tell nothing of the first and the last; they need not be in order."""
    given = amqpsniff.Engine()
    assert (given.totals.first_ns, given.totals.last_ns) == (None, None)
    for ts_ns in (None, 70, 50, None):
        given.feed_packet(b"\0" * 60, ts_ns)
    assert (given.totals.first_ns, given.totals.last_ns) == (50, 70)


def test_a_call_of_any_size() -> None:
    """Many bytes at once are decoded in pieces, and are still one call."""
    octets = OPENING + (publish(1) + header(1, 60, 5) + body(1, b"early")) * 1_000
    tables = []
    for size in (1 << 20, 1_000):
        given = amqpsniff.Engine(bodies=True, limits=Limits(piece_bytes=size))
        given.feed_bytes(ENDS, "client", octets)
        given.finish()
        tables.append([given.take(name) for name in ("frames", "messages", "connections")])
    assert tables[0] == tables[1]
    assert tables[0][2].column("client_packets").to_pylist() == [1]


def test_content_that_is_long_in_coming() -> None:
    """A message whose body comes after those of thousands of others, none of them numbered."""
    given = amqpsniff.Engine()
    given.feed_bytes(ENDS, "client", OPENING)
    given.feed_bytes(ENDS, "client", publish(2))
    given.feed_bytes(ENDS, "client", (publish(1) + header(1, 60, 5) + body(1, b"early")) * 5_000)
    given.feed_bytes(ENDS, "client", header(2, 60, 4) + body(2, b"late"))
    given.finish()
    assert len(list(given.messages())) == 5_001
