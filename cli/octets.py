"""The octets behind frames: what `--hex` shows.

Rows say where a frame lies in its half-stream, not what its octets are. `Octets` stands before the
decoder of a pipeline, keeps what passes for a while, and finds it again by place.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from amqpsniff.decode.redaction import (
    HEADER_OCTETS,
    METHOD_OCTETS,
    SECRET_METHODS,
    secret_positions,
)
from amqpsniff.tcp.stream import DATA

if TYPE_CHECKING:
    from .reading import Reading
    from .timeline import Entry

MOST_KEPT_OCTETS = 64 * 1024 * 1024
"""Octets kept: rows are written soon after their octets came, but a message that takes long to
arrive holds up those behind it."""

MOST_SHOWN_OCTETS = 256 * 1024
"""Octets of one frame that are found: twice the frame-max that brokers agree on. A frame may claim
to be of gigabytes."""

PIECES_CLEANED = 1024
"""Pieces dropped from the front of a half-stream's list before it is made shorter."""

FRAME_OCTETS = HEADER_OCTETS + 1

REDACTED = "[redacted]"
"""What rows have in place of a secret."""


class _Half:
    """The pieces of one half-stream, in order; those before `first` are dropped."""

    __slots__ = ("starts", "pieces", "first")

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.pieces: list[bytes] = []
        self.first = 0


class Octets:
    """Stands in for the TLS stage, and keeps the octets of the events that it gives."""

    def __init__(self, stage: Any) -> None:
        self._stage = stage
        self._halves: dict[tuple[str, str], _Half] = {}
        self._order: deque[tuple[tuple[str, str], int]] = deque()
        self._kept = 0

    def feed(self, events: Any) -> Any:
        """The stage's events."""
        return self._watched(self._stage.feed(events))

    def finish(self, events: Any) -> Any:
        """The stage's last events."""
        return self._watched(self._stage.finish(events))

    def find(self, entry: Entry) -> tuple[bytes, frozenset[int]]:
        """The first `MOST_SHOWN_OCTETS` of a frame, and which positions are not there (zero)."""
        length = min(length_of(entry), MOST_SHOWN_OCTETS)
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

    def _watched(self, events: Any) -> Any:
        for row in range(events.count):
            if events.kind[row] == DATA:
                slot = events.half[row]
                conversation = events.conversations[slot >> 1]
                start, source = events.start[row], events.source[row]
                octets = events.octets if source < 0 else events.extra[source]
                end = conversation.b if slot & 1 else conversation.a
                piece = bytes(octets[start : start + events.length[row]])
                self._keep((conversation.connection_id, end), events.stream_offset[row], piece)
        return events

    def _keep(self, key: tuple[str, str], offset: int, piece: bytes) -> None:
        half = self._halves.setdefault(key, _Half())
        half.starts.append(offset)
        half.pieces.append(piece)
        self._order.append((key, len(piece)))
        self._kept += len(piece)
        while self._kept > MOST_KEPT_OCTETS:
            old, length = self._order.popleft()
            self._kept -= length
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


def length_of(entry: Entry) -> int:
    """Octets of a frame, all told."""
    return entry.size + (FRAME_OCTETS if entry.frame_type != "protocol-header" else 0)


def hidden_positions(entry: Entry, octets: bytes, missing: frozenset[int]) -> frozenset[int]:
    """Where in a frame's octets secrets may be; all arguments where its row quotes one."""
    if REDACTED in (entry.arguments or "") and entry.method not in SECRET_METHODS:
        return frozenset(range(HEADER_OCTETS + METHOD_OCTETS, len(octets) - 1))
    return frozenset(
        secret_positions(
            entry.frame_type, entry.channel, entry.method, entry.sender, octets, missing
        )
    )


def batches(reading: Reading) -> Iterator[tuple[Any, Octets]]:
    """Batches of the frames table with the octets behind them, a few packets at a time."""
    from amqpsniff.capture import CaptureSet
    from amqpsniff.pipeline import Pipeline, run
    from amqpsniff.plan import Plan
    from amqpsniff.tables.batches import Maker

    pipeline = Pipeline(reading.capture.options, Plan(("frames",)))
    octets = Octets(pipeline.tls)
    pipeline.tls = octets  # type: ignore[assignment]
    reading.capture.totals = pipeline.totals
    maker = Maker("frames", encoded=True)
    with CaptureSet(reading.capture.names, reader=pipeline.options.reader) as packets:
        for _ in run(packets, pipeline):
            yield from ((maker.make(taken), octets) for taken in pipeline.rest())
        found = [*packets.findings, *pipeline.findings()]
    reading.judge(found)
