"""What is in a capture, gathered batch by batch in bounded memory.

Arrow counts what every row has; only the rows that open and close connections are looked at one by
one.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import lru_cache
from typing import Any

from .counting import counted, grouped, is_one_of
from .facts import FACTS, LESSONS
from .reading import values
from .tally import Rate, Sizes, Tally

MOST_CONNECTIONS = 10_000
"""Connections whose names and volume are kept; more of them are only counted."""

MOST_ERRORS = 1_000
"""Distinct errors kept; reply texts often name what differs each time."""

FRAME_COLUMNS = (
    "capture", "packet_number", "ts_ns", "connection_id", "client", "server", "sender", "channel",
    "frame_type", "size", "method", "arguments", "reply_code", "reply_text",
)  # fmt: skip
MESSAGE_COLUMNS = (
    "ts_ns", "connection_id", "client", "channel", "method", "exchange", "routing_key", "queue",
    "body_size", "status",
)  # fmt: skip
"""Columns of the two tables that a digest needs, and choosing rows by connection or time."""

WAYS_OF = {
    "basic.publish": "published",
    "basic.deliver": "delivered",
    "basic.get-ok": "delivered",
    "stream.publish": "published",
    "stream.deliver": "delivered",
}
"""Which way a message of a method goes."""

ALWAYS_ERRORS = frozenset(("basic.nack", "channel.alert"))
"""Methods of a broker that are trouble without a reply code."""

BLOCKED = "connection.blocked"
TELLING = frozenset((*LESSONS, BLOCKED))
"""Methods whose rows are looked at one by one."""

FRAME_OVERHEAD_OCTETS = 8
FIRST_ERROR_CODE = 300


class Digest:
    """Counts rows of frames and messages.

    Attributes:
        methods, frames, statuses: How often each method, frame type, status of a message was seen.
        connections: By id, what is known of a connection; at most `MOST_CONNECTIONS`.
        errors: By what they say, the errors and how often; at most `MOST_ERRORS`.
        routes, exchanges, queues: Messages by (exchange, routing key), exchange, queue.
        sizes, rates: Of messages, by method.
    """

    def __init__(self) -> None:
        self.methods: Counter[str] = Counter()
        self.frames: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()
        self.connections: dict[str, dict[str, Any]] = {}
        self.errors: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.routes = Tally()
        self.exchanges = Tally()
        self.queues = Tally()
        self.sizes: dict[str, Sizes] = {}
        self.rates: dict[str, Rate] = {}

    def add_frames(self, batch: Any) -> None:
        """Count a batch of the frames table."""
        self.frames.update(dict(counted(batch.column("frame_type"))))
        self.methods.update(dict(counted(batch.column("method"))))
        self._add_volume(batch)
        self._add_channels(batch)
        self._learn(batch)
        self._add_errors(batch)

    def add_messages(self, batch: Any) -> None:
        """Count a batch of the messages table."""
        self.statuses.update(dict(counted(batch.column("status"))))
        methods = batch.column("method")
        for name, _ in counted(methods):
            rows = batch.filter(is_one_of(methods, frozenset((name,))))
            self.sizes.setdefault(name, Sizes()).add(rows.column("body_size"))
            self.rates.setdefault(name, Rate()).add(rows.column("ts_ns"))
            if name in WAYS_OF:
                self._add_names(WAYS_OF[name], rows)

    def _add_names(self, way: str, rows: Any) -> None:
        """Count the exchanges, routing keys and queues of messages that went one way."""
        sums = [([], "count_all"), ("body_size", "sum")]
        for exchange, key, messages, octets in grouped(rows, ("exchange", "routing_key"), sums):
            self.routes.add((exchange, key), way, messages, octets or 0)
            self.exchanges.add(exchange, way, messages, octets or 0)
        if rows.column("queue").null_count < rows.num_rows:
            for queue, messages, octets in grouped(rows, ("queue",), sums):
                if queue is not None:
                    self.queues.add(queue, way, messages, octets or 0)

    def _add_volume(self, batch: Any) -> None:
        """Count frames and octets of connections, by sender; every connection becomes known."""
        sums = [([], "count_all"), ("size", "sum"), ("row", "min")]
        for id_, sender, frames, octets, row in grouped(batch, ("connection_id", "sender"), sums):
            known = self.connections.get(id_)
            if known is None:
                known = self._connection(batch, row)
            if known is not None:
                known["frames"] += frames
                known[f"{sender or 'client'}_octets"] += octets + FRAME_OVERHEAD_OCTETS * frames

    def _add_channels(self, batch: Any) -> None:
        opened = is_one_of(batch.column("method"), frozenset(("channel.open",)))
        for id_, number in counted(batch.column("connection_id").filter(opened)):
            if id_ in self.connections:
                self.connections[id_]["channels"] += number

    def _learn(self, batch: Any) -> None:
        """Learn from the rows that open and close connections."""
        import pyarrow.compute as pc

        headers = is_one_of(batch.column("frame_type"), frozenset(("protocol-header",)))
        telling = batch.filter(pc.or_kleene(is_one_of(batch.column("method"), TELLING), headers))
        names = ("connection_id", "sender", "method", "arguments", "capture", "packet_number")
        columns = (values(telling, name) for name in names)
        for id_, sender, method, text, capture, number in zip(*columns, strict=True):
            arguments = _parsed(text) if text else {}
            if method == BLOCKED:
                first = {"capture": capture, "packet_number": number, "connection_id": id_}
                self._add_error((BLOCKED, sender, None, arguments.get("reason")), 1, first)
            connection = self.connections.get(id_)
            if connection is None:
                continue
            if method is None:  # a protocol header has no frame around it
                connection[f"{sender or 'client'}_octets"] -= FRAME_OVERHEAD_OCTETS
            elif method in LESSONS:
                LESSONS[method](connection, arguments, sender)

    def _add_errors(self, batch: Any) -> None:
        """Count closes and returns by what they say, and what a broker refused."""
        import pyarrow.compute as pc

        refused = pc.and_kleene(
            is_one_of(batch.column("method"), ALWAYS_ERRORS),
            is_one_of(batch.column("sender"), frozenset(("server",))),
        )
        coded = pc.fill_null(
            pc.greater_equal(batch.column("reply_code"), FIRST_ERROR_CODE), fill_value=False
        )
        rows = batch.filter(pc.or_kleene(refused, coded))
        if rows.num_rows:
            names = ("method", "sender", "reply_code", "reply_text")
            for *key, number, row in grouped(rows, names, [([], "count_all"), ("row", "min")]):
                where = ("capture", "packet_number", "connection_id")
                first = {name: rows.column(name)[row].as_py() for name in where}
                self._add_error(tuple(key), number, first)

    def _connection(self, batch: Any, row: int) -> dict[str, Any] | None:
        """A connection that is new, from one of its rows; null when there are too many."""
        if len(self.connections) >= MOST_CONNECTIONS:
            return None
        known: dict[str, Any] = dict.fromkeys(FACTS)
        for name in ("connection_id", "client", "server"):
            known[name] = batch.column(name)[row].as_py()
        known |= dict.fromkeys(("frames", "client_octets", "server_octets", "channels"), 0)
        self.connections[known["connection_id"]] = known
        return known

    def _add_error(self, key: tuple[Any, ...], number: int, first: dict[str, Any]) -> None:
        """Count errors of one method, sender, code and text; `first` is the row of the first."""
        if key not in self.errors and len(self.errors) >= MOST_ERRORS:
            key = (*key[:3], None)
        error = self.errors.get(key)
        if error is None:
            names = ("method", "sender", "reply_code", "reply_text")
            error = self.errors[key] = dict(zip(names, key, strict=True))
            error |= {name: first[name] for name in ("capture", "packet_number", "connection_id")}
            error["count"] = 0
        error["count"] += number


@lru_cache(maxsize=1024)
def _parsed(arguments: str) -> dict[str, Any]:
    """Arguments as JSON; clients of one kind open their connections with the same ones."""
    parsed: dict[str, Any] = json.loads(arguments)
    return parsed
