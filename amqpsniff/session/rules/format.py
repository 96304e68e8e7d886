"""Words for numbers, names and values of rows in the details of findings."""

from __future__ import annotations

import re
from collections.abc import Collection
from heapq import nsmallest
from typing import Any

from amqpsniff.spec import reply_code
from amqpsniff.units import duration


def number_of(count: int, one: str, many: str = "") -> str:
    """A count with its noun."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def took_text(count: int, total_ns: int, longest_ns: int) -> str:
    """Mean and maximum of some times, or the only time."""
    if count == 1:
        return duration(longest_ns)
    return f"{duration(total_ns / count)} on average and {duration(longest_ns)} at most"


NOTICED_NS = 10_000_000
"""Of shorter times it does not matter whose they are."""


def round_trip_text(session: Any, took_ns: float) -> str:
    """The network's part of the time to an answer, as text; empty if unknown.

    It is the round trip of the TCP handshake, measured at any point of capture.
    """
    round_trip_ns = session.connection.conversation.round_trip_ns
    if not 0 < round_trip_ns < took_ns or took_ns < NOTICED_NS:
        return ""
    return f", {duration(round_trip_ns)} of it the network's round trip"


def name_at(rows: Any, column: str, row: int) -> str | None:
    """An exchange, routing key or queue of a row; None for null."""
    name: str | None = rows.name_at(column, row)
    return name


def exchange_text(name: str | None) -> str:
    """An exchange by name; the one without a name is the default exchange."""
    if name is None:
        return "an exchange not captured"
    return f"exchange '{name}'" if name else "the default exchange"


def queue_text(name: str | None) -> str:
    """A queue by name."""
    return f"queue '{name}'" if name else "a queue not known"


def key_text(routing_key: str | None) -> str:
    """A routing key."""
    return "a routing key not captured" if routing_key is None else f"routing key '{routing_key}'"


def route(exchange: str | None, routing_key: str | None) -> str:
    """Exchange and routing key of a message, as text."""
    return f"{exchange_text(exchange)}, {key_text(routing_key)}"


def reason_text(reason: str | None) -> str:
    """The broker's reason, as text."""
    return "reason not captured" if reason is None else reason or "no reason given"


def reply_text(code: int | None, reason: str | None) -> str:
    """The broker's code and reason; the code's name, where the reason is not there."""
    if reason:
        return f"{code} {reason}"
    if code is None:
        return "code and reason not captured"
    known = reply_code(code)
    name = f" {known.name.upper().replace('-', '_')}" if known else ""
    return f"{code}{name}, {reason_text(reason)}"


_IN_QUOTES_OR_NUMBER = re.compile(r"('[^']*')|\d+")


def subject_of_text(text: str) -> str:
    """The text of an error without its numbers, which differ each time; numbers in names stay."""
    return _IN_QUOTES_OR_NUMBER.sub(r"\1", text)


def packets_text(first: int, last: int) -> str:
    """One packet, or from one to another."""
    return f"packets {first} to {last}" if last > first else f"packet {first}"


_ENDS = {
    "client": "the client closed {what}",
    "server": "the broker closed {what}",
    "fin": "TCP ended",
    "rst": "TCP was reset",
}


def when_closed(by: str) -> str:
    """At whose doing a channel or connection ended; `by` is its `closed_by`."""
    return f"when {_ENDS[by].format(what='it')}"


def until_closed(channel: Any) -> str:
    """The end of a channel as the end of a time span, as text."""
    what = "the connection" if channel.close is None else "the channel"
    return f"until {_ENDS[channel.closed_by].format(what=what)}"


def in_packet(number: int | None) -> str:
    """A packet as text, ` in packet 9`; empty if unknown."""
    return "" if not number else f" in packet {number}"


def queues_of(channel: Any) -> str:
    """Queues whose deliveries a channel's consumers acknowledge: three names."""
    return names_text(queues_read(channel))


def queues_read(channel: Any) -> set[str]:
    """Names of the queues whose deliveries a channel's consumers acknowledge."""
    consumers = list(channel.by_tag.values())
    if channel.amqp10 is not None:
        links = channel.amqp10.links.values()
        consumers = [link.address for link in links if link.address and not link.sends]
    return {
        consumer.queue
        for consumer in consumers
        if consumer.queue and not getattr(consumer, "no_ack", False)
    }


def names_text(names: Collection[str]) -> str:
    """Different names, at most three of them."""
    first = nsmallest(3, names)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(f"'{name}'" for name in first) + more
