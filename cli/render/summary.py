"""The summary of captures as sections of tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from amqpsniff.analysis.quality import EMPTY, FLAWLESS, flaws
from amqpsniff.analysis.summary import MAX_REASON, least_text
from amqpsniff.spec import given_name
from amqpsniff.units import UNKNOWN, count, duration, octets, plural, rate, some
from amqpsniff.wire_text import harmless, in_a_sentence, quoted

from . import tls_table
from .clock import in_zone
from .grid import (
    EXCHANGE,
    GAP,
    ID,
    METHOD,
    QUEUE,
    ROUTING_KEY,
    Column,
    Grid,
    ended,
    facts,
    or_none,
    or_unknown,
    packet_text,
    several_vhosts,
    table,
)
from .text import Words, cells

METHOD_COLUMNS = 3

MAX_COMMENTS = 5
"""Comments of a capture that are shown: it may have one for every section."""


def sections(
    result: Mapping[str, Any], width: int, *, narrow: bool = False, judged: bool = False
) -> Iterator[Grid | Words]:
    """Everything: the verdict, who is connected, how much, what failed, how long it took, where
    messages went, and methods last.

    `judged` is true if the verdict is that of `diagnose`.
    """
    yield from _verdict(result, judged)
    yield facts(_facts(result))
    tls = result["tls"]
    sealed = _of_total(len(tls["rows"]), tls["conversations"])
    found = _of_total(len(result["findings"]), result["finding_kinds"])
    for title, rows in (
        (_connections_title(result), _connections(result)),
        (f"TLS{sealed}", tls_table.grid(tls["rows"], narrow=narrow)),
        ("clients", _clients(result)),
        ("messages", _messages(result)),
        ("errors", _errors(result)),
        ("outcomes", _timed(result["outcomes"], "outcome", "messages")),
        ("replies", _timed(result["replies"], "method", "requests")),
        (_queues_title(result), _queues(result)),
        (_named_title("exchanges", result), _names(result, "exchanges")),
        (_named_title("routing keys", result), _names(result, "routing_keys")),
        (f"found while decoding{found}", _findings(result)),
        ("methods", _methods(result, width)),
    ):
        if rows.rows:
            yield Words(f"\n{title}", "heading")
            yield rows
        if title == "outcomes" and result["confirms_at_least"]:
            yield Words(least_text(result["confirms_at_least"]))


def _verdict(result: Mapping[str, Any], judged: bool) -> Iterator[Words]:
    """The verdict, and if rules did not look for findings, that `diagnose` does."""
    severity = result["verdict"]["severity"]
    text = Words(result["verdict"]["text"], "" if severity in (None, "info") else severity)
    if result["frames"] and not judged:
        text.add(" amqpsniff diagnose looks for more.", "key")
    yield text
    yield Words("")


def _facts(result: Mapping[str, Any]) -> Iterator[tuple[str, str | Words]]:
    names = [harmless(name) for name in result["captures"]]
    packets = plural(result["packets"], "packet")
    if result["span_ns"]:
        packets += f" in {duration(result['span_ns'])}"
    yield "capture" if len(names) == 1 else "captures", some(names)
    for comment in result["comments"][:MAX_COMMENTS]:
        yield "comment", harmless(comment.rstrip())
    yield "packets", packets
    if result["start"] is not None:
        yield "time", _from_to(result["start"], result["end"])
    if result["chosen_start"] is not None:
        yield "counted", f"from {_from_to(result['chosen_start'], result['chosen_end'])}"
    yield "traffic", _traffic(result)
    yield "quality", _quality(result)


def _from_to(start: str, end: str) -> str:
    """Two times, of the later one without the day where it is the same."""
    start, end = in_zone(start), in_zone(end)
    return f"{start} to {end[11:] if start[:10] == end[:10] else end}"


def _traffic(result: Mapping[str, Any]) -> str:
    quality = result["quality"]
    frames = sum(result["frames"].values())
    parts = [plural(result["connection_count"], "AMQP connection")]
    chosen = result["chosen_count"]
    if quality["midstream_connections"]:
        began = quality["midstream_connections"]
        is_part = began < result["connection_count"]
        parts[0] += f" ({f'{count(began)} of them ' if is_part else ''}began before the capture)"
    if chosen < result["connection_count"]:
        parts[0] += f", of which {count(chosen)} {'is' if chosen == 1 else 'are'} counted here"
    heartbeats = result["frames"].get("heartbeat", 0)
    parts.append(
        plural(frames, "frame") + (f", {plural(heartbeats, 'heartbeat')}" if heartbeats else "")
    )
    if quality["foreign_conversations"]:
        parts.append(f"{plural(quality['foreign_conversations'], 'TCP conversation')} not AMQP")
    if quality["failed_connects"]:
        parts.append(f"{plural(quality['failed_connects'], 'connect')} refused or unanswered")
    if quality["not_ip"] + quality["not_tcp"]:
        parts.append(f"{plural(quality['not_ip'] + quality['not_tcp'], 'packet')} without TCP")
    if quality["other_ports"]:
        parts.append(f"{plural(quality['other_ports'], 'packet')} of other ports not looked at")
    return " · ".join(parts)


def _quality(result: Mapping[str, Any]) -> Words:
    parts = flaws(result["quality"], {finding["code"] for finding in result["findings"]})
    if not result["packets"]:
        parts.append(EMPTY)
    return Words(" · ".join(parts), "warning") if parts else Words(FLAWLESS)


def _connections_title(result: Mapping[str, Any]) -> str:
    servers = {connection["server"] for connection in result["connections"]}
    products = {_product(connection, "server") for connection in result["connections"]} - {""}
    title = "connections"
    if len(servers) == 1:
        title += f" to {harmless(next(iter(servers)) or UNKNOWN)}"
        if len(products) == 1:
            title += f", {next(iter(products))}"
    return title + _of_total(len(result["connections"]), result["chosen_count"])


def _of_total(shown: int, all_: int | None) -> str:
    if all_ is None:
        return f" ({shown} of very many)"
    return f" ({shown} of {count(all_)})" if shown < all_ else ""


def _product(connection: dict[str, Any], side: str) -> str:
    parts = (connection[f"{side}_product"], connection[f"{side}_version"])
    return harmless(" ".join(part for part in parts if part))


def _name(connection: dict[str, Any]) -> str:
    return given_name(connection["connection_name"], _product(connection, "client")) or ""


def _connections(result: Mapping[str, Any]) -> Grid:
    rows = result["connections"]
    several = len({row["server"] for row in rows}) > 1
    return table(
        rows,
        ("*name", "", lambda row: or_unknown(_name(row))),
        ("*client", "client", or_unknown),
        *([("*server", "server", or_unknown)] if several else []),
        ("*vhost", "vhost", lambda name: UNKNOWN if name is None else harmless(name)),
        ("??user", "user", or_unknown),
        ("????>channels", "channels", count),
        ("???>frames", "frames", count),
        ("??>sent", "client_bytes", octets),
        ("?>received", "server_bytes", octets),
        ("closed", "", lambda row: ended(row["closed_by"], row["close_code"], row["close_text"])),
        ID,
    )


def _clients(result: Mapping[str, Any]) -> Grid:
    named = [client for client in result["clients"] if client["client_product"] is not None]
    return table(
        named[: max(len(result["connections"]), 1)],
        (">connections", "connections", count),
        ("*product", "client_product", or_unknown),
        ("version", "client_version", or_unknown),
        ("*platform", "client_platform", or_unknown),
    )


def _methods(result: Mapping[str, Any], width: int) -> Grid:
    """Methods and their numbers side by side, read downwards, without complete sets of answers."""
    numbers = result["methods"]
    pairs = [
        (count(number), harmless(method))
        for method, number in numbers.items()
        if number != numbers.get(method.removesuffix("-ok")) or not method.endswith("-ok")
    ]
    if not pairs:
        return Grid("")
    widest = sum(max(map(cells, texts)) for texts in zip(*pairs, strict=True)) + 2 * GAP
    columns = max(1, min(METHOD_COLUMNS, width // widest))
    grid = Grid("|".join(columns * (">", "*")))
    height = -(-len(pairs) // columns)
    for row in range(height):
        shown = pairs[row::height]
        shown += (columns - len(shown)) * [("", "")]
        grid.add(*(cell for number, method in shown for cell in (number, Words(method, "method"))))
    return grid


def _messages(result: Mapping[str, Any]) -> Grid:
    return table(
        result["messages"],
        ("*method", "method", METHOD),
        (">number", "count", count),
        ("?>per s", "per_second", rate),
        (">peak/s", "peak_per_second", count),
        (">bytes", "bytes", octets),
        (">p50", "size_p50", octets),
        ("???>p95", "size_p95", octets),
        ("??>p99", "size_p99", octets),
        (">largest", "size_max", octets),
    )


def _timed(rows: list[dict[str, Any]], name: str, label: str) -> Grid:
    """Quantiles of the time that things took, by name."""
    time = or_none(duration)
    return table(
        rows,
        (f"*{name}", name, lambda text: text or "(none)"),
        (f">{label}", "count", count),
        (">p50", "p50_ns", time),
        ("??>p95", "p95_ns", time),
        ("?>p99", "p99_ns", time),
        (">longest", "max_ns", time),
    )


def _named_title(title: str, result: Mapping[str, Any]) -> str:
    tally = result[title.replace(" ", "_")]
    return title + _of_total(len(tally["rows"]), tally["distinct"])


_NAMED = ("queues", "exchanges", "routing_keys")
_PUBLISHED = ((">published", "published", count), (">bytes", "published_bytes", octets))
_DELIVERED = ((">delivered", "delivered", count), (">bytes", "delivered_bytes", octets))


def _names(result: Mapping[str, Any], section: str) -> Grid:
    rows = result[section]["rows"]
    names = [column for column in (EXCHANGE, ROUTING_KEY) if rows and column[1] in rows[0]]
    return table(rows, *_vhosts(result), *names, *_PUBLISHED, *_DELIVERED)


def _vhosts(result: Mapping[str, Any]) -> Sequence[Column]:
    """The column of virtual hosts before names; empty if there is only one."""
    rows = [row for section in _NAMED for row in result[section]["rows"]]
    return several_vhosts(row["vhost"] for row in rows)


def _queues_title(result: Mapping[str, Any]) -> str:
    """The title of `_queues`: what the broker says of one may be older than its messages."""
    title = _named_title("queues", result)
    has_depths = any(row["message_count"] is not None for row in result["queues"]["rows"])
    return f"{title}; depth and consumers as the broker said last" if has_depths else title


def _queues(result: Mapping[str, Any]) -> Grid:
    """Queues with their last depth, from the broker's answer to a declaration."""
    return table(
        result["queues"]["rows"],
        *_vhosts(result),
        QUEUE,
        *_DELIVERED,
        (">depth", "message_count", or_none(count)),
        ("?>consumers", "consumer_count", or_none(count)),
        ("said at", "said_at", or_none(lambda at: in_zone(at)[11:])),
    )


def _errors(result: Mapping[str, Any]) -> Grid:
    return table(
        result["errors"],
        (">times", "count", count),
        ("method", "method", lambda method: Words(method, "method.error")),
        ("by", "sender", lambda sender: sender or UNKNOWN),
        ("code", "reply_code", or_none(str)),
        (">packet", "", lambda row: packet_text(row, len(result["captures"]) > 1)),
        (
            "~text",
            "reply_text",
            lambda text: quoted(in_a_sentence(text, MAX_REASON)) if text else "",
        ),
    )


def _findings(result: Mapping[str, Any]) -> Grid:
    return table(
        result["findings"],
        ("severity", "severity", lambda severity: Words(severity, severity)),
        (">times", "count", count),
        (">packet", "", lambda row: packet_text(row, len(result["captures"]) > 1)),
        ("~what", "", _finding_words),
    )


def _finding_words(row: dict[str, Any]) -> Words:
    text = Words(row["title"] + (f": {harmless(row['detail'])}" if row["detail"] else ""))
    if row["places"] > 1:
        text.add(f" and at {plural(row['places'] - 1, 'other place')}")
    return text.add("  ").add(row["code"], "name")
