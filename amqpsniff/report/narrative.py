"""The report in sentences, written from its numbers and its findings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from amqpsniff.analysis.finding_tree import headings
from amqpsniff.analysis.quality import FLAWLESS
from amqpsniff.analysis.times import SECOND_NS, of_day, zone_name
from amqpsniff.analysis.top_rows import BAD_ENDS, Row
from amqpsniff.analysis.verdict import part_of
from amqpsniff.spec import PUBLISHES
from amqpsniff.units import count, duration, octets, of_severity, plural
from amqpsniff.wire_text import harmless, shortened

if TYPE_CHECKING:
    from amqpsniff.analysis.report_data import ReportData

MAX_POINTS = 500
"""Groups of steps in which the deepest point is looked for."""

MAX_NAMED = 3
"""Client libraries that are named in a sentence."""

MAX_CHARACTERS = 60
"""Characters of a client's product, and of its version."""

MIN_OUTAGE_NS = SECOND_NS
"""A shorter time without a connection is not reported."""

MIN_TIMES = 100
"""Fewer times have no 99th percentile."""

Tile = tuple[str, str, str]
"""(number, label, severity or empty)."""


def headline(data: ReportData) -> str:
    """The amount of traffic and its time, in one line."""
    summary, zone = data.summary, data.zone
    parts = [plural(summary["packets"], "packet")]
    start, end = (time_ns and of_day(time_ns, days=True, zone=zone) for time_ns in data.totals.span)
    if start and end:
        if summary["span_ns"]:
            parts[0] += f" in {duration(summary['span_ns'])}"
            start += f" to {end.removeprefix(start[:11])}"
        parts.append(f"{start} {zone_name(zone)}")
    return " · ".join(parts)


def tiles(summary: Row, data: ReportData) -> list[Tile]:
    """The numbers that one looks for first."""
    totals = _totals(data)
    cases = [case for case in data.diagnosis.cases if not case.is_note]
    found = {severity: len(headings(cases, severity)) for severity in ("error", "warning")}
    return [
        _tile(summary["chosen_count"], "connection"),
        _tile(totals["published"], "message", " published"),
        _tile(totals["delivered"], "message", " delivered"),
        (_p99(data, "confirm"), "confirms, 99 % within", ""),
        (_p99(data, "ack"), "acks, 99 % within", ""),
        (_p99(data, "reply"), "replies, 99 % within", ""),
        *(_severity_tile(number, severity) for severity, number in found.items()),
    ]


def _tile(number: int, noun: str, suffix: str = "") -> Tile:
    shown, _, label = plural(number, noun).partition(" ")
    return shown, label + suffix, ""


def _severity_tile(number: int, severity: str) -> Tile:
    shown, _, label = of_severity(number, severity).partition(" ")
    return shown, label, severity if number else ""


def sentences(summary: Row, data: ReportData) -> list[str]:
    """The sentences: all of the traffic first, then how it ended, then what is unknown."""
    if data.missed:
        return [*traffic(summary, data), "Nothing of it lies in the time that was chosen."]
    return [
        *traffic(summary, data),
        *_flow(summary, data),
        *waiting(data),
        *_ends(summary, data),
        *_outage(summary, data),
        *_unknown(data),
    ]


def _totals(data: ReportData) -> dict[str, int]:
    return {name: counts.total for name, counts in data.rates.items()}


def _p99(data: ReportData, name: str) -> str:
    (found,) = data.delays[name].overall((0.99,))
    return "–" if found is None else duration(found)


def traffic(summary: Row, data: ReportData) -> Iterator[str]:
    number = summary["connection_count"]
    if not summary["packets"]:
        yield "There is no packet in the capture."
        return
    if not number:
        yield "There is no AMQP in what was captured, as far as it can be read."
        return
    chosen = summary["chosen_count"]
    text = f"{part_of(number, chosen)} {'was' if chosen == 1 else 'were'} seen"
    clients = [client for client in summary["clients"] if client["client_product"]]
    if clients:
        names = [
            f"{_short(client['client_product'])} {_short(client['client_version'] or '')}".strip()
            + (f" ({count(client['connections'])})" if number > 1 else "")
            for client in clients[:MAX_NAMED]
        ]
        others = len(clients) - len(names)
        text += f", made with {', '.join(names)}" + (
            f" and {plural(others, 'other')}" if others else ""
        )
    peak = max((1, *data.levels["connections"].levels(MAX_POINTS)))
    if number > 1:
        text += f"; at most about {count(min(int(peak), chosen))} at a time"
    midstream = summary["quality"]["midstream_connections"]
    if midstream:
        subject = f"{count(midstream)} of them" if midstream < number else "All of them"
        text += f". {subject if number > 1 else 'It'} began before the capture"
    yield f"{text}."


