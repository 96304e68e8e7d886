"""`amqpsniff diagnose`: what is wrong in captures, the important first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from amqpsniff import __version__

from .completions import codes, listed
from .options import FILTERS, Input, Rows, format_option, option, spread
from .severities import FailOn

if TYPE_CHECKING:
    from amqpsniff.analysis.diagnosis import Diagnosis
    from amqpsniff.analysis.finding_tree import Row

    from .reading import Reading

FORMATS = ("text", "ndjson", "sarif")
PLACES = 3
"""Places shown of each finding by default: enough to see what they have in common."""


@spread
def diagnose(
    source: Input,
    rows: Rows,
    only: Annotated[
        str | None,
        option(
            "--only CODES",
            "Findings with these codes, with commas between.",
            FILTERS,
            autocompletion=listed(codes),
        ),
    ] = None,
    places: Annotated[
        int, option("--places N", "Places shown of each finding.", min=1, show_default=True)
    ] = PLACES,
    fail_on: FailOn = None,
    format_: Annotated[
        str, format_option(FORMATS, "; ndjson gives the rows of the findings table")
    ] = FORMATS[0],
) -> int:
    """Say what is wrong in captures: what, where, why, and what to do about it.

    The important findings come first. Consequences stand under their cause; what was found on
    several connections is shown once, with the first places. `amqpsniff explain CODE` says more
    about each.

    Examples:

        amqpsniff diagnose trace.pcapng
        amqpsniff diagnose captures/ --only frame-end-wrong,not-amqp --places 20
        amqpsniff diagnose trace.pcapng --fail-on error --format sarif > found.sarif
    """
    from amqpsniff.findings.kind import at_least

    from .entry import FOUND
    from .output import write_text
    from .reading import Reading

    reading = Reading(source, rows, warned_of=())
    with reading.passing() as capture:
        found = capture.diagnose(only=only, **rows.part())
    shown = found.findings[: rows.limit]
    if format_ == "text":
        _show(reading, found, places, rows.limit)
    elif format_ == "ndjson":
        _write(shown)
    else:
        from amqpsniff.analysis.sarif import log

        successful = reading.exit_code == 0
        run = log(shown, reading.capture.names, version=__version__, successful=successful)
        write_text(json.dumps(run, indent=2) + "\n")
    failed = any(
        at_least(severity, fail_on) for severity in {row["severity"] for row in found.findings}
    )
    return reading.exit_code or (FOUND if failed else 0)


def _show(reading: Reading, found: Diagnosis, places: int, limit: int | None) -> None:
    """Write the findings for a person; the limit is one of cases."""
    from .output import Output
    from .render.clock import Clock
    from .render.diagnosis import CaseText, verdict

    output = Output()
    clock = Clock("relative", reading.started())
    several = len(reading.capture.names) > 1
    text = CaseText(output.room, clock, places, several=several)
    for case in found.cases[:limit]:
        output.show(*text.case(case))
    output.show(verdict(found))


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
