"""docs/findings.md, made from the catalogue: `python -m tests.docs.findings` writes it."""

from __future__ import annotations

from amqpsniff.findings import CATEGORIES, CONFIDENCES, SUBJECTS, Kind
from tests.docs.blocks import REPO

PAGE = REPO / "docs" / "findings.md"

HEADINGS = {
    "capture": "The capture",
    "handshake": "Opening a connection",
    "frames": "Frames",
    "methods": "Methods and their arguments",
    "contents": "Contents",
    "channels": "Connections and channels",
    "closings": "How channels and connections end",
    "links": "Links",
    "publishing": "Publishing",
    "delivery": "Delivery",
    "timing": "Time",
    "efficiency": "Efficiency",
    "security": "Security",
    "frameworks": "Frameworks",
}

BEGIN = """# Findings

This page explains every finding: its evidence, advice and known false alarms. A finding is a
problem of a capture or of the traffic in it, and a row of the
[`findings` table](tables.md#findings), with a count for its connection and channel. Where the
detail is about a queue, an exchange, a routing key, a message with an id or a link, each of them
has a row and a count of its own. After the first 20 of a connection the others share a row, whose
detail begins with "further ones, first:". Elsewhere the detail is that of the first one counted.
Findings never stop the analysis. `amqpsniff diagnose` lists the findings of a capture;
`amqpsniff explain CODE` prints an entry of this page.

The severity is `error`, `warning` or `info`. The confidence says what a finding rests on:

"""


def page() -> str:
    """The whole page."""
    parts = [
        BEGIN,
        "".join(f"- **{confidence}**: {meaning}\n" for confidence, meaning in CONFIDENCES.items()),
        "\nThe category says what a finding means for a search for faults:\n\n",
        "".join(f"- **{category}**: {meaning}\n" for category, meaning in CATEGORIES.items()),
    ]
    for subject, kinds in SUBJECTS.items():
        parts.append(f"\n## {HEADINGS[subject]}\n")
        parts += map(_entry, kinds)
    return "".join(parts)


def _entry(kind: Kind) -> str:
    lines = [
        f"\n### `{kind.code}`\n",
        f"{kind.title} ({kind.category}, {kind.severity}, {kind.confidence} confidence)\n",
        f"- *shown by*: {kind.evidence}",
        f"- *what to do*: {kind.advice}",
    ]
    if kind.false_alarms:
        lines.append(f"- *false alarms*: {kind.false_alarms}")
    if kind.causes:
        links = ", ".join(f"[{cause}](#{cause})" for cause in kind.causes)
        lines.append(f"- *brought about by*: {links}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
