"""Figures of the traffic of now: rates, latencies and what is open, by connection and by name.

`Figures` counts rows as a `Census` does (it has one), and notes which connections are open. `tick`,
called about once a second, turns counts into rates over the last `WINDOW` ticks. A null rate,
latency or count is not known: of what began before the capture not everything is.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

from amqpsniff.session import Census
from amqpsniff.session.counts import Tally
from amqpsniff.session.lately import Lately
from amqpsniff.session.records import connection_row

WINDOW = 5
"""Ticks that a rate is taken over: a number that can be read while it changes."""

TURN_SECONDS = 30.0
"""How often latencies are begun anew: those shown are of the last 30 to 60 s."""

MOST_SHOWN = 2_000
"""Connections that are looked at in each tick, those that opened last: a look costs some 20 µs."""

MOST_NAMES = 500
"""Names of exchanges, keys and queues that rows are made of, the busiest."""

Row = dict[str, Any]

CONNECTION_COLUMNS = (
    "connection_id", "client", "server", "name", "user", "vhost", "product", "channels",
    "published_per_s", "delivered_per_s", "sent_per_s", "received_per_s", "published", "delivered",
    "unacked", "unconfirmed", "confirm_p50_ms", "confirm_p99_ms", "ack_p50_ms", "ack_p99_ms",
    "blocked",
)  # fmt: skip
"""What is told of a connection: octets per second sent and received are those of the client."""

EXCHANGE_COLUMNS = ("exchange", "published_per_s", "delivered_per_s", "octets_per_s",
                    "published", "delivered")  # fmt: skip
KEY_COLUMNS = ("exchange", "routing_key", *EXCHANGE_COLUMNS[1:])
QUEUE_COLUMNS = ("queue", "delivered_per_s", "octets_per_s", "delivered")

_FIELDS = ("published", "delivered", "sent", "received")


class _Peer:
    """An open connection: its counts at the last ticks, each (time, published, delivered, octets
    sent and received).
    """

    __slots__ = ("peer", "samples", "login")

    def __init__(self, peer: Any) -> None:
        self.peer = peer
        began = (time.monotonic(), 0.0, 0.0, 0.0, 0.0)
        self.samples: deque[tuple[float, ...]] = deque([began], maxlen=WINDOW + 1)
        self.login: Row = {}

    def tick(self, now: float) -> Row:
        """The connection as a row."""
        peer = self.peer
        session = peer.session
        channels = [] if session is None else _channels(session)
        counts = (now, *_counted(peer, session, channels))
        self.samples.append(counts)
        first = self.samples[0]
        connection_id, client, server = peer.name()
        if not self.login and session is not None and session.facts:
            self.login = _login(session, peer)
        return {
            "connection_id": connection_id,
            "client": client,
            "server": server,
            **{name: self.login.get(name) for name in ("name", "user", "vhost", "product")},
            "channels": len(channels),
            **{f"{name}_per_s": _rate(first, counts, at) for at, name in enumerate(_FIELDS, 1)},
            "published": int(counts[1]),
            "delivered": int(counts[2]),
            "unacked": sum(map(_unacked, channels)),
            "unconfirmed": sum(one.unconfirmed for one in channels),
            **_latency("confirm", None if session is None else session.confirms),
            **_latency("ack", None if session is None else session.acks),
            "blocked": session is not None and session.blocked_since is not None,
        }

    def turn(self) -> None:
        """Begin to forget latencies."""
        session = self.peer.session
        if session is not None:
            for delays in (session.confirms, session.acks):
                if delays is not None:
                    delays.turn()


class Figures:
    """A census of the run, and the figures of now.

    Args:
        top: Connections that the census keeps for the summary.
        channel: Count only this channel; null for all.
        wanted: Says of (connection id, client, server) whether it counts; null for all.

    Attributes:
        connections, exchanges, keys, queues: Rows as of the last tick, the busiest first.
        methods: Frames per second by method.
        open: How many connections are open.
        ended: How many ended.
    """

    def __init__(
        self,
        top: int,
        channel: int | None = None,
        wanted: Callable[[str, str, str], bool] | None = None,
    ) -> None:
        self.census = Census(top, channel, wanted)
        self.connections: list[Row] = []
        self.exchanges: list[Row] = []
        self.keys: list[Row] = []
        self.queues: list[Row] = []
        self.methods: dict[str, float] = {}
        self.ended = 0
        self._wanted = wanted
        self._peers: dict[Any, _Peer] = {}
        self._seen: tuple[Any, int] = ([], 0)
        self._turned = time.monotonic()
        self._routes, self._queues = Tally(), Tally()
        self._lately = Lately()
        self._late: deque[tuple[float, Any, Any]] = deque(maxlen=WINDOW)
        began: tuple[float, dict[str, int]] = (self._turned, {})
        self._methods = deque([began], maxlen=WINDOW + 1)

    def join(self, pipeline: Any) -> None:
        """Have a pipeline measure what figures are made of."""
        pipeline.tracker.settler.lately = self._lately

    @property
    def open(self) -> int:
        """Connections that are open."""
        return len(self._peers)

    def look(
        self,
        frames: Any,
        first_frame: int,
        messages: Any,
        first_message: int,
        peers: list[Any],
        captures: list[str],
        methods: dict[str, int],
    ) -> None:
        """Count rows; see `Census.look`."""
        self.census.look(frames, first_frame, messages, first_message, peers, captures, methods)
        listed, seen = self._seen
        if peers is not listed or len(peers) < seen:
            seen = 0
        for peer in peers[seen:]:
            if peer not in self._peers:
                self._peers[peer] = _Peer(peer)
        self._seen = peers, len(peers)

    def end(self, peer: Any, session: Any) -> None:
        """A connection is over; see `Census.end`."""
        self.census.end(peer, session)
        self._peers.pop(peer, None)
        self.ended += 1

    def tick(self) -> None:
        """Take the figures of now."""
        now = time.monotonic()
        if now - self._turned >= TURN_SECONDS:
            self._turned = now
            for one in self._peers.values():
                one.turn()
            self._lately.turn()
        rows = [one.tick(now) for one in list(self._peers.values())[-MOST_SHOWN:]]
        self.connections = [
            row for row in rows
            if self._wanted is None
            or self._wanted(row["connection_id"], row["client"] or "", row["server"] or "")
        ]  # fmt: skip
        self._tick_names(now)
        self._tick_methods(now)

    def facts(self) -> dict[str, Any]:
        """Everything that was counted; see `Census.facts`."""
        self._gather()
        counted: dict[str, Any] = self.census.facts()
        return counted | {"routes": self._routes, "queues": self._queues}

    def totals(self) -> Row:
        """Sums over the open connections, and latencies of all."""
        names = ("published_per_s", "delivered_per_s", "sent_per_s", "received_per_s",
                 "unacked", "unconfirmed")  # fmt: skip
        return {
            **{name: sum(row[name] or 0 for row in self.connections) for name in names},
            **_latency("confirm", self._lately.confirms),
            **_latency("ack", self._lately.acks),
        }

    def outstanding(self) -> tuple[int, int]:
        """Deliveries not acknowledged and publishes not confirmed, over all open connections."""
        sessions = [one.peer.session for one in self._peers.values()]
        channels = [
            one for session in sessions if session is not None for one in _channels(session)
        ]
        return sum(map(_unacked, channels)), sum(one.unconfirmed for one in channels)

    def channels_of(self, connection_id: str) -> list[Row]:
        """The open channels of a connection, as rows; empty when it is not open."""
        for one in self._peers.values():
            if one.peer.name()[0] == connection_id and one.peer.session is not None:
                return [_channel_row(channel) for channel in _channels(one.peer.session)]
        return []

    def connection(self, connection_id: str) -> Row | None:
        """All that is known of an open connection, as in the connections table."""
        for one in self._peers.values():
            if one.peer.name()[0] == connection_id and one.peer.session is not None:
                return connection_row(one.peer.session, one.peer.dialect_name)
        return None

    def counts_of(self, name: str) -> list[tuple[Any, list[int]]]:
        """Names of `routes` or `queues` since the beginning, the most used first."""
        self._gather()
        tally = self._routes if name == "routes" else self._queues
        return list(tally.counts.items())

    def _gather(self) -> tuple[Any, Any]:
        """Add what the census has of names to what was before; gives it."""
        routes, queues = self.census.turn()
        for whole, part in ((self._routes, routes), (self._queues, queues)):
            for name, counts in part.counts.items():
                whole.add(name, counts)
            whole.forgotten = whole.forgotten or part.forgotten
        return routes, queues

    def _tick_names(self, now: float) -> None:
        routes, queues = self._gather()
        self._late.append((now, routes, queues))
        spent = max(1.0, now - self._late[0][0] + 1.0)
        recent: dict[Any, list[int]] = {}
        exchanges: dict[str | None, list[int]] = {}
        consumed: dict[Any, list[int]] = {}
        for _, some_routes, some_queues in self._late:
            for name, counts in some_routes.counts.items():
                _add(recent, name, counts)
                _add(exchanges, name[0], counts)
            for name, counts in some_queues.counts.items():
                _add(consumed, name, counts)
        whole: dict[str | None, list[int]] = {}
        for (exchange, _), counts in self._routes.counts.items():
            _add(whole, exchange, counts)
        self.keys = _rows(recent, self._routes.counts, spent, ("exchange", "routing_key"))
        self.exchanges = _rows(exchanges, whole, spent, ("exchange",))
        self.queues = _rows(consumed, self._queues.counts, spent, ("queue",))

    def _tick_methods(self, now: float) -> None:
        self._methods.append((now, self.census.counts()))
        began, before = self._methods[0]
        spent = max(1.0, now - began)
        rates = {
            name: (count - before.get(name, 0)) / spent
            for name, count in self._methods[-1][1].items()
        }
        self.methods = dict(sorted(rates.items(), key=lambda one: -one[1]))


def _rows(
    recent: dict[Any, list[int]], whole: dict[Any, list[int]], spent: float, names: tuple[str, ...]
) -> list[Row]:
    """Rates of late and counts in all, by name; quiet names come after the busy ones."""
    ranked = sorted(recent.items(), key=lambda one: -(one[1][0] + one[1][2]))[:MOST_NAMES]
    if len(ranked) < MOST_NAMES:
        quiet = sorted(whole.items(), key=lambda one: -(one[1][0] + one[1][2]))[:MOST_NAMES]
        ranked += [(name, [0, 0, 0, 0]) for name, _ in quiet if name not in recent]
    rows = []
    for name, (published, sent, delivered, received) in ranked[:MOST_NAMES]:
        parts = name if isinstance(name, tuple) else (name,)
        total = whole.get(name, (0, 0, 0, 0))
        rows.append(
            {
                **dict(zip(names, parts, strict=True)),
                "published_per_s": published / spent,
                "delivered_per_s": delivered / spent,
                "octets_per_s": (sent + received) / spent,
                "published": total[0],
                "delivered": total[2],
            }
        )
    return rows


def _add(counts: dict[Any, list[int]], name: Any, more: Any) -> None:
    known = counts.get(name)
    if known is None:
        counts[name] = list(more)
    else:
        for at, count in enumerate(more):
            known[at] += count


def _channels(session: Any) -> list[Any]:
    return [lane.channel for lane in list(session.lanes.values()) if lane.channel is not None]


def _channel_row(channel: Any) -> Row:
    return {
        "channel": channel.number,
        "mode": channel.mode,
        "prefetch": channel.prefetch_count,
        "consumers": channel.consumers,
        "published": channel.published,
        "unconfirmed": channel.unconfirmed,
        "delivered": channel.delivered,
        "unacked": _unacked(channel),
        "requeued": channel.requeued,
        "returned": channel.returned,
    }


def _unacked(channel: Any) -> int:
    """Deliveries not acknowledged. Of consumers from before, only those that do acknowledge."""
    unsettled: int = channel.unsettled
    return len(channel.deliveries.entries) if channel.acks else unsettled


def _counted(peer: Any, session: Any, channels: list[Any]) -> tuple[int, ...]:
    """Messages published and delivered, octets of the client and of the server."""
    published = delivered = 0
    if session is not None:
        published = session.published + sum(one.published for one in channels)
        delivered = session.delivered + sum(one.delivered for one in channels)
    octets = peer.conversation.octets
    client = 1 if peer.client_direction == 1 else 0
    return published, delivered, octets[client], octets[1 - client]


def _login(session: Any, peer: Any) -> Row:
    row = connection_row(session, peer.dialect_name)
    products = [part for part in (row["client_product"], row["client_version"]) if part]
    return {
        "name": row["connection_name"],
        "user": row["user"],
        "vhost": row["vhost"],
        "product": " ".join(products) or None,
    }


def _rate(first: tuple[float, ...], last: tuple[float, ...], at: int) -> float:
    return max(0.0, (last[at] - first[at]) / max(1e-3, last[0] - first[0]))


def _latency(name: str, delays: Any) -> Row:
    """The quantiles of late; null when there was nothing to measure."""
    p50, p99 = (None, None) if delays is None else delays.quantiles(0.5, 0.99)
    return {
        f"{name}_p50_ms": None if p50 is None else p50 / 1e6,
        f"{name}_p99_ms": None if p99 is None else p99 / 1e6,
    }
