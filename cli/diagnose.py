"""`amqpsniff diagnose`: what is wrong in captures, the important first."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

from amqpsniff import __version__
from amqpsniff.errors import UsageError
from amqpsniff.units import count, plural
from amqpsniff.wire_text import harmless

from .completions import words
from .files import standard_output, write_text
from .options import FailOn, Input, Rows, Wanted, at_least, offer, spread
from .output import Output, write_answer, write_json
from .reading import Reading, judged
from .render.clock import LineClock
from .render.grid import INDENT, PROSE, Grid, facts
from .render.text import Words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amqpsniff.analysis.readiness import Affected, Readiness


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
    format_: str = FORMATS[0],
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
        from amqpsniff.tables.batches import finding_batch
        from amqpsniff.tables.export import write
        from amqpsniff.tables.schema import FINDINGS

        batch = finding_batch(found.found[: rows.limit])
        write([batch] if len(batch) else [], FINDINGS, format_, standard_output())
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
    write_answer(asdict(found), form, _readiness(found))
    refused = dict.fromkeys(one.what for one in found.affected if one.effect == "refused")
    failures = (f"refused: {what}" for what in refused if fail_on is not None)
    return judged(reading.exit_code, failures, quiet=reading.options.quiet)


STYLES = {"refused": "error", "ignored": "warning", "changed": "info"}
"""The style of each effect."""

VERBS = {"refused": "refuses", "ignored": "ignores", "changed": "changes"}

MAX_THINGS = 3
"""Queues or exchanges of a client that are named in its line."""


def _readiness(found: Readiness) -> Iterator[Grid | Words]:
    """The verdict, then the changes, the worst first."""
    yield from _verdict(found)
    for code, group in groupby(found.affected, lambda one: one.code):
        rows = list(group)
        change = rows[0]
        yield Words("")
        heading = Words(change.effect, STYLES[change.effect]).add(f"  since {change.version}  ")
        yield heading.add(code, "name")
        yield _clients(rows)
        measured = ", ".join(change.measured)
        source = f"{change.source}; measured on {measured}" if measured else change.source
        told = (("what changes", change.what), ("what to do", change.advice), ("source", source))
        yield facts(told, indent=INDENT, most=PROSE)


def _verdict(found: Readiness) -> Iterator[Words]:
    version = f"RabbitMQ {found.version}"
    if not found.connections:
        yield Words(f"No AMQP connection was captured: nothing can be said about {version}.")
        return
    clients = {one.client for one in found.affected}
    if clients:
        codes = {one.code: one.effect for one in found.affected}
        numbers = Counter(codes.values())
        *first, last = (f"{VERBS[effect]} {numbers[effect]}" for effect in numbers)
        said = f"{', '.join(first)} and {last}" if first else last
        does = "does" if len(clients) == 1 else "do"
        who = plural(len(clients), "client")
        told = f"{version} {said} of the things that {who} in this capture {does}."
        yield Words(told, STYLES[next(iter(numbers))])
    else:
        yield Words(f"Nothing in this capture is known to change with {version}.", "heading")
    limits = ["What was declared before the capture is not in it."]
    if found.midstream:
        of = plural(found.connections, "connection")
        limits.append(f"{count(found.midstream)} of {of} began before the capture.")
    if found.forgotten:
        limits.append(f"{count(found.forgotten)} more uses were counted and are not listed.")
    yield Words(" ".join(limits))


def _clients(rows: list[Affected]) -> Grid:
    """The clients that a change concerns, one a line."""
    grid = Grid(">packet|*client|user|vhost|>times|~about", indent=INDENT)
    for (client, user, vhost), group in _by_client(rows).items():
        things = [one.thing for one in group if one.thing]
        about = ", ".join(map(harmless, things[:MAX_THINGS]))
        if len(things) > MAX_THINGS:
            about += f" and {count(len(things) - MAX_THINGS)} more"
        first = min(one.packet_number for one in group)
        times = count(sum(one.count for one in group))
        grid.add(
            first, harmless(client), harmless(user or "?"), harmless(vhost or "?"), times,
            about or "the connection",
        )  # fmt: skip
    return grid


def _by_client(rows: list[Affected]) -> dict[tuple[str, str | None, str | None], list[Affected]]:
    clients: dict[tuple[str, str | None, str | None], list[Affected]] = {}
    for one in rows:
        clients.setdefault((one.client, one.user, one.vhost), []).append(one)
    return clients
