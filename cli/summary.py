"""`amqpsniff summary`: what is in captures."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amqpsniff.errors import UsageError

from . import times
from .options import OUTPUT, Input, Scope, spread
from .quality import quality

if TYPE_CHECKING:
    from .digest import Digest
    from .latencies import Latencies
    from .reading import Reading

FORMATS = ("text", "json")
TOP = 10
"""Rows of a section shown by default: what a screen holds."""


@spread
def summary(
    source: Input,
    scope: Scope,
    top: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Rows shown of each section.", rich_help_panel=OUTPUT
        ),
    ] = TOP,
    format_: Annotated[
        str,
        typer.Option(
            "--format", metavar="F", help="How it is written: text, json.", rich_help_panel=OUTPUT
        ),
    ] = FORMATS[0],
) -> int:
    """Show what is in captures: connections, messages, routes, times, errors, and their quality.

    How much there is and how good the capture is, who connected, how many messages of which size
    went where, what became of them and how long it took, which methods were used, what was refused
    or closed with an error, and findings.

    Examples:

        amqpsniff summary trace.pcapng
        amqpsniff summary captures/ --from +10m --to +20m --top 30
        amqpsniff summary trace.pcapng --format json | jq .errors
    """
    if format_ not in FORMATS:
        raise UsageError(f"no format `{format_}` here; there are {', '.join(FORMATS)}")
    from .reading import Reading

    reading = Reading(source)
    digest, latencies = _digest(reading, scope)
    result = report(reading, digest, top) | latencies.report()
    if format_ == "json":
        import json

        json.dump(result, sys.stdout, indent=2, ensure_ascii=False)
        sys.stdout.write("\n")
    else:
        from .output import Output
        from .render.summary import sections

        output = Output()
        output.show(*sections(result, output.room))
    return reading.exit_code


def _digest(reading: Reading, scope: Scope) -> tuple[Digest, Latencies]:
    """Read everything once."""
    from . import latencies as times_of
    from .digest import FRAME_COLUMNS, MESSAGE_COLUMNS, Digest
    from .selection import Selection

    digest, latencies = Digest(), times_of.Latencies()
    frames = Selection(scope, "frames", reading.started)
    messages = Selection(scope, "messages", reading.started)
    columns = {
        "frames": {*FRAME_COLUMNS, *times_of.FRAME_COLUMNS},
        "messages": {*MESSAGE_COLUMNS, *times_of.MESSAGE_COLUMNS},
    }
    for table, batch in reading.rows("frames", "messages", columns=columns, progress=True):
        if table == "frames":
            chosen = frames.of(batch)
            digest.add_frames(chosen)
            latencies.add_frames(chosen)
        else:
            chosen = messages.of(batch)
            digest.add_messages(chosen)
            latencies.add_messages(chosen)
    return digest, latencies


def report(reading: Reading, digest: Digest, top: int) -> dict[str, Any]:
    """The summary as JSON has it: counts, octets, nanoseconds; null is not known."""
    totals = reading.capture.totals
    span_ns = None
    if totals.first_ns is not None and totals.last_ns is not None:
        span_ns = totals.last_ns - totals.first_ns
    return {
        "captures": reading.capture.names,
        "packets": totals.packets,
        "start": times.absolute(totals.first_ns) if totals.first_ns is not None else None,
        "end": times.absolute(totals.last_ns) if totals.last_ns is not None else None,
        "span_ns": span_ns,
        "quality": quality(totals) | {"messages": dict(digest.statuses.most_common())},
        "connection_count": totals.connections,
        "connections": digest.connections.top(top),
        "clients": _clients(digest),
        "frames": dict(digest.frames.most_common()),
        "methods": dict(digest.methods.most_common()),
        "messages": [_messages(digest, name, span_ns) for name in sorted(digest.sizes)],
        "exchanges": _tallied(digest.exchanges, ("exchange",), top),
        "routing_keys": _tallied(digest.routes, ("exchange", "routing_key"), top),
        "queues": _tallied(digest.queues, ("queue",), top),
        "errors": sorted(digest.errors.values(), key=lambda one: -one["count"])[:top],
        "error_count": sum(one["count"] for one in digest.errors.values()),
        "findings": _findings(reading, top),
        "finding_count": len(reading.findings),
    }


def _clients(digest: Digest) -> list[dict[str, Any]]:
    """Kinds of clients and how many connections each has, the most first."""
    from .digest import CLIENT

    return [
        {
            **{f"client_{name}": value for name, value in zip(CLIENT, kind, strict=True)},
            "connections": count,
        }
        for kind, count in digest.clients.most_common()
    ]


def _messages(digest: Digest, method: str, span_ns: int | None) -> dict[str, Any]:
    """Number, rate and sizes of the messages of one method."""
    sizes, rate = digest.sizes[method], digest.rates[method]
    p50, p95, p99 = sizes.quantiles(0.5, 0.95, 0.99)
    peak_at = times.absolute(rate.peak_second * times.SECOND_NS) if rate.peak_second else None
    return {
        "method": method,
        "count": rate.messages,
        "per_second": round(rate.messages * 1e9 / span_ns, 3) if span_ns else None,
        "peak_per_second": rate.peak,
        "peak_at": peak_at,
        "octets": sizes.octets,
        "size_p50": p50,
        "size_p95": p95,
        "size_p99": p99,
        "size_max": sizes.largest if sizes.messages else None,
    }


def _tallied(tally: Any, names: tuple[str, ...], top: int) -> dict[str, Any]:
    """The most used names; `distinct` is null when rare ones were forgotten."""
    rows = []
    for name, counts in tally.top(top):
        parts = name if isinstance(name, tuple) else (name,)
        published, published_octets, delivered, delivered_octets = counts
        rows.append(
            {
                **dict(zip(names, parts, strict=True)),
                "published": published,
                "published_octets": published_octets,
                "delivered": delivered,
                "delivered_octets": delivered_octets,
            }
        )
    return {"distinct": None if tally.forgotten else len(tally.counts), "rows": rows}


def _findings(reading: Reading, top: int) -> list[dict[str, Any]]:
    """Findings by code, the severe ones first; the detail is that of the first."""
    from amqpsniff.findings import SEVERITIES

    by_code: dict[str, dict[str, Any]] = {}
    for finding in reading.findings:
        known = by_code.get(finding.code)
        if known is None:
            known = by_code[finding.code] = {
                "code": finding.code,
                "severity": finding.kind.severity,
                "title": finding.kind.title,
                "detail": finding.detail,
                "capture": finding.capture,
                "packet_number": finding.packet_number,
                "connection_id": finding.connection_id,
                "places": 0,
                "count": 0,
            }
        known["places"] += 1
        known["count"] += finding.count
    ranked = sorted(
        by_code.values(), key=lambda one: (-SEVERITIES.index(one["severity"]), -one["count"])
    )
    return ranked[:top]
