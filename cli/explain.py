"""`amqpsniff explain`: what the code of a finding means."""

from __future__ import annotations

from typing import Annotated

from amqpsniff.findings import KINDS, SUBJECTS, Kind
from amqpsniff.findings.catalogue import described, kind_of

from .completions import codes_and_subjects
from .options import offer, one_of, spread
from .output import write_answer
from .render.findings import listing, page

FORMATS = ("text", "json")


@spread("""
    Arguments:
        CODE: The code of a finding (frame-end-wrong), or a subject (frames). Without it: all codes,
            by subject.

    Output:
        --format F: Output format: {FORMATS}. [default]
""")
def explain(
    code: Annotated[str, offer(codes_and_subjects)] = "",
    format_: Annotated[str, one_of(FORMATS, "no format {} here")] = FORMATS[0],
) -> int:
    """Explain the code of a finding: what shows it, what to do, and what may be a false alarm.

    Codes stand behind the titles in what `diagnose` says, and in the column code of findings.

    Examples:

        amqpsniff explain frame-end-wrong
        amqpsniff explain handshake
        amqpsniff explain --format json | jq '.[].code'
    """
    kinds, single = _wanted(code.strip().lower())
    shown = page(described(kinds[0])) if single else [listing(kinds)]
    write_answer([described(kind) for kind in kinds], format_, shown)
    return 0


def _wanted(word: str) -> tuple[list[Kind], bool]:
    """The rows a person means, and whether it is one row that was asked for by its code."""
    if not word:
        return list(KINDS.values()), False
    if word in SUBJECTS:
        return list(SUBJECTS[word]), False

    return [kind_of(word)], True
