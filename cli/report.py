"""`amqpsniff report`: what happened, as one HTML page to look at and to hand on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from amqpsniff.errors import UsageError

from .options import OUTPUT, ROWS, FromTime, Input, Scope, ToTime, spread
from .severities import FailOn, check

PAGE = Path("report.html")
"""What the page is called when nobody says."""

STANDARD_OUTPUT = Path("-")


@spread
def report(
    source: Input,
    connection: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID",
            help="Show the conversation of this connection: its id or the beginning of it, its "
            "client's address:port or :port; may be repeated. Default: one for each finding that "
            "matters. Nothing else of the report is left out.",
            rich_help_panel=ROWS,
            show_default=False,
        ),
    ] = None,
    from_: FromTime = None,
    to: ToTime = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write to this file, which is replaced once all is written; `-` is standard "
            "output.",
            rich_help_panel=OUTPUT,
        ),
    ] = PAGE,
    title: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Title of the page. Default: the names of the captures.",
            rich_help_panel=OUTPUT,
            show_default=False,
        ),
    ] = None,
    fail_on: FailOn = None,
) -> int:
    """Write what happened as one HTML page that needs nothing else.

    What happened in sentences; rates, latencies and what was outstanding over time; how
    connections lived and ended; the topology as a picture; findings with evidence; what some
    connections and the broker said to each other; tables that sort and filter. The page is a
    megabyte or two however large the captures are, loads nothing from anywhere, and says where it
    leaves something out.

    Examples:

        amqpsniff report trace.pcapng
        amqpsniff report captures/ -o incident.html --title "Incident of 31 January"
        amqpsniff report trace.pcapng --connection 7f29 --connection :43706
        amqpsniff report trace.pcapng --from +10m --to +20m --fail-on error
    """
    check(fail_on)
    from amqpsniff.findings.kind import at_least
    from amqpsniff.report.page import begin_bundle

    from .entry import FOUND
    from .export import refuse_captures
    from .reading import NO_ROW, Reading

    if output != STANDARD_OUTPUT:
        refuse_captures(output, source.captures)
    elif sys.stdout.isatty():
        raise UsageError("a page is not for a terminal; give -o FILE, or pipe it into a program")
    begin_bundle()  # what is not installed is said before anything is read
    reading = Reading(source, Scope(from_=from_, to=to))
    with reading.passing() as capture:
        page = capture.report_page(tuple(connection or ()), from_, to, title)
    if page.data.missed:
        reading.warn_of_nothing(NO_ROW)
    reading.capture.read_sequences(page)
    _write(page.html(), output, quiet=source.quiet)
    failed = any(at_least(row["severity"], fail_on) for row in page.data.found)
    return reading.exit_code or (FOUND if failed else 0)


def _write(page: str, output: Path, *, quiet: bool) -> None:
    if output == STANDARD_OUTPUT:
        from .output import write_text

        write_text(page)
        return
    from amqpsniff.units import octets

    from .entry import complain
    from .export import replacing

    encoded = page.encode(errors="backslashreplace")
    with replacing(output) as file:
        file.write(encoded)
    if not quiet:
        complain(f"{output}: {octets(len(encoded))}")
