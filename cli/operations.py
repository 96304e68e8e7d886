"""Operations of frameworks, for the commands that have `--by operation`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .options import Input, Scope

if TYPE_CHECKING:
    from .render.grid import Grid

HEADINGS = (
    "**operation|?*framework|>published|????>per s|>delivered|??>retried|>refused|>failed|"
    "?>in queue p50|????>in queue p95|?>at work p50|????>at work p95|???*error"
)
TIMES = ("queue_p50_ms", "queue_p95_ms", "work_p50_ms", "work_p95_ms")


def write_operations(source: Input, part: Scope, limit: int | None, form: str) -> int:
    """Write a row for each operation of the messages that are wanted; the exit code."""
    from .output import Output
    from .reading import NO_ROW, Reading
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
    from amqpsniff.units import count, duration, rate
    from amqpsniff.wire_text import harmless

    from .render.grid import Grid
    from .render.styled_text import Words
    from .render.text import NONE

    grid = Grid(HEADINGS)
    for row in rows:
        failed = count(row["failed"])
        grid.add(
            harmless(row["operation"] or NONE),
            harmless(row["framework"] or NONE),
            count(row["published"]),
            NONE if row["per_second"] is None else rate(row["per_second"]),
            count(row["delivered"]),
            count(row["retried"]),
            count(row["refused"]),
            Words(failed, "error") if row["failed"] else failed,
            *(NONE if row[name] is None else duration(row[name] * 1e6) for name in TIMES),
            harmless(row["error_type"] or ""),
        )
    return grid
