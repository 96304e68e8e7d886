"""Styles by what they mean; the only place that names a colour."""

from __future__ import annotations

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
    """What a terminal is told before and after a text of this style."""
    from rich.color import ColorSystem
    from rich.style import Style

    before, _, after = (
        Style.parse(definition).render("\0", color_system=ColorSystem.STANDARD).partition("\0")
    )
    return before, after
