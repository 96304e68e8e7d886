"""`amqpsniff diff`: two captures held against each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from amqpsniff.errors import UsageError

from .options import ROWS, Input, Two, check_format, format_option, spread, top_option
from .severities import check, fail_on_option, fails

if TYPE_CHECKING:
    from amqpsniff.compare import Facts

FORMATS = ("text", "json")
TOP = 20
"""Rows of a section shown by default: what a screen holds."""
FAILING = "Exit code"
"""A panel of the help."""


@spread
def diff(
    two: Two,
    same_traffic: Annotated[
        bool,
        typer.Option(
            "--same-traffic",
            help="Both captures are of the same connections, BEFORE made nearer to the clients and "
            "AFTER nearer to the broker: show one-way delays, and what was lost or altered in "
            "between.",
            rich_help_panel=ROWS,
        ),
    ] = False,
    fail_on: Annotated[
        str | None,
        fail_on_option(
            "Exit with 1 when AFTER has a finding of this severity (info, warning, error) or "
            "a worse one that BEFORE has not. With --same-traffic: error for altered octets, "
            "warning also for losses, info also for what a capture lacks.",
            FAILING,
        ),
    ] = None,
    fail_slower: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="PERCENT",
            help="Exit with 1 when the 95th percentile of confirms, acknowledgements or the "
            "replies of a method grew by more than this, and by more than chance.",
            rich_help_panel=FAILING,
            show_default=False,
        ),
    ] = None,
    top: Annotated[int, top_option()] = TOP,
    format_: Annotated[str, format_option(FORMATS)] = FORMATS[0],
) -> int:
    """Show what differs between two captures.

    Rates and latencies, findings that are new or gone, exchanges, queues, bindings, publishers and
    consumers, client versions, and how connections ended. Captures may differ in length: rates are
    by the second. What chance explains, as if events came independently of each other, is not
    called a change.

    Examples:

        amqpsniff diff monday.pcapng tuesday.pcapng
        amqpsniff diff baseline/ candidate/ --fail-on warning --fail-slower 20
        amqpsniff diff monday.pcapng tuesday.pcapng --format json | jq .findings
        amqpsniff diff --same-traffic client.pcap broker.pcap
    """
    check_format(format_, FORMATS)
    check(fail_on)
    if two.before == two.after == "-":
        raise UsageError("standard input can be one of the two captures, not both")
    if same_traffic:
        from .same_traffic import same_traffic as run

        if fail_slower is not None:
            raise UsageError("--fail-slower compares two runs; it does not go with --same-traffic")
        return run(two, fail_on, top, format_)
    return _Comparison(two).run(fail_on, fail_slower, top, format_)


class _Comparison:
    """One run of the command on captures of two times."""

    def __init__(self, two: Two) -> None:
        self._two = two
        self._code = 0

    def run(self, fail_on: str | None, fail_slower: float | None, top: int, form: str) -> int:
        from amqpsniff.compare import before_and_after
        from amqpsniff.garbage import give_back

        one, other = self._two.sides()
        before = self._read(one)
        give_back()
        after = self._read(other)
        report = before_and_after(before, after)
        report["failures"] = _failures(report, before, after, fail_on, fail_slower)
        _write(report, form, top)
        from .entry import FOUND, complain

        if not self._two.quiet:
            for failure in report["failures"]:
                complain(failure)
        return self._code or (FOUND if report["failures"] else 0)

    def _read(self, source: Input) -> Facts:
        """Everything about one side, in one pass."""
        from amqpsniff.analysis.topology import FRAME_COLUMNS, MESSAGE_COLUMNS, Routing
        from amqpsniff.compare import Facts
        from amqpsniff.session.census import Census
        from amqpsniff.session.counts import MOST_NAMES

        from .quality import quality
        from .reading import Reading
        from .render.quality import flaws

        reading = Reading(source)
        census, routing = Census(), Routing()
        facts = Facts(reading.capture.names)
        columns = {"frames": FRAME_COLUMNS, "messages": MESSAGE_COLUMNS}
        tables = ("frames", "messages", "connections", "channels", "findings")
        takers = {"frames": routing.add_frames, "messages": routing.add_messages}
        each = {
            "connections": facts.add_connection,
            "channels": facts.add_channel,
            "findings": facts.findings.append,
        }
        for table, batch in reading.rows(*tables, columns=columns, progress=True, census=census):
            if table in takers:
                takers[table](batch)
            else:
                for row in batch.to_pylist():
                    each[table](row)
        self._code = max(self._code, reading.exit_code)
        capture, totals = reading.capture, reading.capture.totals
        counted = census.facts()
        facts.add_census(counted, capture.outcomes, capture.replies)
        facts.packets, facts.connections = totals.packets, totals.connections
        facts.midstream, facts.start_ns = totals.midstream, totals.first_ns
        if totals.first_ns is not None and totals.last_ns is not None:
            facts.span_ns = totals.last_ns - totals.first_ns
        facts.topology = routing.report(MOST_NAMES)
        numbers = quality(totals) | {"messages": counted["statuses"]}
        facts.flaws = flaws(numbers, {one.code for one in reading.findings})
        return facts


def _failures(
    report: dict[str, Any],
    before: Facts,
    after: Facts,
    fail_on: str | None,
    fail_slower: float | None,
) -> list[str]:
    """Why the exit code is 1, one line each."""
    from amqpsniff.quantities import duration

    found = [
        f"new {row['severity']}: {row['title']} ({row['code']})"
        for row in report["findings"]
        if row["change"] == "new" and fails(row["severity"], fail_on)
    ]
    if fail_slower is not None:
        from amqpsniff.compare.figures import regressions

        found += [
            f"slower: {row['name']}, p95 {duration(row['before']['p95_ns'])} before, "
            f"{duration(row['after']['p95_ns'])} after"
            for row in regressions(before, after, fail_slower)
        ]
    return found


def _write(report: dict[str, Any], form: str, top: int) -> None:
    if form == "json":
        from .output import write_json

        write_json(report)
        return
    from .output import Output
    from .render.difference import sections

    output = Output()
    output.show(*sections(report, top))
