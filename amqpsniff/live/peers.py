"""The row of an open connection, and of its channels.

For a channel from before the capture, or after a possible loss, the numbers of unconfirmed and
unacknowledged messages and the confirm times are lower bounds; `at_least` names those columns.
Deliveries that were unacknowledged when the capture began are not counted. Unknown values are null.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from amqpsniff.session.owing import stalled
from amqpsniff.session.rules.context import messages_of
from amqpsniff.session.table_rows import connection_row
from amqpsniff.spec import given_name

WINDOW = 5
"""Ticks that a rate is taken over: a number that can be read while it changes."""

HINT_COLUMNS = ("connection_id", "sender", "app_id", "user_id", "consumer_tag")
"""Columns of messages that identify a client whose handshake was not captured."""

Row = dict[str, Any]

_GENERATED = re.compile(r"amq\.|ctag\d|bunny-|None\d|\d+$")
"""Consumer tags that brokers and libraries make."""

RATES = ("published_per_s", "delivered_per_s", "sent_per_s", "received_per_s")
"""Messages that a client publishes and is delivered; bytes that it sends and receives."""


_NOTHING: Row = {}
"""The empty row of peers before anything is known: shared, never written to."""


class Peer:
    """An open connection: its last counts (time, published, delivered, bytes sent and received)."""

    __slots__ = ("connection", "hints", "login", "opened", "samples")

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.samples: list[tuple[float, ...]] = []
        self.login = self.hints = _NOTHING
        self.opened = False

    def tick(self, now: float, now_ns: int) -> Row:
        """The connection as a row; `now_ns` is the time of the last packet of all."""
        connection = self.connection
        session = connection.session
        open_channels = [] if session is None else channels(session)
        sent = (0, 0) if session is None else messages_of(session)
        counts = (now, *sent, *bytes_of(connection))
        if not self.samples:
            age_ns = max(0, now_ns - connection.conversation.start_ns)
            self.samples.append((now - age_ns / 1e9, 0.0, 0.0, 0.0, 0.0))
        self.samples = [*self.samples[-WINDOW:], counts]
        first = self.samples[0]
        connection_id, client, server = connection.name()
        self.read_login()
        debt = None if session is None else stalled(session, now_ns)
        return {
            "connection_id": connection_id,
            "client": client,
            "server": server,
            **{name: self.login.get(name) for name in ("name", "vhost", "product")},
            "user": self.login.get("user") or self.hints.get("user"),
            "label": self.label() or client or connection_id,
            "hangs": None if debt is None else debt.kind,
            "hangs_s": None if debt is None else (now_ns - (debt.since_ns or now_ns)) / 1e9,
            "channels": len(open_channels),
            **{name: _rate(first, counts, at) for at, name in enumerate(RATES, 1)},
            "published": int(counts[1]),
            "delivered": int(counts[2]),
            "unacked": known_sum(map(unacked, open_channels)),
            "unconfirmed": known_sum(map(unconfirmed, open_channels)),
            **latency("confirm", None if session is None else session.confirms),
            **latency("ack", None if session is None else session.acks),
            "blocked": session is not None and session.blocked_since is not None,
            "at_least": join_names(map(lower_bounds, open_channels)),
        }

    def add_hints(self, **hints: str | None) -> None:
        """Add names of the client from a message; the first of each kind stays."""
        for name, value in hints.items():
            if value and not (name == "consumer_tag" and _GENERATED.match(value)):
                self.hints = {name: value, **self.hints}

    def label(self) -> str | None:
        """The client's name, else its application, else its consumer, or None."""
        hints = self.hints
        return (
            given_name(self.login.get("name")) or hints.get("app_id") or hints.get("consumer_tag")
        )

    def read_login(self) -> None:
        """Read the login from the handshake, until it is complete."""
        session = self.connection.session
        if session is not None and session.handshake and not self.opened:
            self.login = _login(session, self.connection)
            self.opened = "connection.open-ok" in session.handshake


def rotate_latencies(session: Any) -> None:
    """Begin to forget latencies."""
    for delays in (session.confirms, session.acks):
        if delays is not None:
            delays.rotate()


