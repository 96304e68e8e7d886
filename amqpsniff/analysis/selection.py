"""The selection of a part of the traffic, and the rows of a table that belong to it.

A filter by name is a condition on columns of a table (`TEXTS`, `ERRORS`, `PACKETS`). Rows of a
table without these columns are chosen by their owner: frames by their message, channels and
findings by the traffic of the channel, all else by the connection. A `Finder` finds these messages,
channels and connections in a first reading of the capture.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from ipaddress import IPv6Address
from typing import TYPE_CHECKING, Any, TypedDict

from amqpsniff.analysis import times
from amqpsniff.analysis.timeline import CONTENT_METHODS
from amqpsniff.arguments import check_types, several
from amqpsniff.errors import FilterError, UsageError, read_twice
from amqpsniff.spec import FIRST_ERROR_CODE, METHODS
from amqpsniff.spec.amqp10 import MESSAGES, PERFORMATIVES

if TYPE_CHECKING:
    from amqpsniff.tables.query import Filter

Started = Callable[[], int | None]
"""Gives the time at which the capture began in nanoseconds, None while that is not known."""

Texts = str | Iterable[str]
"""A text or a pattern, or several; one has to match."""

SPANNING = ("connections", "channels", "links")
"""Tables whose rows span a time: `from_` and `to` choose the rows that overlap with theirs."""

TEXTS: dict[str, dict[str, tuple[str, ...]]] = {
    **{
        name: {"frames": (name,), "messages": (name,), "links": (name,)}
        for name in ("queue", "exchange", "routing_key")
    },
    "method": {"frames": ("method",), "messages": ("method",)},
    "message_id": {"messages": ("message_id",)},
    "outcome": {"messages": ("outcome",)},
    "client": {"connections": ("client", "connection_name", "client_product")},
    "user": {"connections": ("user",)},
    "vhost": {"connections": ("vhost",)},
}
"""Filters by a text or a pattern: the columns of each table; one has to match."""

_CLOSED_BADLY = (
    f"close_code >= {FIRST_ERROR_CODE} OR closed_by = 'rst' OR "
    "(close_code IS NULL AND close_text IS NOT NULL)"  # of AMQP 1.0
)
ERRORS = {
    "frames": f"reply_code >= {FIRST_ERROR_CODE} OR method IN ('basic.nack', 'connection.blocked') "
    "OR (frame_type IN ('performative', 'sasl') AND reply_text IS NOT NULL)",
    "messages": "method = 'basic.return' OR status <> 'complete' OR "
    "outcome IN ('returned', 'rejected', 'discarded', 'requeued')",
    "connections": _CLOSED_BADLY,
    "channels": _CLOSED_BADLY,
    "links": "close_condition IS NOT NULL OR refused OR closed_by = 'rst'",
    "findings": "severity = 'error'",
}
"""Conditions of `errors`, by table."""

PACKETS = {
    "frames": "packet_number BETWEEN {0} AND {1}",
    "messages": "packet_number <= {1} AND coalesce(last_packet_number, packet_number) >= {0} OR "
    "outcome_packet_number BETWEEN {0} AND {1}",
    "findings": "packet_number BETWEEN {0} AND {1} OR last_packet_number BETWEEN {0} AND {1}",
}
"""Conditions of `packet` with its first and last number, by table."""

OF_CONNECTIONS = ("client", "user", "vhost")
"""Filters that choose connections; all others choose what goes over them."""

MOSTLY_SHOWN = ("exchange", "routing_key")
FOUND_IN_MESSAGES = ("queue", "errors", "packet", *MOSTLY_SHOWN)
"""Filters that frames fulfil with their message, too: what a delivery has from its consumer, its
outcome, the packets of its header and body, and where a transfer of AMQP 1.0 goes. For the last
alone (`MOSTLY_SHOWN`) input that cannot be read twice is not refused."""

DEFAULT_EXCHANGE = "(default)"
"""The exchange without a name, as summaries write it."""

_METHODS = [
    *(row.name for row in METHODS), *(row.name for row in PERFORMATIVES), *MESSAGES,
]  # fmt: skip
_ADDRESS = re.compile(
    r"(?=.*[.:])(?=.*\d)([\d.*?]*|\[?[0-9a-fA-F:.*?]*:[0-9a-fA-F:.*?]*\]?)(:[\d*?]+)?", re.ASCII
)
"""Texts that are the address of a client, in full or in part, and not its name."""

_PACKETS = re.compile(r"#?(\d{1,18})(?:-#?(\d{1,18}))?", re.ASCII)


class PartFilters(TypedDict, total=False):
    """Arguments of `Selection` for functions that take them by name: all parts of the traffic."""

    from_: times.Time | None
    to: times.Time | None
    queue: Texts | None
    exchange: Texts | None
    routing_key: Texts | None
    method: Texts | None
    client: Texts | None
    user: Texts | None
    vhost: Texts | None
    message_id: Texts | None
    outcome: Texts | None
    errors: bool
    packet: str | int | None
    tz: str | None


class Filters(PartFilters, total=False):
    """The same for functions that choose rows of tables."""

    connection: str | None
    channel: int | None
    where: str | None


@dataclass(frozen=True)
class Found:
    """Connections and channels that the filters by name choose. None leaves all.

    Attributes:
        connections: Ids of connections whose client, user and vhost match.
        channels: Connection ids and channels on which something matches.
        messages: Messages that match: (connection, sender, channel, packet, which of that packet).
    """

    connections: frozenset[str] | None = None
    channels: frozenset[tuple[str, int]] | None = None
    messages: frozenset[tuple[Any, ...]] | None = None


@dataclass(frozen=True)
class Selection:
    """A part of the traffic. None leaves nothing out; of several filters all have to hold.

    Raises UsageError for a value that cannot be read, for times with nothing between them, and for
    an empty connection.

    Attributes:
        connection: A connection's id or the beginning of it, its client's `address:port`, or
            `:port`.
        channel: A channel's number.
        from_, to: Times: from the first on, before the second. Seconds since the capture began
            (`3.5`, `+3.5`), `500ms`, `1m30s`, `12:00:00` (the day the capture began),
            `2026-01-31T12:00:00`, `2026-01-31T12:00:00+01:00`, or seconds since 1970. Numbers,
            `datetime` and `timedelta` too.
        queue, exchange, routing_key, method, message_id, outcome: Values of these columns. `*`
            stands for any text, `?` for one character. A method may be named without its class. The
            exchange without a name is `(default)` or empty. Of several, in a list, one has to
            match; so of the next three.
        client: A client by the name of its connection, its product, its address, or `address:port`.
        user, vhost: Of the connection.
        errors: Only what failed: methods that report an error, messages that were returned, refused
            or cut, connections and channels closed with an error, findings of that severity.
        packet: The number of a packet as Wireshark counts them, or two with `-` between.
        where: A SQL expression over the columns of the table that is read, also over those that are
            made only where they are named.
        tz: The time zone of times that are written, and of `from_` and `to` where they name none:
            `Europe/Berlin`, or `local`. None for UTC.
        limit: Rows after which to stop.
        found: The result of a first reading; see `Finder`.
    """

    connection: str | None = None
    channel: int | None = None
    from_: times.Time | None = None
    to: times.Time | None = None
    queue: Texts | None = None
    exchange: Texts | None = None
    routing_key: Texts | None = None
    method: Texts | None = None
    client: Texts | None = None
    user: Texts | None = None
    vhost: Texts | None = None
    message_id: Texts | None = None
    outcome: Texts | None = None
    errors: bool = False
    packet: str | int | None = None
    where: str | None = None
    tz: str | None = None
    limit: int | None = None
    found: Found | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        check_types(self)
        for name in TEXTS:
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                object.__setattr__(self, name, texts := several(name, value, str))
                if not texts:
                    raise UsageError(f"{name} is an empty list; leave it out, or name one")
        for value in vars(self).values():
            for text in value if isinstance(value, tuple) else (value,):
                if isinstance(text, str):
                    text.encode()  # for a lone surrogate Arrow's error is unclear
        if self.connection == "":
            text = "`connection` is empty; `amqpsniff connections` lists their ids"
            raise UsageError(text, "connection")
        if self.limit is not None and self.limit < 0:
            raise UsageError(f"limit is {self.limit}; it is a number of rows, 0 or more")
        times.span(self.from_, self.to, self.tz)
        if self.outcome is not None:
            from amqpsniff.session.codes import OUTCOMES

            for outcome in _texts_of(self.outcome):
                _check_known("outcome", outcome, OUTCOMES)
        if self.method is not None:
            for method in _texts_of(self.method):
                _check_known("method", method, _METHODS)
        if self.packet is not None:
            _packets(self.packet)

    def chooses(self) -> bool:
        """True if anything but `limit` leaves rows out."""
        return self.of(None) != Selection()

    def of(self, limit: int | None) -> Selection:
        """A copy with another limit, and without a time zone if no time is given."""
        timed = self.from_ is not None or self.to is not None
        return replace(self, limit=limit, tz=self.tz if timed else None)

    def split(self) -> tuple[Selection, Selection]:
        """The filters by name and `where`, and the connection, channel and times, apart."""
        around = {name: getattr(self, name) for name in ("connection", "channel", "from_", "to")}
        named = replace(self, connection=None, channel=None, from_=None, to=None, limit=None)
        return named, Selection(**around, tz=self.tz)

    def names(self) -> list[str]:
        """The filters by name that are given."""
        named = [name for name in TEXTS if getattr(self, name) is not None]
        return named + ["errors"] * self.errors + ["packet"] * (self.packet is not None)

    def packets(self) -> tuple[int, int] | None:
        """The first and the last packet number; None without `packet`."""
        return None if self.packet is None else _packets(self.packet)

    def condition(self, name: str, table: str) -> str | None:
        """A filter by name as SQL over the columns of a table; None if rows do not show it."""
        value = getattr(self, name)
        if name == "errors":
            return ERRORS.get(table)
        if name == "packet":
            text = PACKETS.get(table)
            return None if text is None else text.format(*_packets(value))
        columns = TEXTS[name].get(table, ())
        conditions = [
            matches(("client",) if _is_address(name, pattern) else columns, name, pattern)
            for pattern in _texts_of(value)
        ]
        return " OR ".join(conditions) if all(conditions) else None

    def missing(self, table: str) -> list[str]:
        """The filters that rows of a table do not show, or not all of them."""
        shared = FOUND_IN_MESSAGES if table == "frames" else ()
        missing = [
            name for name in self.names() if name in shared or self.condition(name, table) is None
        ]
        return missing + ["channel"] * (self.channel is not None and table == "connections")

    def check_read_once(self, tables: Iterable[str], capture: str) -> None:
        """Raise UsageError for filters that need a first reading of the input for these tables."""
        shown = {"frames": MOSTLY_SHOWN}
        names = dict.fromkeys(
            name
            for table in tables
            for name in self.missing(table)
            if name not in shown.get(table, ())
        )
        if names:
            raise read_twice(", ".join(f"`{name}`" for name in names), capture, *names)

    def first_reading(self, tables: Iterable[str], started: Started) -> Finder | None:
        """The `Finder` for a first reading for rows of these tables; None if none is needed."""
        finder = Finder(self, tables, started)
        return finder if finder.tables else None

    def matches_connection(self) -> Callable[[str, str, str], bool] | None:
        """A test of a connection's id, client and server; None if every connection is wanted."""
        tests = [*self._connection_tests()]
        if not tests:
            return None
        return lambda *ends: all(test(*ends) for test in tests)

    def _connection_tests(self) -> Iterator[Callable[[str, str, str], bool]]:
        connection = self.connection
        if connection is not None:
            if ":" not in connection:
                beginning = connection.lower()
                yield lambda connection_id, client, server: connection_id.startswith(beginning)
            elif connection.startswith(":"):
                yield lambda connection_id, client, server: client.endswith(connection)
            else:
                yield lambda connection_id, client, server: client == connection
        clients = () if self.client is None else _texts_of(self.client)
        if clients and all(map(_ADDRESS.fullmatch, clients)):
            patterns = [
                pattern.replace("[", "[[]") for client in clients for pattern in _addresses(client)
            ]
            yield lambda connection_id, client, server: any(
                fnmatchcase(client, pattern) for pattern in patterns
            )
        if self.found is not None:
            ids = self.found.connections
            if ids is not None:
                yield lambda connection_id, client, server: connection_id in ids
            if self.found.channels is not None:
                used = {connection_id for connection_id, _ in self.found.channels}
                yield lambda connection_id, client, server: connection_id in used

    def span(self, started: Started) -> tuple[int | None, int | None]:
        """The first nanosecond that is wanted and the first that no longer is; None for open."""
        start_ns = started() or 0
        first, last = times.span(self.from_, self.to, self.tz)
        return (
            None if first is None else first(start_ns),
            None if last is None else last(start_ns),
        )


