"""docs/images: what commands show on a terminal, drawn by rich: `python -m tests.docs.pictures`.

A picture holds nothing but what the commands printed: fonts are those of the reader's machine, and
the captures are those of `samples`.
"""

from __future__ import annotations

import io
import re

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from tests.cli.running import on_terminal
from tests.docs.blocks import REPO

FOLDER = REPO / "docs" / "images"
COLUMNS = 108
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

PICTURES = {
    "overview": (
        "inspect pika_mix.pcap --connection :43706 --channel 3 --to +1.1712s",
        "diagnose blocked.pcap --brief --no-notes",
    ),
}
"""The commands of each picture, run in `samples`."""

THEME = TerminalTheme(
    (27, 31, 36),
    (222, 226, 230),
    [
        (27, 31, 36), (255, 123, 114), (87, 202, 115), (226, 178, 72),
        (108, 174, 255), (210, 154, 255), (72, 196, 204), (222, 226, 230),
    ],
)  # fmt: skip
"""Bright enough on dark for small letters."""


def svg(name: str) -> str:
    """The picture of this name as it is now."""
    console = Console(
        record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, legacy_windows=False,
        color_system="standard",
    )  # fmt: skip
    for number, command in enumerate(PICTURES[name]):
        # -q: on a busy machine reading takes long enough for a bar of progress
        shown = on_terminal(*command.split(" "), "-q", columns=COLUMNS, no_color=None)
        assert shown.code == 0, shown.out
        console.print(f"{chr(10) if number else ''}[bold]$ amqpsniff {command}[/]", highlight=False)
        console.print(Text.from_ansi(shown.out.rstrip("\n")), soft_wrap=True)
    drawn = console.export_svg(title="amqpsniff", theme=THEME, unique_id=f"amqpsniff-{name}")
    return "\n".join(line.rstrip() for line in _offline(drawn).splitlines()) + "\n"


def _offline(drawn: str) -> str:
    """rich's drawing without the fonts that it takes from the network."""
    plain = re.sub(r"@font-face \{.*?\}\n", "", drawn, flags=re.DOTALL)
    return re.sub(r"<!-- .*? -->\n", "", plain).replace("Fira Code, monospace", FONTS)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in PICTURES:
        (FOLDER / f"{each}.svg").write_text(svg(each), encoding="utf-8")
