"""Bytes in hex."""

from __future__ import annotations

from collections.abc import Iterator

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
    gone = False
    for start in range(0, len(octets), ROW_BYTES):
        row = octets[start : start + ROW_BYTES]
        before, gone = gone, bool(missing) and missing.issuperset(range(start, start + len(row)))
        if before and gone:
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
