"""`amqpsniff diagnose`: what is wrong in captures, the important first."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from amqpsniff import __version__
from amqpsniff.errors import UsageError

from .completions import words
from .files import standard_output, write_text
from .options import FailOn, Input, Rows, Wanted, at_least, offer, one_of, spread
from .output import Output, write_answer, write_json
from .reading import Reading, judged
from .render.clock import LineClock
from .render.readiness import sections

if TYPE_CHECKING:
    from amqpsniff.analysis.finding_tree import Row


FORMATS = ("text", "json", "ndjson", "sarif")
TARGETS = tuple(f"rabbitmq-4.{minor}" for minor in range(4))
PLACES = 3
"""Places shown of each finding by default: enough to see what they have in common."""


@spread("""
    Output:
        --for VERSION: Instead: what rabbitmq-4.0, 4.1, 4.2 or 4.3 does otherwise with this traffic.
        --evidence: With --format json: findings as a tree of causes, with the frames that show
            each. The captures are read twice.
        --brief: Only the verdict and the lines.
        -v --verbose: Details of all findings, not only of those that the verdict tells.
        --notes/--no-notes: Show notes on configuration and security, or leave them out, also of
            what --fail-on looks at.
        --places N: Places shown of each finding. [default]
        --fail-on SEVERITY: Exit with 1 if there is a finding of this severity (info, warning,
            error) or a worse one. Also if something could not be analysed: no AMQP, TLS without
            keys, one direction only, a version that is not decoded.
        --format F: Output format: {FORMATS}; json has the verdict, ndjson the rows of the findings
            table. [default]
""")
def diagnose(
    source: Input,
    rows: Rows,
    wanted: Wanted,
    for_: Annotated[str | None, offer(words(TARGETS))] = None,
    evidence: bool = False,
    brief: bool = False,
    verbose: bool = False,
    notes: bool = True,
    places: Annotated[int, at_least(1)] = PLACES,
    fail_on: FailOn = None,
    format_: Annotated[str, one_of(FORMATS, "no format {} here")] = FORMATS[0],
) -> int:
    """List problems in captures: the verdict first, then a line for each finding.

    Causes come before consequences. Details follow: the places, what to do, and what may be a false
    alarm. What was found on several connections is one finding. Notes on configuration and security
    stand at the end. `amqpsniff explain CODE` says more about each.

    Examples:

        amqpsniff diagnose trace.pcapng
        amqpsniff diagnose trace.pcapng --ignore connection-churn --brief
        amqpsniff diagnose captures/ --only frame-end-wrong,not-amqp --places 20
        amqpsniff diagnose trace.pcapng --fail-on error --format sarif > found.sarif
        amqpsniff diagnose trace.pcapng --format json --evidence > evidence.json
        amqpsniff diagnose trace.pcapng --for rabbitmq-4.3
    """
    if for_ is not None and format_ not in FORMATS[:2]:
        raise UsageError(f"--for has no format `{format_}`; it has {', '.join(FORMATS[:2])}")

    if evidence and (format_ != "json" or for_ is not None):
        raise UsageError("--evidence is for --format json, without --for")

    reading = Reading(source, rows, warned_of=())
    if for_ is not None:
        return _ready(reading, for_, rows, format_, fail_on)
    if evidence:
        reading.passes.check_read_again("--evidence")
    with reading.passing() as capture:
        found = capture.diagnose(**vars(wanted), **rows.part())
    if format_ == "text":
        from .render.diagnosis import Layout, sections

        output = Output()
        layout = Layout(
            output.room,
            LineClock("relative", reading.started),
            narrow=output.narrow,
            several=reading.several,
            places=places,
            limit=rows.limit,
            brief=brief,
            verbose=verbose,
            notes=notes,
        )
        output.show(*sections(found, layout))
    elif format_ == "json":
        write_json(capture.evidence(found) if evidence else found.plain(rows.limit))
    elif format_ == "ndjson":
        _write(found.findings[: rows.limit])
    else:
        from amqpsniff.analysis.sarif import log

        successful = reading.exit_code == 0
        shown = found.findings[: rows.limit]
        run = log(shown, reading.capture.names, version=__version__, successful=successful)
        write_text(json.dumps(run, indent=2) + "\n")
    return judged(reading.exit_code, found.failures(fail_on, notes), quiet=source.quiet)


def _ready(reading: Reading, target: str, rows: Rows, form: str, fail_on: str | None) -> int:
    """Show what a newer broker does otherwise; `fail_on` is about what it refuses."""
    with reading.passing() as capture:
        found = capture.readiness(target, **rows.part())
    write_answer(asdict(found), form, sections(found))
    refused = dict.fromkeys(one.what for one in found.affected if one.effect == "refused")
    failures = (f"refused: {what}" for what in refused if fail_on is not None)
    return judged(reading.exit_code, failures, quiet=reading.options.quiet)


def _write(found: list[Row]) -> None:
    import pyarrow as pa

    from amqpsniff.tables.export import write
    from amqpsniff.tables.schema import FINDINGS

    for row in found:
        row["timestamp"] = None if row["ts_ns"] is None else row["ts_ns"] // 1000
    batches = [pa.RecordBatch.from_pylist(found, schema=FINDINGS)] if found else []
    write(batches, FINDINGS, "ndjson", standard_output())
