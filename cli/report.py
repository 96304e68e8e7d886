"""`amqpsniff report`: what happened, as one HTML page to look at and to hand on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from amqpsniff.units import octets

from .entry import complain
from .files import STANDARD_OUTPUT, sink
from .options import By, FailOn, Input, Names, Wanted, at_least, spread
from .reading import NO_ROW, Reading, judged

PAGE = Path("report.html")
"""Default name of the page's file."""


@spread("""
    Output:
        --connection ID: Show the conversation of this connection. Its id or the beginning of it,
            its client's address:port or :port; may be repeated. Default: one for each finding that
            matters. Nothing else of the report is left out.
        -o --output FILE: Write to this file. It is replaced once all is written; `-` is standard
            output. [default]
        --body-limit N: Bytes of each body that conversations show, 0 for none. [default]
        --title TEXT: Title of the page. Default: the names of the captures.
        --fail-on SEVERITY: Exit with 1 if there is a finding of this severity (info, warning,
            error) or a worse one.
""")
def report(
    source: Input,
    part: Names,
    wanted: Wanted,
    connection: list[str] | None = None,
    output: Path = PAGE,
    by: By = None,
    body_limit: Annotated[int, at_least(0)] = 0,
    title: str | None = None,
    fail_on: FailOn = None,
) -> int:
    """Write one HTML page about captures, to read offline and to hand on.

    It has the verdict, findings with evidence, and charts of rates, latencies and waiting messages
    over time. Connections, the topology and some conversations with the broker follow, in tables
    that sort and filter. The page has a megabyte or two however large the captures are. It loads
    nothing from the network, and says where it leaves something out. With --by operation it has the
    tasks, events and requests of frameworks too.

    Examples:

        amqpsniff report trace.pcapng
        amqpsniff report captures/ -o incident.html --title "Incident of 31 January"
        amqpsniff report trace.pcapng --connection 7f29 --connection :43706
        amqpsniff report trace.pcapng --vhost shop --from 10m --to 20m --fail-on error
    """
    from amqpsniff.report.page import begin_bundle

    terminal = "a page is not for a terminal; give -o FILE, or pipe it into a program"
    with sink(output, source.captures, terminal) as file:
        begin_bundle()  # what is not installed is said before anything is read
        reading = Reading(source, part)
        with reading.passing() as capture:
            page = capture.passes.report_page(
                tuple(connection or ()), title, **vars(wanted), **part.part()
            )
        if by is not None:
            reading.passes.check_read_again("operations")
            page.operations = reading.capture.operations(**part.part()).to_pylist()
        if page.data.missed:
            reading.warn_of_nothing(NO_ROW)
        reading.passes.read_sequences(page, body_limit)
        encoded = page.html().encode(errors="backslashreplace")
        file.write(encoded)
    if output != STANDARD_OUTPUT and not source.quiet:
        complain(f"{output}: {octets(len(encoded))}")
    failures = page.data.diagnosis.failures(fail_on)
    return judged(reading.exit_code, failures, quiet=source.quiet)
