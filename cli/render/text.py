"""The width of text on a terminal: measured, cut and folded."""

from __future__ import annotations

from collections.abc import Iterator

ELLIPSIS = "…"
NONE = "-"
"""Written where there is nothing."""


def cells(text: str) -> int:
    """Columns of a terminal that a harmless text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, width: int) -> str:
    """The text, its end replaced by an ellipsis when it takes more than `width` columns."""
    if cells(text) <= width:
        return text
    if width < 1:
        return ""
    room, end = width - 1, 0
    for character in text:
        room -= cells(character)
        if room < 0:
            break
        end += 1
    return text[:end] + ELLIPSIS


def cut_middle(text: str, width: int) -> str:
    """The text, its middle replaced by an ellipsis: names of a kind often differ at their ends."""
    if cells(text) <= width:
        return text
    if width < 3 or not text.isascii():
        return cut(text, width)
    tail = (width - 1) // 2
    return text[: width - 1 - tail] + ELLIPSIS + text[len(text) - tail :]


def folded(text: str, width: int, indent: str = "") -> Iterator[str]:
    """A text as lines of at most so many columns, after the first with an indent."""
    room, head = max(width, 1), ""
    while cells(text) > room:
        fits = max(1, len(cut(text, room + 1)) - 1)
        blank = text.rfind(" ", 0, fits + 1)
        end = blank if blank > 0 else fits
        yield head + text[:end].rstrip()
        text = text[end:].lstrip()
        room, head = max(width - len(indent), 1), indent
    yield head + text


def folded_at(text: str, width: int) -> Iterator[tuple[str, int]]:
    """The same lines, and where each begins in the text."""
    at = 0
    for line in folded(text, width):
        at = text.index(line, at)
        yield line, at
        at += len(line)
