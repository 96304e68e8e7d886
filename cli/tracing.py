"""Rows of the messages table that are about the same message, found and put together.

One pass: a row is wanted when it fulfils the conditions, when it has the message_id of one that
does (a dead-lettered copy has another routing key), or when it is a reply to one that does. What
explains a row comes before it: a broker delivers what was published, a reply follows its request.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from amqpsniff.errors import UsageError

MOST_TRACED = 20_000
"""Rows that are kept; nobody reads more. A routing key alone may match all of a capture."""

ALIKE = ("exchange", "routing_key", "correlation_id", "type", "app_id", "message_timestamp")
"""Columns that are the same in all copies of a message, besides its body."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Wanted:
    """Which messages are meant: columns with their values, and a header with its value.

    Raises UsageError when nothing is asked for.
    """

    columns: dict[str, str]
    header: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if not self.columns and self.header is None:
            raise UsageError(
                "which message? give --message-id, --correlation-id, --header, --body-sha256 or "
                "--routing-key"
            )

    def of(self, batch: Any) -> Any:
        """A mask of the rows that fulfil all conditions."""
        import pyarrow.compute as pc

        from amqpsniff.analysis.counting import is_one_of

        masks = [
            is_one_of(batch.column(name), frozenset((value,)))
            for name, value in self.columns.items()
        ]
        if self.header is not None:
            masks.append(_with_header(batch.column("headers"), *self.header))
        mask = masks[0]
        for other in masks[1:]:
            mask = pc.and_(mask, other)
        return mask


def _with_header(column: Any, name: str, value: str) -> Any:
    import pyarrow as pa

    from amqpsniff.tables.values import values

    quoted = json.dumps(name, ensure_ascii=False)
    batch = pa.RecordBatch.from_arrays([column], names=["headers"])
    known: dict[str, bool] = {}
    mask = []
    for text in values(batch, "headers"):
        if text is None or quoted not in text:
            mask.append(False)
            continue
        if text not in known:
            known[text] = _said(json.loads(text).get(name)) == value
        mask.append(known[text])
    return pa.array(mask, pa.bool_())


def _said(value: Any) -> str:
    """A header's value as it is typed: text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass
class Message:
    """One message, or several that cannot be told apart: its rows in the order of time.

    Attributes:
        rows: Publishes, returns, deliveries, gets.
        replies: Messages that answer this one.
        requested_ns: Of a reply, when its request was first seen; null for others.
    """

    rows: list[Row]
    replies: list[Message] = field(default_factory=list)
    requested_ns: int | None = None


class Tracer:
    """Gathers rows, batch by batch."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._parts: list[Any] = []
        self._ids: set[str] = set()
        self._return_addresses: set[str] = set()
        self._correlations: set[str] = set()
        self.rows = 0
        self.full = False

    def add(self, batch: Any) -> None:
        """Take what is wanted of a batch of the messages table."""
        from amqpsniff.tables.batches import plain

        if self.full or not batch.num_rows:
            return
        wanted = self._wanted.of(batch)
        self._learn(batch.filter(wanted))
        found = plain(batch.filter(self._mask(batch, wanted)))
        self.full = self.rows + found.num_rows > MOST_TRACED
        self._parts.append(found.slice(0, MOST_TRACED - self.rows))
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
                self._return_addresses.add(address)
                self._correlations.update(filter(None, (number, correlation)))

    def _mask(self, batch: Any, wanted: Any) -> Any:
        """The wanted rows, their copies, and replies to them."""
        import pyarrow.compute as pc

        from amqpsniff.analysis.counting import is_one_of

        reply = pc.and_(
            is_one_of(batch.column("routing_key"), frozenset(self._return_addresses)),
            is_one_of(batch.column("correlation_id"), frozenset(self._correlations)),
        )
        copies = is_one_of(batch.column("message_id"), frozenset(self._ids))
        return pc.or_(wanted, pc.or_(copies, reply))

    def table(self) -> Any:
        """The rows as an Arrow table, in the order of time."""
        import pyarrow as pa

        from amqpsniff.tables.schema import MESSAGES

        table = pa.Table.from_batches(self._parts, MESSAGES)
        return table.sort_by([("ts_ns", "ascending"), ("packet_number", "ascending")])

    def messages(self) -> list[Message]:
        """The messages, first seen first, replies under their requests."""
        found: dict[tuple[Any, ...], Message] = {}
        for row in self.table().to_pylist():
            key = _identity(row)
            if key in found:
                found[key].rows.append(row)
            else:
                found[key] = Message([row])
        return _with_replies(list(found.values()))


def _identity(row: Row) -> tuple[Any, ...]:
    """What all copies of a message have in common."""
    if row["message_id"]:
        return (row["message_id"],)
    return (*(row[name] for name in ALIKE), row["body_size"], row["body_sha256"])


def _with_replies(messages: list[Message]) -> list[Message]:
    """The messages that answer none of the others; the others are put under those they answer."""
    roots: list[Message] = []
    asked: dict[tuple[str, str], Message] = {}
    for message in messages:
        request = next(filter(None, (asked.get(key) for key in _answers(message))), None)
        if request is None:
            roots.append(message)
        else:
            message.requested_ns = request.rows[0]["ts_ns"]
            request.replies.append(message)
        for key in _questions(message):
            asked.setdefault(key, message)
    return roots


def _answers(message: Message) -> Iterator[tuple[str, str]]:
    for row in message.rows:
        if row["routing_key"] and row["correlation_id"]:
            yield row["routing_key"], row["correlation_id"]


def _questions(message: Message) -> Iterator[tuple[str, str]]:
    """Where a reply goes, and what it is told by: the request's correlation_id or message_id."""
    for row in message.rows:
        for told_by in filter(None, (row["correlation_id"], row["message_id"])):
            if row["reply_to"]:
                yield row["reply_to"], told_by
