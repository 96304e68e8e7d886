"""`amqpsniff diagnose`: what is wrong in captures, the important first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amqpsniff import __version__
from amqpsniff.findings import SEVERITIES

from .completions import codes, listed, words
from .options import OUTPUT, ROWS, Input, Rows, check_format, format_option, spread, verbose_option
from .severities import check, fail_on_option

if TYPE_CHECKING:
    from amqpsniff.analysis.finding_tree import Row

FORMATS = ("text", "json", "ndjson", "sarif")
PLACES = 3
"""Places shown of each finding by default: enough to see what they have in common."""


@spread
def diagnose(
    source: Input,
    rows: Rows,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="CODES",
            autocompletion=listed(codes),
            help="Only findings with these codes, with commas between.",
            rich_help_panel=ROWS,
            show_default=False,
        ),
    ] = None,
    ignore: Annotated[
        str | None,
        typer.Option(
            metavar="CODES",
            autocompletion=listed(codes),
            help="Leave out findings with these codes, with commas between.",
            rich_help_panel=ROWS,
            show_default=False,
        ),
    ] = None,
    severity: Annotated[
        str | None,
        typer.Option(
            metavar="SEVERITY",
            autocompletion=words(SEVERITIES),
            help="Only findings of this severity (info, warning, error) or a worse one.",
            rich_help_panel=ROWS,
            show_default=False,
        ),
    ] = None,
    brief: Annotated[
        bool,
        typer.Option("--brief", help="Only the verdict and the lines.", rich_help_panel=OUTPUT),
    ] = False,
    verbose: Annotated[
        bool, verbose_option("Details of all findings, not only of those that the verdict tells.")
    ] = False,
    notes: Annotated[
        bool,
        typer.Option(
            "--notes/--no-notes",
            help="Show notes on configuration and security, or do not.",
            rich_help_panel=OUTPUT,
        ),
    ] = True,
    places: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Places shown of each finding.", rich_help_panel=OUTPUT
        ),
    ] = PLACES,
    fail_on: Annotated[
        str | None,
        fail_on_option(
            "Exit with 1 when there is a finding of this severity (info, warning, error) or a "
            "worse one, and when something could not be looked at: no AMQP, TLS without keys, one "
            "direction only, a version that is not decoded."
        ),
    ] = None,
    format_: Annotated[
        str, format_option(FORMATS, "; json has the verdict, ndjson the rows of the findings table")
    ] = FORMATS[0],
) -> int:
    """Say what is wrong in captures: the verdict first, then a line for each finding.

    Causes come before consequences. Details follow: the places, what to do, and what may be a false
    alarm. What was found on several connections is one finding. Notes on configuration and security
    stand at the end. `amqpsniff explain CODE` says more about each.

    Examples:

        amqpsniff diagnose trace.pcapng
        amqpsniff diagnose trace.pcapng --ignore connection-churn --brief
        amqpsniff diagnose captures/ --only frame-end-wrong,not-amqp --places 20
        amqpsniff diagnose trace.pcapng --fail-on error --format sarif > found.sarif
    """
    check_format(format_, FORMATS)
    check(fail_on)

    from .entry import FOUND
    from .output import write_json, write_text
    from .reading import Reading

    reading = Reading(source, rows, warned_of=())
    part = {name: value for name, value in vars(rows).items() if name != "limit"}
    with reading.passing() as capture:
        found = capture.diagnose(only=only, ignore=ignore, severity=severity, **part)
    shown = found.findings[: rows.limit]
    if format_ == "text":
        from .output import Output
        from .render.clock import Clock
        from .render.diagnosis import Layout, sections

        output = Output()
        layout = Layout(
            output.room,
            Clock("relative", reading.started()),
            narrow=output.narrow,
            several=len(reading.capture.names) > 1,
            places=places,
            limit=rows.limit,
            brief=brief,
            verbose=verbose,
            notes=notes,
        )
        output.show(*sections(found, layout))
    elif format_ == "json":
        write_json(found.plain(rows.limit))
    elif format_ == "ndjson":
        _write(shown)
    else:
        from amqpsniff.analysis.sarif import log

        successful = reading.exit_code == 0
        run = log(shown, reading.capture.names, version=__version__, successful=successful)
        write_text(json.dumps(run, indent=2) + "\n")
    return reading.exit_code or (FOUND if found.fails(fail_on) else 0)


def _write(found: list[Row]) -> None:
    """Write rows of the findings table."""
    from amqpsniff.tables.export import write
    from amqpsniff.tables.schema import FINDINGS

    from .rows import standard_output

    write(_batches(found), FINDINGS, "ndjson", standard_output())


def _batches(found: list[Row]) -> Any:
    import pyarrow as pa

    from amqpsniff.tables.schema import FINDINGS

    for row in found:
        row["timestamp"] = None if row["ts_ns"] is None else row["ts_ns"] // 1000
    if found:
        yield pa.RecordBatch.from_pylist(found, schema=FINDINGS)
