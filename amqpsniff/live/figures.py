"""Current figures of the traffic: rates, latencies and open objects, by connection and by name.

`Figures` counts rows as a `Census` does (it has one), and notes which connections are open. `tick`,
called about once a second, turns counts into rates over the last `WINDOW` ticks. A null rate,
latency or count is not known: of what began before the capture not everything is.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

from amqpsniff.live.peers import (
    HINT_COLUMNS,
    RATES,
    WINDOW,
    Peer,
    bytes_of,
    channel_row,
    channels,
    join_names,
    known_sum,
    latency,
    rotate_latencies,
    unacked,
    unconfirmed,
)
from amqpsniff.session.census import Census
from amqpsniff.session.counts import NO_COUNTS, RecentLatencies, TopCounts
from amqpsniff.session.owing import sentence
from amqpsniff.session.table_rows import connection_row
from amqpsniff.tables.values import values

ROTATION_SECONDS = 30.0
"""Interval at which latencies start again: those shown are of one or two intervals, 30 to 60 s."""

MAX_SHOWN = 2_000
"""Connections that are looked at in each tick, those that opened last: a look costs some 20 µs."""

MAX_NAMES = 500
"""Names of exchanges, keys and queues that rows are made of, the busiest."""

Row = dict[str, Any]

MAX_ENDED = 200
"""Connections remembered after their end, to be looked at."""


class Figures:
    """A census of the run, and the figures of now.

    Args:
        top: Connections that the census keeps for the summary.
        channel: Count only this channel; None for all.
        wanted: Called with (connection id, client, server); returns True to count it. None for all.

    Attributes:
        connections, exchanges, keys, queues: Rows as of the last tick, the busiest first.
        methods: Frames per second by method.
        open: Number of open connections.
        ended: Number of ended connections.
    """

    def __init__(
        self,
        top: int,
        channel: int | None = None,
        matches: Callable[[str, str, str], bool] | None = None,
        shown: int = MAX_SHOWN,
    ) -> None:
        self.shown = shown
        self.census = Census(top, channel, matches)
        self.consume = self.census.consume
        self.connections: list[Row] = []
        self.exchanges: list[Row] = []
        self.keys: list[Row] = []
        self.queues: list[Row] = []
        self.methods: dict[str, float] = {}
        self.ended = 0
        self._ended_sessions: dict[str, tuple[Any, Any]] = {}
        self._names: dict[str, str] = {}
        self._ended_bytes = [0, 0]
        self._matches = matches
        self._open: dict[str, Any] = {}
        self._peers: dict[str, Peer] = {}
        self._seen: tuple[Any, int] = ([], 0)
        self._quiet_ns = 0
        self._rotated_at = time.monotonic()
        self._routes, self._queues = TopCounts(), TopCounts()
        self.lately = RecentLatencies()
        self._recent_names: deque[tuple[float, Any, Any]] = deque(maxlen=WINDOW)
        began: tuple[float, dict[str, int]] = (self._rotated_at, {})
        self._methods = deque([began], maxlen=WINDOW + 1)
        self._samples = deque([(self._rotated_at, *4 * [0])], maxlen=WINDOW + 1)
        self._rates: Row = dict.fromkeys(RATES, 0.0)

    @property
    def open(self) -> int:
        """Connections that are open."""
        return len(self._open)

    @property
    def is_of_part(self) -> bool:
        """True if it may count a part of the traffic only."""
        return self.census.is_of_part

    def includes(self, connection: Any, channel: Any, ts_ns: Any) -> bool:
        """True if rows of a channel and a time are counted; see `Census.includes`."""
        return self.census.includes(connection, channel, ts_ns)

    def look(
        self,
        frames: Any,
        first_frame: int,
        messages: Any,
        first_message: int,
        peers: list[Any],
        captures: list[str],
        methods: list[str],
    ) -> None:
        """Count rows; see `Census.look`."""
        self.census.look(frames, first_frame, messages, first_message, peers, captures, methods)
        listed, seen = self._seen
        if peers is not listed or len(peers) < seen:
            seen = 0
        for peer in peers[seen:]:
            self._open.setdefault(peer.name()[0], peer)
        self._seen = peers, len(peers)

    def end(self, peer: Any, session: Any) -> None:
        """A connection ended; see `Census.end`."""
        self.census.end(peer, session)
        connection_id = peer.name()[0]
        self._open.pop(connection_id, None)
        ended = self._peers.pop(connection_id, None) or Peer(peer)
        self.ended += 1
        if self._is_counted(peer):
            for at, octets in enumerate(bytes_of(peer)):
                self._ended_bytes[at] += octets
        if session is None:
            return
        self._ended_sessions[connection_id] = peer, session
        ended.read_login()
        self._name(ended)
        if len(self._ended_sessions) > MAX_ENDED:
            gone = next(iter(self._ended_sessions))
            del self._ended_sessions[gone]
            self._names.pop(gone, None)

    def tick(self, quiet_ns: int = 0) -> None:
        """Compute the current figures; no packet came for this time."""
        now = time.monotonic()
        self._quiet_ns = quiet_ns
        if now - self._rotated_at >= ROTATION_SECONDS:
            self._rotated_at = now
            for session in self._sessions():
                rotate_latencies(session)
            self.lately.rotate()
        peers = [peer for peer in self._open.values() if self._is_counted(peer)][-self.shown :]
        shown = dict.fromkeys(peer.name()[0] for peer in peers)
        for connection_id in self._peers.keys() - shown.keys():
            if self._peers[connection_id].hints:
                self._peers[connection_id].samples = []
            else:
                del self._peers[connection_id]
        now_ns = self._now_ns()
        self.connections = [self._peer(connection_id).tick(now, now_ns) for connection_id in shown]
        for connection_id in shown:
            self._name(self._peers[connection_id])
        self._tick_names(now)
        self._tick_methods(now)
        self._tick_totals(now)

    def _is_counted(self, peer: Any) -> bool:
        """True if a connection counts."""
        return self._matches is None or self._matches(*(part or "" for part in peer.name()))

    def _now_ns(self) -> int:
        """The time of the last packet of all open connections, and of the silence behind it."""
        last_ns = max(
            (connection.conversation.end_ns for connection in self._open.values()), default=0
        )
        return last_ns + self._quiet_ns

    def _peer(self, connection_id: str) -> Peer:
        """An open connection as it is looked at."""
        peer = self._peers.get(connection_id)
        if peer is None:
            peer = self._peers[connection_id] = Peer(self._open[connection_id])
        return peer

    def _sessions(self) -> list[Any]:
        """The sessions of open connections."""
        found = (connection.session for connection in self._open.values())
        return [session for session in found if session is not None]

    def add_hints(self, batch: Any) -> None:
        """Add what messages, by their `HINT_COLUMNS`, show of their clients."""
        columns = (values(batch, name) for name in HINT_COLUMNS)
        for connection_id, sender, app_id, user, consumer_tag in set(zip(*columns, strict=True)):
            if connection_id not in self._open:
                continue
            peer = self._peer(connection_id)
            if sender == "client":
                peer.add_hints(app_id=app_id, user=user)
            else:  # the application is that of the publisher
                peer.add_hints(consumer_tag=consumer_tag)

    def _name(self, peer: Peer) -> None:
        label = peer.label()
        if label is not None:
            self._names[peer.connection.name()[0]] = label

    def name_of(self, connection_id: str | None) -> str | None:
        """The client's name (`Peer.label`); None if unknown, or if it left long ago."""
        return self._names.get(connection_id or "")

    def facts(self) -> dict[str, Any]:
        """Everything that was counted; see `Census.facts`."""
        self._gather()
        counted: dict[str, Any] = self.census.facts()
        return counted | {"routes": self._routes, "queues": self._queues}

    def totals(self) -> Row:
        """Rates of all traffic, that of ended connections too, waiting messages, and latencies."""
        return {
            **self._rates,
            **{
                name: known_sum(row[name] for row in self.connections)
                for name in ("unacked", "unconfirmed")
            },
            **latency("confirm", self.lately.confirms),
            **latency("ack", self.lately.acks),
            "at_least": join_names(row["at_least"] for row in self.connections),
        }

    def outstanding(self) -> tuple[int | None, int | None]:
        """Deliveries not acknowledged and publishes not confirmed, over all open connections: those
        that are known, null when none is.
        """
        all_channels = [channel for session in self._sessions() for channel in channels(session)]
        return known_sum(map(unacked, all_channels)), known_sum(map(unconfirmed, all_channels))

    def channels_of(self, connection_id: str) -> list[Row]:
        """The open channels of a connection, as rows; empty when it is not open."""
        session = getattr(self._open.get(connection_id), "session", None)
        return [] if session is None else [channel_row(channel) for channel in channels(session)]

    def connection(self, connection_id: str) -> Row | None:
        """The row of a connection as in the connections table, also after its end.

        The `owed` of an open one is that of the last tick.
        """
        session = getattr(self._open.get(connection_id), "session", None)
        if session is not None:
            open_peer = self._peer(connection_id)
            open_peer.read_login()
            row = connection_row(session)
            row["connection_name"] = open_peer.label()
            row["user"] = row["user"] or open_peer.hints.get("user")
            return row | {"owed": sentence(session, self._now_ns())}
        peer, session = self._ended_sessions.get(connection_id, (None, None))
        return None if peer is None else connection_row(session)

    def counts_of(self, label: str) -> list[tuple[Any, list[int]]]:
        """Names of each `exchange` or `queue` since the beginning, with their counts."""
        self._gather()
        counts = self._by_exchange() if label == "exchange" else self._queues.counts
        return list(counts.items())

    def _by_exchange(self) -> dict[Any, list[int]]:
        total: dict[Any, list[int]] = {}
        for name, counts in self._routes.counts.items():
            _add(total, name[:2], counts)
        return total

    def _gather(self) -> tuple[Any, Any]:
        """Add the names of the census since the last call to all of them; gives the new ones."""
        routes, queues = self.census.rotate()
        for sums, part in ((self._routes, routes), (self._queues, queues)):
            for name, counts in part.counts.items():
                sums.add(name, counts)
            sums.forgotten = sums.forgotten or part.forgotten
        return routes, queues

    def _tick_names(self, now: float) -> None:
        routes, queues = self._gather()
        self._recent_names.append((now, routes, queues))
        spent = max(1.0, now - self._recent_names[0][0] + 1.0)
        recent: dict[Any, list[int]] = {}
        exchanges: dict[Any, list[int]] = {}
        consumed: dict[Any, list[int]] = {}
        for _, some_routes, some_queues in self._recent_names:
            for name, counts in some_routes.counts.items():
                _add(recent, name, counts)
                _add(exchanges, name[:2], counts)
            for name, counts in some_queues.counts.items():
                _add(consumed, name, counts)
        self.keys = _rows(recent, self._routes.counts, spent, ("vhost", "exchange", "routing_key"))
        self.exchanges = _rows(exchanges, self._by_exchange(), spent, ("vhost", "exchange"))
        all_queues = dict(self._queues.counts)
        _add_unknown(consumed, recent)
        _add_unknown(all_queues, self._routes.counts)
        self.queues = _rows(consumed, all_queues, spent, ("vhost", "queue"))

    def _tick_totals(self, now: float) -> None:
        """Rates of all traffic: messages, and bytes by connections."""
        octets = list(self._ended_bytes)
        for peer in filter(self._is_counted, self._open.values()):
            for at, number in enumerate(bytes_of(peer)):
                octets[at] += number
        self._samples.append((now, *self.census.messages(), *octets))
        began, *before = self._samples[0]
        spent = max(1.0, now - began)
        after = self._samples[-1][1:]
        self._rates = {
            name: max(0.0, (last - first) / spent)
            for name, first, last in zip(RATES, before, after, strict=True)
        }

    def _tick_methods(self, now: float) -> None:
        self._methods.append((now, self.census.counts()))
        began, before = self._methods[0]
        spent = max(1.0, now - began)
        rates = {
            name: (count - before.get(name, 0)) / spent
            for name, count in self._methods[-1][1].items()
        }
        self.methods = dict(sorted(rates.items(), key=lambda item: -item[1]))


