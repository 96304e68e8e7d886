"""Frames of AMQP 0-9-1 by name, short to write, for tests of what is odd about them."""

from __future__ import annotations

from typing import Any

from amqpsniff.spec import METHODS, Method
from tests import encoder
from tests.decode.feeding import CLIENT, Decoded, Feeder, Row, Talk

OPENING = encoder.PROTOCOL_HEADERS["0-9-1"]
_BY_NAME = {(row.name, dialect): row for row in METHODS for dialect in row.dialects}
_EMPTY = {"b": False, "s": b"", "S": b"", "F": (), "C": (0, b"")}


def row_of(name: str, dialect: str = "0-9-1") -> Method:
    """The definition of a method."""
    return _BY_NAME[name, dialect]


def method(name: str, channel: int = 1, dialect: str = "0-9-1", **values: Any) -> bytes:
    """A method frame; what is not given is empty or zero."""
    row = row_of(name, dialect)
    given = {each.name: _EMPTY.get(each.type, 0) for each in row.arguments} | values
    assert len(given) == len(row.arguments)
    return encoder.method(row, given, channel)


def publish(channel: int = 1) -> bytes:
    """The method that opens a message."""
    return method("basic.publish", channel, exchange=b"x", routing_key=b"k")


def sent(*octets: bytes, direction: int = CLIENT, **options: Any) -> Decoded:
    """What follows the client's protocol header."""
    feeder = Feeder(Talk(), **options).data(CLIENT, OPENING)
    for piece in octets:
        feeder.data(direction, piece)
    return feeder.finish()


def frames(done: Decoded) -> list[Row]:
    """Frames without the protocol header."""
    return done.frames()[1:]


def findings(done: Decoded) -> list[tuple[str, str]]:
    """Findings as (code, detail)."""
    return [(finding.code, finding.detail) for finding in done.findings]
