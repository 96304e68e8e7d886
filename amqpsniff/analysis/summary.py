"""The summary: volumes, clients, routes, and errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from amqpsniff.analysis import times
from amqpsniff.analysis.clients import Clients
from amqpsniff.analysis.finding_tree import cases
from amqpsniff.analysis.quality import quality
from amqpsniff.analysis.verdict import Verdict, verdict
from amqpsniff.null import NULL
from amqpsniff.session.census import CLIENT
from amqpsniff.units import duration, plural
from amqpsniff.wire_text import in_a_sentence

if TYPE_CHECKING:
    from amqpsniff.findings import Finding
    from amqpsniff.pipeline import Totals

Row = dict[str, Any]

CONNECTION = (
    "protocol", "vhost", "user", "mechanism", "client_product", "client_version",
    "client_platform", "connection_name", "server_product", "server_version", "channel_max",
    "frame_max", "heartbeat",
)  # fmt: skip
"""Columns of the connections table that the summary has."""

NOUNS = {
    "basic.nack": "refused message",
    "basic.return": "returned message",
    "disposition": "refused message",
    "sasl-outcome": "refused login",
    "connection.blocked": "broker alarm",
    "flow": "broker alarm",
}
"""Errors that the verdict tells apart from others, by method."""

MISSING, DECLARATIONS = 404, ("queue.declare", "exchange.declare")
"""NOT_FOUND, and the methods that it answers only where they are passive."""

LOOK_UP = "failed look-up"
"""The noun for such an answer; the verdict tells it after the errors."""

MAX_REASON = 300
"""Characters of a reason that are shown: all of one of 0-9-1, the beginning of a stack trace."""

RETURNS = ("basic.return", "file.return", "stream.return")
"""Messages that are an outcome and have none."""


class Summary(TypedDict):
    """A summary: counts, bytes, times in nanoseconds. None means unknown.

    Attributes:
        verdict: `text`, `severity`, `unseen` and `evidence` of the verdict on what needs no rules:
            errors, unclean ends and findings while decoding. `diagnose` has that on everything.
        captures, comments: Names of the captures; comments of their sections.
        packets, start, end, span_ns: Packets, times of the first and the last of them (RFC 3339),
            and the time between.
        chosen_start, chosen_end: The part of that time in which rows were counted, where a part of
            it was chosen; None for all of it, and where nothing of it was.
        quality: Numbers by name; see `amqpsniff.analysis.quality.quality`. `messages` has the
            number of messages by status.
        connection_count, chosen_count, connections: The number of all connections, and of those
            that were counted; the largest of these.
        tls: `conversations`, `unreadable` ones, and `rows` of those.
        clients: Kinds of clients with their number of `connections`.
        frames, methods: Numbers by frame type and by method.
        messages: `count`, rates and sizes of messages, by `method`.
        outcomes, replies: Numbers, and the quantiles of the time they took; the outcome None is
            that of messages without one. Empty for a part of the traffic.
        confirms_at_least: Number and quantiles of the least times to confirms on channels from
            before the capture, whose publishes have no outcome; None without any.
        exchanges, routing_keys, queues: The most used ones as `rows`, each with its `vhost`;
            `distinct` is the number of all. `message_count` and `consumer_count` are the last that
            the broker said of a queue, at the time `said_at`.
        errors, error_count: Replies and closes with an error; the number of all.
        findings, finding_count, finding_kinds: Findings by code, the worst first; the number of all
            findings and of their codes. Only those that need no rules: `diagnose` has all.
    """

    verdict: Row
    captures: list[str]
    comments: list[str]
    packets: int
    start: str | None
    end: str | None
    span_ns: int | None
    chosen_start: str | None
    chosen_end: str | None
    quality: Row
    connection_count: int
    chosen_count: int
    connections: list[Row]
    tls: Row
    clients: list[Row]
    frames: dict[str, int]
    methods: dict[str, int]
    messages: list[Row]
    outcomes: list[Row]
    confirms_at_least: Row | None
    replies: list[Row]
    exchanges: Row
    routing_keys: Row
    queues: Row
    errors: list[Row]
    error_count: int
    findings: list[Row]
    finding_count: int
    finding_kinds: int


def summary(
    statistics: Mapping[str, Any],
    totals: Totals,
    *,
    captures: Sequence[str],
    comments: Sequence[str] = (),
    tls: Iterable[Row] = (),
    outcomes: Mapping[str, tuple[int, Any]],
    replies: Mapping[str, Any],
    findings: Sequence[Finding] = (),
    part: bool = False,
    zone: str | None = None,
    top: int,
) -> Summary:
    """The summary of a pass.

    Args:
        statistics: The result of `amqpsniff.session.census.Census.facts`.
        totals: Counts of the pass.
        captures, comments: Names of the captures, and comments in them.
        tls: The TLS conversations.
        outcomes: Number of messages by outcome, each with the `Histogram` of the time it took.
        replies: The `Histogram` of the time that replies took, by the request's method.
        findings: Findings of the pass.
        part: True if only a part of the traffic was counted.
        zone: The time zone of times of day in the verdict; None for UTC.
        top: Rows of each section.
    """
    span_ns, (start_ns, stop_ns) = totals.lasted_ns, totals.span
    begin_ns, end_ns = _chosen(statistics["span"], totals)
    counted_ns = span_ns if begin_ns is None or end_ns is None else end_ns - begin_ns
    numbers = quality(totals)
    connections = [
        _connection(*connection, whole=statistics["whole"])
        for connection in statistics["connections"]
    ]
    chosen = statistics["counted"] if part else totals.connections
    bounds = None if part else _bounds(totals.confirm_bounds)
    messages = [_messages(statistics, name, counted_ns) for name in sorted(statistics["sizes"])]
    return {
        "verdict": _verdict(
            statistics, connections, findings, totals, numbers, chosen, zone
        ).plain(),
        "captures": list(captures),
        "comments": list(comments),
        "packets": totals.packets,
        "start": None if start_ns is None else times.absolute(start_ns),
        "end": None if stop_ns is None else times.absolute(stop_ns),
        "span_ns": span_ns,
        "chosen_start": None if begin_ns is None else times.absolute(begin_ns),
        "chosen_end": None if end_ns is None else times.absolute(end_ns),
        "quality": numbers | {"messages": _ranked(statistics["statuses"])},
        "connection_count": totals.connections,
        "chosen_count": chosen,
        "connections": connections,
        "tls": {
            "conversations": totals.encrypted,
            "unreadable": totals.sealed,
            "rows": sorted(tls, key=lambda row: bool(row["opened"]))[:top],
        },
        "clients": _clients(statistics["clients"]),
        "frames": _ranked(statistics["frames"]),
        "methods": _ranked(statistics["methods"]),
        "messages": messages,
        "outcomes": _outcomes(outcomes, messages, bounds is not None),
        "confirms_at_least": bounds,
        "replies": _replies(replies, top),
        "exchanges": _tallied(_by_exchange(statistics["routes"]), ("vhost", "exchange"), top),
        "routing_keys": _tallied(statistics["routes"], ("vhost", "exchange", "routing_key"), top),
        "queues": _queues(statistics, top),
        "errors": sorted(statistics["errors"], key=lambda error: -error["count"])[:top],
        "error_count": sum(error["count"] for error in statistics["errors"]),
        "findings": _findings(findings, top),
        "finding_count": len(findings),
        "finding_kinds": len({finding.code for finding in findings}),
    }


def _chosen(span: tuple[int | None, int | None], totals: Totals) -> tuple[int | None, int | None]:
    """The chosen part of the capture's time: begin and end, None for all of it or nothing."""
    from_ns, to_ns = span
    if span == (None, None) or totals.first_ns is None or totals.last_ns is None:
        return None, None
    begin_ns = max(totals.first_ns, totals.first_ns if from_ns is None else from_ns)
    end_ns = min(totals.last_ns, totals.last_ns if to_ns is None else to_ns)
    return (begin_ns, end_ns) if begin_ns < end_ns else (None, None)


