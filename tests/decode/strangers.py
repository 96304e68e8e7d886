"""Conversations of binary protocols that are not AMQP, for which AMQP must not be seen.

They count, size and number things as AMQP does: records with a type byte of 1 to 8, identifiers
and sizes as big-endian numbers, most of them small, and a byte 0xCE now and then.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

SMALL = (0, 0, 0, 1, 1, 2, 3, 4, 8, 10, 11, 20, 30, 40, 50, 60, 85, 90, 100)
"""Numbers as binary protocols have them, those of classes and methods among them."""


def _number(choose: random.Random) -> bytes:
    """A number of one to eight bytes, mostly small."""
    code = choose.choice(("B", "H", "H", "H", "I", "I", "Q"))
    most = {"B": 255, "H": 0xFFFF, "I": 0xFFFFFFFF, "Q": 0xFFFFFFFF}[code]
    value = choose.choice(SMALL) if choose.random() < 0.8 else choose.randint(0, most)
    return struct.pack(f">{code}", value)


def _fields(choose: random.Random) -> bytes:
    """What a record holds: numbers, texts with their lengths, end bytes."""
    made = b""
    for _ in range(choose.choice((1, 2, 4, 8, 30, 200))):
        what = choose.random()
        if what < 0.75:
            made += _number(choose)
        elif what < 0.95:
            text = bytes(choose.randrange(97, 123) for _ in range(choose.choice((1, 4, 12))))
            made += choose.choice((b"", b"\0", b"\0\0\0")) + bytes([len(text)]) + text
        else:
            made += b"\xce"
    return made


def records(choose: random.Random, octets: int) -> bytes:
    """So many bytes of records in the form of one protocol."""
    form = choose.randrange(4)
    mark = choose.choice((b"", b"*", b"\x01", b"\x02"))
    made = b""
    while len(made) < octets:
        fields = _fields(choose)
        kind, channel = choose.randint(1, 8), choose.choice(SMALL)
        if form == 0:  # as FLAP has it: a mark, a channel, a number, a size
            made += mark + struct.pack(">BHH", kind, channel, len(fields) & 0xFFFF)
        elif form == 1:  # as AMQP has it
            made += struct.pack(">BHI", kind, channel, len(fields))
        elif form == 2:
            made += struct.pack(">IBB", len(fields) + 2, kind, channel)
        else:
            made += mark + struct.pack(">HHHH", kind, channel, len(fields) & 0xFFFF, 0)
        made += fields
        if choose.random() < 0.1:
            made += b"\xce"
    return made[:octets]


Piece = tuple[int, bytes | int]
"""(direction, bytes), or (direction, how many bytes are missing)."""


def conversation(seed: int, holes: int = 1, missing: int = 60_000) -> Iterator[Piece]:
    """Both directions of a conversation in turns, with so many holes in each."""
    choose = random.Random(seed)
    for direction in (0, 1):
        yield direction, records(choose, choose.choice((40, 300, 3000)))
    for _ in range(holes):
        for direction in (0, 1):
            yield direction, missing
            for _ in range(choose.choice((1, 1, 3))):
                yield direction, records(choose, choose.choice((40, 300, 3000)))
