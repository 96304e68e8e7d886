"""The catalogue of findings as a list and as pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from amqpsniff.findings import GRADES, SUBJECTS

from .grid import Grid

INDENT = 2
PROSE = 88
"""Columns of a text at most, however wide the terminal: longer lines are hard to read."""


def listing(kinds: Sequence[Any], width: int) -> Iterator[Any]:
    """Codes with their severities and titles, one a line, by subject."""
    grid = Grid("code|severity|~what it says")
    for at, (subject, rows) in enumerate(SUBJECTS.items()):
        wanted = [kind for kind in rows if kind in kinds]
        if not wanted:
            continue
        if len(kinds) > len(rows):
            if at:
                grid.add("", "", "")
            grid.add(Text(subject, "heading"), "", "")
        for kind in wanted:
            grid.add(Text(kind.code, "name"), Text(kind.severity, kind.severity), kind.title)
    yield grid.build(width)


def page(kind: dict[str, Any]) -> Iterator[Any]:
    """One code with all that is known of it."""
    yield Text.assemble(
        (kind["code"], "heading"), "  ", (kind["severity"], kind["severity"]), "  ", kind["title"]
    )
    table = labelled(
        ("shown by", kind["evidence"]),
        ("what to do", kind["advice"]),
        ("false alarms", kind["false_alarms"] or "None are known."),
        ("rests on", f"{kind['grade']}: {GRADES[kind['grade']]}"),
        ("subject", kind["subject"]),
        ("brought about by", ", ".join(kind["causes"])),
        ("brings about", ", ".join(kind["leads_to"])),
    )
    yield Padding(table, (0, 0, 0, INDENT))


def labelled(*rows: tuple[str, str]) -> Table:
    """Texts with a label before each; those that are empty are left out."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="key", no_wrap=True)
    table.add_column(overflow="fold", max_width=PROSE)
    for label, text in rows:
        if text:
            table.add_row(label, Text(text))
    return table
