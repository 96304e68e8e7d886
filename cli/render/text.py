"""Text on a terminal: measured, cut and folded, and in colours by meaning.

`Words` is what rich's `Text` is there for, without rich: its import takes as long as all else that
a short command does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from amqpsniff.findings.finding import SEVERITIES
from amqpsniff.units import count, of_severity

ELLIPSIS = "…"
NONE = "-"
"""The text for a missing value."""


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
    """A text as lines of at most `width` columns, indented after the first."""
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


STYLES: dict[str, str] = {
    "time": "dim",
    "packet": "dim",
    "channel": "dim",
    "connection": "cyan",
    "method": "bold",
    "method.error": "bold red",
    "name": "green",
    "size": "none",
    "key": "dim",
    "error": "bold red",
    "warning": "yellow",
    "info": "none",
    "heading": "bold",
    "hex": "dim",
}
"""Style definitions of rich, by name."""


class Paint:
    """Wraps text in the escape codes of a style, or leaves it as it is when colour is off."""

    def __init__(self, colour: bool) -> None:
        self.colour = colour
        self._codes: dict[str, tuple[str, str]] = {}

    def __call__(self, style: str, text: str) -> str:
        """The text in a style of `STYLES`."""
        if not self.colour:
            return text
        codes = self._codes.get(style)
        if codes is None:
            codes = self._codes[style] = _codes(STYLES[style])
        return f"{codes[0]}{text}{codes[1]}"


def _codes(definition: str) -> tuple[str, str]:
    """Control sequences before and after a text of this style."""
    from rich.color import ColorSystem
    from rich.style import Style

    before, _, after = (
        Style.parse(definition).render("\0", color_system=ColorSystem.STANDARD).partition("\0")
    )
    return before, after


class Words:
    """A harmless text of one or more lines, moved in by `indent` columns where it stands alone.

    `parts` are pieces of it with the style of each, empty for none.
    """

    __slots__ = ("indent", "parts")

    def __init__(self, text: str = "", style: str = "", *, indent: int = 0) -> None:
        self.parts = [(text, style)]
        self.indent = indent

    def add(self, text: str, style: str = "") -> Words:
        """Put more at the end."""
        self.parts.append((text, style))
        return self

    @property
    def plain(self) -> str:
        """The text alone."""
        return "".join(text for text, _ in self.parts)

    def left_out(self, width: int) -> Iterator[str]:
        """Nothing: a text is continued on further lines."""
        return iter(())

    def lines(self, width: int, paint: Paint) -> Iterator[str]:
        """The text as lines of at most `width` columns, without blanks at their ends."""
        begin = 0
        for paragraph in self.plain.split("\n"):
            for line, at in folded_at(paragraph, width):
                yield self.painted(paint, line, begin + at).rstrip()
            begin += len(paragraph) + 1

    def painted(self, paint: Paint, shown: str, at: int = 0) -> str:
        """The visible part of the text from a position on, with styles and maybe an ellipsis."""
        done = ""
        for text, style in self.parts:
            piece = shown[: max(len(text) - at, 0)]
            at = max(at - len(text), 0)
            shown = shown[len(piece) :]
            done += paint(style, piece) if piece and style else piece
        return done + shown


def of_severities(numbers: Mapping[str, int]) -> list[tuple[str, str]]:
    """Numbers of findings in words, each with its style, the gravest first, none for zero."""
    return [
        (of_severity(numbers[severity], severity), severity)
        for severity in reversed(SEVERITIES)
        if numbers[severity]
    ]


def heading(title: str, shown: int, number: int) -> Words:
    """The heading of a section that shows `shown` of `number` rows."""
    note = f" ({count(shown)} of {count(number)})" if shown < number else ""
    return Words(f"\n{title}{note}", "heading")