def _flow(summary: Row, data: ReportData) -> Iterator[str]:
    rows = {row["method"]: row for row in summary["messages"]}
    published = next((rows[method] for method in sorted(PUBLISHES) if method in rows), None)
    totals = _totals(data)
    if published is not None and totals["published"]:
        text = f"Clients published {plural(totals['published'], 'message')}"
        if totals["published"] == published["count"]:
            if published["bytes"] is not None:
                text += f" with {octets(published['bytes'])} of bodies"
            text += f", at most {count(published['peak_per_second'])} in one second"
        yield f"{text}."
    if totals["delivered"]:
        text = f"The broker delivered {plural(totals['delivered'], 'message')}"
        if totals["acked"]:
            text += f"; consumers acknowledged {count(totals['acked'])}"
        yield f"{text}."
    outcomes = {row["outcome"]: row["count"] for row in summary["outcomes"]}
    words = (
        ("returned", "sent back for want of a queue"),
        ("rejected", "refused by the broker"),
        ("requeued", "put back into a queue"),
        ("discarded", "given up by a consumer"),
    )
    bad = [
        f"{count(outcomes[name])} {'was' if outcomes[name] == 1 else 'were'} {text}"
        for name, text in words
        if outcomes.get(name)
    ]
    if bad:
        yield f"Of the messages, {_joined(bad)}."


def waiting(data: ReportData) -> Iterator[str]:
    nouns = (("confirm", "confirm", "Confirms"), ("ack", "acknowledgement", "Acknowledgements"),
             ("reply", "reply to a request", "Replies to requests"))  # fmt: skip
    for name, singular, noun in nouns:
        delays = data.delays[name]
        if not delays.number:
            continue
        half, p99 = delays.overall((0.5, 0.99))
        assert half is not None and p99 is not None  # noqa: PT018 (there are some)
        if delays.number == 1:
            yield f"The only {singular} took {duration(delays.largest)}."
        elif delays.number < MIN_TIMES:
            yield (
                f"{noun} took {duration(half)} at the median of {delays.number}, "
                f"{duration(delays.largest)} at most."
            )
        else:
            yield (
                f"{noun} took {duration(half)} at the median; 99 of 100 came within "
                f"{duration(p99)}, the slowest took {duration(delays.largest)}."
            )
    depths = (("unacked", "delivery", "deliveries", "an acknowledgement"),
              ("unconfirmed", "publish", "publishes", "a confirm"))  # fmt: skip
    for name, singular, several, awaited in depths:
        level = data.levels[name]
        least = data.uncounted[name] > 0
        deepest = max(level.levels(MAX_POINTS), default=0)
        if deepest > 0:
            number = f"about {count(int(deepest))} {several}" if deepest > 1 else f"1 {singular}"
            rest = rest_words(level.total, data.abandoned[name], least=least)
            beginning = "At the highest, at least" if least else "At most"
            yield f"{beginning} {number} waited for {awaited} at a time{rest}."
    parts = [
        f"{plural(channels, 'channel')} that {'was' if channels == 1 else 'were'} {verb}"
        for level, verb in (("unacked", "delivered to"), ("unconfirmed", "published on"))
        if (channels := data.uncounted[level])
    ]
    if parts:
        yield (
            f"How much waited is not known of {_joined(parts)}: open before the capture began, or "
            "frames are missing."
        )


def rest_words(waiting: int, abandoned: int, *, least: bool) -> str:
    """The rest of a sentence about waiting messages: how many still wait, and how many had their
    channel or connection end first."""
    at_least = "at least " if least else ""
    parts = [f"; {at_least}{count(waiting)} still did at the end"] if waiting > 0 else []
    if abandoned:
        owner = "its channel" if abandoned == 1 else "their channels"
        parts.append(f"; {at_least}{count(abandoned)} got none before {owner} ended")
    return "".join(parts) or ("" if least else "; none did at the end")


def _outage(summary: Row, data: ReportData) -> Iterator[str]:
    """The longest time without a connection, where attempts to connect failed."""
    failed, steps = summary["quality"]["failed_connects"], data.steps
    levels = data.levels["connections"].levels(MAX_POINTS)
    if not failed or not any(levels):
        return
    groups = steps.groups(MAX_POINTS)
    longest, since = range(0), None
    for group, level in zip(groups, levels, strict=True):
        if level:
            gap = range(group.start if since is None else since, group.start)
            longest, since = max(longest, gap, key=len), group.stop
    length_ns = steps.at(longest.stop) - steps.at(longest.start)
    if length_ns >= MIN_OUTAGE_NS:
        begin = (steps.at(longest.start) - (data.start_ns or 0)) / SECOND_NS
        yield (
            f"From {begin:,.3f} s on no connection was open for {duration(length_ns)}; "
            f"{plural(failed, 'attempt')} to connect failed in all."
        )


def _ends(summary: Row, data: ReportData) -> Iterator[str]:
    ends = data.connections.ends
    bad = [(name, ends[name]) for name in ends if name in BAD_ENDS]
    if bad:
        clauses = [f"{count(number)} {_ended(name)}" for name, number in bad]
        yield f"Not all connections ended well: {_joined(clauses)}."
    elif summary["connection_count"] and ends:
        yield "No connection was closed with an error, reset, or cut without a close."


def _ended(name: str) -> str:
    return {
        "closed with an error": "closed with an error",
        "TCP reset": "by a TCP reset",
        "TCP ended without a close": "by the end of TCP, without a close",
    }[name]


def _unknown(data: ReportData) -> Iterator[str]:
    totals = data.totals
    parts = data.diagnosis.flaws
    if parts:
        yield f"The capture is not perfect: {', '.join(parts)}."
    elif totals.packets:
        yield f"The capture is good: {FLAWLESS}."
    if totals.sealed:
        yield "TLS is read where there are keys: --tls-keylog FILE, --tls-key FILE."


def _short(name: str) -> str:
    return shortened(harmless(name), MAX_CHARACTERS)


def _joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