def _rows(
    recent: dict[Any, list[int]], totals: dict[Any, list[int]], spent: float, names: tuple[str, ...]
) -> list[Row]:
    """Recent rates and total counts, by name; quiet names come after the busy ones."""
    ranked = sorted(recent.items(), key=lambda item: -(item[1][0] + item[1][2]))[:MAX_NAMES]
    if len(ranked) < MAX_NAMES:
        quiet = sorted(totals.items(), key=lambda item: -(item[1][0] + item[1][2]))[:MAX_NAMES]
        ranked += [(name, list(NO_COUNTS)) for name, _ in quiet if name not in recent]
    rows = []
    for parts, (published, sent, delivered, received, *_) in ranked[:MAX_NAMES]:
        total = totals.get(parts, NO_COUNTS)
        rows.append(
            {
                **dict(zip(names, parts, strict=True)),
                "published_per_s": published / spent,
                "delivered_per_s": delivered / spent,
                "bytes_per_s": (sent + received) / spent,
                "published": total[0],
                "delivered": total[2],
            }
        )
    return rows


def _add_unknown(queues: dict[Any, list[int]], routes: dict[Any, list[int]]) -> None:
    """Count deliveries of consumers from before the capture under the queue None."""
    by_queue, by_route = (_delivered(table) for table in (queues, routes))
    for vhost, sums in by_route.items():
        counted = by_queue.get(vhost, [0, 0, 0])
        delivered, octets, sized = (
            total - attributed for total, attributed in zip(sums, counted, strict=True)
        )
        if delivered > 0:
            queues[vhost, None] = [0, 0, delivered, octets, 0, sized]


def _delivered(table: dict[Any, list[int]]) -> dict[Any, list[int]]:
    """Deliveries, their bytes, and those with bytes, by virtual host."""
    sums: dict[Any, list[int]] = {}
    for (vhost, *_), counts in table.items():
        _add(sums, vhost, [counts[at] for at in (2, 3, 5)])
    return sums


def _add(counts: dict[Any, list[int]], name: Any, added: Any) -> None:
    total = counts.get(name)
    if total is None:
        counts[name] = list(added)
    else:
        for at, count in enumerate(added):
            total[at] += count
