"""The catalogue of findings as a list and as pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from amqpsniff.findings import CATEGORIES, CONFIDENCES, SUBJECTS

from .grid import Grid, facts
from .text import Words

INDENT = 2
PROSE = 88
"""Columns of a text at most, however wide the terminal: longer lines are hard to read."""


def listing(kinds: Sequence[Any]) -> Grid:
    """Codes with their severities and titles, one a line, by subject."""
    grid = Grid("code|severity|~what it says")
    for at, (subject, rows) in enumerate(SUBJECTS.items()):
        wanted = [kind for kind in rows if kind in kinds]
        if not wanted:
            continue
        if len(kinds) > len(rows):
            if at:
                grid.add("", "", "")
            grid.add(Words(subject, "heading"), "", "")
        for kind in wanted:
            severity = Words(kind.severity, kind.severity)
            grid.add(Words(kind.code, "name"), severity, kind.title)
    return grid


def page(kind: dict[str, Any]) -> Iterator[Grid | Words]:
    """One code with all that is known of it."""
    heading = Words(kind["code"], "heading").add("  ").add(kind["severity"], kind["severity"])
    yield heading.add(f"  {kind['title']}")
    told = (
        ("shown by", kind["evidence"]),
        ("what to do", kind["advice"]),
        ("false alarms", kind["false_alarms"] or "None are known."),
        ("confidence", f"{kind['confidence']}: {CONFIDENCES[kind['confidence']]}"),
        ("subject", kind["subject"]),
        ("category", f"{kind['category']}: {CATEGORIES[kind['category']]}"),
        ("brought about by", ", ".join(kind["causes"])),
        ("brings about", ", ".join(kind["leads_to"])),
    )
    yield facts(told, indent=INDENT, most=PROSE)
