"""`amqpsniff trace`: the whole way of messages, over all connections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from amqpsniff.analysis.one_line import STYLES, WAITING, Part, named, property_parts, status
from amqpsniff.spec import DELIVERIES, PUBLISHES
from amqpsniff.units import duration, octets
from amqpsniff.wire_text import harmless, quoted

from .entry import complain
from .files import standard_output
from .options import Input, Rows, TimeForm, one_of, spread
from .output import Output
from .reading import NO_ROW, Reading
from .render.clock import FORMS as TIME_FORMS
from .render.lines import NOBODY, Lines, joined

if TYPE_CHECKING:
    from amqpsniff.analysis.trace import Row, TracedMessage


FORMATS = ("text", "ndjson", "csv")


@spread("""
    Filters:
        --correlation-id X: A request and its reply.
        --header K=V: Header K has the value V.
        --body-sha256 H: SHA-256 of the whole body, in hex.
        --trace-id X: Trace id of distributed tracing, in hex.
        --operation X: Task, event or message type.
        --key X: Id of a framework. Of a message, of a conversation, or of what led to a message.

    Output:
        --format F: Output format: {FORMATS}; the last two give the rows of the messages table.
            [default]
""")
def trace(
    source: Input,
    rows: Rows,
    correlation_id: str | None = None,
    header: str | None = None,
    body_sha256: str | None = None,
    trace_id: str | None = None,
    operation: str | None = None,
    key: str | None = None,
    time: TimeForm = TIME_FORMS[0],
    format_: Annotated[str, one_of(FORMATS, "no format {} here")] = FORMATS[0],
) -> int:
    """Follow messages on their way, over all connections: published, confirmed, delivered, acked.

    What is known of one message stands together, in the order of time; at the end of each line is
    the time since the first. Copies of a message, also redelivered or dead-lettered ones, are
    recognised by message_id. Without one, body, exchange, routing key and most properties decide.
    Replies, recognised by reply_to and correlation_id, follow their request. What a framework says
    a message led to comes with it: tasks of a task, calls of a call.

    Filters name the messages; --connection, --channel, --from and --to say where they are followed.
    Of several all must hold. --limit is a number of messages, in ndjson and csv of rows.

    Examples:

        amqpsniff trace trace.pcapng --message-id 6852ac0124624b6f80c23e9278e7ee21
        amqpsniff trace trace.pcapng --correlation-id eef8d969-fd36-42e8-b94f
        amqpsniff trace trace.pcapng --trace-id 4bf92f3577b34da6a3ce929d0e0e4736
        amqpsniff trace captures/ --header tenant=42 --from 12:00 --to 12:05
    """
    from amqpsniff.analysis.trace import MAX_ROWS, WantedMessages

    chosen = rows.selection()
    wanted = WantedMessages(correlation_id, header, body_sha256, trace_id, operation, key, chosen)
    limit = rows.limit
    reading = Reading(source, rows)
    with reading.passing() as capture:
        tracer = capture.passes.tracer(wanted)
    if tracer.full and not source.quiet:
        complain(f"warning: only the first {MAX_ROWS:,} rows that match are shown")
    if format_ != "text":
        from amqpsniff.tables.export import write

        table = tracer.table().slice(0, limit)
        write(table.to_batches(), table.schema, format_, standard_output())
    else:
        output = Output()
        lines = Lines(output, reading, time, tracer.clients)
        output.lines(told(tracer.messages()[:limit], lines, output))
    if not tracer.rows:
        reading.warn_of_nothing(NO_ROW)
    return reading.exit_code


DEEDS = dict.fromkeys(PUBLISHES, "published") | dict.fromkeys(DELIVERIES, "delivered")
DEEDS |= {"basic.get-ok": "got", "basic.return": "returned"}
"""Events of a message by the method of its row."""

UNSAID = ("returned", "automatic")
"""Outcomes without a line: the first has a row of its own, the second is no event."""


class TraceEvent(NamedTuple):
    """An event of a message: when and where, and the text of its line."""

    place: Any
    parts: list[Part]


def told(messages: Iterable[TracedMessage], lines: Lines, output: Output) -> Iterator[str]:
    """The lines of all messages, an empty one between them."""
    for number, message in enumerate(messages):
        if number:
            yield ""
        yield from _told(message, lines, output)


def _told(message: TracedMessage, lines: Lines, output: Output) -> Iterator[str]:
    yield joined(_heading(message), output.paint, output.width)
    began_ns = message.rows[0]["ts_ns"]
    for step in sorted(_steps(message), key=_when):
        last = []
        if step.place.ts_ns is not None and began_ns is not None and step.place.ts_ns > began_ns:
            last.append(Part("key", f"+{duration(step.place.ts_ns - began_ns)}"))
        yield lines.step(step.place, step.parts, last)
    for reply in message.replies:
        yield from _told(reply, lines, output)


def _heading(message: TracedMessage) -> Iterator[Part]:
    """The message itself, by its first row."""
    first = message.rows[0]
    publishes = sum(row["method"] in PUBLISHES for row in message.rows)
    if message.requested_ns is None:
        yield Part("heading", "message")
    elif first["ts_ns"] is not None:
        yield Part("heading", f"reply after {duration(first['ts_ns'] - message.requested_ns)}")
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


def _steps(message: TracedMessage) -> Iterator[TraceEvent]:
    for row in message.rows:
        yield TraceEvent(SimpleNamespace(**row), list(_deed(row, message.rows[0])))
        outcome = row["outcome"]
        if outcome in (None, *UNSAID, *WAITING):
            continue
        known = row["ts_ns"] is not None and row["outcome_ns"] is not None
        place = SimpleNamespace(
            **{
                **row,
                "packet_number": row["outcome_packet_number"],
                "ts_ns": row["ts_ns"] + row["outcome_ns"] if known else None,
                "sender": NOBODY,
            }
        )
        yield TraceEvent(place, [Part(_emphasis(outcome), str(outcome)), *_what(row)])


def _deed(row: Row, first: Row) -> Iterator[Part]:
    """The event of a row, without what the heading has said of the first row."""
    method = row["method"]
    style = "method.error" if method == "basic.return" else "method"
    yield Part(style, DEEDS.get(method) or str(method))
    if row["redelivered"]:
        yield Part("warning", "again")
    if row["reply_code"] is not None:
        yield Part("error", str(row["reply_code"]))
        yield Part("name", "", quoted(harmless(row["reply_text"] or "")))
    yield from _what(row)
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


def _what(row: Row) -> Iterator[Part]:
    """The queue and the delivery tag, which tell a delivery from others."""
    if row["queue"] is not None:
        yield named("queue", row["queue"])
    if row["delivery_tag"] is not None:
        yield named("delivery_tag", row["delivery_tag"])


def _emphasis(outcome: str) -> str:
    style = STYLES.get(outcome, "key")
    return "method" if style == "key" else style


def _when(step: TraceEvent) -> tuple[int, int]:
    return step.place.ts_ns or 0, step.place.packet_number or 0