def _verdict(
    statistics: Mapping[str, Any],
    connections: Sequence[Row],
    findings: Sequence[Finding],
    totals: Totals,
    numbers: Row,
    chosen: int,
    zone: str | None,
) -> Verdict:
    """The verdict on errors, unclean ends and the findings that need no rules."""
    reported = []
    errors = sorted(statistics["errors"], key=lambda error: _noun(error) == LOOK_UP)
    for noun in dict.fromkeys(map(_noun, errors)):
        group = [error for error in errors if _noun(error) == noun]
        worst = max(group, key=lambda error: error["count"])
        reply = (worst["reply_code"], worst["reply_text"])
        text = in_a_sentence(" ".join(str(part) for part in reply if part is not None), MAX_REASON)
        example = (" such as" if len(group) > 1 else ":") + f" {text}" if text else ""
        number = plural(sum(error["count"] for error in group), noun)
        place = f"{worst['method']} in packet {worst['packet_number']}"
        reported.append(f"{number}{example} ({place}).")
    if statistics["unclean"]:
        ended = plural(statistics["unclean"], "connection")
        reported.append(f"{ended} ended without a close.")
    return verdict(
        cases(findings),
        Clients(connections),
        numbers,
        packets=totals.packets,
        connections=totals.connections,
        chosen=chosen,
        start_ns=totals.span[0],
        zone=zone,
        reported=reported,
        looked="while decoding",
        halves=sum(0 in peer.conversation.packets for _, peer, _ in statistics["connections"]),
    )


