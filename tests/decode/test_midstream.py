"""A connection that began before the capture: rows from the first frame that is whole, none before.

A half-stream is cut at a byte and only what follows is fed. The frames that lie whole in it are
found; nothing else is, wherever the cut falls.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest

from amqpsniff.spec import METHODS
from tests import encoder
from tests.conftest import REPO, SAMPLES
from tests.decode.feeding import CLIENT, SERVER, Feeder, Runs, Stream, Talk, run_file, streams_of
from tests.decode.script import OPENING, method
from tests.thorough import rounds, some

HOSTILE = REPO / "tests" / "captures" / "hostile"
WINDOW = 6000
"""Bytes fed after a cut: many frames, and few enough for thousands of cuts."""

MAX_LOST = 2
"""Frames after a cut that may be lost while their framing is made sure of."""

LOOK_ALIKE = ("connection.unblocked|", "connection.close-ok|")
"""10/61 of a server in 0-9-1 and in 0-8, which nothing may tell apart: it has no arguments."""

Frame = tuple[int, int, str]


def halves(name: str) -> list[Stream]:
    """Half-streams of a sample that have bytes."""
    return [stream for stream in streams_of(SAMPLES / name) if stream.octets]


def whole_frames(stream: Stream) -> list[Frame]:
    """Every frame of a half-stream, as one who saw its begin reads it."""
    runs = Runs(dialect="0-8" if stream.capture == "amqplib08" else "0-9-1")
    runs.add([(stream.direction, stream.octets)], True)
    return runs.take()[0].frames


def check(stream: Stream, cuts: Iterable[int]) -> None:
    """Nothing is invented, little is lost, nothing is called wrong."""
    octets, frames = stream.octets, whole_frames(stream)
    listed = list(cuts)
    runs = Runs()
    for cut in listed:
        runs.add([(stream.direction, octets[cut : cut + WINDOW])])
    for cut, run in zip(listed, runs.take(), strict=True):
        end = min(len(octets), cut + WINDOW)
        there = [frame for frame in frames if frame[0] >= cut and frame[1] <= end]
        found = [(begin + cut, last + cut, text) for begin, last, text in run.frames]
        if stream.capture == "amqplib08":
            found = [(begin, last, text.replace(*LOOK_ALIKE)) for begin, last, text in found]
        assert [frame for frame in found if frame not in there] == [], f"invented after {cut}"
        assert run.errors == [], f"wrong after {cut}"
        if len(there) > MAX_LOST:
            assert len(there) - len(found) <= MAX_LOST, f"lost after {cut}"


SMALL = ["bunny.pcapng", "blocked.pcap", "amqplib08.pcap"]
LARGE = ["aiopika_rpc.pcap", "node.pcap", "kombu.pcap.gz", "pika_mix.pcap", "php_churn.pcap"]


@pytest.mark.parametrize("name", SMALL)
def test_every_cut(name: str) -> None:
    """The smaller half-streams of a capture, cut before every byte, or before every fifth one."""
    for stream in sorted(halves(name), key=lambda each: len(each.octets))[:2]:
        check(stream, some(range(1, min(len(stream.octets), 4000))))


@pytest.mark.parametrize("name", LARGE)
def test_some_cuts(name: str) -> None:
    """All half-streams, cut here and there."""
    choose = random.Random(3)
    streams = halves(name)
    for stream in choose.sample(streams, min(6, len(streams))):
        places = range(1, len(stream.octets))
        check(stream, choose.sample(places, min(150, len(places))))


@pytest.mark.parametrize("name", SMALL)
def test_packets_do_not_matter(name: str) -> None:
    """The same bytes after a cut give the same rows in pieces of any size."""
    choose = random.Random(5)
    for stream in halves(name)[:2]:
        octets = stream.octets
        for cut in choose.sample(range(1, len(octets)), rounds(80)):
            runs = Runs()
            rest = octets[cut : cut + WINDOW]
            for size in (len(rest), 1, 2, 7, 64, 536):
                pieces = [rest[at : at + size] for at in range(0, len(rest), size)]
                runs.add([(stream.direction, piece) for piece in pieces])
            first, *others = runs.take()
            for other in others:
                assert other.frames == first.frames
                assert other.messages == first.messages


def test_a_capture_that_began_late() -> None:
    """Its rows are rows of the whole capture, all but a few of them."""
    late, whole = (run_file(SAMPLES / name) for name in ("midstream.pcap", "aiopika_rpc.pcap"))
    assert late.codes == ["midstream"]
    numbers = range(120, 559)

    def seen(rows: list[dict[str, object]], first: int) -> list[tuple[object, ...]]:
        columns = ("client", "sender", "channel", "frame_type", "method", "size", "arguments")
        return [
            (int(str(row["packet_number"])) + first, *(row[name] for name in columns))
            for row in rows
        ]

    found = seen(late.frames(), numbers[0] - 1)
    there = [row for row in seen(whole.frames(), 0) if row[0] in numbers]
    assert [row for row in found if row not in there] == []
    assert len(there) - len(found) <= 4 * MAX_LOST


def test_bytes_that_look_like_a_protocol_header() -> None:
    """A frame of type 65 begins with an `A`; that is no reason to see a header."""
    from tests.decode.script import OPENING
    from tests.encoder import HEARTBEAT_FRAME, frame

    runs = Runs()
    runs.add([(0, OPENING + frame(65, 1, bytes(13)) + HEARTBEAT_FRAME * 3)], True)
    (run,) = runs.take()
    assert sum("protocol-header" in text for _, _, text in run.frames) == 1


VALUES: list[dict[str, Any]] = [
    dict.fromkeys("ohlLT", 0) | {"b": False, "s": b"", "S": b"", "F": (), "C": (0, b"")},
    dict.fromkeys("ohlLT", 1) | {"b": True, "s": b"a", "S": b"b", "F": (), "C": (0, b"c")},
]
DIALECT_SHOWN = {
    ("connection.close-ok", "connection.blocked", "120.500"): "0-8",
    ("connection.close-ok", "connection.close", "120.500"): "0-8",
    ("connection.unblocked", "connection.close", "120.500"): None,
    ("connection.unblocked", "connection.blocked", "message.ok"): "0-9",
    ("connection.unblocked", "connection.blocked", "120.500"): "0-9-1",
}
"""How methods read whose numbers stand for different ones in the dialects."""


def shown_dialect(octets: bytes, direction: int) -> tuple[str | None, str]:
    """What the decoder takes these frames' dialect to be, and their sender."""
    feeder = Feeder(Talk(False, ports=(40000, 40001))).data(direction, octets * 3)
    for name, dialect in (
        ("connection.close-ok", "0-8"), ("connection.close", "0-8"), ("message.ok", "0-9"),
    ):  # fmt: skip
        feeder.data(direction, method(name, 0, dialect))
    rows = feeder.finish().frames()
    first, second, third = (str(row["method"]) for row in rows[-3:])
    return DIALECT_SHOWN[first, second, third], rows[-4]["sender"]


