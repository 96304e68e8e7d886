"""The bytes of frames: rows have a frame's position in its half-stream, but not its bytes.

`FrameBytes` keeps the decoder's input for a while, and finds bytes by position.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import deque
from typing import TYPE_CHECKING, Any

from amqpsniff.decode.redaction import (
    HEADER_BYTES,
    METHOD_BYTES,
    SECRET_METHODS,
    secret_positions,
)
from amqpsniff.spec.amqp010 import SEGMENTS, overhead_bytes
from amqpsniff.tcp.codes import DATA

if TYPE_CHECKING:
    from amqpsniff.analysis.timeline import Entry

MAX_KEPT_BYTES = 64 * 1024 * 1024
"""Bytes kept: rows are written soon after their bytes came, but a message that takes long to
arrive holds up those behind it."""

MAX_FRAME_BYTES = 256 * 1024
"""Bytes of one frame that are found: twice the frame-max that brokers agree on. A frame may claim
to be of gigabytes."""

PIECES_CLEANED = 1024
"""Pieces dropped from the front of a half-stream's list before it is made shorter."""

REDACTED = "[redacted]"
"""Stands in rows for a secret."""


class _Half:
    """The pieces of one half-stream, in order; those before `first` are dropped."""

    __slots__ = ("starts", "pieces", "first")

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.pieces: list[bytes] = []
        self.first = 0


class FrameBytes:
    """The bytes of streams as they are decoded, the last `max_bytes`.

    `add` is the plan's `on_stream`.
    """

    def __init__(self, max_bytes: int = MAX_KEPT_BYTES) -> None:
        self._max_bytes = max_bytes
        self._halves: dict[tuple[str, str], _Half] = {}
        self._order: deque[tuple[tuple[str, str], int]] = deque()
        self._kept_bytes = 0

    def find(self, entry: Entry) -> tuple[bytes, frozenset[int]]:
        """The first `MAX_FRAME_BYTES` of a frame, and which positions are not there (zero)."""
        length = min(length_of(entry), MAX_FRAME_BYTES)
        end = entry.client if entry.sender != "server" else entry.server
        half = self._halves.get((entry.connection_id, end or ""), _Half())
        found = bytearray(length)
        missing = set(range(length))
        at = max(bisect_right(half.starts, entry.stream_offset) - 1, half.first)
        while at < len(half.starts) and half.starts[at] < entry.stream_offset + length:
            start = half.starts[at] - entry.stream_offset
            piece = half.pieces[at]
            low, high = max(start, 0), min(start + len(piece), length)
            if low < high:
                found[low:high] = piece[low - start : high - start]
                missing.difference_update(range(low, high))
            at += 1
        return bytes(found), frozenset(missing)

    def add(self, events: Any) -> None:
        """Keep the bytes of a `StreamBatch`."""
        for row in range(events.count):
            if events.kind[row] == DATA:
                slot = events.half[row]
                conversation = events.conversations[slot >> 1]
                start, source = events.start[row], events.source[row]
                octets = events.octets if source < 0 else events.extra[source]
                end = conversation.b if slot & 1 else conversation.a
                piece = bytes(octets[start : start + events.length[row]])
                self._keep((conversation.connection_id, end), events.stream_offset[row], piece)

    def _keep(self, key: tuple[str, str], offset: int, piece: bytes) -> None:
        half = self._halves.setdefault(key, _Half())
        half.starts.append(offset)
        half.pieces.append(piece)
        self._order.append((key, len(piece)))
        self._kept_bytes += len(piece)
        while self._kept_bytes > self._max_bytes:
            old, length = self._order.popleft()
            self._kept_bytes -= length
            self._drop(old)

    def _drop(self, key: tuple[str, str]) -> None:
        half = self._halves[key]
        half.pieces[half.first] = b""
        half.first += 1
        if half.first == len(half.pieces):
            del self._halves[key]
        elif half.first >= PIECES_CLEANED:
            del half.starts[: half.first], half.pieces[: half.first]
            half.first = 0


_HEADERS = {"performative": 11, "sasl": 11, **dict.fromkeys(SEGMENTS, 14)}
"""Bytes of frames of AMQP 1.0 and 0-10 that hold no secret: header, and the numbers of a name."""

_OPEN = frozenset(("open begin attach flow disposition detach end close sasl-mechanisms").split())
"""Performatives that hold none."""

_PUT_TOKEN = b"put-token"
"""In a message that carries a token, whatever its link leads to."""

_BEGINNINGS = tuple(bytes((0, 0x53, code)) for code in range(0x70, 0x75))
"""Sections before the body (§3.2): what begins with a body may be the rest of a message."""


def _hidden_of_later_versions(
    entry: Entry, begin: int, octets: bytes, missing: frozenset[int]
) -> frozenset[int]:
    """Positions in a frame of AMQP 1.0 or 0-10 that may be a secret's.

    A payload is shown that is a whole message, does not ask for a token, and is not of a link to
    the node for tokens.
    """
    if entry.method in _OPEN:
        return frozenset()
    if entry.method == "transfer":
        arguments = json.loads(entry.arguments_json or "{}")
        begin = max(begin, length_of(entry) - arguments.get("payload_bytes", len(octets)))
        payload = octets[begin:]
        is_whole = not (missing or arguments.get("more")) and payload.startswith(_BEGINNINGS)
        if is_whole and _PUT_TOKEN not in payload and "payload" not in arguments:
            return frozenset()
    return frozenset(range(begin, len(octets)))


def length_of(entry: Entry) -> int:
    """Bytes of a frame with its header and its end."""
    return entry.size + overhead_bytes(entry.frame_type)


def hidden_positions(entry: Entry, octets: bytes, missing: frozenset[int]) -> frozenset[int]:
    """Positions in a frame's bytes that may be a secret's; all arguments if its row hides one."""
    begin = _HEADERS.get(entry.frame_type, 0)
    if begin:
        return _hidden_of_later_versions(entry, begin, octets, missing)
    if REDACTED in (entry.arguments_json or "") and entry.method not in SECRET_METHODS:
        return frozenset(range(HEADER_BYTES + METHOD_BYTES, len(octets) - 1))
    return frozenset(
        secret_positions(
            entry.frame_type, entry.channel, entry.method, entry.sender, octets, missing
        )
    )
