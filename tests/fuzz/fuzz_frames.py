# Any bytes of a conversation, with holes, raise nothing; their rows begin one after the other and
# hold whole JSON, and are those of the same bytes in pieces of other sizes while frames end right.
"""Fuzz decoding: `python -m tests.fuzz.fuzz_frames [CORPUS…]` (atheris).

An input is instructions: a byte says which direction comes next and whether bytes, a hole or a
well-formed frame follow, so that mutations stay near conversations. Coverage guides it only through
uncompiled modules.
"""

from __future__ import annotations

import json
from typing import Any

from tests.decode.feeding import Feeder, Talk
from tests.encoder import PROTOCOL_HEADERS, frame
from tests.fuzz.guided import fuzz

MAX_PIECES = 200
Piece = tuple[int, bytes | int]


def pieces(data: bytes) -> tuple[bool, list[Piece]]:
    """Whether the begin was seen, and what came: (direction, bytes or the size of a hole)."""
    if not data:
        return True, []
    found: list[Piece] = []
    at = 1
    if data[0] & 2:
        found.append((0, list(PROTOCOL_HEADERS.values())[data[0] >> 2 & 1]))
    while at + 2 <= len(data) and len(found) < MAX_PIECES:
        kind, length = data[at], data[at + 1]
        octets = data[at + 2 : at + 2 + length]
        direction = kind & 1
        at += 2
        if kind & 0xE0 == 0xE0:
            found.append((direction, length + 1))
            continue
        at += length
        if kind & 0x80:
            found.append((direction, octets))
        else:
            end = 0 if kind & 0x60 == 0x60 else 0xCE
            found.append((direction, frame(kind >> 1 & 15, kind >> 5 & 1, octets, end)))
    return bool(data[0] & 1), found


def rows(syn_seen: bool, given: list[Piece], size: int) -> tuple[list[Any], list[Any], list[str]]:
    """Frames, messages and codes of findings, the bytes fed `size` at a time."""
    feeder = Feeder(Talk(syn_seen), bodies=True)
    for direction, piece in given:
        if isinstance(piece, int):
            feeder.gap(direction, piece)
        else:
            for at in range(0, len(piece), size):
                feeder.data(direction, piece[at : at + size])
    done = feeder.finish()
    return done.frames(), done.messages(), done.codes


def one_input(data: bytes) -> None:
    """Decode one input; raises AssertionError where the invariant does not hold."""
    syn_seen, given = pieces(data)
    frames, messages, codes = rows(syn_seen, given, 1 << 20)
    for size in (1, 7) if "frame-end-wrong" not in codes else ():
        assert rows(syn_seen, given, size) == (frames, messages, codes)
    last: dict[str | None, int] = {}
    for row in frames:
        assert row["stream_offset"] > last.get(row["sender"], -1)
        last[row["sender"]] = row["stream_offset"]
        if row["arguments"]:
            json.loads(row["arguments"])
    for row in messages:
        if row["headers"]:
            json.loads(row["headers"])
        if row["body_size"] is not None:
            assert row["body_captured"] <= row["body_size"]


if __name__ == "__main__":
    fuzz(one_input)
