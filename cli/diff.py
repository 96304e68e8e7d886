"""`amqpsniff diff`: two captures held against each other."""

from __future__ import annotations

from typing import Annotated

from amqpsniff.errors import UsageError
from amqpsniff.process_tuning import release_memory

from .entry import FOUND, complain
from .options import Two, at_least, one_of, spread
from .output import write_answer
from .reading import Reading
from .render.diff import sections
from .severities import FailOn

FORMATS = ("text", "json")
TOP = 20
"""Rows of a section shown by default: what a screen holds."""


@spread("""
    Output:
        --same-traffic: One-way delays and losses between two places. Both captures are of the same
            connections, BEFORE made nearer to the clients and AFTER nearer to the broker; also what
            was altered in between.
        -n --limit N: Rows to show of each section. [default]
        --format F: Output format: {FORMATS}. [default]

    Exit code:
        --fail-on SEVERITY: Exit with 1 when AFTER has a finding of this severity (info, warning,
            error) or a worse one that BEFORE has not. With --same-traffic: error for altered bytes,
            warning also for losses, info also for what a capture lacks.
        --fail-slower PERCENT: Exit with 1 when the 95th percentile of confirms, acknowledgements or
            the replies of a method grew by more than this, and by more than chance.
""")
def diff(
    two: Two,
    same_traffic: bool = False,
    fail_on: FailOn = None,
    fail_slower: Annotated[float | None, at_least(0)] = None,
    limit: Annotated[int, at_least(1)] = TOP,
    format_: Annotated[str, one_of(FORMATS, "no format {} here")] = FORMATS[0],
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
    if two.before == two.after == "-":
        raise UsageError("standard input can be one of the two captures, not both")
    if same_traffic:
        from .same_traffic import same_traffic as run

        if fail_slower is not None:
            raise UsageError("--fail-slower compares two runs; it does not go with --same-traffic")
        return run(two, fail_on, limit, format_)
    from amqpsniff.compare import before_and_after

    profiles, code = [], 0
    for side in two.sides():
        reading = Reading(side)
        with reading.passing() as capture:
            profiles.append(capture.profile())
        code = max(code, reading.exit_code)
        release_memory()
    report = before_and_after(*profiles, fail_on=fail_on, fail_slower=fail_slower)
    write_answer(report, format_, sections(report, limit))
    if not two.quiet:
        for failure in report["failures"]:
            complain(failure)
    return code or (FOUND if report["failures"] else 0)
