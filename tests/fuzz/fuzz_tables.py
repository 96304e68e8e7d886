# Any bytes as arguments or properties, in every reading, raise nothing and give whole JSON, no
# larger than a bound that is linear in them, and the same JSON whatever frames came before.
"""Fuzz field tables: `python -m tests.fuzz.fuzz_tables [CORPUS…]` (atheris).

An input is a selector byte and the bytes of a table. Coverage guides it only through uncompiled
modules.
"""

from __future__ import annotations

import json

from amqpsniff.spec import READINGS
from tests.decode.feeding import CLIENT, Feeder, Talk
from tests.decode.script import OPENING, publish
from tests.encoder import frame, longstr
from tests.fuzz.guided import fuzz

DECLARE = b"\0\x32\0\x0a\0\0\1q\0"
HEADERS = b"\0\x3c\0\0" + bytes(8) + b"\x20\0"

MAX_TEXT_PER_BYTE = 300
"""A decimal of 6 bytes is 260 digits long; nothing grows more."""


def chosen(selector: int) -> str:
    """The reading that the first byte of an input chooses."""
    return READINGS[selector % len(READINGS)]


def texts(table: bytes, reading: str) -> tuple[str, str]:
    """JSON of the table as an argument and as the headers of a message."""
    octets = frame(1, 1, DECLARE + table) + publish(2) + frame(2, 2, HEADERS + table)
    feeder = Feeder(Talk(), table_dialect=reading).data(CLIENT, OPENING).data(CLIENT, octets * 2)
    done = feeder.finish()
    rows = [row["arguments"] for row in done.frames() if row["method"] == "queue.declare"]
    headers = [row["headers"] for row in done.messages()]
    assert rows[0] == rows[1]
    assert headers[0] == headers[1]
    return rows[0], headers[0] or "{}"


def one_input(data: bytes) -> None:
    """Decode one table; raises AssertionError where the invariant does not hold."""
    if not data:
        return
    table = data[1:] if data[0] & 0x80 else longstr(data[1:])
    for text in texts(table, chosen(data[0])):
        assert isinstance(json.loads(text), dict)
        assert len(text) < 300 + MAX_TEXT_PER_BYTE * len(table)


if __name__ == "__main__":
    fuzz(one_input)
