"""The whole way of messages: rows of the messages table put together by message.

One pass: a row is selected if it fulfils the conditions, if it has the message_id of one that does
(a dead-lettered copy has another routing key), or if it is a reply to one that does. Related rows
come before: a publish before its delivery, a request before its reply. Parents and children by a
framework's own keys (`amqpsniff.packs`) are followed too: the messages caused by a selected one,
and theirs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

from amqpsniff.analysis.client_names import ClientNames
from amqpsniff.analysis.one_line import (
    NOBODY,
    STYLES,
    WAITING,
    Part,
    named,
    property_parts,
    status,
)
from amqpsniff.analysis.selection import RowFilter, Selection, Started
from amqpsniff.arguments import check_types
from amqpsniff.errors import UsageError
from amqpsniff.spec import DELIVERIES, PUBLISHES
from amqpsniff.units import duration, octets
from amqpsniff.wire_text import harmless, quoted

MAX_ROWS = 20_000
"""Rows that are kept: more than a person reads. A routing key alone may match a whole capture."""

MAX_HOPS = 64
"""Hops from cause to effect that are followed inside one batch: each takes a pass over it."""

ALIKE = ("correlation_id", "type", "app_id", "message_timestamp", "body_size", "body_sha256")
"""Columns that are equal in all copies of a message, like its address (`_address`)."""

VALUES = ("correlation_id", "body_sha256", "trace_id", "operation")
"""Columns with a condition on their value."""

HEXADECIMAL = ("body_sha256", "trace_id")
"""Those of them that are written in small letters."""

KEYS = ("message_key", "conversation_key", "parent_key")
"""Columns with ids of frameworks."""

DEEDS = dict.fromkeys(PUBLISHES, "published") | dict.fromkeys(DELIVERIES, "delivered")
DEEDS |= {"basic.get-ok": "got", "basic.return": "returned"}
"""Events of a message by the method of its row."""

UNSAID = ("returned", "automatic")
"""Outcomes that are no events: the first has its own row, the second is a missing outcome."""

Row = dict[str, Any]


@dataclass(frozen=True)
class WantedMessages:
    """Conditions for messages; all that are given must hold.

    Raises UsageError if there is no condition, or one that is invalid.

    Attributes:
        correlation_id: Value of this column.
        header: `NAME=VALUE`: a header, with its value as text or as JSON.
        body_sha256: The SHA-256 of the whole body, 64 hexadecimal digits.
        trace_id: Trace of distributed tracing.
        operation: Task, event or message type, as the framework names it.
        key: An id of the framework: of a message, a conversation, or what led to a message.
        part: Its filters by name and its `where` are conditions too; its connection, channel and
            times choose the part of the traffic in which messages are followed.
    """

    correlation_id: str | None = None
    header: str | None = None
    body_sha256: str | None = None
    trace_id: str | None = None
    operation: str | None = None
    key: str | None = None
    part: Selection = field(default_factory=Selection)

    def __post_init__(self) -> None:
        check_types(self)
        conditions = (
            *(getattr(self, name) for name in (*VALUES, "header", "key")),
            self.part.where,
        )
        if not self.part.names() and conditions == (None,) * len(conditions):
            offered = ("message_id", *VALUES, "header", "key", "routing_key")
            names = ", ".join(f"`{name}`" for name in offered)
            raise UsageError(f"which message? give {names} or another filter", *offered)
        digest = self.body_sha256
        if digest is not None and not re.fullmatch("[0-9a-fA-F]{64}", digest):
            raise UsageError(
                f"`body_sha256` {digest!r} is not a SHA-256; write its 64 hexadecimal digits",
                "body_sha256",
            )
        name, equals, _ = (self.header or "").partition("=")
        if self.header is not None and not (name and equals):
            text = f"`header` {self.header!r} has no value; write NAME=VALUE"
            raise UsageError(text, "header")

    def mask(self, batch: Any, rows: RowFilter) -> Any:
        """A mask of the rows of a batch that fulfil all conditions; `rows` tests the selection."""
        import pyarrow.compute as pc

        from amqpsniff.analysis.counting import is_one_of

        columns = {name: getattr(self, name) for name in VALUES}
        for name in HEXADECIMAL:
            columns[name] = columns[name] and columns[name].lower()
        masks = [rows.mask(batch)]
        masks += [
            is_one_of(batch.column(name), frozenset((value,)))
            for name, value in columns.items()
            if value is not None
        ]
        if self.key is not None:
            keys = [is_one_of(batch.column(name), frozenset((self.key,))) for name in KEYS]
            masks.append(pc.or_(pc.or_(*keys[:2]), keys[2]))
        if self.header is not None:
            name, _, value = self.header.partition("=")
            masks.append(_with_header(batch.column("headers"), name, value))
        mask = masks[0]
        for other in masks[1:]:
            mask = pc.and_(mask, other)
        return mask


def _with_header(column: Any, name: str, value: str) -> Any:
    import pyarrow as pa

    from amqpsniff.tables.values import values

    quoted = json.dumps(name, ensure_ascii=False)
    batch = pa.RecordBatch.from_arrays([column], names=["headers"])
    matches: dict[str, bool] = {}
    mask = []
    for text in values(batch, "headers"):
        if text is None or quoted not in text:
            mask.append(False)
            continue
        if text not in matches:
            matches[text] = _header_text(json.loads(text).get(name)) == value
        mask.append(matches[text])
    return pa.array(mask, pa.bool_())


def _header_text(value: Any) -> str:
    """A header's value as it is typed: text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass
