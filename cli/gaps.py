"""Octets of a connection between its frames that no frame holds: lost, or not decoded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amqpsniff.tables.values import values

from .octets import FRAME_OCTETS
from .timeline import FRAME_COLUMNS, Entry

GAP = "gap"
"""The frame type of an entry that stands for missing octets; its size is how many."""


class Gaps:
    """Finds holes between the frames of one connection, direction by direction."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def split(self, batch: Any) -> Iterator[tuple[Entry | None, Any]]:
        """The frames of a batch in pieces, each with the hole before it; null where is none."""
        names = ("sender", "stream_offset", "size", "frame_type")
        rows = zip(*(values(batch, name) for name in names), strict=True)
        begin, gap = 0, None
        for at, (sender, offset, size, kind) in enumerate(rows):
            if sender is None:
                continue
            expected = self._next.get(sender, offset)
            if offset > expected:
                yield gap, batch.slice(begin, at - begin)
                begin, gap = at, _gap(batch.slice(at, 1), offset - expected)
            end = offset + size + (0 if kind == "protocol-header" else FRAME_OCTETS)
            self._next[sender] = max(expected, end)
        yield gap, batch.slice(begin)


def _gap(frame: Any, octets: int) -> Entry:
    """The entry of a hole before a frame."""
    entry = Entry(*(values(frame, name)[0] for name in FRAME_COLUMNS))
    entry.frame_type, entry.size = GAP, octets
    entry.method = entry.arguments = None
    return entry