def selection(part: Filters, limit: int | None = None) -> Selection:
    """The selection of these arguments; raises UsageError for an unknown one."""
    names = [field.name for field in fields(Selection) if field.name not in ("limit", "found")]
    for name in part:
        if name == "top":
            raise UsageError("`top` is now `limit`")
        if name not in names:
            choices = ", ".join(names)
            raise UsageError(f"there is no `{name}` to choose rows by; there are {choices}")
    return Selection(limit=limit, **part)


class Finder:
    """Resolves the filters by name in a first reading: `add` batches, then take `found`.

    Args:
        selection: The part of the traffic.
        tables: Names of the tables whose rows will be chosen.
        started: Returns the time at which the capture began.

    Attributes:
        tables: Columns that have to be read, by table; empty if nothing has to.
    """

    def __init__(self, selection: Selection, tables: Iterable[str], started: Started) -> None:
        self._selection = selection
        missing = {table: set(selection.missing(table)) for table in tables}
        self._connections: set[str] = set()
        self._channels: set[tuple[str, int]] = set()
        self._messages: set[tuple[Any, ...]] = set()
        self._positions = MessagePositions()
        self._of_connection: dict[str, RowFilter] = {}
        self._of_channel: dict[str, RowFilter] = {}
        self._of_message: dict[str, RowFilter] = {}
        if any(names & {*OF_CONNECTIONS} for names in missing.values()):
            filters = {name: getattr(selection, name) for name in OF_CONNECTIONS}
            part = Selection(connection=selection.connection, **filters)
            self._of_connection = {
                "connections": RowFilter(part, "connections", started, alone=True)
            }
        traffic = replace(selection, where=None, limit=None, client=None, user=None, vhost=None)
        if missing.get("frames", set()) - {*OF_CONNECTIONS}:
            self._of_message = {"messages": RowFilter(traffic, "messages", started, alone=True)}
        others = {table: names - {*OF_CONNECTIONS} for table, names in missing.items()}
        if any(names for table, names in others.items() if table != "frames"):
            if traffic.errors and not any("errors" in names for names in others.values()):
                traffic = replace(traffic, errors=False)
            self._of_channel = {
                table: RowFilter(traffic, table, started, alone=True)
                for table in ("frames", "messages")
                if None not in (traffic.condition(name, table) for name in traffic.names())
            }
        self.tables: dict[str, Collection[str]] = {}
        for chosen in (self._of_connection, self._of_channel, self._of_message):
            for table, rows in chosen.items():
                self.tables[table] = {*self.tables.get(table, ()), *rows.columns, *_KEYS[table]}

    def add(self, table: str, batch: Any) -> None:
        """Look through a batch of one of the tables."""
        from amqpsniff.tables.values import values

        if rows := self._of_connection.get(table):
            self._connections.update(values(rows.of(batch), "connection_id"))
        if rows := self._of_channel.get(table):
            chosen = rows.of(batch)
            pairs = zip(values(chosen, "connection_id"), values(chosen, "channel"), strict=True)
            self._channels.update(pairs)
        if rows := self._of_message.get(table):
            messages = self._positions.of(batch)
            numbers = values(rows.of(_numbered(batch)), _AT)
            self._messages.update(key for at in numbers if (key := messages[at]) is not None)

    def found(self) -> Selection:
        """The selection with the result of the reading, after its end."""
        found = Found(
            frozenset(self._connections) if self._of_connection else None,
            frozenset(self._channels) if self._of_channel else None,
            frozenset(self._messages) if self._of_message else None,
        )
        return replace(self._selection, found=found)


