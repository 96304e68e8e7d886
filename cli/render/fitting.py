"""Parts of a line fitted into the columns of a terminal: the longest names are cut first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from amqpsniff.analysis.one_line import Part

from .text import cells, cut
from .theme import Paint

MIN_CELLS = (24, 10, 7)
"""Columns that are left of a name that is cut: the first of these that makes the whole line fit.
Where none does it is the first, and the end of the line is cut."""


def joined(
    parts: Iterable[Part],
    paint: Paint,
    room: int | None,
    more: Iterable[Part] = (),
    last: Iterable[Part] = (),
) -> str:
    """The parts as one text of at most `room` columns; None does not cut.

    `last` stands at the right edge; the parts are cut to make room for it, and it is never more
    than half. Of `more` there is as much as has room between them.
    """
    parts, more, last = list(parts), list(more), list(last)
    if room is None:
        return painted(parts + last + more, paint)
    taken = _taken(last)
    if taken > room // 2:
        parts, last, taken = parts + last, [], 0
    parts = fitted(parts, room - taken)
    left = room - taken - _taken(parts)
    if more and left > 1:
        parts += _within(more, *_widths(more), left)
    if not last:
        return painted(parts, paint)
    blanks = room - taken - _taken(parts) + 2
    return painted(parts, paint) + " " * max(blanks, 1) + painted(last, paint)


def painted(parts: Iterable[Part], paint: Paint) -> str:
    """Parts as one text, in their colours."""
    if not paint.colour:
        return " ".join([fixed + text for _, fixed, text in parts])
    words = []
    for style, fixed, text in parts:
        words.append(paint("key", fixed) + paint(style, text) if text else paint(style, fixed))
    return " ".join(words)


def _taken(parts: Iterable[Part]) -> int:
    """Columns of parts, each with a blank."""
    return sum(cells(part.fixed + part.text) + 1 for part in parts)


def fitted(parts: list[Part], room: int) -> list[Part]:
    """Parts that fit: the longest names are cut first, then the end of the line."""
    fixed, texts = _widths(parts)
    most = room - sum(fixed) - len(parts) + 1
    for least in MIN_CELLS:
        cut_texts = _shortened(texts, most, least)
        if sum(cut_texts) <= most:
            return list(_within(parts, fixed, cut_texts, room))
    return list(_within(parts, fixed, _shortened(texts, most, MIN_CELLS[0]), room))


def _widths(parts: list[Part]) -> tuple[list[int], list[int]]:
    return [cells(part.fixed) for part in parts], [cells(part.text) for part in parts]


def _shortened(widths: list[int], most: int, least: int) -> list[int]:
    """The widths, the largest made smaller but not below `least`, until they are `most` in all."""
    widths = list(widths)
    excess = sum(widths) - most
    while excess > 0 and max(widths) > least:
        longest = max(widths)
        at = widths.index(longest)
        second = max((one for one in widths if one < longest), default=0)
        even = -(-excess // widths.count(longest))
        widths[at] = max(least, second, longest - even)
        excess -= longest - widths[at]
    return widths


def _within(parts: list[Part], fixed: list[int], texts: list[int], room: int) -> Iterator[Part]:
    for part, width, text_width in zip(parts, fixed, texts, strict=True):
        if room < 1:
            return
        if part.text and room <= width:
            yield Part(part.style, cut(part.fixed + part.text, room))
            return
        kept = cut(part.fixed, room)
        yield Part(
            part.style, kept, cut(part.text, min(text_width, room - width)) if room > width else ""
        )
        room -= width + text_width + 1