@pytest.mark.parametrize("piece", [1, 3, 8, 9, 11, 1000])
def test_only_the_handshake_of_tcp_is_missing(piece: int) -> None:
    """A protocol header without a SYN before it: the answer is read when it comes, not later."""
    start = method("connection.start", 0, version_major=0, version_minor=9)
    feeder = Feeder(Talk(syn_seen=False)).data(CLIENT, OPENING)
    for at in range(0, len(start), piece):
        feeder.data(SERVER, start[at : at + piece], 2)
    feeder.data(CLIENT, method("connection.start-ok", 0), 3)
    rows = feeder.finish().frames()
    assert [row["method"] for row in rows] == [None, "connection.start", "connection.start-ok"]
    assert [row["stream_offset"] for row in rows] == [0, 0, 8]


@pytest.mark.parametrize("dialect", ["0-8", "0-9", "0-9-1"])
def test_no_method_tells_a_wrong_dialect_or_a_wrong_side(dialect: str) -> None:
    """A method whose numbers mean something else elsewhere proves only what all of it allows."""
    for row in METHODS:
        if dialect not in row.dialects or not row.arguments_known or row.content:
            continue
        if row.name == "connection.start":
            continue  # says the version itself
        for values in VALUES:
            given = {each.name: values[each.type] for each in row.arguments}
            direction = SERVER if row.sender == "server" else CLIENT
            octets = encoder.method(row, given, 0 if row.class_id == 10 else 1)
            shown, sender = shown_dialect(octets, direction)
            assert shown in (None, dialect), row
            assert sender in (None, "server" if direction else "client"), row


EMBEDDED = {
    "deliver": method("basic.deliver", consumer_tag=b"ct", delivery_tag=1, exchange=b"ex")
    + encoder.header(1, 60, 3) + encoder.body(1, b"abc"),
    "start-ok": OPENING + method("connection.start", 0, version_minor=9)
    + method("connection.start-ok", 0, mechanism=b"PLAIN"),
}  # fmt: skip
"""What a body holds that carries the traffic of a server, or of both sides."""


@pytest.mark.parametrize("name", EMBEDDED)
@pytest.mark.parametrize("ports", [(40000, 5672), (40000, 40001)])
def test_frames_in_the_body_that_a_capture_begins_in(name: str, ports: tuple[int, int]) -> None:
    """Who is the client and what is wrong is told by the frames behind the body."""
    octets = method("basic.publish", exchange=b"ex", routing_key=b"rk")
    octets += encoder.header(1, 60, 4) + encoder.body(1, b"real")
    rest = b"0" * 9 + EMBEDDED[name] * 3 + b"1" * 3000 + b"\xce"
    for size in (1400, 5000):
        feeder = Feeder(Talk(False, ports=ports, b=f"10.0.0.2:{ports[1]}"))
        for at in range(0, len(rest), size):
            feeder.data(CLIENT, rest[at : at + size], at + 1)
        for number in range(4):
            feeder.data(CLIENT, octets, 10_000 + number)
        feeder.data(SERVER, method("channel.close", reply_code=404), 10_010)
        done = feeder.finish()
        ((peer, _),) = feeder.decoder.take_ended()[0]
        found = [row for row in done.frames() if row["packet_number"] >= 10_000]
        assert [row["method"] for row in found[::3]] == ["basic.publish"] * 4 + ["channel.close"]
        assert {row["sender"] for row in found[:-1]} == {"client"}
        assert {row["client"] for row in found} == {"10.0.0.1:40000"}
        assert not peer.began
        assert done.errors == []


@pytest.mark.parametrize("name", ["mid_deliver", "mid_startok"])
def test_captures_that_begin_in_such_a_body(name: str) -> None:
    done = run_file(HOSTILE / f"{name}.pcap")
    wrong = [each for each in done.errors if (each.packet_number or 0) > 1]
    assert wrong == []
    assert "frame-type-unknown" not in done.codes
    found = [row for row in done.frames() if row["packet_number"] > 1]
    assert [row["method"] for row in found].count("basic.publish") == 5
    assert {row["client"] for row in found} == {"10.0.0.2:40000"}
