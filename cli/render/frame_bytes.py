"""The bytes of a frame under its line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .body import INDENT
from .hexdump import NOWHERE, hex_lines

if TYPE_CHECKING:
    from amqpsniff.analysis.frame_bytes import FrameBytes
    from amqpsniff.analysis.timeline import Entry

    from .theme import Paint


def dump(entry: Entry, octets: FrameBytes, paint: Paint, *, secrets: bool) -> Iterator[str]:
    """The hex dump of a frame, at its place in the half-stream; without secrets unless asked."""
    from amqpsniff.analysis.frame_bytes import hidden_positions, length_of

    found, missing = octets.find(entry)
    hidden = NOWHERE if secrets else hidden_positions(entry, found, missing)
    for line in hex_lines(found, hidden=hidden, missing=missing, first=entry.stream_offset):
        yield INDENT + paint("hex", line)
    if length_of(entry) > len(found):
        yield INDENT + paint("key", f"… {length_of(entry) - len(found):,} more bytes")
