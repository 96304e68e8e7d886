"""Operations of frameworks, for the commands that have `--by operation`."""

from __future__ import annotations

from typing import Any

from amqpsniff.units import count, duration, rate
from amqpsniff.wire_text import harmless

from .options import Input, Scope
from .output import Output
from .reading import NO_ROW, Reading
from .render.grid import Grid, or_none, table
from .render.styled_text import Words
from .render.text import NONE


def write_operations(source: Input, part: Scope, limit: int | None, form: str) -> int:
    """Write a row for each operation of the messages that are wanted; the exit code."""
    from .report_table import write_table

    reading = Reading(source, part)
    with reading.passing() as capture:
        table = capture.operations(**part.part())
    shown = table if limit is None else table.slice(0, limit)
    if form != "text":
        write_table(shown, form)
    elif shown.num_rows:
        Output().show(_grid(shown.to_pylist()))
    if not table.num_rows:
        reading.warn_of_nothing(NO_ROW)
    return reading.exit_code


def _grid(rows: list[dict[str, Any]]) -> Grid:
    time = or_none(lambda time_ms: duration(time_ms * 1e6))
    return table(
        rows,
        ("**operation", "operation", lambda text: harmless(text or NONE)),
        ("?*framework", "framework", lambda text: harmless(text or NONE)),
        (">published", "published", count),
        ("????>per s", "per_second", or_none(rate)),
        (">delivered", "delivered", count),
        ("??>retried", "retried", count),
        (">refused", "refused", count),
        (">failed", "failed", lambda number: Words(count(number), "error" if number else "")),
        ("?>in queue p50", "queue_p50_ms", time),
        ("????>in queue p95", "queue_p95_ms", time),
        ("?>at work p50", "work_p50_ms", time),
        ("????>at work p95", "work_p95_ms", time),
        ("???*error", "error_type", lambda text: harmless(text or "")),
    )