class TracedMessage:
    """One message on its way, or several that cannot be distinguished.

    Copies of a message, redelivered or dead-lettered ones too, have the same message_id; without
    one they are equal in `ALIKE` and in their bodies.

    Attributes:
        rows: Publishes, returns, deliveries and gets: rows of the messages table in the order of
            time, of any connection.
        replies: Messages that answer this one, by `reply_to` and `correlation_id`.
        requested_ns: Time at which the request of a reply was first seen; None for others.
    """

    rows: list[Row]
    replies: list[TracedMessage] = field(default_factory=list)
    requested_ns: int | None = None

    def heading(self) -> Iterator[Part]:
        """The message itself in one line, by its first row."""
        first = self.rows[0]
        publishes = sum(row["method"] in PUBLISHES for row in self.rows)
        if self.requested_ns is None:
            yield Part("heading", "message")
        elif first["ts_ns"] is not None:
            yield Part("heading", f"reply after {duration(first['ts_ns'] - self.requested_ns)}")
        else:
            yield Part("heading", "reply")
        if publishes > 1:
            yield Part("warning", f"published {publishes} times")
        if not publishes:
            yield Part("warning", "publish not captured")
        for name in ("exchange", "routing_key"):
            if first[name] is not None:
                yield named(name, first[name])
        if first["body_size"] is not None:
            yield Part("size", octets(first["body_size"]))
        yield from property_parts(first)

    def events(self) -> list[tuple[Any, list[Part]]]:
        """Its events in the order of time: the place of each, and one line about it.

        A place has the columns of a row as attributes; that of an outcome has no sender.
        """
        events: list[tuple[Any, list[Part]]] = []
        for row in self.rows:
            events.append((SimpleNamespace(**row), list(_event_parts(row, self.rows[0]))))
            outcome = row["outcome"]
            if outcome in (None, *UNSAID, *WAITING):
                continue
            timed = row["ts_ns"] is not None and row["outcome_ns"] is not None
            place = SimpleNamespace(**row)
            place.packet_number = row["outcome_packet_number"]
            place.ts_ns = row["ts_ns"] + row["outcome_ns"] if timed else None
            place.sender = NOBODY
            style = STYLES.get(outcome, "key")
            part = Part("method" if style == "key" else style, str(outcome))
            events.append((place, [part, *_delivery(row)]))
        return sorted(events, key=lambda event: (event[0].ts_ns or 0, event[0].packet_number or 0))


def _event_parts(row: Row, first: Row) -> Iterator[Part]:
    """The event of a row, without facts of the first row, which are in the heading."""
    method = row["method"]
    style = "method.error" if method == "basic.return" else "method"
    yield Part(style, DEEDS.get(method) or str(method))
    if row["redelivered"]:
        yield Part("warning", "again")
    if row["reply_code"] is not None:
        yield Part("error", str(row["reply_code"]))
        yield Part("name", "", quoted(harmless(row["reply_text"] or "")))
    yield from _delivery(row)
    for name in ("exchange", "routing_key"):
        if row[name] not in (None, first[name]):
            yield named(name, row[name])
    if row["mandatory"]:
        yield Part("key", "mandatory")
    if row["status"] != "complete":
        yield Part("warning", status(row))
    if row["consumer_tag"] is not None:
        yield named("consumer_tag", row["consumer_tag"])
    if row["outcome"] == "automatic":
        yield Part("key", "without ack")
    if row["outcome"] in WAITING:
        yield Part("warning", row["outcome"])


def _delivery(row: Row) -> Iterator[Part]:
    """The queue and the delivery tag, which tell a delivery from others."""
    for name in ("queue", "delivery_tag"):
        if row[name] is not None:
            yield named(name, row[name])


