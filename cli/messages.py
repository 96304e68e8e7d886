"""`amqpsniff messages`: the messages table for reading."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Any

from amqpsniff.analysis.client_names import COLUMNS, ClientNames
from amqpsniff.analysis.in_full import message_fields

from .export import write_rows
from .options import By, Input, Rows, TimeForm, at_least, spread
from .output import Output
from .reading import Reading
from .render.body import preview
from .render.lines import Lines
from .render.tree import tree

FORMATS = ("text", "ndjson", "csv")


@spread("""
    Output:
        -v --verbose: Under each line all properties and headers.
        --bodies: Show whole bodies, in rows too.
        --body-limit N: Bytes of each body shown under its line, as text or hex. [default]
        --format F: Output format: {FORMATS}; the last two give the rows of the messages table.
            [default]
""")
def messages(
    source: Input,
    rows: Rows,
    verbose: bool = False,
    bodies: bool = False,
    body_limit: Annotated[int, at_least(0)] = 0,
    by: By = None,
    time: TimeForm = "relative",
    format_: str = FORMATS[0],
) -> int:
    """List messages: what was published, delivered, got and returned, and what became of it.

    A line has the time, the packet's number, the client, the direction (→ to the server, ← from
    it) and the channel. The outcome follows with the time it took, on a terminal at the right edge.
    Then come method, queue (q) of a delivery, exchange (x), routing key (rk), size, a mark if parts
    are not in the capture, and properties.

    A publish is confirmed, rejected, returned or unconfirmed; a delivery acked, requeued,
    discarded, automatic (auto-ack) or unsettled. `amqpsniff trace` joins the lines of one message.

    Examples:

        amqpsniff messages trace.pcapng --queue "orders.*" --errors
        amqpsniff messages trace.pcapng --client shop --outcome unconfirmed
        amqpsniff messages trace.pcapng --where "body_size > 100000" --body-limit 99
        amqpsniff messages trace.pcapng --exchange celery --by operation
        amqpsniff messages trace.pcapng --format csv > messages.csv
    """
    if by is not None:
        from .report_table import write_operations

        return write_operations(source, rows, rows.limit, format_)
    if format_ != "text":
        return write_rows(source, rows, "messages", format_, bodies=bodies)
    limit = sys.maxsize if bodies else body_limit
    reading, output = Reading(source, rows, bodies=limit > 0), Output()
    row_filter = reading.row_filter(rows, "messages")
    clients = ClientNames()
    lines = Lines(output, reading, time, clients)
    shown = row_filter.needed() | {"address"} | ({"annotations"} if verbose else set())
    columns = {"frames": COLUMNS, "messages": shown}
    for table, batch in reading.rows("frames", "messages", columns=columns):
        if table == "frames":
            clients.add(batch)
        else:
            chosen = row_filter.of(_in_order(batch))
            output.lines(_text(chosen, lines, output, limit, verbose=verbose))
            if row_filter.done:
                break
    reading.miss(row_filter)
    return reading.exit_code


def _text(
    batch: Any, lines: Lines, output: Output, body_limit: int, *, verbose: bool
) -> Iterator[str]:
    """The lines of messages; without a `body_limit` no bodies are shown."""
    from amqpsniff.tables.values import rows_of

    for message in rows_of(batch):
        yield lines.message(message)
        if verbose:
            yield from tree(message_fields(message), output.paint)
        if body_limit and message["body"] is not None:
            yield from preview(message, body_limit, output)


def _in_order(batch: Any) -> Any:
    """The rows of a batch by the time of their method; they come in the order of their end.

    That is the same one mostly, and Arrow's functions take as long to import as much else here.
    """
    times_ns = batch.column("ts_ns").to_pylist()
    if None not in times_ns and all(time_ns <= next_ for time_ns, next_ in pairwise(times_ns)):
        return batch
    import pyarrow.compute as pc

    return batch.take(pc.sort_indices(batch.column("ts_ns")))
