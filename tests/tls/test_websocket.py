"""WebSocket is taken off a conversation that asks for it, and off no other."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import amqpsniff
from amqpsniff.tls.stage import Rows
from amqpsniff.tls.websocket import Way, is_upgrade
from tests import amqp10
from tests.cli.running import write_capture
from tests.tcp.wire import Talk

REQUEST = (
    b"GET /amqp HTTP/1.1\r\nHost: broker\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAA\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: amqp\r\n\r\n"
)
ANSWER = b"HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Protocol: amqp\r\n\r\n"
MASK = b"\x11\x22\x33\x44"
HEADER = amqp10.HEADER
OPEN = amqp10.frame("open", container_id="client-1", hostname="broker")


def frame(payload: bytes, opcode: int = 2, fin: bool = True, mask: bytes = b"") -> bytes:
    """A frame of WebSocket."""
    head = bytes([opcode | fin << 7])
    masked = 0x80 if mask else 0
    if len(payload) < 126:
        head += bytes([masked | len(payload)])
    elif len(payload) < 65536:
        head += bytes([masked | 126]) + len(payload).to_bytes(2, "big")
    else:
        head += bytes([masked | 127]) + len(payload).to_bytes(8, "big")
    if mask:
        payload = bytes(octet ^ mask[at % 4] for at, octet in enumerate(payload))
    return head + mask + payload


def unwrapped(*pieces: bytes | int, masked: bool = True) -> tuple[bytes, int]:
    """The bytes of a direction behind its head, and how many are missing; a number is a hole."""
    rows = Rows()
    way = Way(rows, 0, masked)
    way.data(b"x\r\n\r\n", 1, 1)
    for piece in pieces:
        if isinstance(piece, int):
            way.gap(piece, 1, 1)
        else:
            way.data(piece, 1, 1)
    missing = sum(
        row[4] for row in zip(*rows.columns, strict=True) if row[0] == 2
    )  # GAP: its length
    return b"".join(rows.extra), missing


FRAMES = (
    frame(b"abc", mask=MASK)
    + frame(b"ping", opcode=9, mask=MASK)
    + frame(b"d" * 200, fin=False, mask=b"abcd")
    + frame(b"", opcode=10, mask=MASK)
    + frame(b"e" * 70_000, opcode=0, mask=b"\0\1\2\3")
    + frame(b"bye", opcode=8, mask=MASK)
)
PAYLOAD = b"abc" + b"d" * 200 + b"e" * 70_000


@given(st.lists(st.integers(0, len(FRAMES)), max_size=6))
def test_every_split(places: list[int]) -> None:
    cuts = [0, *sorted(places), len(FRAMES)]
    pieces = [FRAMES[at:end] for at, end in pairwise(cuts) if end > at]
    assert unwrapped(*pieces) == (PAYLOAD, 0)


def test_octet_by_octet() -> None:
    short = FRAMES[:300]
    assert unwrapped(*(short[at : at + 1] for at in range(300))) == unwrapped(short)


@pytest.mark.parametrize("hole", [1, 2, 3, 4, 5, 90])
def test_a_hole_in_a_payload(hole: int) -> None:
    whole = frame(bytes(range(100)), mask=MASK) + frame(b"next", mask=MASK)
    octets, missing = unwrapped(whole[:10], hole, whole[10 + hole :])
    assert octets == bytes(range(4)) + bytes(range(4 + hole, 100)) + b"next"
    assert missing == hole


def test_a_hole_beyond_a_frame() -> None:
    first, last = frame(b"abc", mask=MASK), frame(b"back", mask=MASK)
    octets, missing = unwrapped(first, 50, b"in the midst", last)
    assert octets == b"abcback"
    assert missing == 62
    assert unwrapped(frame(b"abc"), 5, frame(b"back"), masked=False)[0] == b"abcback"


@given(st.lists(st.one_of(st.binary(min_size=1, max_size=40), st.integers(1, 9)), max_size=12))
def test_any_bytes(pieces: list[bytes | int]) -> None:
    octets, missing = unwrapped(*pieces)
    there = sum(piece if isinstance(piece, int) else len(piece) for piece in pieces)
    assert len(octets) + missing <= there


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"Protocol: amqp", b"Protocol: mqtt"),
        (b"Protocol: amqp", b"Protocol: amqp-other"),
        (b"Upgrade: websocket", b"Upgrade: h2c"),
        (b"GET", b"PUT"),
        (b"HTTP/1.1", b"HTTP/1.0"),
        (b"Sec-WebSocket-Protocol: amqp\r\n", b""),
    ],
)
def test_other_requests(before: bytes, after: bytes) -> None:
    assert is_upgrade(REQUEST)
    assert not is_upgrade(REQUEST.replace(before, after))


@pytest.mark.parametrize(
    "protocols", [b"amqp", b"AMQPWSB10", b"mqtt, amqp", b"amqp, mqtt", b"AMQP"]
)
def test_subprotocols(protocols: bytes) -> None:
    assert is_upgrade(REQUEST.replace(b"Protocol: amqp", b"Protocol: " + protocols))


def frames(folder: Path, talk: Talk) -> list[tuple[Any, ...]]:
    """Frames of a conversation: packet, sender, type or performative."""
    path = write_capture(folder / "talk.pcap", talk.packets)
    found = amqpsniff.open(path).table("frames").to_pylist()
    return [
        (row["packet_number"], row["sender"], row["method"] or row["frame_type"]) for row in found
    ]


def test_a_conversation(tmp_path: Path) -> None:
    talk = Talk(ports=(40000, 80)).hands()
    talk.client(REQUEST[:50])
    talk.client(REQUEST[50:])
    talk.server(ANSWER + frame(HEADER[:5], fin=False))
    talk.client(frame(HEADER + OPEN[:20], mask=MASK))
    talk.server(frame(b"", opcode=9) + frame(HEADER[5:], opcode=0))
    talk.client(frame(OPEN[20:], mask=MASK))
    assert frames(tmp_path, talk) == [
        (7, "client", "protocol-header"),
        (8, "server", "protocol-header"),
        (9, "client", "open"),
    ]


def test_only_the_client_was_captured(tmp_path: Path) -> None:
    talk = Talk(ports=(40000, 80)).hands()
    talk.client(REQUEST)
    talk.client(frame(HEADER + OPEN, mask=MASK))
    assert [row[1:] for row in frames(tmp_path, talk)] == [
        ("client", "protocol-header"),
        ("client", "open"),
    ]


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (REQUEST, b"HTTP/1.1 403 Forbidden\r\n\r\n"),
        (REQUEST.replace(b"Protocol: amqp", b"Protocol: mqtt"), ANSWER),
        (b"GET /index.html HTTP/1.1\r\n\r\n", ANSWER),
    ],
    ids=["refused", "another subprotocol", "no upgrade"],
)
def test_other_conversations(tmp_path: Path, asked: bytes, answer: bytes) -> None:
    talk = Talk(ports=(40000, 80)).hands()
    talk.client(asked)
    talk.server(answer)
    talk.client(frame(HEADER + OPEN, mask=b"\0\0\0\0"))
    assert frames(tmp_path, talk) == []


def test_a_head_that_does_not_end(tmp_path: Path) -> None:
    talk = Talk(ports=(40000, 80)).hands()
    for _ in range(80):
        talk.client(b"GET / HTTP/1.1\r\nX: " + b"y" * 200)
    talk.goodbye()
    assert frames(tmp_path, talk) == []


def test_one_that_was_joined_later(tmp_path: Path) -> None:
    """The client's side begins inside a frame, the server's with one."""
    talk = Talk()
    beat = b"\x08\0\0\0\0\0\0\xce"
    talk.client(b"inside a frame")
    talk.server(frame(beat))
    for _ in range(3):
        talk.client(frame(beat, mask=MASK))
        talk.server(frame(beat))
    assert [row[2] for row in frames(tmp_path, talk)] == ["heartbeat"] * 7


@pytest.mark.parametrize("snap", [*range(43, 60), 100, 150, 190])
def test_heads_that_a_snap_length_cut(tmp_path: Path, snap: int) -> None:
    """The client's first frame shows what it is; without it a request cut short is no error."""
    talk = Talk(ports=(40000, 80)).hands()
    talk.client(REQUEST)
    talk.server(ANSWER)
    talk.client(frame(HEADER, mask=MASK))
    talk.server(frame(HEADER) + frame(amqp10.frame("open", container_id="broker")))
    talk.client(frame(OPEN, mask=MASK))
    talk.packets[:] = [packet.cut(snap) for packet in talk.packets]
    found = [row[1:] for row in frames(tmp_path, talk)]
    if snap >= 40 + len(frame(HEADER, mask=MASK)):
        assert found[:2] == [("client", "protocol-header"), ("server", "protocol-header")]
    codes = {one.code for one in amqpsniff.open(tmp_path / "talk.pcap").findings()}
    assert not codes & {"not-amqp", "server-not-amqp", "frame-malformed", "tcp-gap"}


@pytest.mark.parametrize("answer", [b"HTTP/1.1 403 Forbidden\r\n\r\n", HEADER])
def test_a_request_that_was_cut_and_refused(tmp_path: Path, answer: bytes) -> None:
    talk = Talk(ports=(40000, 80)).hands()
    talk.client(REQUEST)
    talk.packets[-1] = talk.packets[-1].cut(90)
    talk.server(answer)
    talk.client(frame(HEADER, mask=MASK))
    assert ("client", "protocol-header") not in [row[1:] for row in frames(tmp_path, talk)]
    codes = {one.code for one in amqpsniff.open(tmp_path / "talk.pcap").findings()}
    assert ("not-amqp" in codes) == (answer == HEADER)