def channels(session: Any) -> list[Any]:
    """The open channels of a session."""
    return [slot.channel for slot in list(session.slots()) if slot.channel is not None]


def channel_row(channel: Any) -> Row:
    """A channel of now."""
    return {
        "channel": channel.number,
        "mode": "confirm" if has_estimates(channel) else channel.mode,
        "prefetch": channel.prefetch_count if channel.amqp10 is None else _credit(channel),
        "consumers": channel.consumers,
        "published": channel.published,
        "unconfirmed": unconfirmed(channel),
        "at_least": lower_bounds(channel),
        "delivered": channel.delivered,
        "unacked": unacked(channel),
        "requeued": channel.times.requeued,
        "returned": channel.times.returned,
    }


def _credit(channel: Any) -> int | None:
    """The most credit of links on which the client receives, in sum; None without such a link."""
    links = [link for link in list(channel.amqp10.links.values()) if not link.sends]
    return sum(max(link.credit.most, 0) for link in links) if links else None


def has_estimates(channel: Any) -> bool:
    """True if confirms of publishes without known numbers are counted from what was seen."""
    confirms = channel.unnumbered_confirms
    return confirms is not None and confirms.answered > 0


def lower_bounds(channel: Any) -> str:
    """The names of the columns with lower bounds, or None if nothing is known."""
    names = []
    if channel.delivered and not channel.counts_deliveries():
        names.append("unacked")
    if channel.published and not channel.counts_publishes():
        names.append("unconfirmed")
    if has_estimates(channel):
        names += ["confirm_p50_ms", "confirm_p99_ms"]
    return " ".join(names)


def join_names(names: Iterable[str]) -> str:
    """The names of columns of several rows, each once."""
    return " ".join(sorted({name for text in names for name in text.split()}))


def unconfirmed(channel: Any) -> int | None:
    """Lower bound of the unconfirmed publishes; None if unknown."""
    if has_estimates(channel):
        return int(channel.unnumbered_confirms.unconfirmed)
    if channel.counts_publishes() or not channel.published:
        return int(channel.unconfirmed)
    return channel.publishes.above(channel.doubtful_publish()) or None


def unacked(channel: Any) -> int | None:
    """Lower bound of the unacknowledged deliveries; None if unknown.

    Consumers from before are taken to acknowledge if there was any acknowledgement.
    """
    if channel.counts_deliveries() or not channel.delivered:
        return int(channel.unsettled)
    acks = channel.times.acks
    if channel.deliveries and not (acks or channel.unsettled or channel.known):
        return None
    number: int = channel.deliveries.above(channel.doubtful_delivery(), acks > 0)
    return number or (None if channel.session.has_loss else 0)


def known_sum(numbers: Iterable[int | None]) -> int | None:
    """The sum of the known values; None if all of several are unknown."""
    listed = list(numbers)
    known = [number for number in listed if number is not None]
    return sum(known) if known or not listed else None


def bytes_of(connection: Any) -> tuple[int, int]:
    """Bytes that a connection's client sent, and that it received."""
    octets = connection.conversation.octets
    client = 1 if connection.client_direction == 1 else 0
    return octets[client], octets[1 - client]


def _login(session: Any, connection: Any) -> Row:
    row = connection_row(session)
    products = [part for part in (row["client_product"], row["client_version"]) if part]
    return {
        "name": row["connection_name"],
        "user": row["user"],
        "vhost": row["vhost"],
        "product": " ".join(products) or None,
    }


def _rate(first: tuple[float, ...], last: tuple[float, ...], at: int) -> float:
    return max(0.0, (last[at] - first[at]) / max(1e-3, last[0] - first[0]))


def latency(name: str, delays: Any) -> Row:
    """The recent quantiles; None without any time."""
    p50, p99 = (None, None) if delays is None else delays.quantiles(0.5, 0.99)
    return {
        f"{name}_p50_ms": None if p50 is None else p50 / 1e6,
        f"{name}_p99_ms": None if p99 is None else p99 / 1e6,
    }