_KEYS = {
    "connections": ("connection_id",),
    "frames": ("connection_id", "channel"),
    "messages": ("connection_id", "sender", "channel", "packet_number", "method", "delivery_tag"),
}
"""Columns by which rows belong together, by table."""

_AT = "row"
"""A column with the number of a row in its batch."""


def _numbered(batch: Any) -> Any:
    """A batch with the column `_AT`."""
    if _AT in batch.schema.names:
        return batch
    import pyarrow as pa

    numbers = pa.array(range(batch.num_rows), pa.int64())
    names = [*batch.schema.names, _AT]
    return pa.RecordBatch.from_arrays([*batch.columns, numbers], names=names)


class MessagePositions:
    """Numbers the messages of rows of `frames` or `messages`, read in order.

    Contents of a channel and a sender follow each other, so the number of a message among those of
    its packet is the same in both tables. Transfers of AMQP 1.0 have the delivery's id; those of
    one delivery may stand between those of others.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._begun: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def of(self, batch: Any) -> list[tuple[Any, ...] | None]:
        """The message of each row: (connection, sender, channel, packet, number), or None.

        The number of a delivery of AMQP 1.0 is its id, behind the number 0.
        """
        from amqpsniff.tables.values import values

        if "frame_type" not in batch.schema.names:
            rows = zip(*(values(batch, name) for name in _KEYS["messages"]), strict=True)
            return [
                self._delivery(tuple(place), packet, number, more=False)
                if method in MESSAGES
                else self._next(tuple(place), packet)
                for *place, packet, method, number in rows
            ]
        names = (*_KEYS["messages"], "frame_type", "arguments")
        return [
            self._of_frame(tuple(row[:3]), *row[3:])
            for row in zip(*(values(batch, name) for name in names), strict=True)
        ]

    def _of_frame(
        self,
        where: tuple[Any, ...],
        packet: int,
        method: str | None,
        number: int | None,
        kind: str,
        arguments: str | None,
    ) -> tuple[Any, ...] | None:
        """The message of a frame."""
        if method == "transfer":
            return self._delivery(where, packet, number, more=_MORE in (arguments or ""))
        if kind == "method" and method in CONTENT_METHODS:
            return self._next(where, packet)
        return self._last.get(where) if kind in _PARTS else None

    def _next(self, where: tuple[Any, ...], packet: int) -> tuple[Any, ...]:
        """The next message of a channel."""
        last = self._last.get(where)
        number = last[-1] + 1 if last is not None and last[-2] == packet else 0
        self._last[where] = key = (*where, packet, number)
        return key

    def _delivery(
        self, where: tuple[Any, ...], packet: int, number: int | None, *, more: bool
    ) -> tuple[Any, ...]:
        """A delivery of a session, which continues while there is `more`."""
        delivery = (*where, number)
        key = self._begun.pop(delivery, None) or (*where, packet, 0, number)
        if more:
            self._begun[delivery] = key
        return key


_MORE = '"more":true'
"""Text in the arguments of a transfer whose delivery continues in the next transfer."""

_PARTS = ("header", "body")
"""Types of the frames that follow the method of a message."""


class RowFilter:
    """The rows of one table that a selection chooses, batch by batch.

    Raises FilterError for a `where` that cannot be evaluated, before anything is read, and
    UsageError for a filter that needs a first reading which was not made.

    Args:
        alone: Choose by columns of this table only, without a first reading.

    Attributes:
        selection: The part of the traffic.
        table: The name of the table.
        columns: Names of the columns that are read to choose rows.
        kept: Rows chosen so far.
        left: Rows that `limit` still leaves; None without a limit.
    """

    def __init__(
        self, selection: Selection, table: str, started: Started, *, alone: bool = False
    ) -> None:
        self.selection = selection
        self.table = table
        self.matched = 0
        self.remaining = selection.limit
        self._started = started
        missing = [] if alone else selection.missing(table)
        if missing and selection.found is None:
            selection.check_read_once([table], "the capture")
        self._found = Found() if alone or not missing else selection.found or Found()
        self._positions = MessagePositions()
        conditions = {name: selection.condition(name, table) for name in selection.names()}
        traffic = [text for name, text in conditions.items() if name not in OF_CONNECTIONS]
        self._named = self._where = None
        if None not in traffic or table != "frames":  # else it is their message that shows it
            self._named = _conjunction(table, traffic)
        self._connected = _conjunction(table, [conditions.get(name) for name in OF_CONNECTIONS])
        if selection.where is not None:
            self._where = _expression(table, selection.where, "where")

    @property
    def columns(self) -> frozenset[str]:
        part, table = self.selection, self.table
        names: set[str] = set()
        if part.connection is not None or self._found != Found():
            names.update(("connection_id", "client"))
        if part.channel is not None or self._found.channels is not None:
            names.update(("channel",) if table != "connections" else ())
        if part.from_ is not None or part.to is not None:
            names.update(("start_ns", "end_ns") if table in SPANNING else ("ts_ns",))
        if table == "frames" and self._found.messages is not None:
            names.update((*_KEYS["messages"], "frame_type", "arguments"))
        for condition in (self._named, self._connected, self._where):
            names.update(condition.columns if condition is not None else ())
        return frozenset(names)

    def needed(self, shown: Collection[str] | None = None) -> frozenset[str]:
        """The columns to read where these are shown; None for those of the table contract."""
        from amqpsniff.tables.schema import schema_of

        usual = schema_of(self.table).names if shown is None else shown
        return self.columns.union(usual)

    @property
    def done(self) -> bool:
        """True once `limit` is reached."""
        return self.remaining is not None and self.remaining <= 0

    def of(self, batch: Any) -> Any:
        """The wanted rows of a batch, as a batch that may be empty."""
        batch = self._by_name(batch)
        for holds in self._masks():
            batch = batch.filter(holds(batch))
        for name, expression in ((None, self._connected), ("where", self._where)):
            if expression is not None and batch.num_rows:
                batch = _filtered(expression, batch, name)
        if self.remaining is not None:
            batch = batch.slice(0, self.remaining)
            self.remaining -= batch.num_rows
        self.matched += batch.num_rows
        return batch

    def mask(self, batch: Any) -> Any:
        """A mask of the wanted rows of a batch."""
        import pyarrow as pa

        from amqpsniff.tables.values import values

        positions = frozenset(values(self.of(_numbered(batch)), _AT))
        return pa.array((at in positions for at in range(batch.num_rows)), pa.bool_())

    def _by_name(self, batch: Any) -> Any:
        """The rows of a batch that fulfil the filters by name."""
        if self.table != "frames" or self._found.messages is None:
            return batch if self._named is None else _filtered(self._named, batch)
        from amqpsniff.tables.values import values

        keys = self._positions.of(batch)
        rows = {at for at, key in enumerate(keys) if key in self._found.messages}
        if self._named is not None:
            rows.update(values(_filtered(self._named, _numbered(batch)), _AT))
        import pyarrow as pa

        return batch.take(pa.array(sorted(rows), pa.int64()))

    def _masks(self) -> Iterator[Callable[[Any], Any]]:
        """The conditions that rows must fulfil, cheap ones first."""
        part, found = self.selection, self._found
        if part.channel is not None and self.table != "connections":
            yield lambda rows: _compute().equal(rows.column("channel"), part.channel)
        if part.connection is not None:
            yield lambda rows: _of_connection(rows, part.connection or "")
        from_ns, to_ns = part.span(self._started) if part.from_ or part.to else (None, None)
        first, last = ("start_ns", "end_ns") if self.table in SPANNING else ("ts_ns", "ts_ns")
        if from_ns is not None:
            yield lambda rows: _known_time(
                _compute().greater_equal(rows.column(last), from_ns), last
            )
        if to_ns is not None:
            yield lambda rows: _known_time(_compute().less(rows.column(first), to_ns), first)
        if found.connections is not None:
            ids = found.connections
            yield lambda rows: _of_connections(rows, ids)
        if found.channels is not None and self.table != "frames":
            channels = found.channels
            yield lambda rows: _on_channels(rows, channels, self.table)


def no_match(part: Selection, number: int) -> UsageError:
    """The error for a selection to which none of the `number` connections of a capture belongs."""
    if part.connection is not None:
        return no_connection(part.connection, number)
    names = part.names()
    filters = " ".join(f"`{name}` {shown(getattr(part, name))}" for name in names)
    hint = "`amqpsniff connections` lists them"
    return UsageError(f"nothing of {filters} among {number} connections; {hint}", *names)


def no_connection(name: str, number: int) -> UsageError:
    """The error for a connection that is not among the `number` connections of a capture."""
    return UsageError(f"no connection `{name}` among {number}; `amqpsniff connections` lists them")


def _is_address(name: str, text: str) -> bool:
    """True for a client that is named by its address."""
    return name == "client" and _ADDRESS.fullmatch(text) is not None


def _texts_of(value: Texts) -> tuple[str, ...]:
    """The texts of a filter by name."""
    return (value,) if isinstance(value, str) else tuple(value)


def shown(value: object) -> str:
    """The value of a filter as a person reads it."""
    return " or ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _check_known(name: str, value: str, values: Collection[str]) -> None:
    """Raise UsageError for a value or a pattern that none of the known values matches."""
    patterns = _methods(value) if name == "method" else [value]
    if any(
        fnmatchcase(choice, pattern.replace("[", "[[]"))
        for choice in values
        for pattern in patterns
    ):
        return
    bare = value.removeprefix("*.")
    if any(character in bare for character in "*?0123456789"):
        return  # a pattern, or a method that no specification has
    import difflib

    close = difflib.get_close_matches(
        bare, [*values, *(choice.partition(".")[2] for choice in values)], 1
    )
    if close:
        hint = f"did you mean `{close[0]}`?"
    else:
        listed = "`amqpsniff spec` lists them" if name == "method" else ""
        hint = listed or f"there are {', '.join(values)}"
    raise UsageError(f"`{name}`: there is no `{bare}`; {hint}", name)


def _methods(value: str) -> list[str]:
    """Patterns of a method; without its class also the name of a performative of AMQP 1.0."""
    return [value] if "." in value or "*" in value else [f"*.{value}", value]


def _packets(value: str | int) -> tuple[int, int]:
    """The first and the last number."""
    match = _PACKETS.fullmatch(str(value))
    if match is None or int(match[2] or match[1]) < int(match[1]):
        text = f"`packet` {value!r} is not a number of a packet; write 496, or 490-510"
        raise UsageError(text, "packet")
    return int(match[1]), int(match[2] or match[1])


def matches(columns: Iterable[str], name: str, value: str) -> str:
    """SQL that is true if one of the columns has the value of a filter by name or matches it."""
    if name == "exchange" and value == DEFAULT_EXCHANGE:
        value = ""
    return " OR ".join(_matches(column, value) for column in columns)


def _matches(column: str, value: str) -> str:
    patterns = {"client": _addresses, "method": _methods}.get(column, lambda text: [text])(value)
    return " OR ".join(_like(column, pattern) for pattern in patterns)


def _addresses(value: str) -> list[str]:
    """Patterns of address and port for an address, a port, or both."""
    host = value.removeprefix("[").partition("]")[0]
    with suppress(ValueError):  # not one of IPv6, or a part or a pattern
        value = value.replace(host, str(IPv6Address(host)), 1)
    return [f"*{value}"] if value.startswith(":") else [value, f"{value}:*", f"[{value}]:*"]


def _like(column: str, pattern: str) -> str:
    if not set(pattern) & set("*?"):
        return f'"{column}" = {_quoted(pattern)}'
    text = re.sub(r"([\\%_])", r"\\\1", pattern).replace("*", "%").replace("?", "_")
    return f"\"{column}\" LIKE {_quoted(text)} ESCAPE '\\'"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _expression(table: str, where: str, parameter: str | None = None) -> Filter:
    """The filter of an expression, which is the value of a parameter or made from filters."""
    from amqpsniff.tables.query import Filter
    from amqpsniff.tables.schema import schema_of

    try:
        return Filter(schema_of(table, everything=True), where)
    except FilterError as error:
        raise _refused(error, parameter) from None


def _conjunction(table: str, conditions: Iterable[str | None]) -> Filter | None:
    """The expression that all conditions hold; None for those that rows do not show."""
    texts = [f"({text})" for text in conditions if text is not None]
    return _expression(table, " AND ".join(texts)) if texts else None


def _filtered(expression: Filter, batch: Any, parameter: str | None = None) -> Any:
    try:
        return expression.of(batch)
    except FilterError as error:
        raise _refused(error, parameter) from None


def _refused(error: FilterError, parameter: str | None) -> FilterError:
    """The error of an expression with where it comes from."""
    if parameter is None:
        return FilterError(f"filter: {error}")
    return FilterError(f"`{parameter}`: {error}", parameter)


def _compute() -> Any:
    """Arrow's functions, which take as long to import as a small capture to read."""
    import pyarrow.compute

    return pyarrow.compute


