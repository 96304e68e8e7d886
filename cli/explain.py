"""`amqpsniff explain`: what the code of a finding means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from amqpsniff.findings import CATEGORIES, CONFIDENCES, KINDS, SUBJECTS, Kind
from amqpsniff.findings.catalogue import described, kind_of

from .completions import codes_and_subjects
from .options import offer, spread
from .output import write_answer
from .render.grid import INDENT, PROSE, Grid, facts
from .render.text import Words

FORMATS = ("text", "json")


@spread("""
    Arguments:
        CODE: The code of a finding (frame-end-wrong), or a subject (frames). Without it: all codes,
            by subject.
""")
def explain(
    code: Annotated[str, offer(codes_and_subjects)] = "",
    format_: str = FORMATS[0],
) -> int:
    """Explain the code of a finding: what shows it, what to do, and what may be a false alarm.

    Codes stand behind the titles in what `diagnose` says, and in the column code of findings.

    Examples:

        amqpsniff explain frame-end-wrong
        amqpsniff explain handshake
        amqpsniff explain --format json | jq '.[].code'
    """
    kinds, single = _kinds(code.strip().lower())
    shown = page(described(kinds[0])) if single else [listing(kinds)]
    write_answer([described(kind) for kind in kinds], format_, shown)
    return 0


def _kinds(word: str) -> tuple[list[Kind], bool]:
    """The rows for a word, and whether the word is the code of a single row."""
    if not word:
        return list(KINDS.values()), False
    if word in SUBJECTS:
        return list(SUBJECTS[word]), False

    return [kind_of(word)], True


def listing(kinds: Sequence[Any]) -> Grid:
    """Codes with their severities and titles, one a line, by subject."""
    grid = Grid("code|severity|~what it says")
    for at, (subject, rows) in enumerate(SUBJECTS.items()):
        listed = [kind for kind in rows if kind in kinds]
        if not listed:
            continue
        if len(kinds) > len(rows):
            if at:
                grid.add("", "", "")
            grid.add(Words(subject, "heading"), "", "")
        for kind in listed:
            severity = Words(kind.severity, kind.severity)
            grid.add(Words(kind.code, "name"), severity, kind.title)
    return grid


def page(kind: dict[str, Any]) -> Iterator[Grid | Words]:
    """One code with all texts of the catalogue."""
    heading = Words(kind["code"], "heading").add("  ").add(kind["severity"], kind["severity"])
    yield heading.add(f"  {kind['title']}")
    rows = (
        ("shown by", kind["evidence"]),
        ("what to do", kind["advice"]),
        ("false alarms", kind["false_alarms"] or "None are known."),
        ("confidence", f"{kind['confidence']}: {CONFIDENCES[kind['confidence']]}"),
        ("subject", kind["subject"]),
        ("category", f"{kind['category']}: {CATEGORIES[kind['category']]}"),
        ("brought about by", ", ".join(kind["causes"])),
        ("brings about", ", ".join(kind["leads_to"])),
    )
    yield facts(rows, indent=INDENT, max_width=PROSE)
