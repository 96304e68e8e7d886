"""Words that mean different things in one text, for lines and tables.

What rich's `Text` is there for, without rich: its import takes as long as all else that a short
command does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .text import folded_at

if TYPE_CHECKING:
    from rich.text import Text

    from .theme import Paint


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
        """The text as lines of at most so many columns."""
        begin = 0
        for whole in self.plain.split("\n"):
            for line, at in folded_at(whole, width):
                yield self.painted(paint, line, begin + at)
            begin += len(whole) + 1

    def painted(self, paint: Paint, shown: str, at: int = 0) -> str:
        """What is shown of the text from a place on, in its styles; an ellipsis may end it."""
        done = ""
        for text, style in self.parts:
            piece = shown[: max(len(text) - at, 0)]
            at = max(at - len(text), 0)
            shown = shown[len(piece) :]
            done += paint(style, piece) if piece and style else piece
        return done + shown

    def rich(self) -> Text:
        """The same for rich."""
        from rich.text import Text

        return Text.assemble(*self.parts)