def _known_time(mask: Any, name: str) -> Any:
    """The mask; an unknown beginning or end lies outside the capture, so it counts as True."""
    return mask if name == "ts_ns" else _compute().fill_null(mask, True)


def _of_connections(rows: Any, ids: frozenset[str]) -> Any:
    """A mask of the rows of these connections."""
    from amqpsniff.analysis.counting import is_one_of

    return is_one_of(rows.column("connection_id"), ids)


def _on_channels(rows: Any, channels: frozenset[tuple[str, int]], table: str) -> Any:
    """A mask of the rows of these channels; rows of no channel go with their connection."""
    if table == "connections":
        return _of_connections(rows, frozenset(connection_id for connection_id, _ in channels))
    import pyarrow as pa

    from amqpsniff.tables.values import values

    used = {connection_id for connection_id, _ in channels}
    pairs = zip(values(rows, "connection_id"), values(rows, "channel"), strict=True)
    return pa.array(
        (pair in channels or (not pair[1] and pair[0] in used) for pair in pairs), pa.bool_()
    )


def _of_connection(rows: Any, connection: str) -> Any:
    """A mask of the rows of a connection, named by its id or its client, in full or in part."""
    import pyarrow as pa

    pc = _compute()

    def mask(name: str, test: Callable[[Any], Any]) -> Any:
        column = rows.column(name)
        if not pa.types.is_dictionary(column.type):
            return test(column)
        return pc.take(test(column.dictionary), column.indices)

    if ":" not in connection:
        return mask("connection_id", lambda ids: pc.starts_with(ids, connection.lower()))
    if connection.startswith(":"):
        return mask("client", lambda names: pc.ends_with(names, connection))
    return mask("client", lambda names: pc.equal(names, connection))
