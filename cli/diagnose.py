"""`amqpsniff diagnose`: what is wrong in captures, the important first."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from amqpsniff.analysis.finding_tree import Row, cases, finding_rows, in_order

from .completions import codes, listed
from .options import OUTPUT, ROWS, Input, Rows, check_format, format_option, spread
from .severities import FailOn, check, fails

FORMATS = ("text", "ndjson", "sarif")
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
    places: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Places shown of each finding.", rich_help_panel=OUTPUT
        ),
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
    check_format(format_, FORMATS)
    check(fail_on)
    run = _Diagnosis(source, rows, only)
    found = run.read()
    if format_ == "text":
        run.show(found, places)
    elif format_ == "ndjson":
        run.write(found[: rows.limit])
    else:
        from .sarif import write

        write(found[: rows.limit], run.reading.capture.names, run.reading.exit_code)
    from .entry import FOUND

    failed = any(fails(row["severity"], fail_on) for row in found)
    return run.reading.exit_code or (FOUND if failed else 0)


class _Diagnosis:
    """One run of the command."""

    def __init__(self, source: Input, rows: Rows, only: str | None) -> None:
        from dataclasses import replace

        from amqpsniff.analysis.selection import RowFilter

        from .explain import kind_of
        from .reading import Reading

        self._codes = None
        if only is not None:
            self._codes = {kind_of(code.strip().lower()).code for code in only.split(",")}
        self._limit = rows.limit
        self.reading = Reading(source, rows, warned_of=())
        # the limit is for what is left when the important stands first
        everything = replace(rows, limit=None).selection()
        self._selection = RowFilter(everything, "findings", self.reading.started)

    def read(self) -> list[Row]:
        """All wanted rows of the findings table, the important first.

        Raises UsageError for a connection that is not there: it would pass for a sound one.
        """
        from amqpsniff.analysis.conversation import no_connection

        found: list[Row] = []
        part = self._selection.selection
        name, wanted = part.connection, part.matches_connection()
        tables = ("findings",) if wanted is None else ("findings", "connections")
        missing = wanted is not None
        for table, batch in self.reading.rows(*tables, progress=True):
            if table == "findings":
                found += finding_rows(self._selection.of(batch))
            elif wanted is not None:
                rows = batch.select(["connection_id", "client", "server"]).to_pylist()
                missing &= not any(wanted(*(one or "" for one in row.values())) for row in rows)
        if name is not None and missing and self.reading.capture.totals.connections:
            raise no_connection(name, self.reading.capture.totals.connections)
        if self._codes is not None:
            found = [row for row in found if row["code"] in self._codes]
        return in_order(found)

    def show(self, found: list[Row], places: int) -> None:
        """Write the findings for a person."""
        from amqpsniff.analysis.quality import quality

        from .output import Output
        from .render.clock import Clock
        from .render.diagnosis import Diagnosis, verdict

        totals = self.reading.capture.totals
        codes = {one.code for one in self.reading.findings}
        output = Output()
        clock = Clock("relative", self.reading.started())
        several = len(self.reading.capture.names) > 1
        diagnosis = Diagnosis(output.room, clock, places, several=several)
        told = cases(found)
        for case in told[: self._limit]:
            output.show(*diagnosis.case(case))
        output.show(verdict(told, totals, quality(totals), codes))

    def write(self, found: list[Row]) -> None:
        """Write rows of the findings table, the important first."""
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