def _noun(error: Row) -> str:
    """The noun for an error.

    A passive declaration checks if a name exists, so a 404 to it is a failed look-up. `diagnose`
    examines the client's next steps.
    """
    if error["reply_code"] == MISSING and error["close_method"] in DECLARATIONS:
        return LOOK_UP
    return NOUNS.get(error["method"], "error")


def _outcomes(
    outcomes: Mapping[str, tuple[int, Any]], messages: Iterable[Row], bounded: bool
) -> list[Row]:
    """Messages by outcome; those that have none are the last, if others or confirms were counted
    (`bounded`: publishes without known numbers).
    """
    rows: list[Row] = [
        {"outcome": name, "count": number, **_times(spread)}
        for name, (number, spread) in outcomes.items()
    ]
    settled = sum(row["count"] for row in rows)
    total = sum(message["count"] for message in messages if message["method"] not in RETURNS)
    if (rows or bounded) and total > settled:
        none = dict.fromkeys(("p50_ns", "p95_ns", "p99_ns", "max_ns"))
        rows.append({"outcome": None, "count": total - settled, **none})
    return rows


def _bounds(spread: Any) -> Row | None:
    """Lower bounds of confirm times for unknown publishes."""
    return None if spread is None else {"count": spread.facts()[0], **_times(spread)}


def least_text(least: Row) -> str:
    """The reason why publishes have no outcome, and the lower bounds of their confirm times."""
    names = ("p50", "p95", "p99", "max")
    times = ", ".join(f"{name} {duration(least[f'{name}_ns'])}" for name in names)
    return (
        "Publishes on channels from before the capture, or behind missing frames, have no known "
        f"numbers, so their outcome is (none). {plural(least['count'], 'confirm')} there took at "
        f"least: {times}."
    )


def _queues(statistics: Mapping[str, Any], top: int) -> Row:
    """The most used queues, and those that were not used but have messages."""
    tallied = _tallied(statistics["queues"], ("vhost", "queue"), top)
    depths = dict(statistics["depths"])
    for row in tallied["rows"]:
        row.update(_depth(*depths.pop((row["vhost"], row["queue"]), (None, None, NULL))))
    used = statistics["queues"].counts
    waiting = [(queue, *depth) for queue, depth in depths.items() if depth[0] and queue not in used]
    nothing = {"published": 0, "published_bytes": 0, "delivered": 0, "delivered_bytes": 0}
    waiting.sort(key=lambda row: -row[1])
    for (vhost, queue), *depth in waiting[: top - len(tallied["rows"])]:
        tallied["rows"].append({"vhost": vhost, "queue": queue, **nothing, **_depth(*depth)})
    if tallied["distinct"] is not None:
        tallied["distinct"] += len(waiting)
    return tallied


def _depth(messages: int | None, consumers: int | None, ts_ns: int) -> Row:
    """Messages and consumers of a queue as the broker gave them last, and the time of that."""
    said_at = None if ts_ns == NULL else times.absolute(ts_ns)
    return {"message_count": messages, "consumer_count": consumers, "said_at": said_at}


