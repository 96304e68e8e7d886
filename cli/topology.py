"""`amqpsniff topology`: who publishes where, what is bound to what, and who consumes it."""

from __future__ import annotations

from typing import Annotated, Any

from amqpsniff.analysis.graph import WRITERS

from .options import Input, Scope, at_least, one_of, spread
from .output import write_answer, write_text
from .reading import Reading
from .render.topology import sections

GRAPHS = ("dot", "mermaid")
FORMATS = ("text", *GRAPHS, "json")
TOP = 20
"""Rows of a section, or edges of a kind, that are shown by default: what can still be looked at."""


@spread("""
    Output:
        -n --limit N: Rows to show of each section; edges of each kind in a graph. [default]
        --format F: Output format: {FORMATS}. [default]
""")
def topology(
    source: Input,
    scope: Scope,
    limit: Annotated[int, at_least(1)] = TOP,
    format_: Annotated[str, one_of(FORMATS, "no format {} here")] = FORMATS[0],
) -> int:
    """Show exchanges, queues, bindings, publishers and consumers as they were seen.

    What was declared and bound, and how many messages and bytes went along each edge. A graph
    leads from publishers over exchanges and queues to consumers.

    Examples:

        amqpsniff topology trace.pcapng
        amqpsniff topology trace.pcapng --format dot | dot -Tsvg > topology.svg
        amqpsniff topology captures/ --format mermaid --vhost shop
        amqpsniff topology trace.pcapng --format json | jq .queues
    """

    reading = Reading(source, scope)
    with reading.passing() as capture:
        result = capture.topology(limit=limit, **scope.part())
    _write(result, format_)
    if not any(number for name, number in result.items() if name.endswith("_count")):
        reading.warn_of_nothing("nothing was declared, published or delivered in what was captured")
    return reading.exit_code


def _write(result: Any, form: str) -> None:

    if form in GRAPHS:
        write_text(WRITERS[form](result))
    else:
        write_answer(result, form, sections(result))
