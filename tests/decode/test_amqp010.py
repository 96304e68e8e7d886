"""AMQP 0-10: frames are named by the rows of controls and commands, and segments kept apart."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import amqpsniff
from amqpsniff.analysis.frame_bytes import hidden_positions
from amqpsniff.spec.amqp010 import SEGMENTS, UNITS
from tests.conftest import SHARED
from tests.decode.feeding import Feeder
from tests.tcp.wire import Talk
from tests.tls.talk import write

HEADER = b"AMQP\1\1\0\x0a"
FIRST, LAST = 0x0A, 0x05
"""Flags of the first and the last frame of a segment, which is the first and last of its kind."""


def frame(kind: int, payload: bytes, channel: int = 0, flags: int = FIRST | LAST) -> bytes:
    """A frame of a segment type."""
    size = (12 + len(payload)).to_bytes(2, "big")
    track = bytes([kind != 0])
    return (
        bytes([flags, kind])
        + size
        + b"\0"
        + track
        + channel.to_bytes(2, "big")
        + bytes(4)
        + payload
    )


def unit(name: str, arguments: bytes = b"\0\0", channel: int = 0) -> bytes:
    """A control or a command."""
    code = next(code for code, each in UNITS.items() if each == name)
    kind = 0 if code[0] <= 2 else 1
    return frame(kind, bytes(code) + (b"\1\0" if kind else b"") + arguments, channel)


CLIENT = (
    HEADER
    + unit("connection.start-ok", b"\0\7\5PLAIN\0\0\0\x0c\0guest\0secret")
    + unit("connection.open")
    + unit("session.attach", channel=3)
    + frame(1, b"\4\1\1\0\0\0", 3, FIRST)
    + frame(2, b"\0\0\0\2\4\1", 3, 0x02)
    + frame(3, b"x" * 40, 3, 0x02)
    + frame(3, b"y" * 40, 3, LAST)
    + unit("session.completed", channel=3)
)
SERVER = (
    HEADER + unit("connection.start") + unit("connection.tune") + unit("message.flow", channel=3)
)


def rows(*parts: tuple[int, bytes]) -> list[tuple[Any, ...]]:
    """Frames by direction, channel, type, method and size."""
    feeder = Feeder()
    for direction, octets in parts:
        feeder.data(direction, octets)
    return [
        (row["sender"], row["channel"], row["frame_type"], row["method"], row["size"])
        for row in feeder.finish().frames()
    ]


EXPECTED = [
    ("client", 0, "protocol-header", None, 8),
    ("client", 0, "control", "0-10:connection.start-ok", 27),
    ("client", 0, "control", "0-10:connection.open", 4),
    ("client", 3, "control", "0-10:session.attach", 4),
    ("client", 3, "command", "0-10:message.transfer", 6),
    ("client", 3, "header-segment", None, 6),
    ("client", 3, "body-segment", None, 40),
    ("client", 3, "body-segment", None, 40),
    ("client", 3, "control", "0-10:session.completed", 4),
]


def test_a_conversation() -> None:
    assert rows((0, CLIENT)) == EXPECTED
    assert rows((0, HEADER), (1, SERVER))[1:] == [
        ("server", 0, "protocol-header", None, 8),
        ("server", 0, "control", "0-10:connection.start", 4),
        ("server", 0, "control", "0-10:connection.tune", 4),
        ("server", 3, "command", "0-10:message.flow", 6),
    ]


@given(st.lists(st.integers(0, len(CLIENT)), max_size=5))
def test_every_split(places: list[int]) -> None:
    cuts = [0, *sorted(places), len(CLIENT)]
    parts = [(0, CLIENT[at:end]) for at, end in pairwise(cuts) if end > at]
    assert rows(*parts) == EXPECTED


def test_octet_by_octet_and_every_prefix() -> None:
    assert rows(*((0, CLIENT[at : at + 1]) for at in range(len(CLIENT)))) == EXPECTED
    for end in range(len(CLIENT)):
        found = rows((0, CLIENT[:end]))
        assert found == EXPECTED[: len(found)]


def test_no_bytes_are_missing_between_frames(tmp_path: Path) -> None:
    talk = Talk().hands()
    talk.put(0, CLIENT)
    talk.put(1, SERVER)
    told = amqpsniff.open(write(tmp_path / "x.pcap", talk.goodbye().packets)).follow()
    assert told is not None
    types = [entry.frame_type for entry in told.entries]
    assert "command" in types
    assert "gap" not in types


def test_the_protocol_of_the_connection() -> None:
    done = Feeder().data(0, CLIENT).data(1, SERVER).finish()
    assert "protocol-not-decoded" in done.codes


@pytest.mark.parametrize(
    ("octets", "code"),
    [
        (frame(0, b"\1\x63"), "method-unknown"),
        (b"\x4f" + frame(0, b"\1\1")[1:], "frame-type-unknown"),
        (frame(4, b"\1\1"), "frame-type-unknown"),
        (b"\x0f\0\0\x0b" + bytes(8), "frame-type-unknown"),
    ],
)
def test_what_is_wrong(octets: bytes, code: str) -> None:
    done = Feeder().data(0, HEADER + octets + unit("connection.open")).finish()
    assert code in done.codes


@given(st.binary(max_size=80), st.integers(0, 30))
def test_any_bytes(octets: bytes, hole: int) -> None:
    feeder = Feeder().data(0, HEADER + octets)
    if hole:
        feeder.gap(0, hole)
    feeder.data(0, octets).finish()


def test_nothing_of_a_login_is_shown_in_hex() -> None:
    class Entry:
        frame_type, method, arguments, size, channel, sender = SEGMENTS[0], None, None, 27, 0, None

    octets = unit("connection.start-ok", b"\0\7\5PLAIN\0\0\0\x0c\0guest\0secret")
    hidden = hidden_positions(Entry(), octets, frozenset())  # type: ignore[arg-type]
    assert hidden == frozenset(range(14, len(octets)))


@pytest.mark.skipif(not SHARED.exists(), reason="without the definitions")
def test_rows_are_those_of_the_definition() -> None:
    found = json.loads((SHARED / "facts" / "amqp10" / "amqp010-types.json").read_text())
    assert {(row["class_code"], row["code"]): row["name"] for row in found["units"]} == UNITS


def test_volumes_are_those_of_the_segments(tmp_path: Path) -> None:
    """Frames have a header of twelve bytes and no end: what was sent is what TCP carried."""
    talk = Talk(ports=(40000, 5672)).hands()
    talk.client(CLIENT)
    talk.server(SERVER)
    path = write(tmp_path / "volumes.pcap", talk.packets)
    with amqpsniff.open(path) as capture:
        (one,) = capture.summary()["connections"]
    assert (one["client_bytes"], one["server_bytes"]) == (len(CLIENT), len(SERVER))
