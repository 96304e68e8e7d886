"""`amqpsniff diff --same-traffic`: the same connections captured at two places."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amqpsniff.compare.losses import KINDS
from amqpsniff.compare.same_traffic import WAYS, SameTraffic, failures
from amqpsniff.units import count, duration, octets, plural, some
from amqpsniff.wire_text import harmless

from .options import Two
from .output import write_answer
from .progress import Progress
from .reading import Reading, judged
from .render.grid import ID, METHOD, Column, Grid, facts, short_id, table
from .render.text import NONE, Words, heading


def same_traffic(two: Two, fail_on: str | None, top: int, form: str) -> int:
    """Compare two captures of the same connections; the exit code."""
    readings = [Reading(side) for side in two.sides()]
    traffic = SameTraffic(*(reading.passes for reading in readings))
    try:
        with Progress(not two.quiet) as bar:
            for packets in traffic.read():
                bar.at(packets)
        report = traffic.report(top)
    finally:
        traffic.close()
    for reading, sighting in zip(readings, traffic.sightings, strict=True):
        reading.passes.totals, reading.passes.found = sighting.totals, sighting.found
        reading.judge()
    report["failures"] = failures(report, fail_on)
    write_answer(report, form, sections(report))
    code = max(reading.exit_code for reading in readings)
    return judged(code, report["failures"], quiet=two.quiet)


Row = dict[str, Any]

ARROWS = {"to-broker": "client → broker", "to-client": "broker → client"}
LONG_NS = 60_000_000_000
MILLISECONDS, MICROSECONDS = 3, 6
"""Digits behind a second."""

_QUANTILES = ("min_ns", "p50_ns", "p95_ns", "p99_ns", "max_ns")
_SHORT = {
    "lost": "lost, sent again", "unrepaired": "lost, not acknowledged",
    "dropped": "came, not acknowledged", "needless": "sent again needlessly",
    "doubled": "came twice",
    "sender-capture": "not in sender's capture", "receiver-capture": "not in receiver's capture",
}  # fmt: skip
"""Losses of bytes, for a column."""
_HEADINGS = "|>least|>p50|>p95|??>p99|>longest"


def sections(report: Row) -> Iterator[Grid | Words]:
    """Everything; the verdict last: that is what stays on the screen."""
    yield facts(_facts(report))
    both = report["connections"]["both"]
    alone = sum(report["connections"][f"{side}_only"] for side in ("client_side", "broker_side"))
    lost = sum(report[way][kind]["places"] for way in WAYS for kind in KINDS)
    altered = report["altered"]["places"]
    if both:
        yield heading("delays, overall", 0, 0)
        yield _delays(report)
    for title, name, number in (
        ("delays by connection", "by_connection", both),
        ("slowest frames", "slowest", 0),
        ("losses", "losses", lost),
        ("alterations", "alterations", altered),
        ("connections of one side only", "unmatched", alone),
    ):
        if rows := report[name]:
            yield heading(title, len(rows), number)
            yield table(rows, *_COLUMNS[name]) if name in _COLUMNS else _connections(report)
    yield Words("")
    yield _verdict(report)


def _facts(report: Row) -> Iterator[tuple[str, str | Words]]:
    for name in ("client_side", "broker_side"):
        side = report[name]
        names = [harmless(capture) for capture in side["captures"]]
        text = some(names)
        text += f": {plural(side['packets'], 'packet')}"
        text += f", {plural(side['connections'], 'AMQP connection')}"
        if side["connections_forgotten"]:
            text += f" and {count(side['connections_forgotten'])} that are not compared"
        yield name.replace("_", " "), text
    connections = report["connections"]
    text = f"{count(connections['both'])} in both captures"
    for side in ("client_side", "broker_side"):
        if number := connections[f"{side}_only"]:
            text += f", {count(number)} at the {side.replace('_', ' ')} only"
    yield "connections", text
    if translated := _translated(report):
        yield "translated", Words(translated, "warning")
    yield "clocks", _clock(report["clock"]) if connections["both"] else NONE


def _translated(report: Row) -> str:
    """Which clients have other addresses at the broker."""
    names = [
        f"{harmless(row['client'])} is {harmless(row['broker_side_client'])} at the broker side"
        for row in report["by_connection"]
        if row["translated"]
    ]
    return some(names)


def _clock(clock: Row) -> str:
    """Facts about the two clocks."""
    if clock["offset_ns"] is None:
        return "there are not frames both ways to compare them by: delays are as the clocks say"
    ahead = clock["offset_ns"]
    side = "ahead of" if ahead >= 0 else "behind"
    lowest, highest = (signed(clock[f"{end}_ns"], MICROSECONDS) for end in ("lowest", "highest"))
    text = (
        f"broker side {signed(abs(ahead), MICROSECONDS)} {side} the client side, if the path takes "
        f"as long both ways; for certain between {lowest} and {highest}"
    )
    if clock["drift_ppm"] is not None:
        text += f"; it drifts {clock['drift_ppm']:+.1f} µs a second"
    if clock["exchanged"]:
        text += "; no delay is negative: the first capture must be that of the broker side"
    elif not clock["consistent"]:
        text += "; these contradict each other: a clock was set, or runs unsteadily"
    return text


def signed(time_ns: float, digits: int = MILLISECONDS) -> str:
    """A span of time that may be negative; a long one in seconds with so many digits after them.

    Clocks may be minutes apart, and it is the milliseconds that tell how long the path is.
    """
    if abs(time_ns) >= LONG_NS:
        return f"{time_ns / 1e9:,.{digits}f} s"
    return f"-{duration(-time_ns)}" if time_ns < 0 else duration(time_ns)


def _times(delays: Row | None, form: str) -> list[str]:
    found = delays[form] if delays is not None else None
    return [signed(found[name]) for name in _QUANTILES] if found else [NONE] * len(_QUANTILES)


def _delays(report: Row) -> Grid:
    table = Grid("way|by|>frames" + _HEADINGS)
    for way in WAYS:
        delays = report[way]["delays"]
        frames = count(report[way]["frames"]["both"])
        for form in ("corrected", "raw"):
            table.add(ARROWS[way], form, frames, *_times(delays, form))
    return table


def _connections(report: Row) -> Grid:
    rows = report["by_connection"]
    translated = any(row["translated"] for row in rows)
    seen = "?*seen at broker as|" if translated else ""
    table = Grid("id|*client|" + seen + "?**name|way|??>frames|>p50|>p95|??>longest|?>lost")
    form = "raw" if report["clock"]["offset_ns"] is None else "corrected"
    for row in rows:
        for way in WAYS:
            figures = row[way]
            times = dict(zip(_QUANTILES, _times(figures["delays"], form), strict=True))
            table.add(
                short_id(row["connection_id"]),
                harmless(row["client"]),
                *([harmless(row["broker_side_client"])] if translated else []),
                harmless(row["connection_name"] or ""),
                ARROWS[way],
                count(figures["frames"]["both"]),
                *(times[name] for name in ("p50_ns", "p95_ns", "max_ns")),
                count(figures["lost"] + figures["unrepaired"]),
            )
    return table


def _number(number: int | None) -> str:
    return NONE if number is None else f"#{number}"


def _names(names: list[str]) -> str:
    return harmless(" ".join(names))


def _corrected_or_raw(corrected: int | None, raw: int) -> int:
    return raw if corrected is None else corrected


_ID: Column = ("?id", "connection_id", short_id)
_WAY: Column = ("way", "way", ARROWS.__getitem__)

_COLUMNS: dict[str, tuple[Column, ...]] = {
    "slowest": (
        _WAY,
        (">delay", "", lambda row: signed(_corrected_or_raw(row["delay_ns"], row["raw_ns"]))),
        _ID,
        ("?>channel", "channel", count),
        ("*frame", "method", lambda method: METHOD(harmless(method))),
        (">client side", "client_side_packet_number", _number),
        (">broker side", "broker_side_packet_number", _number),
    ),
    "losses": (
        _WAY,
        _ID,
        (">offset", "offset", count),
        (">bytes", "bytes", count),
        (">times", "times", count),
        ("?>packet", "packet_number", _number),
        ("?*frames", "frames", _names),
        ("*what", "kind", _SHORT.__getitem__),
    ),
    "alterations": (
        _WAY,
        _ID,
        (">offset", "offset", count),
        (">within bytes", "bytes", count),
        ("*frames", "frames", _names),
    ),
    "unmatched": (
        ("side", "side", str),
        ID,
        ("*client", "client", harmless),
        ("*server", "server", harmless),
    ),
}
"""Columns of rows of the report."""


def _verdict(report: Row) -> Words:
    """The losses and alterations, in a few lines."""
    if not report["connections"]["both"]:
        return Words(
            "no connection in common: other traffic, or something between that ends TCP (a proxy, "
            "a load balancer), which makes connections of its own",
            "warning",
        )
    lines = []
    for way in WAYS:
        parts = []
        for kind, text in KINDS.items():
            fate = report[way][kind]
            if fate["places"]:
                parts.append(f"{text}: {plural(fate['places'], 'place')}, {octets(fate['bytes'])}")
        lines.append(f"{ARROWS[way]}: {'; '.join(parts) or 'nothing lost'}")
    altered = report["altered"]
    compared = octets(report["compared_bytes"])
    if altered["places"]:
        extent = f"{plural(altered['places'], 'place')} within {octets(altered['bytes'])}"
        lines.append(f"altered on the way: {extent}, of {compared} compared")
    else:
        lines.append(f"nothing altered in {compared} that were compared")
    return Words("\n".join(lines))
