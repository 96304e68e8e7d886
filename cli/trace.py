"""`amqpsniff trace`: the whole way of messages, over all connections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from amqpsniff.analysis.one_line import Part
from amqpsniff.units import duration

from .entry import complain
from .files import standard_output
from .options import Input, Rows, TimeForm, spread
from .output import Output
from .reading import NO_ROW, Reading
from .render.lines import Lines, joined

if TYPE_CHECKING:
    from amqpsniff.analysis.trace import TracedMessage


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
    time: TimeForm = "relative",
    format_: str = FORMATS[0],
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
        output.lines(trace_lines(tracer.messages()[:limit], lines, output))
    if not tracer.rows:
        reading.warn_of_nothing(NO_ROW)
    return reading.exit_code


def trace_lines(messages: Iterable[TracedMessage], lines: Lines, output: Output) -> Iterator[str]:
    """The lines of all messages, an empty one between them."""
    for number, message in enumerate(messages):
        if number:
            yield ""
        yield from _message_lines(message, lines, output)


def _message_lines(message: TracedMessage, lines: Lines, output: Output) -> Iterator[str]:
    yield joined(message.heading(), output.paint, output.width)
    began_ns = message.rows[0]["ts_ns"]
    for place, parts in message.events():
        last = []
        if place.ts_ns is not None and began_ns is not None and place.ts_ns > began_ns:
            last.append(Part("key", f"+{duration(place.ts_ns - began_ns)}"))
        yield lines.step(place, parts, last)
    for reply in message.replies:
        yield from _message_lines(reply, lines, output)
