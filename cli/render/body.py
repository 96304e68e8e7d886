"""The beginning of a body, as `amqpsniff.analysis.body_text` reads it, else as a hex dump."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from amqpsniff.analysis.body_text import body_text
from amqpsniff.units import count
from amqpsniff.wire_text import harmless

from ..output import Output
from .hexdump import hex_lines
from .text import cut

INDENT = " " * 4
"""What lets a line of a hex dump fit 80 columns."""


def preview(message: Mapping[str, Any], limit: int, output: Output) -> Iterator[str]:
    """Lines that show at most `limit` bytes of a body, and say how many are left out."""
    found = body_text(message, limit)
    if found is None:
        return
    text, left = found.text, len(found.octets) - limit
    if found.form:
        yield INDENT + output.paint("key", f"{found.form}: {count(len(found.octets))} bytes")
    shortened = text is not None and len(text) > limit
    if text is None:
        for line in hex_lines(found.octets[:limit]):
            yield INDENT + output.paint("hex", line)
    else:
        if shortened:  # whole lines, but for one that is longer
            text = text[:limit].rpartition("\n")[0] or text[:limit]
        for line in text.splitlines():
            safe = harmless(line)
            yield INDENT + (safe if output.width is None else cut(safe, output.width - len(INDENT)))
    if shortened or found.cut:
        yield INDENT + output.paint("key", "… more")
    elif left > 0 and not found.read:
        yield INDENT + output.paint("key", f"… {left:,} more bytes")
