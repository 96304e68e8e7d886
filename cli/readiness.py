"""`amqpsniff diagnose --for`: changes of a newer broker that concern the traffic of captures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING

from amqpsniff.units import count, plural
from amqpsniff.wire_text import harmless

from .options import Rows
from .output import write_answer
from .reading import Reading, judged
from .render.grid import INDENT, PROSE, Grid, facts
from .render.text import Words

if TYPE_CHECKING:
    from amqpsniff.analysis.readiness import Affected, Readiness


def readiness(reading: Reading, target: str, rows: Rows, form: str, fail_on: str | None) -> int:
    """Show the changes of a newer broker; `fail_on` is about those that it refuses."""
    with reading.passing() as capture:
        found = capture.readiness(target, **rows.part())
    write_answer(asdict(found), form, sections(found))
    refused = dict.fromkeys(
        affected.what for affected in found.affected if affected.effect == "refused"
    )
    failures = (f"refused: {what}" for what in refused if fail_on is not None)
    return judged(reading.exit_code, failures, quiet=reading.options.quiet)


STYLES = {"refused": "error", "ignored": "warning", "changed": "info"}
"""The style of each effect."""

VERBS = {"refused": "refuses", "ignored": "ignores", "changed": "changes"}

MAX_THINGS = 3
"""Queues or exchanges of a client that are named in its line."""


def sections(found: Readiness) -> Iterator[Grid | Words]:
    """The verdict, then the changes, the worst first."""
    yield from _verdict(found)
    for code, group in groupby(found.affected, lambda affected: affected.code):
        rows = list(group)
        change = rows[0]
        yield Words("")
        heading = Words(change.effect, STYLES[change.effect]).add(f"  since {change.version}  ")
        yield heading.add(code, "name")
        yield _clients(rows)
        measured = ", ".join(change.measured)
        source = f"{change.source}; measured on {measured}" if measured else change.source
        texts = (("what changes", change.what), ("what to do", change.advice), ("source", source))
        yield facts(texts, indent=INDENT, max_width=PROSE)


def _verdict(found: Readiness) -> Iterator[Words]:
    version = f"RabbitMQ {found.version}"
    if not found.connections:
        yield Words(f"No AMQP connection was captured: nothing can be said about {version}.")
        return
    clients = {affected.client for affected in found.affected}
    if clients:
        codes = {affected.code: affected.effect for affected in found.affected}
        numbers = Counter(codes.values())
        *first, last = (f"{VERBS[effect]} {numbers[effect]}" for effect in numbers)
        changes = f"{', '.join(first)} and {last}" if first else last
        verb = "does" if len(clients) == 1 else "do"
        subject = plural(len(clients), "client")
        sentence = f"{version} {changes} of the things that {subject} in this capture {verb}."
        yield Words(sentence, STYLES[next(iter(numbers))])
    else:
        yield Words(f"Nothing in this capture is known to change with {version}.", "heading")
    limits = ["What was declared before the capture is not in it."]
    if found.midstream:
        connections = plural(found.connections, "connection")
        limits.append(f"{count(found.midstream)} of {connections} began before the capture.")
    if found.forgotten:
        limits.append(f"{count(found.forgotten)} more uses were counted and are not listed.")
    yield Words(" ".join(limits))


def _clients(rows: list[Affected]) -> Grid:
    """The clients that a change concerns, one a line."""
    grid = Grid(">packet|*client|user|vhost|>times|~about", indent=INDENT)
    for (client, user, vhost), group in _by_client(rows).items():
        things = [use.thing for use in group if use.thing]
        about = ", ".join(map(harmless, things[:MAX_THINGS]))
        if len(things) > MAX_THINGS:
            about += f" and {count(len(things) - MAX_THINGS)} more"
        first = min(use.packet_number for use in group)
        times = count(sum(use.count for use in group))
        grid.add(
            first, harmless(client), harmless(user or "?"), harmless(vhost or "?"), times,
            about or "the connection",
        )  # fmt: skip
    return grid


def _by_client(rows: list[Affected]) -> dict[tuple[str, str | None, str | None], list[Affected]]:
    clients: dict[tuple[str, str | None, str | None], list[Affected]] = {}
    for row in rows:
        clients.setdefault((row.client, row.user, row.vhost), []).append(row)
    return clients
