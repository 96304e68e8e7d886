"""`amqpsniff summary`: what is in captures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from . import encrypted, times
from .options import Input, Scope, check_format, format_option, spread, top_option
from .quality import quality

if TYPE_CHECKING:
    from .reading import Reading

FORMATS = ("text", "json")
CONNECTION = (
    "protocol", "vhost", "user", "mechanism", "client_product", "client_version",
    "client_platform", "connection_name", "server_product", "server_version", "channel_max",
    "frame_max", "heartbeat",
)  # fmt: skip
"""Columns of the connections table that the summary has."""

TOP = 10
"""Rows of a section shown by default: what a screen holds."""


@spread
def summary(
    source: Input,
    scope: Scope,
    top: Annotated[int, top_option()] = TOP,
    format_: Annotated[str, format_option(FORMATS)] = FORMATS[0],
) -> int:
    """Show what is in captures: connections, messages, routes, methods, errors, and their quality.

    How much there is and how good the capture is, who connected, how many messages of which size
    went where, which methods were used, what was refused or closed with an error, and findings.

    Examples:

        amqpsniff summary trace.pcapng
        amqpsniff summary captures/ --from +10m --to +20m --top 30
        amqpsniff summary trace.pcapng --format json | jq .errors
    """
    check_format(format_, FORMATS)
    from .reading import NO_ROW, Reading

    reading = Reading(source, scope)
    result = report(reading, _census(reading, scope, top), top)
    if scope != type(scope)():  # these are not counted apart
        result["outcomes"], result["replies"] = [], []
        if not result["frames"]:
            reading.warn_of_nothing(NO_ROW)
    if format_ == "json":
        from .output import write_json

        write_json(result)
    else:
        from .output import Output
        from .render.summary import sections

        output = Output()
        output.show(*sections(result, output.room, narrow=output.narrow))
    return reading.exit_code


def _census(reading: Reading, scope: Scope, top: int) -> dict[str, Any]:
    """Read everything once and count it."""
    from amqpsniff.session.census import Census

    from .selection import Selection

    selection = Selection(scope, "frames", reading.started)
    census = Census(top, scope.channel, selection.wants(), selection.span)
    reading.count(census)
    counted: dict[str, Any] = census.facts()
    return counted


def report(reading: Reading, counted: dict[str, Any], top: int) -> dict[str, Any]:
    """The summary as JSON has it: counts, octets, nanoseconds; null is not known."""
    totals, whole = reading.capture.totals, counted["whole"]
    span_ns = None
    if totals.first_ns is not None and totals.last_ns is not None:
        span_ns = totals.last_ns - totals.first_ns
    return {
        "captures": reading.capture.names,
        "comments": reading.capture.comments,
        "packets": totals.packets,
        "start": times.absolute(totals.first_ns) if totals.first_ns is not None else None,
        "end": times.absolute(totals.last_ns) if totals.last_ns is not None else None,
        "span_ns": span_ns,
        "quality": quality(totals) | {"messages": _ranked(counted["statuses"])},
        "connection_count": totals.connections,
        "connections": [_connection(*one, whole=whole) for one in counted["connections"]],
        "tls": encrypted.report(reading.capture.encrypted, totals, top),
        "clients": _clients(counted["clients"]),
        "frames": _ranked(counted["frames"]),
        "methods": _ranked(counted["methods"]),
        "messages": [_messages(counted, name, span_ns) for name in sorted(counted["sizes"])],
        "outcomes": _outcomes(reading),
        "replies": _replies(reading, top),
        "exchanges": _tallied(_by_exchange(counted["routes"]), ("exchange",), top),
        "routing_keys": _tallied(counted["routes"], ("exchange", "routing_key"), top),
        "queues": _tallied(counted["queues"], ("queue",), top),
        "errors": sorted(counted["errors"], key=lambda one: -one["count"])[:top],
        "error_count": sum(one["count"] for one in counted["errors"]),
        "findings": _findings(reading, top),
        "finding_count": len(reading.findings),
        "finding_kinds": len({finding.code for finding in reading.findings}),
    }


def _ranked(counts: dict[str, int]) -> dict[str, int]:
    """Counts by name, the most first."""
    return dict(sorted(counts.items(), key=lambda one: -one[1]))


def _connection(volume: Any, peer: Any, session: Any, *, whole: bool) -> dict[str, Any]:
    """What is known of one connection, of which a scope may have left something out."""
    from amqpsniff.session.records import connection_row

    frames, channels, client_octets, server_octets = volume.facts()
    if session is None:  # not a single method was decoded
        row = {"closed_by": peer.conversation.ended}
    else:
        row = connection_row(session, peer.dialect_name)
        if whole:  # those that were open before the capture too
            channels = row["channels"]
    connection_id, client, server = peer.name()
    named = {"connection_id": connection_id, "client": client, "server": server}
    return {
        **named,
        **{name: row.get(name) for name in CONNECTION},
        "channels": channels,
        "frames": frames,
        "client_octets": client_octets,
        "server_octets": server_octets,
        **{name: row.get(name) for name in ("closed_by", "close_code", "close_text")},
    }


def _clients(counts: dict[bytes, int]) -> list[dict[str, Any]]:
    """Kinds of clients and how many connections each has, the most first."""
    from collections import Counter

    from amqpsniff.decode.json_objects import read_object
    from amqpsniff.spec import peer_property

    said = ("product", "version", "platform")
    kinds: Counter[tuple[Any, ...]] = Counter()
    for octets, number in counts.items():
        properties = read_object(octets).get("client_properties")
        told = properties if isinstance(properties, dict) else {}
        kinds[tuple(peer_property(told, name) for name in said)] += number
    names = [f"client_{name}" for name in said]
    return [
        {**dict(zip(names, kind, strict=True)), "connections": number}
        for kind, number in kinds.most_common()
    ]


def _messages(counted: dict[str, Any], method: str, span_ns: int | None) -> dict[str, Any]:
    """Number, rate and sizes of the messages of one method."""
    sizes = counted["sizes"][method]
    _, octets, largest = sizes.facts()
    messages, peak, second = counted["rates"][method].facts()
    p50, p95, p99 = sizes.quantiles(0.5, 0.95, 0.99)
    return {
        "method": method,
        "count": messages,
        "per_second": round(messages * 1e9 / span_ns, 3) if span_ns else None,
        "peak_per_second": peak,
        "peak_at": times.absolute(second * times.SECOND_NS) if second else None,
        "octets": octets if largest is not None else None,
        "size_p50": p50,
        "size_p95": p95,
        "size_p99": p99,
        "size_max": largest,
    }


def _outcomes(reading: Reading) -> list[dict[str, Any]]:
    """What became of messages, and how long it took."""
    return [
        {"outcome": name, "count": number, **_times(spread)}
        for name, (number, spread) in reading.capture.outcomes.items()
    ]


def _replies(reading: Reading, top: int) -> list[dict[str, Any]]:
    """How long the replies of requests took, by the request's method, the most frequent first."""
    rows = [
        {"method": name, "count": spread.facts()[0], **_times(spread)}
        for name, spread in reading.capture.replies.items()
    ]
    return sorted(rows, key=lambda one: -one["count"])[:top]


def _times(spread: Any) -> dict[str, int | None]:
    p50, p95, p99 = spread.quantiles(0.5, 0.95, 0.99)
    return {"p50_ns": p50, "p95_ns": p95, "p99_ns": p99, "max_ns": spread.facts()[2]}


def _by_exchange(routes: Any) -> Any:
    """The counts of exchanges, over their routing keys."""
    from amqpsniff.session.counts import Tally

    tally = Tally()
    for (exchange, _), counts in routes.counts.items():
        tally.add(exchange, counts)
    tally.forgotten = routes.forgotten
    return tally


def _tallied(tally: Any, names: tuple[str, ...], top: int) -> dict[str, Any]:
    """The most used names; `distinct` is null when rare ones were forgotten."""
    from amqpsniff.session.counts import amounts

    rows = []
    for name, counts in tally.top(top):
        parts = name if isinstance(name, tuple) else (name,)
        published, published_octets, delivered, delivered_octets = amounts(counts)
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
