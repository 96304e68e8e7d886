"""Bytes in hex, and the beginning of a body: as text, or else as a hex dump."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from amqpsniff.analysis.body_text import body_text
from amqpsniff.units import count
from amqpsniff.wire_text import harmless

from ..output import Output
from .text import cut

ROW_BYTES = 16
NOWHERE: frozenset[int] = frozenset()


def hex_lines(
    octets: bytes,
    *,
    hidden: frozenset[int] = NOWHERE,
    missing: frozenset[int] = NOWHERE,
    first: int = 0,
) -> Iterator[str]:
    """A hex dump: offset, counted from `first`, sixteen bytes, and their ASCII characters.

    Positions that are `hidden` are shown as `**`, those that are `missing` as `--`; of rows
    that are missing one after the other the first is shown.
    """
    all_missing = False
    for start in range(0, len(octets), ROW_BYTES):
        row = octets[start : start + ROW_BYTES]
        before, all_missing = (
            all_missing,
            bool(missing) and missing.issuperset(range(start, start + len(row))),
        )
        if before and all_missing:
            continue
        cells, characters = [], []
        for position, octet in enumerate(row, start):
            cell, character = f"{octet:02x}", chr(octet) if 32 <= octet < 127 else "."
            if position in missing:
                cell, character = "--", "-"
            elif position in hidden:
                cell, character = "**", "*"
            cells.append(cell)
            characters.append(character)
        left, right = " ".join(cells[:8]), " ".join(cells[8:])
        yield f"{first + start:08x}  {left:<23}  {right:<23}  {''.join(characters)}"


INDENT = " " * 4
"""An indent with which a line of a hex dump fits 80 columns."""


def preview(message: Mapping[str, Any], limit: int, output: Output) -> Iterator[str]:
    """Lines that show at most `limit` bytes of a body, and say how many are left out."""
    body = body_text(message, limit)
    if body is None:
        return
    text, omitted = body.text, len(body.octets) - limit
    if body.form:
        yield INDENT + output.paint("key", f"{body.form}: {count(len(body.octets))} bytes")
    shortened = text is not None and len(text) > limit
    if text is None:
        for line in hex_lines(body.octets[:limit]):
            yield INDENT + output.paint("hex", line)
    else:
        if shortened:  # whole lines, except a line that is longer
            text = text[:limit].rpartition("\n")[0] or text[:limit]
        for line in text.splitlines():
            safe = harmless(line)
            yield INDENT + (safe if output.width is None else cut(safe, output.width - len(INDENT)))
    if shortened or body.cut:
        yield INDENT + output.paint("key", "… more")
    elif omitted > 0 and not body.read:
        yield INDENT + output.paint("key", f"… {omitted:,} more bytes")