def _ranked(counts: dict[str, int]) -> dict[str, int]:
    """Counts by name, the most first."""
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def _connection(volume: Any, peer: Any, session: Any, *, whole: bool) -> Row:
    """One connection, or the selected part of it."""
    from amqpsniff.session.table_rows import connection_row

    frames, channels, client_bytes, server_bytes = volume.facts()
    if session is None:  # not a single method was decoded
        row = {"closed_by": peer.conversation.ended}
    else:
        row = connection_row(session)
        if whole:  # those that were open before the capture too
            channels = row["channels"]
    connection_id, client, server = peer.name()
    ends = {"connection_id": connection_id, "client": client, "server": server}
    return {
        **ends,
        **{name: row.get(name) for name in CONNECTION},
        "channels": channels,
        "frames": frames,
        "client_bytes": client_bytes,
        "server_bytes": server_bytes,
        **{name: row.get(name) for name in ("closed_by", "close_code", "close_text")},
    }


def _clients(kinds: dict[tuple[str | None, ...], int]) -> list[Row]:
    """Kinds of clients and how many connections each has, the most first."""
    names = [f"client_{name}" for name in CLIENT]
    return [
        {**dict(zip(names, kind, strict=True)), "connections": number}
        for kind, number in Counter(kinds).most_common()
    ]


def _messages(statistics: Mapping[str, Any], method: str, span_ns: int | None) -> Row:
    sizes = statistics["sizes"][method]
    _, octets, largest = sizes.facts()
    messages, peak, second = statistics["rates"][method].facts()
    p50, p95, p99 = sizes.quantiles(0.5, 0.95, 0.99)
    return {
        "method": method,
        "count": messages,
        "per_second": round(messages * 1e9 / span_ns, 3) if span_ns else None,
        "peak_per_second": peak,
        "peak_at": times.absolute(second * times.SECOND_NS) if second else None,
        "bytes": octets if largest is not None else None,
        "size_p50": p50,
        "size_p95": p95,
        "size_p99": p99,
        "size_max": largest,
    }


def _replies(replies: Mapping[str, Any], top: int) -> list[Row]:
    """The time that replies took, by the request's method, the most frequent first."""
    rows = [
        {"method": name, "count": spread.facts()[0], **_times(spread)}
        for name, spread in replies.items()
    ]
    return sorted(rows, key=lambda row: -row["count"])[:top]


def _times(spread: Any) -> dict[str, int | None]:
    p50, p95, p99 = spread.quantiles(0.5, 0.95, 0.99)
    return {"p50_ns": p50, "p95_ns": p95, "p99_ns": p99, "max_ns": spread.facts()[2]}


def _by_exchange(routes: Any) -> Any:
    """The counts of exchanges, over their routing keys."""
    from amqpsniff.session.counts import TopCounts

    tally = TopCounts()
    for (vhost, exchange, _), counts in routes.counts.items():
        tally.add((vhost, exchange), counts)
    tally.forgotten = routes.forgotten
    return tally


def _tallied(tally: Any, names: tuple[str, ...], top: int) -> Row:
    """The most used names; `distinct` is None if rare ones were forgotten."""
    from amqpsniff.session.counts import amounts

    rows = []
    for parts, counts in tally.top(top):
        published, published_bytes, delivered, delivered_bytes = amounts(counts)
        rows.append(
            {
                **dict(zip(names, parts, strict=True)),
                "published": published,
                "published_bytes": published_bytes,
                "delivered": delivered,
                "delivered_bytes": delivered_bytes,
            }
        )
    return {"distinct": None if tally.forgotten else len(tally.counts), "rows": rows}


def _findings(findings: Sequence[Finding], top: int) -> list[Row]:
    """Findings by code, the severe ones first; the detail is that of the first."""
    from amqpsniff.findings import SEVERITIES

    by_code: dict[str, dict[str, Any]] = {}
    for finding in findings:
        row = by_code.get(finding.code)
        if row is None:
            row = by_code[finding.code] = {
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
        row["places"] += 1
        row["count"] += finding.count
    ranked = sorted(
        by_code.values(), key=lambda row: (-SEVERITIES.index(row["severity"]), -row["count"])
    )
    return ranked[:top]
