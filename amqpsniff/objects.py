"""Rows as objects for a person to hold: `Frame`, `Message`, `Finding`.

An object is a place in a record batch; a column is turned into Python values when the first object
asks for it, so a loop pays for the columns it uses. Attributes are the table's columns by their
names, None for null; JSON columns such as `arguments` are parsed when they are asked for. Objects
of one table are equal if all their columns are, of whichever reading they are. An object that is
kept keeps its batch in memory; keep `as_dict()` where that is too much.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, ClassVar, TypeVar

from amqpsniff.html_repr import line, table
from amqpsniff.wire_text import word


class _Cells:
    """A record batch whose columns become lists of Python values when they are first used."""

    __slots__ = ("_batch", "_lists", "names")

    def __init__(self, batch: Any) -> None:
        self._batch = batch
        self._lists: dict[str, list[Any]] = {}
        self.names: list[str] = batch.schema.names

    def column(self, name: str) -> list[Any]:
        values = self._lists.get(name)
        if values is None:
            if name not in self.names:
                from amqpsniff.tables.statements import no_column

                raise AttributeError(no_column(name, self.names))
            values = self._lists[name] = self._batch.column(name).to_pylist()
        return values

    def row(self, row: int) -> dict[str, Any]:
        """The values of one row, read without lists of its columns."""
        (values,) = self._batch.slice(row, 1).to_pylist()
        return dict(values)


class Row:
    """A row of one table; see the class of the table for its attributes."""

    __slots__ = ("_cells", "_row")

    JSON: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, cells: _Cells, row: int) -> None:
        self._cells = cells
        self._row = row

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = self._cells.column(name)[self._row]
        return json.loads(value) if name in self.JSON and value is not None else value

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self is other or self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), self.connection_id, self.packet_number))

    def _values(self) -> dict[str, Any]:
        return self._cells.row(self._row)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._cells.names]

    def as_dict(self) -> dict[str, Any]:
        """All columns by name."""
        return {name: getattr(self, name) for name in self._cells.names}

    def _repr(self, *parts: object) -> str:
        return f"<{line(' '.join(str(part) for part in (type(self).__name__, *parts) if part))}>"

    def _repr_html_(self) -> str:
        """For notebooks: the columns that are not null."""
        return table(repr(self)[1:-1], self.as_dict().items())


class Frame(Row):
    """One AMQP frame, or a protocol header: a row of the `frames` table.

    >>> import amqpsniff
    >>> frames = amqpsniff.open("samples/pika_mix.pcap").frames()
    >>> declared = next(frame for frame in frames if frame.method == "exchange.declare")
    >>> declared
    <Frame exchange.declare #16 channel 1 from client>
    >>> declared.arguments["type"]
    'topic'
    """

    __slots__ = ()
    JSON = frozenset(("arguments",))

    capture: str
    packet_number: int
    ts_ns: int | None
    timestamp: datetime | None
    connection_id: str
    client: str | None
    server: str | None
    sender: str | None
    stream_offset: int
    channel: int
    frame_type: str
    size: int
    method: str | None
    arguments: dict[str, Any] | None
    exchange: str | None
    routing_key: str | None
    queue: str | None
    consumer_tag: str | None
    reply_text: str | None
    delivery_tag: int | None
    reply_code: int | None
    response_packet_number: int | None
    response_ns: int | None

    def __repr__(self) -> str:
        title = self.method or self.frame_type
        return self._repr(
            title, f"#{self.packet_number}", f"channel {self.channel}", f"from {self.sender}"
        )


class Message(Row):
    """One message as it was published, delivered, got or returned: a row of `messages`.

    >>> import amqpsniff
    >>> message = next(amqpsniff.open("samples/pika_mix.pcap").messages())
    >>> message
    <Message basic.publish #42 x=orders rk=order.new.eu 18 bytes>
    >>> message.status, message.content_type
    ('complete', 'application/json')
    """

    __slots__ = ()
    JSON = frozenset(("headers", "annotations"))

    capture: str
    packet_number: int
    ts_ns: int | None
    timestamp: datetime | None
    connection_id: str
    client: str | None
    server: str | None
    sender: str | None
    channel: int
    last_packet_number: int
    method: str
    exchange: str | None
    routing_key: str | None
    consumer_tag: str | None
    reply_text: str | None
    delivery_tag: int | None
    reply_code: int | None
    redelivered: bool | None
    mandatory: bool | None
    immediate: bool | None
    queue: str | None
    publish_number: int | None
    content_type: str | None
    content_encoding: str | None
    correlation_id: str | None
    reply_to: str | None
    expiration: str | None
    message_id: str | None
    type: str | None
    user_id: str | None
    app_id: str | None
    cluster_id: str | None
    delivery_mode: int | None
    priority: int | None
    message_timestamp: datetime | None
    headers: dict[str, Any] | None
    body_size: int | None
    body_captured: int
    body: bytes | None
    body_sha256: str | None
    status: str
    outcome: str | None
    outcome_packet_number: int | None
    outcome_ns: int | None
    published_packet_number: int | None
    published_connection_id: str | None
    published_ns: int | None
    delivery_number: int | None
    link_confidence: str | None
    request_packet_number: int | None
    request_connection_id: str | None
    request_ns: int | None
    reply_late: bool | None
    transfers: int | None
    delivery_count: int | None
    message_format: int | None
    message_bytes: int | None
    tag: str | None
    address: str | None
    annotations: dict[str, Any] | None
    state: str | None
    state_error: str | None
    settled_by: str | None
    transaction: str | None
    framework: str | None
    operation: str | None
    error_type: str | None
    message_key: str | None
    conversation_key: str | None
    parent_key: str | None
    trace_id: str | None
    span_id: str | None
    retry_count: int | None
    not_before: datetime | None

    @property
    def body_text(self) -> str | None:
        """The body unpacked, as text or in the words of its format; None for mere bytes."""
        from amqpsniff.analysis.body_text import COLUMNS, body_text

        row = {name: getattr(self, name) for name in ("method", *COLUMNS)}
        found = body_text(row | {"headers": json.dumps(self.headers or {})})
        return None if found is None else found.text

    def __repr__(self) -> str:
        names = {"q": self.queue, "x": self.exchange, "rk": self.routing_key}
        where = [f"{name}={word(text)}" for name, text in names.items() if text is not None]
        size = None if self.body_size is None else f"{self.body_size} bytes"
        return self._repr(self.method, f"#{self.packet_number}", *where, size)


class Finding(Row):
    """One thing worth a person's attention: a row of the `findings` table.

    >>> import amqpsniff
    >>> next(amqpsniff.open("samples/snapped.pcap").findings()).title
    'AMQP crosses a network without encryption'
    """

    __slots__ = ()

    capture: str | None
    packet_number: int | None
    ts_ns: int | None
    timestamp: datetime | None
    connection_id: str | None
    client: str | None
    server: str | None
    channel: int | None
    code: str
    severity: str
    title: str
    detail: str
    advice: str
    count: int
    last_packet_number: int | None
    confidence: str
    cause_code: str | None
    cause_packet_number: int | None

    def __repr__(self) -> str:
        packet = None if self.packet_number is None else f"#{self.packet_number}"
        return self._repr(self.severity, self.code, packet, f"x{self.count}")


Kind = TypeVar("Kind", bound=Row)


def rows(kind: type[Kind], batches: Iterable[Any]) -> Iterator[Kind]:
    """The rows of record batches as objects of one class."""
    for batch in batches:
        cells = _Cells(batch)
        for row in range(batch.num_rows):
            yield kind(cells, row)
