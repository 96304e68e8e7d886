"""`amqpsniff summary`: what is in captures."""

from __future__ import annotations

from typing import Annotated

from .options import By, Input, Scope, at_least, spread
from .output import Output, write_answer
from .reading import NO_ROW, Reading
from .render.summary import sections

FORMATS = ("text", "json")
TOP = 10
"""Default rows of a section: what a screen holds."""


@spread()
def summary(
    source: Input,
    scope: Scope,
    limit: Annotated[int, at_least(1)] = TOP,
    by: By = None,
    format_: str = FORMATS[0],
) -> int:
    """Show what is in captures: connections, messages, routes, methods, errors, and their quality.

    It begins with what failed and with the quality of the capture. Then come connections, clients,
    messages, errors, latencies, queues, exchanges, routing keys and methods.

    Examples:

        amqpsniff summary trace.pcapng
        amqpsniff summary captures/ --client shop --from 10m --to 20m
        amqpsniff summary trace.pcapng --by operation
        amqpsniff summary trace.pcapng --format json | jq .errors
    """
    if by is not None:
        from .report_table import write_operations

        return write_operations(source, scope, limit, format_)

    reading = Reading(source, scope)
    with reading.passing() as capture:
        result = capture.summary(limit=limit, **scope.part())
    if scope != Scope() and not result["frames"]:
        reading.warn_of_nothing(NO_ROW)
    output = Output()
    shown = sections(result, output.room, narrow=output.narrow)
    write_answer(result, format_, shown)
    return reading.exit_code
