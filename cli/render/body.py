"""The beginning of a body, as text where it is text, else as a hex dump."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from amqpsniff.wire_text import harmless

from .hexdump import hex_lines
from .text import cut

if TYPE_CHECKING:
    from ..output import Output

INDENT = " " * 4
"""What lets a line of a hex dump fit 80 columns."""


def preview(body: bytes, limit: int, output: Output) -> Iterator[str]:
    """Lines that show at most `limit` bytes of a body, and say how many are left out."""
    shown = body[:limit]
    text = as_text(shown, whole=len(shown) == len(body))
    if text is None:
        for line in hex_lines(shown):
            yield INDENT + output.paint("hex", line)
    else:
        for line in text.splitlines():
            safe = harmless(line)
            yield INDENT + (safe if output.width is None else cut(safe, output.width - len(INDENT)))
    if len(body) > limit:
        yield INDENT + output.paint("key", f"… {len(body) - limit:,} more bytes")


def as_text(octets: bytes, *, whole: bool) -> str | None:
    """The bytes as text; null when they are none. The end may be cut within a character."""
    for missing in range(1 if whole else 4):
        try:
            text = octets[: len(octets) - missing].decode()
        except UnicodeDecodeError:
            continue
        odd = sum(not one.isprintable() and one not in "\n\r\t" for one in text)
        return text if odd == 0 else None
    return None
