"""What is in a capture, gathered batch by batch in bounded memory.

Arrow counts what every row has; only what is distinct of it is looked at in Python.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from .connections import Connections
from .counting import counted, grouped, is_one_of
from .facts import LESSONS
from .tally import Rate, Sizes, Tally

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
BLOCKED_COLUMNS = ("capture", "packet_number", "connection_id", "sender", "arguments")

CLIENT = ("product", "version", "platform")
"""What a kind of client is told by."""

FIRST_ERROR_CODE = 300


class Digest:
    """Counts rows of frames and messages.

    Attributes:
        methods, frames, statuses: How often each method, frame type, status of a message was seen.
        connections: Volume and facts of the connections.
        clients: Logins by product, version and platform of the client.
        errors: By what they say, the errors and how often; at most `MOST_ERRORS`.
        routes, exchanges, queues: Messages by (exchange, routing key), exchange, queue.
        sizes, rates: Of messages, by method.
    """

    def __init__(self) -> None:
        self.methods: Counter[str] = Counter()
        self.frames: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()
        self.connections = Connections()
        self.clients: Counter[tuple[Any, ...]] = Counter()
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
        self.connections.add(batch)
        self._add_clients(batch)
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

    def _add_clients(self, batch: Any) -> None:
        """Count the kinds of clients that log in."""
        for text, number in counted(_arguments_of(batch, "connection.start-ok")):
            facts: dict[str, Any] = {}
            LESSONS["connection.start-ok"](facts, json.loads(text), None)
            self.clients[tuple(facts[f"client_{name}"] for name in CLIENT)] += number

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
        blocked = batch.filter(is_one_of(batch.column("method"), frozenset((BLOCKED,))))
        for row in blocked.select(BLOCKED_COLUMNS).to_pylist():
            reason = json.loads(row["arguments"] or "{}").get("reason")
            self._add_error((BLOCKED, row["sender"], None, reason), 1, row)

    def _add_error(self, key: tuple[Any, ...], number: int, first: dict[str, Any]) -> None:
        """Count errors of one method, sender, code and text; `first` is the row of the first."""
        if key not in self.errors and len(self.errors) >= MOST_ERRORS:
            key = (*key[:2], None, None)
        error = self.errors.get(key)
        if error is None:
            names = ("method", "sender", "reply_code", "reply_text")
            error = self.errors[key] = dict(zip(names, key, strict=True))
            error |= {name: first[name] for name in ("capture", "packet_number", "connection_id")}
            error["count"] = 0
        error["count"] += number


def _arguments_of(batch: Any, method: str) -> Any:
    """The arguments of the frames of one method, as JSON."""
    return batch.column("arguments").filter(is_one_of(batch.column("method"), frozenset((method,))))
