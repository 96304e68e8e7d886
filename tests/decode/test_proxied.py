"""A header of the PROXY protocol before the client's first octets: skipped, nothing else moves."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from amqpsniff.decode.preamble import MAX_LINE_BYTES, SIGNATURE, header_bytes
from tests.conftest import SAMPLES
from tests.decode.feeding import CLIENT, SERVER, Feeder, Row, Talk, streams_of
from tests.decode.script import OPENING, findings, publish
from tests.encoder import HEARTBEAT_FRAME, body, header
from tests.thorough import some


def version_2(octets: bytes, command: int = 1, family: int = 0x11) -> bytes:
    """A header of version 2 with these addresses and fields."""
    return SIGNATURE + struct.pack(">BBH", 0x20 | command, family, len(octets)) + octets


ADDRESSES = bytes((192, 0, 2, 1, 192, 0, 2, 2)) + struct.pack(">HH", 40000, 5672)
FIELDS = b"\x02\0\x0bexample.org" + b"\x20\0\x0d\x01\0\0\0\0\x21\0\x05TLS13" + b"AMQP\0\0\x09\x01"
HEADERS = {
    "TCP4": b"PROXY TCP4 192.0.2.1 192.0.2.2 40000 5672\r\n",
    "TCP6": b"PROXY TCP6 2001:db8::1 2001:db8::2 40000 5672\r\n",
    "UNKNOWN": b"PROXY UNKNOWN\r\n",
    "UNKNOWN with more": b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n",
    "longest": b"PROXY UNKNOWN " + b"f" * (MAX_LINE_BYTES - 16) + b"\r\n",
    "2": version_2(ADDRESSES),
    "2 local": version_2(b"", 0, 0),
    "2 with fields": version_2(ADDRESSES + FIELDS),
    "2 largest": version_2(bytes(65535)),
}
FRAMES = OPENING + publish() + header(1, 60, 3) + body(1, b"abc") + HEARTBEAT_FRAME


def seen(*pieces: bytes, talk: Talk | None = None) -> tuple[list[Row], list[Row], Any]:
    """Frames, messages and findings of what a client sent."""
    feeder = Feeder(talk or Talk())
    for piece in pieces:
        feeder.data(CLIENT, piece)
    done = feeder.data(SERVER, HEARTBEAT_FRAME).finish()
    found = findings(done)
    return done.frames(), done.messages(), found


def moved(rows: list[Row], count: int) -> list[Row]:
    """The client's rows as many bytes further on in its stream."""
    return [
        row | {"stream_offset": row["stream_offset"] + count} if row["sender"] == "client" else row
        for row in rows
    ]


@pytest.mark.parametrize("syn_seen", [True, False])
@pytest.mark.parametrize("name", HEADERS)
def test_headers(name: str, syn_seen: bool) -> None:
    talk, octets = Talk(syn_seen), HEADERS[name]
    frames, messages, found = seen(FRAMES, talk=talk)
    assert len(frames) == 6
    assert seen(octets + FRAMES, talk=talk) == (moved(frames, len(octets)), messages, found)


@pytest.mark.parametrize("name", [name for name in HEADERS if name != "2 largest"])
def test_headers_at_every_split(name: str) -> None:
    octets = HEADERS[name] + FRAMES
    whole = seen(octets)
    assert seen(*(octets[at : at + 1] for at in range(len(octets)))) == whole
    for cut in some(range(1, len(HEADERS[name]) + 12), 3):
        assert seen(octets[:cut], octets[cut:]) == whole


@pytest.mark.parametrize("name", HEADERS)
def test_part_of_a_header(name: str) -> None:
    """A client that sends no more is named when the server speaks AMQP all the same."""
    octets = HEADERS[name]
    for cut in (4, 12, len(octets) - 1):
        done = Feeder().data(CLIENT, octets[:cut]).data(SERVER, OPENING).finish()
        detail = "the client's first bytes are those of the PROXY protocol"
        assert findings(done) == [("not-amqp", detail)]


def test_a_capture_behind_a_proxy() -> None:
    client, server = streams_of(SAMPLES / "bunny.pcapng")[:2]
    plain = Feeder().data(CLIENT, client.octets).data(SERVER, server.octets).finish()
    octets = HEADERS["2 with fields"] + client.octets
    behind = Feeder().data(CLIENT, octets).data(SERVER, server.octets).finish()
    assert behind.frames() == moved(plain.frames(), len(HEADERS["2 with fields"]))
    assert behind.messages() == plain.messages()
    assert findings(behind) == findings(plain)


@pytest.mark.parametrize(
    "octets",
    [
        b"PROXY TCP5 192.0.2.1 192.0.2.2 40000 5672\r\n",
        b"PROXY TCP4 " + b"1" * MAX_LINE_BYTES + b"\r\n",
        b"PROXY\r\n",
        SIGNATURE + b"\x11\x11\0\0",
        HEADERS["TCP4"] + HEADERS["TCP4"],
        HEADERS["TCP4"] + b"GET / HTTP/1.1\r\n",
    ],
)
def test_what_is_none(octets: bytes) -> None:
    frames, _, _ = seen(octets + FRAMES)
    assert {row["sender"] for row in frames} <= {"server"}
    whole = seen(octets + FRAMES)
    assert seen(*(octets[at : at + 1] for at in range(len(octets))), FRAMES) == whole


def test_a_hole_in_a_header() -> None:
    """What follows is found as it is after any hole."""
    octets = HEADERS["TCP4"]
    feeder = Feeder().data(CLIENT, octets[:20]).gap(CLIENT, len(octets) - 20)
    rows = feeder.data(CLIENT, FRAMES).finish().frames()
    assert [row["stream_offset"] for row in rows] == [
        row["stream_offset"] for row in moved(seen(FRAMES)[0][:5], len(octets))
    ]


@pytest.mark.parametrize("name", HEADERS)
def test_lengths(name: str) -> None:
    """At every length it is known how many bytes there must be at least."""
    octets = HEADERS[name]
    for have in range(1, min(200, len(octets))):
        assert have < header_bytes(octets[:have]) <= len(octets)
    assert header_bytes(octets) == header_bytes(octets + FRAMES) == len(octets)