class Tracer:
    """Finds the rows of the wanted messages, batch by batch.

    Attributes:
        rows: Number of rows that were found.
        columns: Names of the columns that are read to choose messages.
        full: True if there are more than `MAX_ROWS`, so that later ones are missing.
        clients: Names of the clients of these rows.
    """

    def __init__(self, wanted: WantedMessages, started: Started = lambda: None) -> None:
        self._wanted = wanted
        conditions, part = wanted.part.split()
        self._named = RowFilter(conditions, "messages", started)
        self._part = RowFilter(part, "messages", started)
        self.columns = self._named.columns | self._part.columns
        self._parts: list[Any] = []
        self._ids: set[str] = set()
        self._return_addresses: set[str] = set()
        self._correlations: set[str] = set()
        self._keys: set[str] = set()
        self.rows = 0
        self.full = False
        self.clients = ClientNames()

    def add(self, batch: Any) -> None:
        """Look through a batch of the messages table."""
        import pyarrow.compute as pc

        from amqpsniff.tables.batches import plain

        batch = self._part.of(batch)
        if self.full or not batch.num_rows:
            return
        chosen = pc.or_(self._wanted.mask(batch, self._named), self._consequences_mask(batch))
        self._learn(batch.filter(chosen))
        mask = self._mask(batch, chosen)
        for _ in range(MAX_HOPS):  # a consequence may have consequences
            if not self._learn_keys(batch.filter(mask)):
                break
            chosen = pc.or_(chosen, self._consequences_mask(batch))
            self._learn(batch.filter(chosen))
            mask = self._mask(batch, chosen)
        rows = plain(batch.filter(mask))
        self.full = self.rows + rows.num_rows > MAX_ROWS
        self._parts.append(rows.slice(0, MAX_ROWS - self.rows))
        self.rows += self._parts[-1].num_rows

    def _learn(self, found: Any) -> None:
        from amqpsniff.tables.values import values

        names = ("message_id", "reply_to", "correlation_id")
        for number, address, correlation in zip(
            *(values(found, name) for name in names), strict=True
        ):
            if number:
                self._ids.add(number)
            if address:
                self._return_addresses.add(_queue_of(address))
                self._correlations.update(filter(None, (number, correlation)))

    def _learn_keys(self, rows: Any) -> bool:
        """Learn what frameworks call the messages that were found; true if that is new."""
        from amqpsniff.tables.values import values

        before = len(self._keys)
        self._keys.update(filter(None, values(rows, "message_key")))
        return len(self._keys) > before

    def _mask(self, batch: Any, chosen: Any) -> Any:
        """The wanted rows, their copies, and replies to them."""
        import pyarrow.compute as pc

        from amqpsniff.analysis.counting import is_one_of

        back = frozenset(self._return_addresses)
        address = pc.or_(
            *(is_one_of(batch.column(name), back) for name in ("routing_key", "queue"))
        )
        by_correlation = is_one_of(batch.column("correlation_id"), frozenset(self._correlations))
        reply = pc.and_(address, by_correlation)
        copies = is_one_of(batch.column("message_id"), frozenset(self._ids))
        return pc.or_(chosen, pc.or_(copies, reply))

    def _consequences_mask(self, batch: Any) -> Any:
        """A mask of the found messages, by their keys of a framework, and of their consequences."""
        import pyarrow.compute as pc

        from amqpsniff.analysis.counting import is_one_of

        columns = [batch.column(name) for name in ("parent_key", "message_key")]
        return pc.or_(*(is_one_of(column, frozenset(self._keys)) for column in columns))

    def table(self) -> Any:
        """The rows as an Arrow table, in the order of time."""
        import pyarrow as pa

        from amqpsniff.tables.schema import MESSAGES

        parts = [part.select(MESSAGES.names) for part in self._parts]
        table = pa.Table.from_batches(parts, MESSAGES)
        return table.sort_by([("ts_ns", "ascending"), ("packet_number", "ascending")])

    def messages(self) -> list[TracedMessage]:
        """The messages, first seen first, replies under their requests."""
        found: dict[tuple[Any, ...], TracedMessage] = {}
        for row in self.table().to_pylist():
            key = _identity(row)
            if key in found:
                found[key].rows.append(row)
            else:
                found[key] = TracedMessage([row])
        return _with_replies(list(found.values()))


def _identity(row: Row) -> tuple[Any, ...]:
    """The values that all copies of a message share."""
    if row["message_id"]:
        return (row["message_id"],)
    return (row["exchange"] or None, _address(row), *(row[name] for name in ALIKE))


def _address(row: Row) -> str | None:
    """The routing key; of a delivery of AMQP 1.0, which has none, the queue it comes from."""
    address: str | None = row["queue" if row["routing_key"] is None else "routing_key"]
    return address


def _queue_of(reply_to: str) -> str:
    """The queue that an address names; RabbitMQ 4 has `/queues/NAME`, percent-encoded, in 1.0."""
    kind = "/queues/"
    return unquote(reply_to.removeprefix(kind)) if reply_to.startswith(kind) else reply_to


def _with_replies(messages: list[TracedMessage]) -> list[TracedMessage]:
    """The messages that are no replies; replies are put under the messages they answer."""
    roots: list[TracedMessage] = []
    requests: dict[tuple[str, str], TracedMessage] = {}
    for message in messages:
        request = next(filter(None, (requests.get(key) for key in _answers(message))), None)
        if request is None:
            roots.append(message)
        else:
            message.requested_ns = request.rows[0]["ts_ns"]
            request.replies.append(message)
        for key in _questions(message):
            requests.setdefault(key, message)
    return roots


def _answers(message: TracedMessage) -> Iterator[tuple[str, str]]:
    for row in message.rows:
        address = _address(row)
        if address and row["correlation_id"]:
            yield address, row["correlation_id"]


def _questions(message: TracedMessage) -> Iterator[tuple[str, str]]:
    """Where a reply goes, and its key: the request's correlation_id or message_id."""
    for row in message.rows:
        for identifier in filter(None, (row["correlation_id"], row["message_id"])):
            if row["reply_to"]:
                yield _queue_of(row["reply_to"]), identifier
