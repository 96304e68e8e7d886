"""Frames of megabytes in segments in any order: rows are the frames that pamqp finds in the bytes.

Several channels say their contents among one another; segments of both directions are cut anywhere,
captured late, sent again as they were or cut otherwise.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from tests.tcp.wire import Packet, Talk
from tests.tls.talk import write

pamqp_frame = pytest.importorskip("pamqp.frame")

from pamqp import body, commands, header, heartbeat  # noqa: E402

FRAME_MAX = 16 * 1024 * 1024
LONGEST_SEGMENT = 60_000
NAMES = {"ContentHeader": "header", "ContentBody": "body", "Heartbeat": "heartbeat"}

Frame = tuple[str, int, int, int, str | None]
"""Sender, stream offset, channel, size of the payload, and a method's name or the frame's kind."""


def content(choose: random.Random, side: int, most: int) -> tuple[list[Any], bytes]:
    """The frames of a message of up to `most` bytes, and its body."""
    octets = choose.randbytes(choose.choice((0, 1, 200, choose.randrange(most), most)))
    method: Any = commands.Basic.Publish(exchange="e", routing_key="k")
    if side:
        method = commands.Basic.Deliver("c", choose.randrange(1, 2**40), False, "e", "k")
    properties = commands.Basic.Properties(content_type="x", headers={"n": choose.randrange(99)})
    pieces = [octets] if choose.random() < 0.6 else _cut(choose, octets, most)
    bodies = [body.ContentBody(piece) for piece in pieces if piece]
    return [method, header.ContentHeader(0, len(octets), properties), *bodies], octets


def _cut(choose: random.Random, octets: bytes, most: int) -> list[bytes]:
    pieces, at = [], 0
    while at < len(octets):
        size = choose.choice((1, 7, 100, choose.randrange(1, most)))
        if len(pieces) > 6:
            size = len(octets)
        pieces.append(octets[at : at + size])
        at += size
    return pieces


def stream(choose: random.Random, side: int, most: int) -> tuple[bytes, Counter[str]]:
    """What a side says after the greetings, on four channels at once; hashes of its bodies."""
    hashes: Counter[str] = Counter()
    waiting: dict[int, list[Any]] = {}
    for channel in range(1, 5):
        waiting[channel] = []
        for _ in range(choose.randrange(1, 4)):
            frames, octets = content(choose, side, most)
            waiting[channel] += frames
            hashes[hashlib.sha256(octets).hexdigest()] += 1
    said = []
    while waiting:
        channel = choose.choice(list(waiting))
        said.append(pamqp_frame.marshal(waiting[channel].pop(0), channel))
        if not waiting[channel]:
            del waiting[channel]
        if choose.random() < 0.1:
            said.append(pamqp_frame.marshal(heartbeat.Heartbeat(), 0))
    return b"".join(said), hashes


def greetings() -> list[tuple[int, bytes]]:
    """Everything up to channel.open-ok on four channels."""
    tuned = {"channel_max": 2047, "frame_max": FRAME_MAX, "heartbeat": 60}
    told: list[tuple[int, int, Any]] = [
        (1, 0, commands.Connection.Start()),
        (0, 0, commands.Connection.StartOk({}, "PLAIN", "\0a\0b", "en_US")),
        (1, 0, commands.Connection.Tune(**tuned)),
        (0, 0, commands.Connection.TuneOk(**tuned)),
        (0, 0, commands.Connection.Open("/")),
        (1, 0, commands.Connection.OpenOk()),
    ]
    for channel in range(1, 5):
        told.append((0, channel, commands.Channel.Open()))
        told.append((1, channel, commands.Channel.OpenOk()))
    first = (0, b"AMQP\0\0\x09\x01")
    return [first, *((side, pamqp_frame.marshal(one, channel)) for side, channel, one in told)]


def pieces(choose: random.Random, octets: bytes) -> list[tuple[int, bytes]]:
    """A stream in segments, some of them again, or others of the same bytes."""
    longest = choose.choice((1448, 9000, LONGEST_SEGMENT))
    found, at = [], 0
    while at < len(octets):
        size = choose.choice((longest, longest, longest, choose.randrange(1, longest)))
        found.append((at, octets[at : at + size]))
        at += size
        if choose.random() < 0.05:
            begin = choose.randrange(max(0, at - 2 * longest), at)
            found.append((begin, octets[begin : begin + choose.randrange(1, longest)]))
    return [piece for piece in found if piece[0] < len(octets)]


def conversation(
    choose: random.Random, most: int
) -> tuple[list[Packet], list[bytes], Counter[str]]:
    """Packets, the bytes of both directions, and hashes of the bodies."""
    isn = (2**32 - choose.randrange(1, 2 * most), choose.randrange(2**32))
    talk = Talk(isn).hands()
    streams = [b"", b""]
    for side, octets in greetings():
        talk.put(side, octets)
        streams[side] += octets
    begin = [len(octets) for octets in streams]
    hashes: Counter[str] = Counter()
    waiting = []
    for side in (0, 1):
        octets, some = stream(choose, side, most)
        hashes += some
        streams[side] += octets
        waiting.append(pieces(choose, octets)[::-1])
    first = len(talk.packets)
    while any(waiting):
        side = choose.choice([side for side in (0, 1) if waiting[side]])
        at, octets = waiting[side].pop()
        talk.put(side, octets, at=begin[side] + at)
        if choose.random() < 0.3:
            talk.put(1 - side)
    late = [(place + choose.choice((0, 0, 0, 0, 2.5, 6.5)), packet)
            for place, packet in enumerate(talk.packets[first:])]  # fmt: skip
    shuffled = [packet for _, packet in sorted(late, key=lambda pair: pair[0])]
    times = [packet.ts_ns for packet in talk.packets[first:]]
    talk.packets[first:] = [
        packet._replace(ts_ns=ts_ns) for packet, ts_ns in zip(shuffled, times, strict=True)
    ]
    return talk.goodbye().packets, streams, hashes


def as_pamqp_sees_it(streams: list[bytes]) -> Counter[Frame]:
    """The frames of both directions."""
    found: Counter[Frame] = Counter()
    for side, octets in enumerate(streams):
        sender, at, view = ("client", "server")[side], 0, memoryview(octets)
        while at < len(octets):
            size = 8
            if octets[at : at + 4] != b"AMQP":
                size += int.from_bytes(view[at + 3 : at + 7], "big")
            taken, channel, one = pamqp_frame.unmarshal(bytes(view[at : at + size]))
            assert taken == size
            kind = type(one).__name__
            name = NAMES.get(kind) or one.name.lower().replace("ok", "-ok")
            if kind == "ProtocolHeader":
                found[sender, at, channel, 8, "protocol-header"] += 1
            else:
                found[sender, at, channel, size - 8, name] += 1
            at += size
    return found


def as_rows_say(path: Path) -> tuple[Counter[Frame], Counter[str], list[str]]:
    """The same of the tables of a capture: frames, hashes of bodies, codes of findings."""
    capture = amqpsniff.open(path, body_sha256=True)
    frames = Counter(
        (row["sender"], row["stream_offset"], row["channel"], row["size"],
         (row["method"] or row["frame_type"]).lower())
        for row in capture.table("frames").to_pylist()
    )  # fmt: skip
    hashes = Counter(row["body_sha256"] for row in capture.table("messages").to_pylist())
    return frames, hashes, [row["code"] for row in capture.table("findings").to_pylist()]


LOST = {"tcp-gap", "tcp-overlap-conflict", "tcp-buffer-limit", "frame-too-large", "frame-end-wrong"}


@pytest.mark.parametrize("seed", range(4))
def test_large_frames_in_any_segments(seed: int, tmp_path: Path) -> None:
    packets, streams, hashes = conversation(random.Random(seed), 400_000)
    frames, told, codes = as_rows_say(write(tmp_path / "large.pcap", packets))
    assert frames == as_pamqp_sees_it(streams)
    assert told == hashes
    assert not LOST.intersection(codes)
