"""`amqpsniff report-table`: one of the reports about captures, as a table.

The operations of frameworks, which other commands show with `--by operation`, are such a table too.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import pyarrow as pa

from amqpsniff.analysis.report_tables import REPORTS, find
from amqpsniff.analysis.report_tables import report_table as rows_of_report
from amqpsniff.errors import UsageError
from amqpsniff.units import count, duration, rate
from amqpsniff.wire_text import harmless

from .completions import words
from .files import standard_output
from .options import Decoding, Input, Reader, Scope, at_least, offer, spread
from .output import Output
from .reading import NO_ROW, Reading
from .render import query_result
from .render.grid import Grid, or_none, several_vhosts, table
from .render.text import NONE, Words

FORMATS = ("text", "json", "ndjson", "csv")

DIGITS = 3
"""Digits behind the point in text."""


@spread("""
    Arguments:
        NAME: The report: {REPORTS}. Without it: what each of them shows.

    Output:
        --bucket SECONDS: Length of a time bucket in the reports latency and saturation. Default: at
            most 120 buckets.
        -n --limit N: Show only the first N rows.
""")
def report_table(
    decoding: Decoding,
    name: Annotated[str, offer(words(REPORTS))] = "",
    captures: list[str] | None = None,
    bucket: Annotated[int | None, at_least(1)] = None,
    limit: Annotated[int | None, at_least(0)] = None,
    format_: str = FORMATS[0],
    reader: Reader = "auto",
) -> int:
    """Show counts, times and shares as a table, of all captures together.

    The reports are those of `batch`, without Spark. Each is a query over the tables; what matters
    most comes first.

    Examples:

        amqpsniff report-table
        amqpsniff report-table latency trace.pcapng
        amqpsniff report-table losses captures/ --format csv
    """
    if not name:
        return _list(format_)
    if captures and name not in REPORTS and captures[-1] in REPORTS:
        raise UsageError(
            f"the report stands first: amqpsniff report-table {captures[-1]} CAPTURE..."
        )
    find(name)
    if not captures:
        raise UsageError("no capture; see `amqpsniff report-table --help`")

    reading = Reading(decoding.of(captures, reader))
    table = rows_of_report(
        reading.passes, name, bucket_seconds=bucket or 0, rows=partial(reading.rows, progress=True)
    )
    write_table(table if limit is None else table.slice(0, limit), format_)
    if not table.num_rows:
        reading.warn_of_nothing("nothing of the kind was captured")
    return reading.exit_code


def _list(form: str) -> int:
    if form == "text":
        grid = Grid("report|~what it shows")
        for report in REPORTS.values():
            grid.add(Words(report.name, "name"), report.about)
        Output().show(grid)
        return 0
    rows = [
        {
            "report": report.name,
            "title": report.title,
            "about": report.about,
            "order": report.order,
        }
        for report in REPORTS.values()
    ]
    write_table(pa.Table.from_pylist(rows), form)
    return 0


def write_table(table: pa.Table, form: str) -> None:
    """Write rows as text for people, or for programs."""
    if form == "text":
        of_one = "vhost" in table.column_names and table["vhost"].unique().to_pylist()
        if of_one and not several_vhosts(of_one):
            table = table.drop_columns("vhost")
        query_result.show(_rounded(table).to_reader(), Output())
        return

    if form == "json":
        from amqpsniff.tables.values import json_text

        lines = ",\n".join(f"  {json_text(row)}" for row in table.to_pylist())
        standard_output().write(f"[\n{lines}\n]\n".encode() if lines else b"[]\n")
        return
    from amqpsniff.tables.export import write

    write(table.to_batches(), table.schema, form, standard_output())


def _rounded(table: pa.Table) -> pa.Table:
    """The table with numbers that a person can read."""
    import pyarrow.compute as pc
    from pyarrow import types

    for at, field in enumerate(table.schema):
        if types.is_floating(field.type):
            rounded: Any = pc.round(table.column(at), DIGITS)
            table = table.set_column(at, field, rounded)
    return table


def write_operations(source: Input, part: Scope, limit: int | None, form: str) -> int:
    """Write a row for each operation of the messages that are wanted; the exit code."""
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
