# Any bytes of a conversation of AMQP 1.0, with holes, raise nothing; their rows begin one after the
# other and hold whole JSON; counts of links agree, and are the same for the same bytes in pieces of
# other sizes, where the connection was seen from its beginning and its frames follow each other.
"""Fuzz AMQP 1.0, from bytes to findings: `python -m tests.fuzz.fuzz_amqp10 [CORPUS…]` (atheris).

An input is instructions: a byte says which direction comes next, and whether a performative with
fields chosen by the following bytes, bytes as they are, or a hole. A conversation begins with
headers, opens, a session and a link, so that mutations reach what stands behind them.
"""

from __future__ import annotations

import json
from typing import Any

from amqpsniff import Engine
from amqpsniff.spec.amqp10 import COMPOSITES, PERFORMATIVES
from tests.amqp10 import HEADER, composite, frame, message, source, target
from tests.fuzz.guided import fuzz

MAX_PIECES = 120
SIDES = ("client", "server")
KEY = ("10.0.0.1:40000", "10.0.0.2:5672")
START_NS, STEP_NS = 10**18, 10**9
TABLES = ("frames", "messages", "connections", "channels", "links", "findings")

Piece = tuple[int, bytes | int]

_STATES = [composite(row.name) for row in COMPOSITES if 0x23 <= row.code <= 0x27]
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, 2, 100, 0xFFFFFFFF, 1 << 40, "in", "out", b"\1", [], {}, {"a": 1},
    source("q"), target("q"), composite("coordinator"), *_STATES,
)  # fmt: skip
_NATURAL = {
    "name": "out", "handle": 0, "role": False, "source": source("q"), "target": target("q"),
    "delivery_tag": b"1", "container_id": "c",
}  # fmt: skip


def opening() -> list[Piece]:
    """What comes first: a session, and a link on which the client sends."""
    said = [
        (0, HEADER), (1, HEADER),
        (0, frame("open", container_id="c")), (1, frame("open", container_id="s")),
        (0, frame("begin", next_outgoing_id=0, incoming_window=9, outgoing_window=9)),
        (1, frame("begin", remote_channel=0, next_outgoing_id=0, incoming_window=9,
                  outgoing_window=9)),
        (0, frame("attach", name="out", handle=0, role=False, source=source(), target=target("q"),
                  initial_delivery_count=0)),
        (1, frame("attach", name="out", handle=0, role=True, source=source(), target=target("q"))),
    ]  # fmt: skip
    return list(said)


def pieces(data: bytes) -> list[Piece]:
    """What came: (direction, bytes or the size of a hole)."""
    found: list[Piece] = opening() if data and data[0] & 1 else []
    at = 1
    while at + 2 <= len(data) and len(found) < MAX_PIECES:
        kind, length = data[at], data[at + 1]
        octets = data[at + 2 : at + 2 + length]
        direction = kind & 1
        at += 2
        if kind >= 0xF0:
            found.append((direction, length + 1))
            continue
        at += length
        if kind >= 0xE0:
            found.append((direction, octets))
        else:
            found.append((direction, _frame(kind >> 1, octets)))
    return [one for one in found if one[1] != b""]


def _frame(which: int, choices: bytes) -> bytes:
    """A frame with a performative; a byte chooses each field: what is usual, or any value."""
    row = PERFORMATIVES[which % len(PERFORMATIVES)]
    given = {}
    for field, choice in zip(row.fields, choices, strict=False):
        if choice < 128 and field.name in _NATURAL:
            given[field.name] = _NATURAL[field.name]
        else:
            given[field.name] = _VALUES[choice % len(_VALUES)]
    payload = message() if row.name == "transfer" and len(choices) % 3 else b""
    return frame(row.name, channel=which // len(PERFORMATIVES) % 2, payload=payload, **given)


def rows(given: list[Piece], size: int) -> dict[str, list[dict[str, Any]]]:
    """Rows of all tables, the bytes fed `size` at a time."""
    engine = Engine(body_sha256=True)
    for number, (direction, piece) in enumerate(given):
        now = START_NS + number * STEP_NS
        if isinstance(piece, int):
            engine.gap(KEY, SIDES[direction], piece, now)
            continue
        for at in range(0, len(piece), size):
            engine.feed_bytes(KEY, SIDES[direction], piece[at : at + size], now)
    engine.finish()
    return {table: engine.take(table).to_pylist() for table in TABLES}


def _counted(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without the numbers of packets, which depend on how bytes come."""
    return [
        {name: row[name] for name in row if not name.endswith("packet_number")} for row in found
    ]


def one_input(data: bytes) -> None:
    """Decode one input; raises AssertionError where the invariant does not hold."""
    given = pieces(data)
    found = rows(given, 1 << 20)
    broken = {row["code"] for row in found["findings"]} & {"frame-type-unknown", "frame-too-large"}
    if data and data[0] & 1 and not broken and all(isinstance(piece, bytes) for _, piece in given):
        for size in (1, 7):
            again = rows(given, size)
            for table in ("channels", "links"):
                assert _counted(again[table]) == _counted(found[table])
    last: dict[int, int] = {}
    for row in found["frames"]:
        direction, _ = given[row["packet_number"] - 1]  # who is the client may turn out late
        assert row["stream_offset"] > last.get(direction, -1)
        last[direction] = row["stream_offset"]
        json.loads(row["arguments"] or "{}")
    for row in found["messages"]:
        json.loads(row["headers"] or "{}")
        json.loads(row["annotations"] or "{}")
    for row in found["links"]:
        json.loads(row["filter"] or "{}")
        decided = sum(row[name] for name in ("accepted", "rejected", "released", "modified"))
        assert decided + row["presettled"] <= row["deliveries"]
        for name in ("unsettled_end", "unsettled_max", "credit_max", "delivery_count"):
            assert row[name] is None or row[name] >= 0
        assert row["unsettled_max"] is None or row["unsettled_end"] <= row["unsettled_max"]


if __name__ == "__main__":
    fuzz(one_input)
